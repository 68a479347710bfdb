// SPDX-License-Identifier: Apache-2.0
// The count of a batch normalisation whose sums are of all ranks.
#include "rules/graph/statistics/statistics.h"

#include <string.h>

#include "rules/graph/descriptors.h"
#include "rules/place/label.h"
#include "src/geometry/hint.h"

#define AT(name) CUDNN_ATTR_OPERATION_BN_FINALIZE_##name

static const cudnnBackendAttributeName_t sums[] = {AT(Y_SUM_DESC),
                                                   AT(Y_SQ_SUM_DESC)};
enum { SUMS = sizeof sums / sizeof *sums };

// ---- numbers by value ------------------------------------------------------

// False: of a type that is not known.
static bool count_get(sdg_type_t type, const void *at, double *out) {
  int32_t narrow;
  int64_t wide;
  float real;
  switch ((cudnnDataType_t)type) {
  case CUDNN_DATA_INT32:
    memcpy(&narrow, at, sizeof narrow);
    *out = narrow;
    return true;
  case CUDNN_DATA_INT64:
    memcpy(&wide, at, sizeof wide);
    *out = (double)wide;
    return true;
  case CUDNN_DATA_FLOAT:
    memcpy(&real, at, sizeof real);
    *out = (double)real;
    return true;
  case CUDNN_DATA_DOUBLE:
    memcpy(out, at, sizeof *out);
    return true;
  default:
    return false;
  }
}

// A number of any of these types.
typedef union number {
  int32_t narrow;
  int64_t wide;
  float real;
  double exact;
} number_t;

static number_t number_of(sdg_type_t type, int64_t value) {
  switch ((cudnnDataType_t)type) {
  case CUDNN_DATA_INT32:
    return (number_t){.narrow = (int32_t)value};
  case CUDNN_DATA_FLOAT:
    return (number_t){.real = (float)value};
  case CUDNN_DATA_DOUBLE:
    return (number_t){.exact = (double)value};
  default:
    return (number_t){.wide = value};
  }
}

// ---- what is known of the sums ---------------------------------------------

static size_t bytes_of(const sdg_graph_tensor_t *tensor) {
  int64_t last = 0; // element
  for (int d = 0; d < tensor->rank; d++)
    last += (tensor->dim[d] - 1) * tensor->stride[d];
  return (size_t)(last + 1) * (size_t)sdg_graph_type_bytes(tensor->type);
}

static int tensor_of(const sdg_graph_execution_t *execution,
                     cudnnBackendAttributeName_t name) {
  return sdg_graph_operand(&execution->pattern->graph->node[0], name);
}

static sdg_counts_t counts_of(const sdg_graph_execution_t *execution, int t) {
  const sdg_graph_tensor_t *tensor = &execution->pattern->graph->tensor[t];
  return sdg_hint_counts(execution->pointer[t], bytes_of(tensor));
}

static bool is_local(const sdg_graph_execution_t *execution, int t) {
  const sdg_tag_label_t *label = sdg_label_at(execution->pointer[t]);
  return label && label->is_local;
}

static const char *count_judge(const sdg_graph_execution_t *execution,
                               sdg_counts_t counts) {
  int t = tensor_of(execution, AT(ACCUM_COUNT_DESC));
  const sdg_graph_tensor_t *tensor =
      t < 0 ? NULL : &execution->pattern->graph->tensor[t];
  double said;
  if (counts.own == counts.all)
    return NULL;
  if (!tensor || !tensor->is_by_value || !execution->pointer[t] ||
      !count_get((sdg_type_t)tensor->type, execution->pointer[t], &said))
    return "bn_finalize of sums of all ranks, whose count is not by value";
  return said == (double)counts.own || said == (double)counts.all
             ? NULL
             : "bn_finalize of sums of all ranks, whose count is neither that "
               "of this rank's elements nor that of all";
}

