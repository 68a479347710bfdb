// SPDX-License-Identifier: Apache-2.0
// Nodes that join tensors along one dimension. An input that the program says
// to be in place already is copied onto itself.
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"

// Along the axis, the inputs follow each other. Begins with all zero.
typedef struct {
  int at;        // of the node's operands
  int tensor;    // an input
  int64_t first; // its index 0 in the result
} input_t;

static int axis_of(const sdg_graph_node_t *node) {
  return (int)sdg_graph_integer(node, CUDNN_ATTR_OPERATION_CONCAT_AXIS, -1);
}

static int result_of(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC);
}

// The next input; false behind the last.
static bool input_next(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                       input_t *io) {
  if (io->at > 0)
    io->first += graph->tensor[io->tensor].dim[axis_of(node)];
  while (io->at < node->operand_count) {
    const sdg_graph_operand_t *operand = &node->operand[io->at++];
    if (operand->name == CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS) {
      io->tensor = operand->tensor;
      return true;
    }
  }
  return false;
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  int y = result_of(node), axis = axis_of(node);
  int64_t sum = 0;
  if (y < 0 || axis < 0 || axis >= graph->tensor[y].rank)
    return "tensors that are joined without a result or an axis";
  for (input_t input = {0}; input_next(graph, node, &input);) {
    const sdg_graph_tensor_t *x = &graph->tensor[input.tensor];
    if (x->rank != graph->tensor[y].rank)
      return "joined tensors with other numbers of dimensions";
    for (int d = 0; d < x->rank; d++)
      if (d != axis && x->dim[d] != graph->tensor[y].dim[d])
        return "joined tensors whose extents differ";
    sum += x->dim[axis];
  }
  return sum == graph->tensor[y].dim[axis]
             ? NULL
             : "joined tensors that are not all of the result";
}

// The elements of an input under a region of the result, in its own indices.
static host_region_t region_under(const host_run_t *run,
                                  const sdg_graph_node_t *node,
                                  const input_t *input,
                                  const host_region_t *y) {
  int axis = axis_of(node);
  int64_t extent = host_run_of(run, input->tensor)->dim[axis];
  host_region_t x = *y;
  x.lo[axis] -= input->first;
  x.hi[axis] -= input->first;
  x.lo[axis] = x.lo[axis] < 0 ? 0 : x.lo[axis];
  x.hi[axis] = x.hi[axis] > extent ? extent : x.hi[axis];
  return x;
}

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  const host_region_t *y = &run->tensor[result_of(node)].need;
  for (input_t input = {0}; input_next(run->graph, node, &input);) {
    host_region_t x = region_under(run, node, &input, y);
    host_run_need(run, input.tensor, &x);
  }
}

static int64_t offset_in(const host_region_t *region, const int64_t *index) {
  int64_t step[CUDNN_DIM_MAX], offset = 0;
  host_region_steps(region, step);
  for (int d = 0; d < region->rank; d++)
    offset += (index[d] - region->lo[d]) * step[d];
  return offset;
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  int y = result_of(node), axis = axis_of(node);
  host_run_tensor_t *to = &run->tensor[y];
  for (input_t input = {0}; input_next(run->graph, node, &input);) {
    const host_run_tensor_t *from = &run->tensor[input.tensor];
    host_region_t x = region_under(run, node, &input, &to->need);
    for (host_rows_of_t rows = host_rows_begin(&x); rows.more;
         host_rows_next(&rows)) {
      int64_t index[CUDNN_DIM_MAX];
      memcpy(index, rows.at, sizeof index);
      index[axis] += input.first;
      memcpy(to->value + offset_in(&to->need, index),
             from->value + offset_in(&from->need, rows.at),
             (size_t)rows.width * sizeof *to->value);
    }
  }
  host_elements_round(host_run_of(run, y)->type, to->value,
                      host_region_count(&to->need));
  return true;
}

const host_node_kind_t host_node_concat = {
    .kind = CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR,
    .lacks = lacks,
    .need = need,
    .compute = compute};
