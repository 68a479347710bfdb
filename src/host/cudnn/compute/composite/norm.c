// SPDX-License-Identifier: Apache-2.0
// Normalisations as reductions and pointwise operations: batch, instance,
// layer, adaptive layer and RMS normalisation, forward and backward.
//
// Statistics have the extents of x, but 1 in the dimensions that are
// normalised over. Where the operation has no tensor of them, these are the
// dimensions in which the scale has an extent. Example: x 8 x 64 x 512 with
// scale 1 x 1 x 512 has statistics 8 x 64 x 1.
#include <string.h>

#include "src/host/cudnn/compute/composite/composite.h"

#define FORWARD(name)  CUDNN_ATTR_OPERATION_NORM_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_NORM_BWD_##name

// Operands of both directions; -1 where there is none. Forward, y is what dy
// is backward.
typedef struct {
  cudnnBackendNormMode_t mode;
  bool backward, inference;
  int x, mean, inverse, scale, bias, epsilon, y;
} norm_t;

static norm_t norm_of(const sdg_graph_node_t *node) {
  bool backward =
      node->kind == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
#define OPERAND(name)                                                          \
  sdg_graph_operand(node, backward ? BACKWARD(name) : FORWARD(name))
  norm_t norm = {
      .mode = (cudnnBackendNormMode_t)sdg_graph_integer(
          node, backward ? BACKWARD(MODE) : FORWARD(MODE), CUDNN_LAYER_NORM),
      .backward = backward,
      .inference = !backward && sdg_graph_integer(node, FORWARD(PHASE),
                                                  CUDNN_NORM_FWD_TRAINING) ==
                                    CUDNN_NORM_FWD_INFERENCE,
      .x = OPERAND(XDESC),
      .mean = OPERAND(MEAN_DESC),
      .inverse = OPERAND(INV_VARIANCE_DESC),
      .scale = OPERAND(SCALE_DESC),
      .bias = sdg_graph_operand(node, backward ? BACKWARD(DBIAS_DESC)
                                               : FORWARD(BIAS_DESC)),
      .epsilon = OPERAND(EPSILON_DESC),
      .y = sdg_graph_operand(node,
                             backward ? BACKWARD(DYDESC) : FORWARD(YDESC))};
#undef OPERAND
  return norm;
}

// Whether the statistics are read, not computed.
static bool knows_statistics(const norm_t *norm) {
  return norm->backward ||
         (norm->inference && (norm->mean >= 0 || norm->inverse >= 0));
}

static void statistics_extents(const norm_t *norm, const sdg_graph_tensor_t *t,
                               int64_t *out) {
  const sdg_graph_tensor_t *x = &t[norm->x];
  const sdg_graph_tensor_t *scale = norm->scale < 0 ? NULL : &t[norm->scale];
  if (norm->inverse >= 0) {
    memcpy(out, t[norm->inverse].dim, (size_t)x->rank * sizeof *out);
    return;
  }
  for (int d = 0; d < x->rank; d++) {
    bool kept = d == 0 || (scale && scale->dim[d] == 1);
    if (norm->mode == CUDNN_BATCH_NORM)
      kept = d == 1;
    if (norm->mode == CUDNN_INSTANCE_NORM)
      kept = d < 2;
    out[d] = kept ? x->dim[d] : 1;
  }
}

// ---- what is not computed --------------------------------------------------

static bool all_or_one(const sdg_graph_tensor_t *t,
                       const sdg_graph_tensor_t *x) {
  for (int d = 0; d < x->rank && t->rank == x->rank; d++)
    if (t->dim[d] != 1 && t->dim[d] != x->dim[d])
      return false;
  return t->rank == x->rank;
}

