// SPDX-License-Identifier: Apache-2.0
// A call of a graph's tensors.
#include "rules/graph/chain/call.h"

#include <string.h>

#include "rules/place/label.h"
#include "rules/vendor/product.h"
#include "src/call/range.h"
#include "src/call/tag.h"
#include "src/observe/inspect_record.h"

static sdg_family_t family_of(const sdg_graph_pattern_t *pattern) {
  switch (pattern->kind) {
  case SDG_GRAPH_FORWARD:
  case SDG_GRAPH_DGRAD:
  case SDG_GRAPH_WGRAD:
    break;
  case SDG_GRAPH_POOL:
  case SDG_GRAPH_POOL_BACK:
    return SDG_FAMILY_POOL_GRAPH;
  case SDG_GRAPH_PRODUCT:
    return SDG_FAMILY_MATMUL_GRAPH;
  case SDG_GRAPH_NORM:
  case SDG_GRAPH_NORM_BACK:
    return SDG_FAMILY_NORM_GRAPH;
  case SDG_GRAPH_ATTENTION:
    return SDG_FAMILY_ATTENTION_GRAPH;
  case SDG_GRAPH_POINTWISE:
    return pattern->combines ? SDG_FAMILY_REDUCE_GRAPH
                             : SDG_FAMILY_POINTWISE_GRAPH;
  }
  return SDG_FAMILY_CONV_GRAPH;
}

// Whether a graph of attention has the tensor with its rows as columns.
static bool is_turned(const sdg_graph_pattern_t *pattern, int t) {
  const sdg_composite_t *attention = pattern->attention;
  if (pattern->kind != SDG_GRAPH_ATTENTION)
    return false;
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    if (attention->tensor[role] == t)
      return attention->turned[role];
  return false;
}

// Exchanges the last two of `count` numbers.
static void swap(int64_t *number, int count) {
  int64_t last = number[count - 1];
  number[count - 1] = number[count - 2];
  number[count - 2] = last;
}

static sdg_status_t operand_init(const sdg_graph_execution_t *execution,
                                 int index, sdg_operand_t *out) {
  sdg_graph_pattern_t *pattern = execution->pattern;
  int t = pattern->operand[index];
  const sdg_graph_tensor_t *tensor = &pattern->graph->tensor[t];
  sdg_role_t role = pattern->role[index];
  const sdg_tag_label_t *tag =
      sdg_role_is_activation(role) ? sdg_label_at(execution->pointer[t]) : NULL;
  const void *key =
      tag ? sdg_graph_tagged_get(execution->pattern, t, tag) : tensor;
  if (!key)
    return sdg_fail(SDG_E_NO_MEMORY, "a tag of memory");
  uint64_t generation = sdg_tag_generation(key);
  bool filter = role == SDG_ROLE_W || role == SDG_ROLE_DW;
  *out = (sdg_operand_t){
      .role = role,
      .is_output = pattern->writer[t] >= 0,
      .kind = filter ? SDG_OPERAND_FILTER : SDG_OPERAND_TENSOR,
      .descriptor = key,
      .generation = generation,
      .label = sdg_tag_label(key, generation),
      .data = execution->pointer[t],
      .descriptor_at = SDG_NOWHERE,
      .data_at = SDG_NOWHERE,
      .type = (sdg_type_t)tensor->type,
      // A box of elements that share bytes cannot be copied.
      .elem_bytes = sdg_graph_type_is_half(tensor->type)
                        ? 0
                        : (int)sdg_graph_type_bytes(tensor->type),
      .dims = tensor->rank,
  };
  memcpy(out->extent, tensor->dim, sizeof(int64_t) * (size_t)tensor->rank);
  memcpy(out->stride, tensor->stride, sizeof(int64_t) * (size_t)tensor->rank);
  if (is_turned(pattern, t)) {
    swap(out->extent, tensor->rank);
    swap(out->stride, tensor->rank);
  }
  return SDG_OK;
}

// M, N, K and BATCH behind the tensors. A tag of the result's memory is the
// product's.
static sdg_status_t product_init(const sdg_graph_execution_t *execution,
                                 sdg_call_t *call) {
  sdg_graph_pattern_t *p = execution->pattern;
  const sdg_graph_tensor_t *a = &p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_X]];
  const sdg_graph_tensor_t *c = &p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_Y]];
  const void *key = sdg_graph_product_key(p);
  int t = p->result < 0 ? -1 : p->operand[p->result];
  const sdg_tag_label_t *label =
      t < 0 ? NULL : sdg_range_label(execution->pointer[t]);
  if (label && !(key = sdg_graph_tagged_get(p, t, label)))
    return sdg_fail(SDG_E_NO_MEMORY, "a tag of memory");
  uint64_t generation = sdg_tag_generation(key);
  call->operand[call->operands++] = (sdg_operand_t){
      .role = SDG_ROLE_PRODUCT,
      .kind = SDG_OPERAND_TENSOR,
      .descriptor = key,
      .generation = generation,
      .label = sdg_tag_label(key, generation),
      .descriptor_at = SDG_NOWHERE,
      .data_at = SDG_NOWHERE,
      .elem_bytes = 1,
      .dims = SDG_PRODUCT_DIMS,
      .extent = {[SDG_M] = c->dim[c->rank - 2],
                 [SDG_N] = c->dim[c->rank - 1],
                 [SDG_K] = a->dim[a->rank - 1],
                 [SDG_BATCH] = c->rank > 2 ? c->dim[0] : 1},
      .stride = {1, 1, 1, 1},
  };
  return SDG_OK;
}

// Queries and keys are counted from the same element.
static sdg_call_sight_t sight_of(const sdg_graph_execution_t *execution) {
  const sdg_graph_pattern_t *p = execution->pattern;
  sdg_call_sight_t sight = {.is_known = false};
  sdg_composite_band_t band;
  if (p->kind != SDG_GRAPH_ATTENTION || !sdg_inspect_record_wanted() ||
      !sdg_composite_numbers(p->attention, p->graph, execution->pointer, &band))
    return sight;
  int64_t shift = band.bottom_right ? band.size_kv - band.size_q : 0;
  sight.is_known = true;
  sight.left = band.left ? band.left_bound - 1 - shift : -1;
  sight.right = band.right ? band.right_bound + shift : -1;
  sight.is_ragged = (band.bottom_right && band.by_lengths) ||
                    (band.left && sight.left < 0) ||
                    (band.right && sight.right < 0);
  return sight;
}

sdg_status_t sdg_graph_call_init(const sdg_graph_execution_t *execution,
                                 int entry, cudnnHandle_t handle,
                                 sdg_call_t *out) {
  const sdg_graph_pattern_t *pattern = execution->pattern;
  out->entry = entry;
  out->entry_name = pattern->name;
  out->family = family_of(pattern);
  out->handle = handle;
  out->stream_kind = SDG_STREAM_CUDNN;
  out->stream = NULL;
  out->args = execution;
  out->op_descriptor = NULL;
  out->op_generation = 0;
  bool product = pattern->kind == SDG_GRAPH_PRODUCT;
  out->window = product || pattern->kind == SDG_GRAPH_ATTENTION ||
                        sdg_graph_normalises(pattern)
                    ? NULL
                    : &pattern->window;
  out->sight = sight_of(execution);
  out->is_query = false;
  out->memory = NULL;
  out->result = 0;
  out->refused = false;
  out->operands = pattern->operands;
  for (int i = 0; i < pattern->operands; i++)
    SDG_TRY(operand_init(execution, i, &out->operand[i]));
  return product ? product_init(execution, out) : SDG_OK;
}