const char *sdg_graph_statistics_judge(const sdg_graph_execution_t *execution,
                                       int64_t *out_all) {
  const sdg_graph_node_t *node = &execution->pattern->graph->node[0];
  sdg_counts_t counts = {0, 0};
  bool local = true;
  *out_all = 0;
  if (execution->overrides)
    return "extents that the execution overrides";
  if (sdg_graph_integer(node, AT(STATS_MODE),
                        CUDNN_BN_FINALIZE_STATISTICS_TRAINING) !=
      CUDNN_BN_FINALIZE_STATISTICS_TRAINING)
    return NULL;
  for (int i = 0; i < SUMS; i++) {
    int t = tensor_of(execution, sums[i]);
    if (t < 0 || !execution->pointer[t])
      return "bn_finalize without sums";
    sdg_counts_t own = counts_of(execution, t);
    if (i > 0 && (own.all != counts.all || own.own != counts.own))
      own = (sdg_counts_t){0, 0};
    counts = own;
    local &= is_local(execution, t);
  }
  if (local)
    return NULL;
  if (!counts.all)
    return "bn_finalize of sums that no tagged call is known to have written";
  *out_all = counts.all;
  return count_judge(execution, counts);
}

// ---- executing -------------------------------------------------------------

void sdg_graph_statistics_access(const sdg_graph_execution_t *execution,
                                 sdg_memory_access_t *out) {
  const sdg_graph_t *graph = execution->pattern->graph;
  const sdg_graph_node_t *node = &graph->node[0];
  for (int i = 0; i < node->operand_count; i++) {
    int t = node->operand[i].tensor;
    bool writes = sdg_graph_writes(node, node->operand[i].name);
    if (graph->tensor[t].is_by_value || !execution->pointer[t])
      continue;
    if (out->accesses == SDG_ACCESSES_MAX - 1) {
      out->everything = true;
      return;
    }
    out->access[out->accesses++] =
        (sdg_access_t){.at = (uintptr_t)execution->pointer[t],
                       .width = bytes_of(&graph->tensor[t]),
                       .height = 1,
                       .reads = !writes,
                       .writes = writes};
  }
  if (execution->workspace)
    out->access[out->accesses++] = (sdg_access_t){
        .at = (uintptr_t)execution->workspace, .reads = true, .writes = true};
}

int sdg_graph_statistics_execute(const sdg_graph_execution_t *execution,
                                 cudnnHandle_t handle, int64_t all) {
  const sdg_graph_t *graph = execution->pattern->graph;
  int t = tensor_of(execution, AT(ACCUM_COUNT_DESC)), count = 0;
  number_t number = {0};
  int64_t uid[SDG_GRAPH_TENSORS_MAX];
  void *pointer[SDG_GRAPH_TENSORS_MAX], *workspace = execution->workspace;
  if (t >= 0)
    number = number_of((sdg_type_t)graph->tensor[t].type, all);
  for (int i = 0; i < graph->tensor_count; i++) {
    if (!execution->pointer[i])
      continue;
    uid[count] = graph->tensor[i].uid;
    pointer[count++] = i == t && graph->tensor[i].is_by_value
                           ? &number
                           : execution->pointer[i];
  }
  sdg_graph_descriptors_t m = {.cudnn = sdg_cudnn_get()};
  cudnnBackendDescriptor_t pack =
      sdg_graph_make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
#define SET(name, type, many, at)                                              \
  sdg_graph_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_##name, CUDNN_TYPE_##type,   \
                many, at)
  SET(UNIQUE_IDS, INT64, count, uid);
  SET(DATA_POINTERS, VOID_PTR, count, pointer);
  SET(WORKSPACE, VOID_PTR, 1, &workspace);
#undef SET
  sdg_graph_finalize(&m, pack);
  cudnnStatus_t status = m.status;
  if (!status)
    status = m.cudnn->cudnnBackendExecute(handle, execution->plan, pack);
  sdg_graph_descriptors_fini(&m, NULL);
  return (int)status;
}
