// SPDX-License-Identifier: Apache-2.0
// The gradients of a batch normalisation's scale and bias, with the three
// numbers of each channel that make dx of dy and x:
//   dx = eq_dy_scale dy + eq_x_scale x + eq_bias
#include <string.h>

#include "src/host/cudnn/compute/composite/composite.h"

#define AT(name) CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_##name

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  int x = sdg_graph_operand(node, AT(X_DESC));
  int dy = sdg_graph_operand(node, AT(DY_DESC));
  static const cudnnBackendAttributeName_t channels[] = {
      AT(MEAN_DESC),       AT(INVSTD_DESC),   AT(BN_SCALE_DESC),
      AT(DBN_SCALE_DESC),  AT(DBN_BIAS_DESC), AT(EQ_DY_SCALE_DESC),
      AT(EQ_X_SCALE_DESC), AT(EQ_BIAS)};
  if (x < 0 || dy < 0)
    return "gradients of a normalisation's parameters without x or dy";
  const sdg_graph_tensor_t *all = &graph->tensor[x];
  if (graph->tensor[dy].rank != all->rank ||
      memcmp(graph->tensor[dy].dim, all->dim,
             (size_t)all->rank * sizeof *all->dim) != 0)
    return "gradients of a normalisation's parameters whose extents differ";
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
    int tensor = sdg_graph_operand(node, channels[i]);
    if (tensor < 0)
      return "gradients of a normalisation's parameters without one of their "
             "operands";
    const sdg_graph_tensor_t *t = &graph->tensor[tensor];
    for (int d = 0; d < all->rank; d++)
      if (t->rank != all->rank || all->dim[d] < 1 ||
          t->dim[d] != (d == 1 ? all->dim[1] : 1))
        return "gradients of a normalisation's parameters that are not those "
               "of channels";
  }
  return NULL;
}

static int sum_expand(host_expansion_t *to, int x, const int64_t *channels) {
  return host_expand_reduction(to, CUDNN_REDUCE_TENSOR_ADD, x, channels,
                               HOST_NEW);
}

// dx = scale inv (dy - dbias / n - (x - mean) inv dscale / n), n elements of a
// channel.
static void expand(host_expansion_t *to, const sdg_graph_node_t *node) {
#define OPERAND(name) sdg_graph_operand(node, AT(name))
  int x = OPERAND(X_DESC), dy = OPERAND(DY_DESC), mean = OPERAND(MEAN_DESC);
  int inverse = OPERAND(INVSTD_DESC), scale = OPERAND(BN_SCALE_DESC);
  const int64_t *channels = host_expansion_tensor(to, mean)->dim;
  double count = 1;
  for (int d = 0; d < host_expansion_tensor(to, x)->rank; d++)
    count *= d == 1 ? 1 : (double)host_expansion_tensor(to, x)->dim[d];
  int normal =
      host_expand_multiply(to, host_expand_subtract(to, x, mean), inverse);
  int dscale = sum_expand(to, host_expand_multiply(to, dy, normal), channels);
  int dbias = sum_expand(to, dy, channels);
  int factor = host_expand_multiply(to, scale, inverse);
  int slope = host_expand_multiply(to, inverse, dscale);
  int shift =
      host_expand_subtract(to, host_expand_multiply(to, mean, slope), dbias);
  host_expand_scaled(to, 1, dscale, OPERAND(DBN_SCALE_DESC));
  host_expand_scaled(to, 1, dbias, OPERAND(DBN_BIAS_DESC));
  host_expand_scaled(to, 1, factor, OPERAND(EQ_DY_SCALE_DESC));
  host_expand_scaled(to, -1 / count, host_expand_multiply(to, factor, slope),
                     OPERAND(EQ_X_SCALE_DESC));
  host_expand_scaled(to, 1 / count, host_expand_multiply(to, factor, shift),
                     OPERAND(EQ_BIAS));
#undef OPERAND
}

const host_composite_t host_norm_weights = {
    .kind = CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
    .type = CUDNN_DATA_DOUBLE,
    .lacks = lacks,
    .expand = expand};
