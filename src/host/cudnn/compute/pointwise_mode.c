// SPDX-License-Identifier: Apache-2.0
// What each mode of a pointwise operation computes, in doubles.
#include <math.h>

#include "src/host/cudnn/compute/pointwise.h"

#define ROW(name, value)                                                       \
  static void name(const host_pointwise_row_t *r) {                            \
    const double *const *in = r->in;                                           \
    for (int64_t i = 0; i < r->count; i++) {                                   \
      double x = r->alpha1 * in[HOST_PW_X][i * r->step[HOST_PW_X]];            \
      double b = r->alpha2 * in[HOST_PW_B][i * r->step[HOST_PW_B]];            \
      double t = in[HOST_PW_T][i * r->step[HOST_PW_T]];                        \
      double dy = in[HOST_PW_DY][i * r->step[HOST_PW_DY]];                     \
      double y = in[HOST_PW_Y][i * r->step[HOST_PW_Y]];                        \
      (void)x, (void)b, (void)t, (void)dy, (void)y;                            \
      r->out[i] = (value);                                                     \
    }                                                                          \
  }

// ---- arithmetic ------------------------------------------------------------

// NaN of either operand is the result.
static double larger(double a, double b) {
  return a > b || isnan(a) ? a : b;
}

static double smaller(double a, double b) {
  return a < b || isnan(a) ? a : b;
}

ROW(add, x + b)
ROW(add_square, x + b * b)
ROW(divide, x / b)
ROW(maximum, larger(x, b))
ROW(minimum, smaller(x, b))
ROW(modulo, fmod(x, b))
ROW(multiply, x *b)
ROW(power, pow(x, b))
ROW(subtract, x - b)
ROW(absolute, fabs(x))
ROW(ceiling, ceil(x))
ROW(cosine, cos(x))
ROW(exponential, exp(x))
ROW(floored, floor(x))
ROW(logarithm, log(x))
ROW(negative, -x)
ROW(inverse_root, 1 / sqrt(x))
ROW(sine, sin(x))
ROW(root, sqrt(x))
ROW(tangent, tan(x))
ROW(error_function, erf(x))
ROW(identity, x)
ROW(reciprocal, 1 / x)
ROW(angle, atan2(x, b))
ROW(equal, x == b)
ROW(not_equal, x != b)
ROW(greater, x > b)
ROW(greater_equal, x >= b)
ROW(less, x < b)
ROW(less_equal, x <= b)
ROW(both, x != 0 && b != 0)
ROW(either, x != 0 || b != 0)
ROW(none, x == 0)
ROW(chosen, t != 0 ? x : b)
ROW(position, (double)(r->index + i * r->index_step))

// ---- activations -----------------------------------------------------------

// A slope of 0 makes 0 of infinities, too.
static double scaled(double slope, double x) {
  return slope == 0 ? 0 : slope * x;
}

static double relu(const host_pointwise_row_t *r, double x) {
  double below = r->lower + scaled(r->slope, x - r->lower);
  double above = x > r->upper ? r->upper : x;
  return x <= r->lower ? below : above;
}

static double relu_gradient(const host_pointwise_row_t *r, double x,
                            double dy) {
  double slope = x <= r->lower ? r->slope : x > r->upper ? 0 : 1;
  return scaled(slope, dy);
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

// The distribution function of the normal distribution, and its density.
static double normal(double x) {
  return 0.5 * erfc(-x * M_SQRT1_2);
}

static double density(double x) {
  return exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}

// GELU's approximation (Hendrycks and Gimpel, 2016): x (1 + tanh u(x)) / 2.
static double gelu_inner(double x) {
  return M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x);
}

static double gelu_inner_slope(double x) {
  return M_2_SQRTPI * M_SQRT1_2 * (1 + 3 * 0.044715 * x * x);
}

