// SPDX-License-Identifier: Apache-2.0
// NVIDIA's planner on a machine without a GPU: its library plans for a device
// that a descriptor describes in JSON, where no handle is given.
#include "tests/host/planner/planner.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                           \
  X(cudnnBackendCreateDescriptor)                                              \
  X(cudnnBackendDestroyDescriptor)                                             \
  X(cudnnBackendSetAttribute)                                                  \
  X(cudnnBackendGetAttribute)                                                  \
  X(cudnnBackendFinalize)

static struct {
#define X(name) __typeof__(&name) name;
  FUNCTIONS(X)
#undef X
} lib;

typedef cudnnBackendDescriptor_t descriptor_t;

// ---- devices ---------------------------------------------------------------

static const struct {
  const char *name;
  int version, processors, l2_bytes, shared_bytes;
} devices[PLANNER_DEVICES] = {
    [PLANNER_H100] = {"H100", 900, 132, 52428800, 232448},
    [PLANNER_A100] = {"A100", 800, 108, 41943040, 166912},
    [PLANNER_B200] = {"B200", 1000, 148, 132644864, 232448},
};
static descriptor_t described[PLANNER_DEVICES];

const char *planner_device_name(planner_device_t device) {
  return devices[device].name;
}

// All keys are needed.
static const char format[] =
    "{\"deviceVer\":%d,\"driverVer\":13000,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
    "\"l2CacheSize\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"cudaDeviceId\":0,\"totalGlobalMem\":85520809984,"
    "\"deviceName\":\"%s\"}";

// ---- descriptors -----------------------------------------------------------

// What was made, and the first failure, after which nothing more is made.
typedef struct {
  cudnnStatus_t status;
  descriptor_t *made; // owned
  int count, room;
} maker_t;

static descriptor_t make(maker_t *m, cudnnBackendDescriptorType_t kind) {
  descriptor_t made = NULL;
  if (m->status)
    return NULL;
  if (m->count == m->room) {
    m->room = m->room ? 2 * m->room : 64;
    m->made = realloc(m->made, (size_t)m->room * sizeof *m->made);
    if (!m->made)
      abort();
  }
  m->status = lib.cudnnBackendCreateDescriptor(kind, &made);
  if (!m->status)
    m->made[m->count++] = made;
  return made;
}

static void set(maker_t *m, descriptor_t to, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count,
                const void *values) {
  if (!m->status)
    m->status = lib.cudnnBackendSetAttribute(to, name, type, count, values);
}

static int64_t get(maker_t *m, descriptor_t from,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t room, void *out) {
  int64_t count = 0;
  if (!m->status)
    m->status =
        lib.cudnnBackendGetAttribute(from, name, type, room, &count, out);
  return m->status ? 0 : count < room ? count : room;
}

static void refer(maker_t *m, descriptor_t to, cudnnBackendAttributeName_t name,
                  descriptor_t from) {
  set(m, to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &from);
}

static void finalize(maker_t *m, descriptor_t it) {
  if (!m->status)
    m->status = lib.cudnnBackendFinalize(it);
}

// Destroys what was made after the first `kept`, and forgets a failure.
static void undo(maker_t *m, int kept) {
  while (m->count > kept)
    (void)lib.cudnnBackendDestroyDescriptor(m->made[--m->count]);
  m->status = CUDNN_STATUS_SUCCESS;
}

bool planner_open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return false;
  }
