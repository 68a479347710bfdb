// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights.
//
// The direct way is a convolution, too: of x, with its channels as images and
// bands of dy as windows; stride and dilation are exchanged.
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/convolution/engine/engine.h"
#include "src/host/cudnn/convolution/engine/outside.h"

// Bytes of x under one band of dy.
enum { HOST_BAND_BYTES = 1 << 17 };

static int64_t taps_of(const host_conv_t *conv) {
  return (int64_t)conv->window[0] * conv->window[1] * conv->window[2];
}

static const void *offset(const host_conv_t *conv, const void *data,
                          int64_t elements) {
  return (const char *)data +
         elements * (int64_t)(conv->is_double ? sizeof(double) : sizeof(float));
}

// Adds the contribution of output rows [h, h + rows) of plane d of image n.
static bool add_band(const host_conv_t *conv, int64_t n, int group, int64_t d,
                     int64_t h, int64_t rows, void *sums) {
  int64_t taps = taps_of(conv);
  const int64_t *xs = conv->x_stride, *ys = conv->y_stride;
  host_conv_t band = {.is_double = conv->is_double,
                      .images = conv->c,
                      .groups = 1,
                      .c = 1,
                      .k = conv->k,
                      .alpha = 1,
                      .gamma = 1};
  const int64_t first[HOST_SPATIAL] = {d, h, 0};
  for (int i = 0; i < HOST_SPATIAL; i++) {
    band.in[i] = conv->in[i];
    band.out[i] = conv->window[i];
    band.stride[i] = conv->dilation[i];
    band.dilation[i] = conv->stride[i];
    band.pad[i] = (int)(conv->pad[i] - first[i] * conv->stride[i]);
    band.x_stride[2 + i] = xs[2 + i];
    band.w_stride[2 + i] = ys[2 + i];
  }
  band.window[HOST_D] = 1;
  band.window[HOST_H] = (int)rows;
  band.window[HOST_W] = (int)conv->out[HOST_W];
  band.x_stride[0] = xs[1];
  band.w_stride[0] = ys[1];
  band.y_stride[0] = taps;
  band.y_stride[1] = taps * conv->c;
  band.y_stride[2] = (int64_t)conv->window[1] * conv->window[2];
  band.y_stride[3] = conv->window[2];
  band.y_stride[4] = 1;
  memcpy(band.old_stride, band.y_stride, sizeof band.old_stride);
  band.x = offset(conv, conv->x, n * xs[0] + group * (int64_t)conv->c * xs[1]);
  band.w = offset(conv, conv->y,
                  n * ys[0] + group * (int64_t)conv->k * ys[1] + d * ys[2] +
                      h * ys[3]);
  band.y =
      (void *)offset(conv, sums, group * (int64_t)conv->k * conv->c * taps);
  band.old = band.y;
  host_conv_trim(&band);
  return host_conv_direct(&band);
}

bool host_wgrad_direct(const host_conv_t *conv, void *sums) {
  size_t unit = conv->is_double ? sizeof(double) : sizeof(float);
  memset(sums, 0,
         (size_t)conv->groups * (size_t)conv->k * (size_t)conv->c *
             (size_t)taps_of(conv) * unit);
  int64_t row = (conv->in[HOST_W] + conv->pad[HOST_W]) * (int64_t)unit;
  int64_t most = HOST_BAND_BYTES / row / conv->stride[HOST_H];
  most = most < 1 ? 1 : most;
  for (int64_t n = 0; n < conv->images; n++)
    for (int group = 0; group < conv->groups; group++)
      for (int64_t d = 0; d < conv->out[HOST_D]; d++)
        for (int64_t h = 0; h < conv->out[HOST_H]; h += most) {
          int64_t left = conv->out[HOST_H] - h;
          if (!add_band(conv, n, group, d, h, left < most ? left : most, sums))
            return false;
        }
  return true;
}

// dw = alpha * sums + gamma * dw, mirrored if the window is.
#define FINISH(T)                                                              \
  static void finish_##T(const host_conv_t *conv, const T *sums) {             \
    const T alpha = (T)conv->alpha, gamma = (T)conv->gamma;                    \
    const int64_t *s = conv->w_stride;                                         \
    const int *n = conv->window;                                               \
    T *dw = (T *)conv->w;                                                      \
    for (int64_t k = 0; k < (int64_t)conv->groups * conv->k; k++)              \
      for (int64_t c = 0; c < conv->c; c++)                                    \
        for (int d = 0; d < n[0]; d++)                                         \
          for (int h = 0; h < n[1]; h++)                                       \
            for (int w = 0; w < n[2]; w++) {                                   \
              int64_t fd = conv->flip ? n[0] - 1 - d : d;                      \
              int64_t fh = conv->flip ? n[1] - 1 - h : h;                      \
              int64_t fw = conv->flip ? n[2] - 1 - w : w;                      \
              T *to = dw + k * s[0] + c * s[1] + fd * s[2] + fh * s[3] +       \
                      fw * s[4];                                               \
              T value = alpha * *sums++;                                       \
              *to = gamma != 0 ? value + gamma * *to : value;                  \
            }                                                                  \
  }
FINISH(float)
FINISH(double)

bool host_conv_backward_weights(const host_conv_t *conv) {
  size_t unit = conv->is_double ? sizeof(double) : sizeof(float);
  size_t elements = (size_t)conv->groups * (size_t)conv->k * (size_t)conv->c *
                    (size_t)taps_of(conv);
  bool in_place =
      host_conv_weights_plain(conv) && conv->alpha == 1 && conv->gamma == 0;
  void *sums = in_place
                   ? (void *)conv->w
                   : host_scratch_get(HOST_SCRATCH_FILTER, elements * unit);
  if (!sums)
    return false;
  if (!host_wgrad_run(conv, sums) || !host_outside_weights(conv, sums))
    return false;
  if (in_place)
    return true;
  if (conv->is_double)
    finish_double(conv, sums);
  else
    finish_float(conv, sums);
  return true;
}