static double gelu_slope(double x) {
  double t = tanh(gelu_inner(x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_inner_slope(x);
}

static double swish_slope(double x, double beta) {
  double s = sigmoid(beta * x);
  return s + beta * x * s * (1 - s);
}

ROW(relu_forward, relu(r, x))
ROW(tanh_forward, tanh(x))
ROW(sigmoid_forward, sigmoid(x))
ROW(elu_forward, x > 0 ? x : r->elu_alpha * expm1(x))
ROW(gelu_forward, x *normal(x))
ROW(softplus_forward, softplus(r->softplus_beta *x) / r->softplus_beta)
ROW(swish_forward, x *sigmoid(r->swish_beta *x))
ROW(gelu_tanh_forward, 0.5 * x * (1 + tanh(gelu_inner(x))))

ROW(relu_backward, relu_gradient(r, x, dy))
ROW(tanh_backward, dy *(1 - tanh(x) * tanh(x)))
ROW(sigmoid_backward, dy *sigmoid(x) * (1 - sigmoid(x)))
ROW(elu_backward, x > 0 ? dy : dy * r->elu_alpha * exp(x))
ROW(gelu_backward, dy *(normal(x) + x * density(x)))
ROW(softplus_backward, dy *sigmoid(r->softplus_beta *x))
ROW(swish_backward, dy *swish_slope(x, r->swish_beta))
ROW(gelu_tanh_backward, dy *gelu_slope(x))

ROW(relu_of_y, relu_gradient(r, y, dy))
ROW(tanh_of_y, dy *(1 - y * y))
ROW(sigmoid_of_y, dy *y *(1 - y))
ROW(elu_of_y, y > 0 ? dy : dy * (y + r->elu_alpha))
ROW(softplus_of_y, dy * -expm1(-r->softplus_beta * y))

// ---- the table -------------------------------------------------------------

#define X        (1u << HOST_PW_X)
#define B        (1u << HOST_PW_B)
#define T        (1u << HOST_PW_T)
#define DY       (1u << HOST_PW_DY)
#define M(value) CUDNN_POINTWISE_##value

static const host_pointwise_mode_t modes[] = {
    {M(ADD), X | B, add, NULL},
    {M(ADD_SQUARE), X | B, add_square, NULL},
    {M(DIV), X | B, divide, NULL},
    {M(MAX), X | B, maximum, NULL},
    {M(MIN), X | B, minimum, NULL},
    {M(MOD), X | B, modulo, NULL},
    {M(MUL), X | B, multiply, NULL},
    {M(POW), X | B, power, NULL},
    {M(SUB), X | B, subtract, NULL},
    {M(ABS), X, absolute, NULL},
    {M(CEIL), X, ceiling, NULL},
    {M(COS), X, cosine, NULL},
    {M(EXP), X, exponential, NULL},
    {M(FLOOR), X, floored, NULL},
    {M(LOG), X, logarithm, NULL},
    {M(NEG), X, negative, NULL},
    {M(RSQRT), X, inverse_root, NULL},
    {M(SIN), X, sine, NULL},
    {M(SQRT), X, root, NULL},
    {M(TAN), X, tangent, NULL},
    {M(ERF), X, error_function, NULL},
    {M(IDENTITY), X, identity, NULL},
    {M(RECIPROCAL), X, reciprocal, NULL},
    {M(ATAN2), X | B, angle, NULL},
    {M(RELU_FWD), X, relu_forward, NULL},
    {M(TANH_FWD), X, tanh_forward, NULL},
    {M(SIGMOID_FWD), X, sigmoid_forward, NULL},
    {M(ELU_FWD), X, elu_forward, NULL},
    {M(GELU_FWD), X, gelu_forward, NULL},
    {M(SOFTPLUS_FWD), X, softplus_forward, NULL},
    {M(SWISH_FWD), X, swish_forward, NULL},
    {M(GELU_APPROX_TANH_FWD), X, gelu_tanh_forward, NULL},
    {M(RELU_BWD), X | DY, relu_backward, relu_of_y},
    {M(TANH_BWD), X | DY, tanh_backward, tanh_of_y},
    {M(SIGMOID_BWD), X | DY, sigmoid_backward, sigmoid_of_y},
    {M(ELU_BWD), X | DY, elu_backward, elu_of_y},
    {M(GELU_BWD), X | DY, gelu_backward, NULL},
    {M(SOFTPLUS_BWD), X | DY, softplus_backward, softplus_of_y},
    {M(SWISH_BWD), X | DY, swish_backward, NULL},
    {M(GELU_APPROX_TANH_BWD), X | DY, gelu_tanh_backward, NULL},
    {M(CMP_EQ), X | B, equal, NULL},
    {M(CMP_NEQ), X | B, not_equal, NULL},
    {M(CMP_GT), X | B, greater, NULL},
    {M(CMP_GE), X | B, greater_equal, NULL},
    {M(CMP_LT), X | B, less, NULL},
    {M(CMP_LE), X | B, less_equal, NULL},
    {M(LOGICAL_AND), X | B, both, NULL},
    {M(LOGICAL_OR), X | B, either, NULL},
    {M(LOGICAL_NOT), X, none, NULL},
    {M(GEN_INDEX), 0, position, NULL},
    {M(BINARY_SELECT), X | B | T, chosen, NULL},
};

const host_pointwise_mode_t *host_pointwise_mode(cudnnPointwiseMode_t mode) {
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (modes[i].mode == mode)
      return &modes[i];
  return NULL;
}
