// SPDX-License-Identifier: Apache-2.0
// Nodes that compute each element by itself.
#include "src/host/cudnn/compute/pointwise.h"

#include <math.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"

static const cudnnBackendAttributeName_t names[HOST_PW_OPERANDS] = {
    [HOST_PW_X] = CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
    [HOST_PW_B] = CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
    [HOST_PW_T] = CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
    [HOST_PW_DY] = CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
    [HOST_PW_Y] = CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
};

static const host_pointwise_mode_t *mode_of(const sdg_graph_node_t *node) {
  return host_pointwise_mode((cudnnPointwiseMode_t)sdg_graph_integer(
      node, CUDNN_ATTR_POINTWISE_MODE, -1));
}

static bool is_gradient(const host_pointwise_mode_t *mode) {
  return (mode->reads >> HOST_PW_DY & 1) != 0;
}

// A gradient that has no x is computed from y.
static bool takes_y(const sdg_graph_node_t *node,
                    const host_pointwise_mode_t *mode) {
  return is_gradient(mode) && sdg_graph_operand(node, names[HOST_PW_X]) < 0;
}

static unsigned reads_of(const sdg_graph_node_t *node,
                         const host_pointwise_mode_t *mode) {
  return takes_y(node, mode) ? 1u << HOST_PW_DY | 1u << HOST_PW_Y : mode->reads;
}

static int result_of(const sdg_graph_node_t *node,
                     const host_pointwise_mode_t *mode) {
  return sdg_graph_operand(node, is_gradient(mode)
                                     ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                     : names[HOST_PW_Y]);
}

// Only attention has two products or more. The engines of the library take a
// bias with more rows and columns than the scores, and read the first ones.
static bool is_bias(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                    const sdg_graph_tensor_t *operand) {
  int products = 0;
  for (int n = 0; n < graph->node_count; n++)
    products +=
        (int)graph->node[n].kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  return products > 1 && !operand->is_virtual && !operand->is_by_value &&
         mode_of(node)->mode == CUDNN_POINTWISE_ADD;
}

static bool extents_fit(const sdg_graph_tensor_t *operand,
                        const sdg_graph_tensor_t *result, bool may_have_more) {
  if (operand->rank != result->rank)
    return false;
  for (int d = 0; d < operand->rank; d++)
    if (operand->dim[d] != 1 && operand->dim[d] != result->dim[d] &&
        !(may_have_more && operand->dim[d] > result->dim[d]))
      return false;
  return true;
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  const host_pointwise_mode_t *mode = mode_of(node);
  if (!mode)
    return "this mode of a pointwise operation";
  if (takes_y(node, mode) && !mode->row_of_y)
    return "this gradient of an activation without its x";
  int result = result_of(node, mode);
  if (result < 0)
    return "a pointwise operation without a result";
  unsigned reads = reads_of(node, mode);
  for (int i = 0; i < HOST_PW_OPERANDS; i++) {
    int operand = sdg_graph_operand(node, names[i]);
    if (!(reads >> i & 1))
      continue;
    if (operand < 0)
      return "a pointwise operation without one of its operands";
    const sdg_graph_tensor_t *from = &graph->tensor[operand];
    if (!extents_fit(from, &graph->tensor[result], is_bias(graph, node, from)))
      return "a pointwise operation on tensors whose extents differ";
  }
  return NULL;
}

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  const host_pointwise_mode_t *mode = mode_of(node);
  unsigned reads = reads_of(node, mode);
  const host_region_t *result = &run->tensor[result_of(node, mode)].need;
  for (int i = 0; i < HOST_PW_OPERANDS; i++) {
    if (!(reads >> i & 1))
      continue;
    int operand = sdg_graph_operand(node, names[i]);
    host_region_t of = host_region_broadcast(result, host_run_of(run, operand));
    host_run_need(run, operand, &of);
  }
}

static host_pointwise_row_t row_of(const sdg_graph_node_t *node) {
  return (host_pointwise_row_t){
      .alpha1 = sdg_graph_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1),
      .alpha2 = sdg_graph_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1),
      .lower = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0),
      .upper =
          sdg_graph_real(node, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY),
      .slope =
          sdg_graph_real(node, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0),
      .elu_alpha = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1),
      .softplus_beta =
          sdg_graph_real(node, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1),
      .swish_beta = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1)};
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  static const double nothing;
  const host_pointwise_mode_t *mode = mode_of(node);
  unsigned reads = reads_of(node, mode);
  int result = result_of(node, mode);
  const host_run_tensor_t *to = &run->tensor[result];
  host_pointwise_row_t row = row_of(node);
  int64_t axis = sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_AXIS, 0);
  int last = to->need.rank - 1;
  row.out = to->value;
  row.index_step = axis == last || axis == -1;
  axis = axis < 0 ? axis + to->need.rank : axis;
  for (host_rows_of_t rows = host_rows_begin(&to->need); rows.more;
       host_rows_next(&rows), row.out += rows.width) {
    row.count = rows.width;
    row.index = axis >= 0 && axis <= last ? rows.at[axis] : 0;
    for (int i = 0; i < HOST_PW_OPERANDS; i++) {
      row.in[i] = &nothing;
      row.step[i] = 0;
      if (!(reads >> i & 1))
        continue;
      int operand = sdg_graph_operand(node, names[i]);
      const host_run_tensor_t *from = &run->tensor[operand];
      row.in[i] =
          from->value + host_rows_offset(&rows, host_run_of(run, operand),
                                         &from->need, &row.step[i]);
    }
    (takes_y(node, mode) ? mode->row_of_y : mode->row)(&row);
  }
  int64_t count = host_region_count(&to->need);
  cudnnDataType_t kept = host_run_of(run, result)->type;
  // Comparisons and positions are exact in any type.
  cudnnDataType_t type = (cudnnDataType_t)sdg_graph_integer(
      node, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (type != kept && (type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF ||
                       type == CUDNN_DATA_BFLOAT16))
    host_elements_round(type, to->value, count);
  host_elements_round(kept, to->value, count);
  return true;
}

const host_node_kind_t host_node_pointwise = {
    .kind = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
    .lacks = lacks,
    .need = need,
    .compute = compute};