#define X(name)                                                                \
  *(void **)&lib.name = dlsym(library, #name);                                 \
  if (!lib.name)                                                               \
    return false;
  FUNCTIONS(X)
#undef X
  maker_t m = {0};
  for (int i = 0; i < PLANNER_DEVICES; i++) {
    char text[sizeof format + 64];
    int length = snprintf(text, sizeof text, format, devices[i].version,
                          devices[i].processors, devices[i].l2_bytes,
                          devices[i].shared_bytes, devices[i].name);
    described[i] = make(&m, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set(&m, described[i], CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
        CUDNN_TYPE_CHAR, length + 1, text);
    finalize(&m, described[i]);
  }
  free(m.made); // the descriptors stay
  if (m.status)
    fprintf(stderr, "%s: no device can be described (%d)\n", path,
            (int)m.status);
  return !m.status;
}

// ---- graphs ----------------------------------------------------------------

struct planner_graph {
  maker_t maker;
  descriptor_t graph;
  int kept; // descriptors that are the graph's
};

static descriptor_t tensor_make(maker_t *m, const sdg_graph_tensor_t *tensor) {
  descriptor_t d = make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
#define SET(name, type, count, at)                                             \
  set(m, d, CUDNN_ATTR_TENSOR_##name, CUDNN_TYPE_##type, count, at)
  SET(DATA_TYPE, DATA_TYPE, 1, &tensor->type);
  SET(DIMENSIONS, INT64, tensor->rank, tensor->dim);
  SET(STRIDES, INT64, tensor->rank, tensor->stride);
  SET(UNIQUE_ID, INT64, 1, &tensor->uid);
  SET(BYTE_ALIGNMENT, INT64, 1, &tensor->alignment);
  SET(IS_VIRTUAL, BOOLEAN, 1, &tensor->is_virtual);
  SET(IS_BY_VALUE, BOOLEAN, 1, &tensor->is_by_value);
#undef SET
  finalize(m, d);
  return d;
}

// The descriptor that an operation's parameters are in, where they are not in
// the operation itself.
static const struct {
  cudnnBackendDescriptorType_t op, kind;
  cudnnBackendAttributeName_t first, last, refers;
} homes[] = {
#define HOME(op, kind, first, last, refers)                                    \
  {                                                                            \
    CUDNN_BACKEND_OPERATION_##op##_DESCRIPTOR,                                 \
        CUDNN_BACKEND_##kind##_DESCRIPTOR, CUDNN_ATTR_##kind##_##first,        \
        CUDNN_ATTR_##kind##_##last, CUDNN_ATTR_OPERATION_##refers              \
  }
    HOME(CONVOLUTION_FORWARD, CONVOLUTION, COMP_TYPE, SPATIAL_DIMS,
         CONVOLUTION_FORWARD_CONV_DESC),
    HOME(CONVOLUTION_BACKWARD_DATA, CONVOLUTION, COMP_TYPE, SPATIAL_DIMS,
         CONVOLUTION_BWD_DATA_CONV_DESC),
    HOME(CONVOLUTION_BACKWARD_FILTER, CONVOLUTION, COMP_TYPE, SPATIAL_DIMS,
         CONVOLUTION_BWD_FILTER_CONV_DESC),
    HOME(POINTWISE, POINTWISE, MODE, AXIS, POINTWISE_PW_DESCRIPTOR),
    HOME(REDUCTION, REDUCTION, OPERATOR, IS_DETERMINISTIC, REDUCTION_DESC),
    HOME(RESAMPLE_FWD, RESAMPLE, MODE, PADDING_MODE, RESAMPLE_FWD_DESC),
    HOME(RESAMPLE_BWD, RESAMPLE, MODE, PADDING_MODE, RESAMPLE_BWD_DESC),
    HOME(MATMUL, MATMUL, COMP_TYPE, PADDING_VALUE, MATMUL_DESC),
#undef HOME
};
enum { HOMES = sizeof homes / sizeof *homes };

static void parameter_set(maker_t *m, descriptor_t to,
                          const sdg_graph_parameter_t *parameter) {
  sdg_graph_values_t value;
  sdg_graph_values(parameter, &value);
  set(m, to, parameter->name, parameter->type, parameter->count, &value);
}

// Sets an attribute with all its tensors, if this operand is its first one.
static void operands_set(maker_t *m, descriptor_t op,
                         const sdg_graph_node_t *node, int first,
                         const descriptor_t *tensor) {
  cudnnBackendAttributeName_t name = node->operand[first].name;
  descriptor_t list[CUDNN_DIM_MAX * 8];
  int count = 0;
  for (int i = 0; i < node->operand_count; i++) {
    if (node->operand[i].name != name)
      continue;
    if (i < first)
      return;
    if (count == sizeof list / sizeof *list)
      m->status = CUDNN_STATUS_NOT_SUPPORTED;
    if (m->status)
      return;
    list[count++] = tensor[node->operand[i].tensor];
  }
  set(m, op, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, list);
}

static descriptor_t op_make(maker_t *m, const sdg_graph_t *graph,
                            const sdg_graph_node_t *node,
                            const descriptor_t *tensor) {
  int home = 0;
  while (home < HOMES && homes[home].op != node->kind)
    home++;
  descriptor_t how = home < HOMES ? make(m, homes[home].kind) : NULL;
  descriptor_t op = make(m, node->kind);
  for (int i = 0; i < node->parameter_count; i++) {
    const sdg_graph_parameter_t *p = &node->parameter[i];
    bool inside = home < HOMES && p->name >= homes[home].first &&
                  p->name <= homes[home].last;
    if (p->name != CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS &&
        p->name != CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS)
      parameter_set(m, inside ? how : op, p);
  }
  int64_t spatial = graph->tensor[node->operand[0].tensor].rank - 2;
  if (home < HOMES && homes[home].kind == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
    set(m, how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1,
        &spatial);
  if (home < HOMES && homes[home].kind == CUDNN_BACKEND_RESAMPLE_DESCRIPTOR)
    set(m, how, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1,
        &spatial);
  if (home < HOMES) {
    finalize(m, how);
    refer(m, op, homes[home].refers, how);
  }
  for (int i = 0; i < node->operand_count; i++)
    operands_set(m, op, node, i, tensor);
  finalize(m, op);
  return op;
}

planner_graph_t *planner_graph_create(const sdg_graph_t *graph,
                                      cudnnStatus_t *out_status,
                                      int *out_kind) {
  planner_graph_t *made = calloc(1, sizeof *made);
  descriptor_t *tensor = calloc((size_t)graph->tensor_count, sizeof *tensor);
  descriptor_t *op = calloc((size_t)graph->node_count, sizeof *op);
  if (!made || !tensor || !op)
    abort();
  maker_t *m = &made->maker;
  *out_kind = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  for (int t = 0; t < graph->tensor_count; t++)
    tensor[t] = tensor_make(m, &graph->tensor[t]);
  for (int n = 0; n < graph->node_count && !m->status; n++) {
    *out_kind = graph->node[n].kind;
    op[n] = op_make(m, graph, &graph->node[n], tensor);
  }
  if (!m->status)
    *out_kind = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
  made->graph = make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(m, made->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->node_count, op);
  finalize(m, made->graph);
  free(tensor);
  free(op);
  made->kept = m->count;
  *out_status = m->status;
  if (!m->status)
    return made;
  planner_graph_destroy(made);
  return NULL;
}

void planner_graph_destroy(planner_graph_t *graph) {
  if (!graph)
    return;
  undo(&graph->maker, 0);
  free(graph->maker.made);
  free(graph);
}

// ---- plans -----------------------------------------------------------------

static bool plan_try(maker_t *m, planner_device_t device, descriptor_t config) {
  descriptor_t plan = make(m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  refer(m, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, described[device]);
  refer(m, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  finalize(m, plan);
  return !m->status;
}

static void config_read(maker_t *m, descriptor_t config,
                        sdg_graph_config_t *out) {
  descriptor_t engine = make(m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  descriptor_t knob[SDG_GRAPH_KNOBS];
  for (int i = 0; i < SDG_GRAPH_KNOBS; i++)
    knob[i] = make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  memset(out, 0, sizeof *out);
  (void)get(m, config, CUDNN_ATTR_ENGINECFG_ENGINE,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
  (void)get(m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
            &out->engine);
  out->knob_count =
      (int)get(m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
               CUDNN_TYPE_BACKEND_DESCRIPTOR, SDG_GRAPH_KNOBS, knob);
  for (int i = 0; i < out->knob_count; i++) {
    (void)get(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
              CUDNN_TYPE_KNOB_TYPE, 1, &out->knob[i].type);
    (void)get(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
              1, &out->knob[i].value);
  }
}

enum { CONFIGS = 64 };

// Configurations that a heuristic proposes; descriptors are in `out`.
static int64_t proposals(planner_graph_t *graph, planner_device_t device,
                         cudnnBackendHeurMode_t mode, descriptor_t *out) {
  maker_t *m = &graph->maker;
  descriptor_t heuristic = make(m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  refer(m, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->graph);
  refer(m, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, described[device]);
  set(m, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  finalize(m, heuristic);
  for (int i = 0; i < CONFIGS; i++)
    out[i] = make(m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  return get(m, heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
             CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, out);
}

// Mode FALLBACK is the faster one to say that there is nothing.
static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A,
                                               CUDNN_HEUR_MODE_FALLBACK};
enum { MODES = sizeof modes / sizeof *modes };

bool planner_graph_proposes(planner_graph_t *graph, planner_device_t device,
                            sdg_graph_config_t *out) {
  int64_t count = 0;
  for (int i = MODES; i-- > 0 && count == 0;) {
    descriptor_t config[CONFIGS];
    count = proposals(graph, device, modes[i], config);
    if (count > 0)
      config_read(&graph->maker, config[0], out);
    undo(&graph->maker, graph->kept);
  }
  return count > 0;
}

bool planner_graph_plans(planner_graph_t *graph, planner_device_t device,
                         sdg_graph_config_t *out) {
  maker_t *m = &graph->maker;
  bool found = false;
  for (int i = 0; i < MODES && !found; i++) {
    descriptor_t config[CONFIGS];
    int64_t count = proposals(graph, device, modes[i], config);
    for (int64_t k = 0; k < count && !found; k++) {
      m->status = CUDNN_STATUS_SUCCESS;
      found = plan_try(m, device, config[k]);
      if (found)
        config_read(m, config[k], out);
    }
    undo(m, graph->kept);
  }
  return found;
}

bool planner_graph_takes(planner_graph_t *graph, planner_device_t device,
                         const sdg_graph_config_t *config) {
  maker_t *m = &graph->maker;
  descriptor_t knob[SDG_GRAPH_KNOBS];
  descriptor_t engine = make(m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  refer(m, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph->graph);
  refer(m, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, described[device]);
  set(m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
      &config->engine);
  finalize(m, engine);
  for (int i = 0; i < config->knob_count; i++) {
    knob[i] = make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    set(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
        &config->knob[i].type);
    set(m, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
        &config->knob[i].value);
    finalize(m, knob[i]);
  }
  descriptor_t made = make(m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  refer(m, made, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (config->knob_count > 0)
    set(m, made, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
        CUDNN_TYPE_BACKEND_DESCRIPTOR, config->knob_count, knob);
  finalize(m, made);
  bool takes = plan_try(m, device, made);
  undo(m, graph->kept);
  return takes;
}
