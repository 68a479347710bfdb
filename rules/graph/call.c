// SPDX-License-Identifier: Apache-2.0
// A call of a graph's tensors.
#include "rules/graph/call.h"

#include <string.h>

#include "src/call/range.h"
#include "src/call/tag.h"

static sdg_family_t family_of(const sdg_graph_pattern_t *pattern) {
  switch (pattern->kind) {
  case SDG_GRAPH_FORWARD:
  case SDG_GRAPH_DGRAD:
  case SDG_GRAPH_WGRAD:
    break;
  case SDG_GRAPH_POOL:
  case SDG_GRAPH_POOL_BACK:
    return SDG_FAMILY_POOL_GRAPH;
  case SDG_GRAPH_POINTWISE:
    return pattern->combines ? SDG_FAMILY_REDUCE_GRAPH
                             : SDG_FAMILY_POINTWISE_GRAPH;
  }
  return SDG_FAMILY_CONV_GRAPH;
}

static void operand_init(const sdg_graph_execution_t *execution, int index,
                         sdg_operand_t *out) {
  const sdg_graph_pattern_t *pattern = execution->pattern;
  int t = pattern->operand[index];
  const sdg_graph_tensor_t *tensor = &pattern->graph->tensor[t];
  uint64_t generation = sdg_tag_generation(tensor);
  sdg_role_t role = pattern->role[index];
  bool filter = role == SDG_ROLE_W || role == SDG_ROLE_DW;
  *out = (sdg_operand_t){
      .role = role,
      .is_output = pattern->writer[t] >= 0,
      .kind = filter ? SDG_OPERAND_FILTER : SDG_OPERAND_TENSOR,
      .descriptor = tensor,
      .generation = generation,
      .label = sdg_tag_label(tensor, generation),
      .data = execution->pointer[t],
      .descriptor_at = SDG_NOWHERE,
      .data_at = SDG_NOWHERE,
      .type = (sdg_type_t)tensor->type,
      .elem_bytes = (int)sdg_graph_type_bytes(tensor->type),
      .dims = tensor->rank,
  };
  memcpy(out->extent, tensor->dim, sizeof(int64_t) * (size_t)tensor->rank);
  memcpy(out->stride, tensor->stride, sizeof(int64_t) * (size_t)tensor->rank);
}

void sdg_graph_call_init(const sdg_graph_execution_t *execution, int entry,
                         cudnnHandle_t handle, sdg_call_t *out) {
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
  out->window = &pattern->window;
  out->is_query = false;
  out->memory = NULL;
  out->result = 0;
  out->refused = false;
  out->operands = pattern->operands;
  for (int i = 0; i < pattern->operands; i++)
    operand_init(execution, i, &out->operand[i]);
}