static bool same_extents(const sdg_graph_tensor_t *a,
                         const sdg_graph_tensor_t *b) {
  return a->rank == b->rank &&
         memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static bool fits(const sdg_graph_t *graph, int tensor, int64_t count,
                 const int64_t *dim) {
  if (tensor < 0)
    return true;
  const sdg_graph_tensor_t *t = &graph->tensor[tensor];
  return t->rank == count &&
         memcmp(t->dim, dim, (size_t)count * sizeof *dim) == 0;
}

static const char *operands_lack(const sdg_graph_t *graph, const norm_t *norm) {
  int64_t dim[CUDNN_DIM_MAX], ones[CUDNN_DIM_MAX];
  const sdg_graph_tensor_t *x = &graph->tensor[norm->x];
  statistics_extents(norm, graph->tensor, dim);
  for (int d = 0; d < x->rank; d++)
    ones[d] = 1;
  for (int d = 0; d < x->rank; d++)
    if (x->dim[d] < 1 || (dim[d] != 1 && dim[d] != x->dim[d]))
      return "a normalisation whose statistics do not fit its tensor";
  if (!same_extents(x, &graph->tensor[norm->y]) ||
      !fits(graph, norm->mean, x->rank, dim) ||
      !fits(graph, norm->inverse, x->rank, dim))
    return "a normalisation whose statistics do not fit its tensor";
  if ((norm->scale >= 0 && !all_or_one(&graph->tensor[norm->scale], x)) ||
      (norm->bias >= 0 && !all_or_one(&graph->tensor[norm->bias], x)))
    return "a normalisation whose scale or bias does not fit its tensor";
  if (!fits(graph, norm->epsilon, x->rank, ones))
    return "a normalisation whose epsilon is not one number";
  return NULL;
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  norm_t norm = norm_of(node);
  switch (norm.mode) {
  case CUDNN_LAYER_NORM:
  case CUDNN_INSTANCE_NORM:
  case CUDNN_BATCH_NORM:
  case CUDNN_RMS_NORM:
  case CUDNN_ADA_LAYER_NORM:
    break;
  default:
    return "a normalisation of this mode";
  }
  if (norm.x < 0 || norm.y < 0 ||
      (norm.backward && sdg_graph_operand(node, BACKWARD(DXDESC)) < 0))
    return "a normalisation without one of its tensors";
  if (knows_statistics(&norm) &&
      (norm.inverse < 0 || (norm.mean < 0) != (norm.mode == CUDNN_RMS_NORM)))
    return "a normalisation without its statistics";
  if (!knows_statistics(&norm) && norm.mode == CUDNN_BATCH_NORM &&
      norm.inference)
    return "a normalisation without its statistics";
  return operands_lack(graph, &norm);
}

static bool is_missing(const sdg_graph_node_t *node,
                       cudnnBackendAttributeName_t name) {
  return sdg_graph_operand(node, name) < 0;
}

static const char *forward_lacks(const sdg_graph_t *graph,
                                 const sdg_graph_node_t *node) {
  const char *why = lacks(graph, node);
  static const cudnnBackendAttributeName_t running[][2] = {
      {FORWARD(INPUT_RUNNING_MEAN_DESC), FORWARD(OUTPUT_RUNNING_MEAN_DESC)},
      {FORWARD(INPUT_RUNNING_VAR_DESC), FORWARD(OUTPUT_RUNNING_VAR_DESC)}};
  int64_t dim[CUDNN_DIM_MAX];
  if (why)
    return why;
  norm_t norm = norm_of(node);
  int rank = graph->tensor[norm.x].rank;
  statistics_extents(&norm, graph->tensor, dim);
  for (int i = 0; i < 2; i++) {
    int in = sdg_graph_operand(node, running[i][0]);
    int out = sdg_graph_operand(node, running[i][1]);
    if (out < 0)
      continue;
    if (in < 0 || is_missing(node, FORWARD(EXP_AVG_FACTOR_DESC)))
      return "running statistics without old ones or without their factor";
    if (!fits(graph, in, rank, dim) || !fits(graph, out, rank, dim))
      return "a normalisation whose statistics do not fit its tensor";
  }
  return NULL;
}

// ---- the nodes -------------------------------------------------------------

static int mean_expand(host_expansion_t *to, int x, const int64_t *dim) {
  return host_expand_reduction(to, CUDNN_REDUCE_TENSOR_AVG, x, dim, HOST_NEW);
}

static void sum_expand(host_expansion_t *to, int x, int result) {
  host_expand_reduction(to, CUDNN_REDUCE_TENSOR_ADD, x,
                        host_expansion_tensor(to, result)->dim, result);
}

static void put(host_expansion_t *to, int value, int result) {
  if (result >= 0)
    host_expand_pointwise(to, CUDNN_POINTWISE_IDENTITY, value, HOST_NONE,
                          result);
}

// old + factor * (value - old)
static void running_expand(host_expansion_t *to, const sdg_graph_node_t *node,
                           cudnnBackendAttributeName_t in,
                           cudnnBackendAttributeName_t out, int value) {
  int old = sdg_graph_operand(node, in), new = sdg_graph_operand(node, out);
  int factor = sdg_graph_operand(node, FORWARD(EXP_AVG_FACTOR_DESC));
  if (new < 0)
    return;
  int step = host_expand_subtract(to, value, old);
  host_expand_pointwise(to, CUDNN_POINTWISE_ADD, old,
                        host_expand_multiply(to, step, factor), new);
}

// The unbiased estimate's factor, for the number of elements of x that a
// statistic is of.
static double unbiased(const sdg_graph_tensor_t *x, const int64_t *dim) {
  double count = 1;
  for (int d = 0; d < x->rank; d++)
    count *= (double)(x->dim[d] / dim[d]);
  return count > 1 ? count / (count - 1) : 1;
}

static void forward_expand(host_expansion_t *to, const sdg_graph_node_t *node) {
  norm_t norm = norm_of(node);
  bool centred = norm.mode != CUDNN_RMS_NORM;
  int mean = norm.mean, inverse = norm.inverse, from = norm.x;
  int64_t dim[CUDNN_DIM_MAX];
  statistics_extents(&norm, host_expansion_tensor(to, 0), dim);
  if (centred) {
    mean = knows_statistics(&norm) ? mean : mean_expand(to, norm.x, dim);
    from = host_expand_subtract(to, norm.x, mean);
  }
  if (!knows_statistics(&norm)) {
    int variance = mean_expand(to, host_expand_multiply(to, from, from), dim);
    int above = norm.epsilon < 0 ? variance
                                 : host_expand_add(to, variance, norm.epsilon);
    inverse = host_expand_pointwise(to, CUDNN_POINTWISE_RSQRT, above, HOST_NONE,
                                    HOST_NEW);
    if (centred)
      put(to, mean, norm.mean);
    put(to, inverse, norm.inverse);
    if (norm.mode == CUDNN_BATCH_NORM) {
      double factor = unbiased(host_expansion_tensor(to, norm.x), dim);
      running_expand(to, node, FORWARD(INPUT_RUNNING_MEAN_DESC),
                     FORWARD(OUTPUT_RUNNING_MEAN_DESC), mean);
      running_expand(to, node, FORWARD(INPUT_RUNNING_VAR_DESC),
                     FORWARD(OUTPUT_RUNNING_VAR_DESC),
                     host_expand_scaled(to, factor, variance, HOST_NEW));
    }
  }
  int value = host_expand_multiply(to, from, inverse);
  value = norm.scale < 0 ? value : host_expand_multiply(to, value, norm.scale);
  value = norm.bias < 0 ? value : host_expand_add(to, value, norm.bias);
  put(to, value, norm.y);
}

static void backward_expand(host_expansion_t *to,
                            const sdg_graph_node_t *node) {
  norm_t norm = norm_of(node);
  bool centred = norm.mode != CUDNN_RMS_NORM;
  int dx = sdg_graph_operand(node, BACKWARD(DXDESC));
  int dscale = sdg_graph_operand(node, BACKWARD(DSCALE_DESC));
  const int64_t *dim = host_expansion_tensor(to, norm.inverse)->dim;
  int from = centred ? host_expand_subtract(to, norm.x, norm.mean) : norm.x;
  int normal = host_expand_multiply(to, from, norm.inverse);
  int slope =
      norm.scale < 0 ? norm.y : host_expand_multiply(to, norm.y, norm.scale);
  int along = mean_expand(to, host_expand_multiply(to, slope, normal), dim);
  int value =
      host_expand_subtract(to, slope, host_expand_multiply(to, normal, along));
  if (centred)
    value = host_expand_subtract(to, value, mean_expand(to, slope, dim));
  put(to, host_expand_multiply(to, value, norm.inverse), dx);
  if (dscale >= 0)
    sum_expand(to, host_expand_multiply(to, norm.y, normal), dscale);
  if (norm.bias >= 0)
    sum_expand(to, norm.y, norm.bias);
}

const host_composite_t host_norm_forward = {
    .kind = CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
    .type = CUDNN_DATA_DOUBLE,
    .lacks = forward_lacks,
    .expand = forward_expand};
const host_composite_t host_norm_backward = {
    .kind = CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
    .type = CUDNN_DATA_DOUBLE,
    .lacks = lacks,
    .expand = backward_expand};
