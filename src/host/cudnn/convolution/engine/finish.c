// SPDX-License-Identifier: Apache-2.0
// The last step of a convolution: scale, add, bias, activation, any strides.
//
// Compiled without contraction of a * b + c, so that every path below rounds
// the same way however the compiler vectorises.
#include "src/host/cudnn/convolution/engine/finish.h"

// A bias_step of 0 repeats one bias. Loops of stride 1 are separate, because
// only they vectorise.
#define FINISH(T)                                                              \
  static T relu_##T(T value, bool propagate_nan) {                             \
    return value > 0 || (propagate_nan && value != value) ? value : 0;         \
  }                                                                            \
  static void run_##T(const host_conv_t *conv, const T *sums, int64_t count,   \
                      const T *old, int64_t old_step, const T *bias,           \
                      int64_t bias_step, T *y, int64_t y_step) {               \
    const T alpha = (T)conv->alpha, gamma = (T)conv->gamma;                    \
    if (!bias && !conv->relu && y_step == 1 && conv->gamma == 0) {             \
      for (int64_t i = 0; i < count; i++)                                      \
        y[i] = alpha * sums[i];                                                \
      return;                                                                  \
    }                                                                          \
    if (!bias && !conv->relu && y_step == 1 && old_step == 1) {                \
      for (int64_t i = 0; i < count; i++)                                      \
        y[i] = alpha * sums[i] + gamma * old[i];                               \
      return;                                                                  \
    }                                                                          \
    if (!bias && !conv->relu && conv->gamma == 0) {                            \
      for (int64_t i = 0; i < count; i++)                                      \
        y[i * y_step] = alpha * sums[i];                                       \
      return;                                                                  \
    }                                                                          \
    for (int64_t i = 0; i < count; i++) {                                      \
      T value = alpha * sums[i];                                               \
      if (conv->gamma != 0)                                                    \
        value += gamma * old[i * old_step];                                    \
      if (bias)                                                                \
        value += bias[i * bias_step];                                          \
      if (conv->relu)                                                          \
        value = relu_##T(value, conv->propagate_nan);                          \
      y[i * y_step] = value;                                                   \
    }                                                                          \
  }
FINISH(float)
FINISH(double)

static int64_t offset(const int64_t stride[5], const int64_t at[5]) {
  return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] +
         at[3] * stride[3] + at[4] * stride[4];
}

static void run(const host_conv_t *conv, const void *sums, int64_t count,
                const int64_t at[5], int along, int64_t bias_step) {
  int64_t y = offset(conv->y_stride, at), old = offset(conv->old_stride, at);
  int64_t y_step = conv->y_stride[along], old_step = conv->old_stride[along];
  if (conv->is_double)
    run_double(conv, sums, count,
               conv->old ? (const double *)conv->old + old : NULL, old_step,
               conv->bias ? (const double *)conv->bias + at[1] : NULL,
               bias_step, (double *)conv->y + y, y_step);
  else
    run_float(conv, sums, count,
              conv->old ? (const float *)conv->old + old : NULL, old_step,
              conv->bias ? (const float *)conv->bias + at[1] : NULL, bias_step,
              (float *)conv->y + y, y_step);
}

void host_finish_along_w(const host_conv_t *conv, const void *sums,
                         int64_t count, const int64_t at[5]) {
  run(conv, sums, count, at, 4, 0);
}

void host_finish_along_c(const host_conv_t *conv, const void *sums,
                         int64_t count, const int64_t at[5]) {
  run(conv, sums, count, at, 1, 1);
}
