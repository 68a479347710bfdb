// SPDX-License-Identifier: Apache-2.0
// The engines that the host device offers for a graph: which of them depends on
// its convolution, or on that it has none. They compute the same bits; what
// they differ in is what clients look at: notes, knobs, workspace. Ids and
// knobs are such as cuDNN 9.19 has on an H100.
#include <stdint.h>

#include "src/host/cudnn/plan/plan.h"

enum {
  FORWARD = 1,
  DATA = 2,
  FILTER = 4,
  OTHER = 8, /* no convolution */
  ALL = FORWARD | DATA | FILTER | OTHER,
};

#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)
#define KNOB(name) CUDNN_KNOB_TYPE_##name

typedef enum { NO_WORKSPACE, COUNTERS, FLOATS_OF_RESULT } workspace_t;

typedef struct {
  int64_t id;
  unsigned kinds;
  bool tensor_cores; // halves, bfloat16, int8; float with inputs cut to TF32
  bool is_fallback;
  unsigned notes;
  workspace_t workspace;
  int knob_count;
  struct {
    cudnnBackendKnobType_t type;
    int64_t maximum; // from 0 in steps of 1; heuristics propose 0 and this
  } knob[2];
} engine_t;

static const engine_t engines[] = {
    {.id = 41,
     .kinds = FORWARD | DATA | FILTER,
     .tensor_cores = true,
     .notes = NOTE(TENSOR_CORE),
     .workspace = COUNTERS,
     .knob_count = 2,
     .knob = {{KNOB(TILE_SIZE), 3}, {KNOB(TILEK), 1}}},
    {.id = 10,
     .kinds = ALL,
     .workspace = NO_WORKSPACE,
     .knob_count = 2,
     .knob = {{KNOB(TILE_SIZE), 3}, {KNOB(IDX_MODE), 1}}},
    {.id = 57,
     .kinds = DATA | FILTER,
     .notes = NOTE(NONDETERMINISTIC) | NOTE(REDUCED_PRECISION_REDUCTION),
     .workspace = FLOATS_OF_RESULT,
     .knob_count = 1,
     .knob = {{KNOB(SPLIT_K_SLC), 7}}},
    {.id = 0, .kinds = ALL, .is_fallback = true, .workspace = NO_WORKSPACE},
};
enum { ENGINES = sizeof engines / sizeof *engines, COUNTER_BYTES = 131 };

// ---- the graph -------------------------------------------------------------

