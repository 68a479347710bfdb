// SPDX-License-Identifier: Apache-2.0
// Pointwise nodes computed by loops over doubles.
#include <math.h>
#include <string.h>

#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

typedef struct {
  cudnnPointwiseMode_t mode;
  double low, high, slope, elu, softplus, swish;
  double alpha[2];
} point_t;

static double normal_cdf(double x) {
  return 0.5 * erfc(-x / sqrt(2));
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

/* The inner tanh of the approximation, and its derivative. */
static double gelu_tanh(double x, double *out_slope) {
  double k = sqrt(2 / M_PI);
  *out_slope = k * (1 + 3 * 0.044715 * x * x);
  return tanh(k * (x + 0.044715 * x * x * x));
}

static double activate(const point_t *p, double x) {
  double slope, s;
  switch ((int)p->mode) {
  case CUDNN_POINTWISE_RELU_FWD:
    return x < p->low ? p->low + p->slope * (x - p->low) : fmin(x, p->high);
  case CUDNN_POINTWISE_TANH_FWD:
    return tanh(x);
  case CUDNN_POINTWISE_SIGMOID_FWD:
    return sigmoid(x);
  case CUDNN_POINTWISE_ELU_FWD:
    return x < 0 ? p->elu * expm1(x) : x;
  case CUDNN_POINTWISE_GELU_FWD:
    return x * normal_cdf(x);
  case CUDNN_POINTWISE_SOFTPLUS_FWD:
    return log1p(exp(p->softplus * x)) / p->softplus;
  case CUDNN_POINTWISE_SWISH_FWD:
    return x * sigmoid(p->swish * x);
  case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
    s = gelu_tanh(x, &slope);
    return 0.5 * x * (1 + s);
  }
  ck_abort_msg("mode %d", p->mode);
}

static double derive(const point_t *p, double x) {
  double slope, s;
  switch ((int)p->mode) {
  case CUDNN_POINTWISE_RELU_BWD:
    return x <= p->low ? p->slope : x < p->high ? 1 : 0;
  case CUDNN_POINTWISE_TANH_BWD:
    return 1 - tanh(x) * tanh(x);
  case CUDNN_POINTWISE_SIGMOID_BWD:
    return sigmoid(x) * (1 - sigmoid(x));
  case CUDNN_POINTWISE_ELU_BWD:
    return x < 0 ? p->elu * exp(x) : 1;
  case CUDNN_POINTWISE_GELU_BWD:
    return normal_cdf(x) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
  case CUDNN_POINTWISE_SOFTPLUS_BWD:
    return sigmoid(p->softplus * x);
  case CUDNN_POINTWISE_SWISH_BWD:
    s = sigmoid(p->swish * x);
    return s + p->swish * x * s * (1 - s);
  case CUDNN_POINTWISE_GELU_APPROX_TANH_BWD:
    s = gelu_tanh(x, &slope);
    return 0.5 * (1 + s) + 0.5 * x * (1 - s * s) * slope;
  }
  ck_abort_msg("mode %d", p->mode);
}

static double apply(const point_t *p, double x, double b, double t) {
  x *= p->alpha[0];
  b *= p->alpha[1];
  switch ((int)p->mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_ADD_SQUARE:
    return x + b * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_MAX:
    return fmax(x, b);
  case CUDNN_POINTWISE_MIN:
    return fmin(x, b);
  case CUDNN_POINTWISE_MOD:
    return fmod(x, b);
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_POW:
    return pow(x, b);
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_ATAN2:
    return atan2(x, b);
  case CUDNN_POINTWISE_ABS:
    return fabs(x);
  case CUDNN_POINTWISE_CEIL:
    return ceil(x);
  case CUDNN_POINTWISE_COS:
    return cos(x);
  case CUDNN_POINTWISE_EXP:
    return exp(x);
  case CUDNN_POINTWISE_FLOOR:
    return floor(x);
  case CUDNN_POINTWISE_LOG:
    return log(x);
  case CUDNN_POINTWISE_NEG:
    return -x;
  case CUDNN_POINTWISE_RSQRT:
    return 1 / sqrt(x);
  case CUDNN_POINTWISE_SIN:
    return sin(x);
  case CUDNN_POINTWISE_SQRT:
    return sqrt(x);
  case CUDNN_POINTWISE_TAN:
    return tan(x);
  case CUDNN_POINTWISE_ERF:
    return erf(x);
  case CUDNN_POINTWISE_IDENTITY:
    return x;
  case CUDNN_POINTWISE_RECIPROCAL:
    return 1 / x;
  case CUDNN_POINTWISE_CMP_EQ:
    return x == b;
  case CUDNN_POINTWISE_CMP_NEQ:
    return x != b;
  case CUDNN_POINTWISE_CMP_GT:
    return x > b;
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_CMP_LT:
    return x < b;
  case CUDNN_POINTWISE_CMP_LE:
    return x <= b;
  case CUDNN_POINTWISE_LOGICAL_AND:
    return x != 0 && b != 0;
  case CUDNN_POINTWISE_LOGICAL_OR:
    return x != 0 || b != 0;
  case CUDNN_POINTWISE_LOGICAL_NOT:
    return x == 0;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  }
  if (p->mode >= CUDNN_POINTWISE_RELU_BWD)
    return b * derive(p, x);
  return activate(p, x);
}

/* Rounding beside that of the operands: a choice has none, a function is
 * computed from others. */
static double own_error(const point_t *p, double x, double b, double value,
                        double rounding) {
  bool scaled = p->alpha[0] != 1 || p->alpha[1] != 1;
  switch ((int)p->mode) {
  case CUDNN_POINTWISE_MAX:
  case CUDNN_POINTWISE_MIN:
  case CUDNN_POINTWISE_ABS:
  case CUDNN_POINTWISE_NEG:
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_BINARY_SELECT:
    return scaled ? rounding * fabs(value) : 0;
  case CUDNN_POINTWISE_CEIL:
  case CUDNN_POINTWISE_FLOOR:
  case CUDNN_POINTWISE_LOGICAL_AND:
  case CUDNN_POINTWISE_LOGICAL_OR:
  case CUDNN_POINTWISE_LOGICAL_NOT:
    return 0;
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_ADD_SQUARE:
    return rounding * (fabs(value) + (scaled ? fabs(x) + fabs(b) : 0) +
                       (p->mode == CUDNN_POINTWISE_ADD_SQUARE ? b * b : 0));
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_EXP:
    return 2 * rounding * fabs(value);
  }
  if (p->mode >= CUDNN_POINTWISE_CMP_EQ && p->mode <= CUDNN_POINTWISE_CMP_LE)
    return 0;
  return 8 * rounding *
         (fabs(value) * (1 + fabs(x)) + (1 + fabs(x)) * (1 + fabs(b)));
}

/* Index of the element that stands at y's element i: extents of 1 stay. */
static int64_t stretched(const sdg_graph_tensor_t *t,
                         const sdg_graph_tensor_t *y, int64_t i) {
  int64_t at = 0, step = 1;
  for (int d = y->rank - 1; d >= 0; d--) {
    if (t->dim[d] > 1)
      at += i % y->dim[d] * step;
    step *= t->dim[d];
    i /= y->dim[d];
  }
  return at;
}

static double along(const sdg_graph_tensor_t *y, int64_t i, int64_t axis) {
  for (int d = y->rank - 1; d > axis; d--)
    i /= y->dim[d];
  return (double)(i % y->dim[axis]);
}

static double worst(double value, double other) {
  if (isnan(value) || isnan(other))
    return isnan(value) && isnan(other) ? 0 : INFINITY;
  return value == other ? 0 : fabs(value - other);
}

void reference_pointwise(reference_t *r, const made_t *m,
                         const sdg_graph_node_t *node, double rounding) {
  point_t p = {
      .mode = (cudnnPointwiseMode_t)sdg_graph_integer(
          node, CUDNN_ATTR_POINTWISE_MODE, -1),
      .low = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0),
      .high =
          sdg_graph_real(node, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY),
      .slope =
          sdg_graph_real(node, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0),
      .elu = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1),
      .softplus = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1),
      .swish = sdg_graph_real(node, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1),
      .alpha = {
          sdg_graph_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1),
          sdg_graph_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1)}};
  bool backward =
      p.mode >= CUDNN_POINTWISE_RELU_BWD && p.mode < CUDNN_POINTWISE_CMP_EQ;
  const int operand[] = {
      sdg_graph_operand(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
      sdg_graph_operand(node, backward ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC
                                       : CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
      sdg_graph_operand(node, CUDNN_ATTR_OPERATION_POINTWISE_TDESC)};
  int y =
      sdg_graph_operand(node, backward ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                       : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const sdg_graph_tensor_t *out = &m->graph.tensor[y];
  int64_t axis = sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_AXIS, -1);
  for (int64_t i = 0; i < r->tensor[y].count; i++) {
    double v[3] = {0}, e[3] = {0};
    for (int k = 0; k < 3; k++)
      if (operand[k] >= 0) {
        int64_t at = stretched(&m->graph.tensor[operand[k]], out, i);
        v[k] = r->tensor[operand[k]].value[at];
        e[k] = r->tensor[operand[k]].error[at];
      }
    if (p.mode == CUDNN_POINTWISE_GEN_INDEX) {
      reference_put(r, m, y, i, along(out, i, axis), 0);
      continue;
    }
    double value = apply(&p, v[0], v[1], v[2]), error = 0;
    for (int c = 0; c < 27 && e[0] + e[1] + e[2] > 0; c++) {
      double other =
          apply(&p, v[0] + (c % 3 - 1) * e[0], v[1] + (c / 3 % 3 - 1) * e[1],
                v[2] + (c / 9 - 1) * e[2]);
      error = fmax(error, worst(value, other));
    }
    error += own_error(&p, v[0], v[1], value, rounding);
    reference_put(r, m, y, i, value, isfinite(value) ? error : 0);
  }
}
