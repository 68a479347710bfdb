// SPDX-License-Identifier: Apache-2.0
// Which graphs of pointwise operations and reductions alone an engine of cuDNN
// 9.19 takes on an H100.
#include "src/host/cudnn/plan/families.h"

static const sdg_graph_node_t *end_of(const host_facts_t *f) {
  return f->graph->node + f->graph->node_count;
}

// What graphs without a convolution begin with: an operation's result, or what
// a reduction reads.
static bool plain_shape(const host_facts_t *f) {
  const sdg_graph_node_t *first = &f->graph->node[0];
  const sdg_graph_tensor_t *all = host_node_result(f->graph, first);
  bool reduces = host_node_is_reduction(first);
  if (reduces)
    all = &f->graph->tensor[sdg_graph_operand(
        first, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)];
  return all && all->rank >= 2 && all->rank <= 5 &&
         (all->rank < 4 || reduces || all->dim[1] > 1);
}

static bool is_row_major(const sdg_graph_tensor_t *t) {
  int64_t stride = 1;
  for (int d = t->rank; d-- > 0;) {
    if (t->dim[d] > 1 && t->stride[d] != stride)
      return false;
    stride *= t->dim[d];
  }
  return true;
}

// Of three dimensions pointwise operations want rows last, reductions channels:
// both together take one channel only.
static bool plain_packed(const host_facts_t *f) {
  bool maps = false, reduces = false;
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f);
       node++) {
    maps |= host_node_is_pointwise(node);
    reduces |= host_node_is_reduction(node);
  }
  for (int i = 0; i < f->graph->tensor_count; i++) {
    const sdg_graph_tensor_t *t = &f->graph->tensor[i];
    if (t->is_virtual || t->is_by_value)
      continue;
    bool rows = t->rank < 3 || (t->rank == 3 && maps);
    bool channels = t->rank > 3 || (t->rank == 3 && reduces);
    if ((rows && !is_row_major(t)) || (channels && !host_tensor_is_packed(t)))
      return false;
  }
  return true;
}

// The second of two or three dimensions does not stay alone.
static bool plain_sums(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f);
       node++) {
    const sdg_graph_tensor_t *y = host_node_result(f->graph, node);
    if (host_node_is_reduction(node) && y && y->rank < 4 && y->dim[1] > 1)
      return false;
  }
  return true;
}

// All extents, those of the channels or all but them, or one element.
static bool plain_broadcast(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f);
       node++) {
    const sdg_graph_tensor_t *all = host_node_result(f->graph, node);
    for (int k = 0; host_node_is_pointwise(node) && k < node->operand_count;
         k++) {
      const sdg_graph_tensor_t *t = &f->graph->tensor[node->operand[k].tensor];
      bool one = true, channels = true, over = true;
      for (int d = 0; d < t->rank; d++) {
        one &= t->dim[d] == 1;
        channels &= t->dim[d] == (d == 1 ? all->dim[d] : 1);
        over &= t->dim[d] == (d == 1 ? 1 : all->dim[d]);
      }
      if (!one && !channels && !over && !host_tensor_same(t, all))
        return false;
    }
  }
  return true;
}

static const host_rule_t rules[] = {
    {plain_shape,
     "pointwise operations on 2 to 5 dimensions, of 4 and 5 with more than one "
     "channel"},
    {plain_broadcast,
     "operands of the result's extents, of its channels', of all but these, or "
     "of one element"},
    {plain_packed,
     "pointwise operations and reductions on packed tensors: NHWC of 4 and 5 "
     "dimensions and, reduced, of 3, otherwise row-major"},
    {plain_sums,
     "reductions of 2 or 3 dimensions that keep more than the second one"},
};

const char *host_plain_refuses(const host_facts_t *facts) {
  return facts->strange || facts->conv
             ? NULL
             : host_rules_broken(rules, sizeof rules / sizeof *rules, facts);
}