// The convolution's node, or NULL; *out_result: the tensor that it writes.
static const sdg_graph_node_t *conv_of(const sdg_graph_t *graph,
                                       unsigned *out_kind, int *out_result) {
  for (int i = 0; i < graph->node_count; i++) {
    const sdg_graph_node_t *node = &graph->node[i];
    switch ((int)node->kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      *out_kind = FORWARD;
      *out_result =
          sdg_graph_operand(node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
      return node;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      *out_kind = DATA;
      *out_result =
          sdg_graph_operand(node, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
      return node;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      *out_kind = FILTER;
      *out_result = sdg_graph_operand(
          node, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
      return node;
    }
  }
  *out_kind = OTHER;
  *out_result = -1;
  return NULL;
}

// The type of the filter, or of its gradient.
static cudnnDataType_t type_of(const sdg_graph_t *graph) {
  static const cudnnBackendAttributeName_t names[] = {
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW};
  unsigned kind;
  int result;
  const sdg_graph_node_t *node = conv_of(graph, &kind, &result);
  for (int i = 0; node && i < 3; i++) {
    int w = sdg_graph_operand(node, names[i]);
    if (w >= 0)
      return graph->tensor[w].type;
  }
  return CUDNN_DATA_DOUBLE;
}

static bool takes(const engine_t *engine, const sdg_graph_t *graph) {
  unsigned kind;
  int result;
  (void)conv_of(graph, &kind, &result);
  return (engine->kinds & kind) &&
         !(engine->tensor_cores && type_of(graph) == CUDNN_DATA_DOUBLE);
}

// Whether the library writes a kernel for this graph. These are the engines
// that can make nodes of CUDA graphs.
static bool compiles(const engine_t *engine, const sdg_graph_t *graph) {
  unsigned kind;
  int result;
  (void)conv_of(graph, &kind, &result);
  return kind == OTHER ? !engine->is_fallback
                       : engine->tensor_cores && graph->node_count > 1;
}

static const engine_t *engine_find(const sdg_graph_t *graph, int64_t id) {
  for (int i = 0; i < ENGINES; i++)
    if (engines[i].id == id && takes(&engines[i], graph))
      return &engines[i];
  return NULL;
}

// ---- answers ---------------------------------------------------------------

int host_plan_engines(const sdg_graph_t *graph, int room, int64_t *out_ids) {
  int count = 0;
  for (int i = 0; i < ENGINES && !host_plan_refuses(graph); i++)
    if (takes(&engines[i], graph)) {
      if (count < room)
        out_ids[count] = engines[i].id;
      count++;
    }
  return count;
}

bool host_plan_engine(const sdg_graph_t *graph, int64_t id,
                      host_engine_t *out) {
  const engine_t *engine = engine_find(graph, id);
  if (!engine || host_plan_refuses(graph))
    return false;
  *out = (host_engine_t){.knob_count = engine->knob_count};
  for (int k = 0; k < engine->knob_count; k++) {
    out->knob[k].type = engine->knob[k].type;
    out->knob[k].maximum = engine->knob[k].maximum;
    out->knob[k].stride = 1;
  }
  unsigned notes = engine->notes;
  if (engine->tensor_cores && type_of(graph) == CUDNN_DATA_FLOAT)
    notes |= NOTE(DOWN_CONVERT_INPUTS);
  for (int note = 0; note < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; note++)
    if (notes >> note & 1)
      out->numerical[out->numerical_count++] =
          (cudnnBackendNumericalNote_t)note;
  if (compiles(engine, graph)) {
    out->behavior[out->behavior_count++] =
        CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    out->behavior[out->behavior_count++] =
        CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
  }
  return true;
}

static sdg_graph_config_t config_of(const engine_t *engine, bool largest) {
  sdg_graph_config_t config = {.engine = engine->id,
                               .knob_count = engine->knob_count};
  for (int k = 0; k < engine->knob_count; k++)
    config.knob[k] = (sdg_graph_knob_t){engine->knob[k].type,
                                        largest ? engine->knob[k].maximum : 0};
  return config;
}

int host_plan_configs(const sdg_graph_t *graph, cudnnBackendHeurMode_t mode,
                      int room, sdg_graph_config_t *out) {
  int count = 0;
  bool fallback = mode == CUDNN_HEUR_MODE_FALLBACK;
  for (int i = 0; i < ENGINES && !host_plan_refuses(graph); i++) {
    if (engines[i].is_fallback != fallback || !takes(&engines[i], graph))
      continue;
    // Mode B proposes the other settings first.
    for (int k = 0; k < (engines[i].knob_count ? 2 : 1); k++, count++)
      if (count < room)
        out[count] =
            config_of(&engines[i], (k == 1) != (mode == CUDNN_HEUR_MODE_B));
  }
  return count;
}

// "No choice" leaves a knob to the engine.
static bool knob_fits(const engine_t *engine, const sdg_graph_knob_t *choice) {
  for (int k = 0; k < engine->knob_count; k++)
    if (engine->knob[k].type == choice->type)
      return choice->value >= 0 && choice->value <= engine->knob[k].maximum;
  return false;
}

cudnnStatus_t host_plan_check(const sdg_graph_t *graph,
                              const sdg_graph_config_t *config) {
  const char *rule = host_plan_refuses(graph);
  if (rule)
    return host_refuse(CUDNN_STATUS_NOT_SUPPORTED, rule);
  const engine_t *engine = engine_find(graph, config->engine);
  if (!engine)
    return host_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                       "an engine that exists for the graph");
  for (int k = 0; k < config->knob_count; k++)
    if (!knob_fits(engine, &config->knob[k]))
      return host_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                         "values in the ranges of the engine's knobs");
  return CUDNN_STATUS_SUCCESS;
}

int64_t host_plan_workspace(const sdg_graph_t *graph,
                            const sdg_graph_config_t *config) {
  const engine_t *engine = engine_find(graph, config->engine);
  unsigned kind;
  int result;
  (void)conv_of(graph, &kind, &result);
  if (!engine || engine->workspace == NO_WORKSPACE)
    return 0;
  if (engine->workspace == COUNTERS || result < 0)
    return COUNTER_BYTES;
  int64_t bytes = sizeof(float);
  for (int d = 0; d < graph->tensor[result].rank; d++)
    bytes *= graph->tensor[result].dim[d];
  return bytes;
}
