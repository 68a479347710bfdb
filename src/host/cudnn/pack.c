// SPDX-License-Identifier: Apache-2.0
// Between the program's tensors and dense channels-last buffers; plain weights.
#include "src/host/cudnn/pack.h"

#include <string.h>

#include "src/host/cudnn/finish.h"
#include "src/host/cudnn/scratch.h"
#include "src/host/cudnn/transpose.h"

/* One row of x, `width` columns from -pad on, as W x C. */
static void pack_row(const host_conv_t *conv, const float *from, int64_t width,
                     float *to) {
  int64_t channels = (int64_t)conv->groups * conv->c;
  int64_t c_step = conv->x_stride[1], w_step = conv->x_stride[4];
  int64_t low = conv->pad[HOST_W], high = low + conv->in[HOST_W];
  if (low > width)
    low = width;
  if (high > width)
    high = width;
  if (!from)
    low = high = width;
  size_t column = (size_t)channels * sizeof *to;
  memset(to, 0, (size_t)low * column);
  memset(to + high * channels, 0, (size_t)(width - high) * column);
  to += low * channels;
  if (high == low)
    return;
  if (c_step == 1 && w_step == channels)
    memcpy(to, from, (size_t)(high - low) * column);
  else if (w_step == 1)
    host_transpose(from, c_step, channels, high - low, to, channels);
  else
    for (int64_t w = 0; w < high - low; w++)
      for (int64_t c = 0; c < channels; c++)
        to[w * channels + c] = from[w * w_step + c * c_step];
}

void host_pack_x(const host_conv_t *conv, const int32_t rows[HOST_SPATIAL],
                 int64_t n, int64_t d0, int64_t h0, float *to) {
  const int64_t *s = conv->x_stride;
  int64_t d_first = d0 * conv->stride[HOST_D] - conv->pad[HOST_D];
  int64_t h_first = h0 * conv->stride[HOST_H] - conv->pad[HOST_H];
  int64_t row = (int64_t)rows[HOST_W] * conv->groups * conv->c;
  for (int64_t d = d_first; d < d_first + rows[HOST_D]; d++)
    for (int64_t h = h_first; h < h_first + rows[HOST_H]; h++, to += row) {
      bool inside =
          d >= 0 && d < conv->in[HOST_D] && h >= 0 && h < conv->in[HOST_H];
      const float *from =
          inside ? (const float *)conv->x + n * s[0] + d * s[2] + h * s[3]
                 : NULL;
      pack_row(conv, from, rows[HOST_W], to);
    }
}

void host_unpack_row(const host_conv_t *conv, const float *sums, float *turn,
                     const int64_t at[5]) {
  int64_t channels = (int64_t)conv->groups * conv->k;
  int64_t width = conv->out[HOST_W];
  int64_t point[5] = {at[0], at[1], at[2], at[3], at[4]};
  if (conv->y_stride[1] == 1) {
    for (int64_t w = 0; w < width; w++) {
      point[4] = w;
      host_finish_along_c(conv, sums + w * channels, channels, point);
    }
    return;
  }
  for (int64_t w = 0; w < width; w += HOST_TURN) {
    int64_t count = width - w < HOST_TURN ? width - w : HOST_TURN;
    host_transpose(sums + w * channels, channels, count, channels, turn,
                   HOST_TURN);
    point[4] = w;
    for (int64_t k = 0; k < channels; k++) {
      point[1] = k;
      host_finish_along_w(conv, turn + k * HOST_TURN, count, point);
    }
  }
}

static void copy_weights(const host_conv_t *conv, float *to) {
  const int *n = conv->window;
  const int64_t *s = conv->w_stride;
  for (int64_t k = 0; k < (int64_t)conv->groups * conv->k; k++)
    for (int64_t c = 0; c < conv->c; c++)
      for (int d = 0; d < n[0]; d++)
        for (int h = 0; h < n[1]; h++)
          for (int w = 0; w < n[2]; w++) {
            int64_t fd = conv->flip ? n[0] - 1 - d : d;
            int64_t fh = conv->flip ? n[1] - 1 - h : h;
            int64_t fw = conv->flip ? n[2] - 1 - w : w;
            *to++ = ((const float *)conv->w)[k * s[0] + c * s[1] + fd * s[2] +
                                             fh * s[3] + fw * s[4]];
          }
}

const float *host_pack_weights(const host_conv_t *conv) {
  if (host_conv_weights_plain(conv))
    return conv->w;
  size_t count = (size_t)conv->groups * (size_t)conv->k * (size_t)conv->c *
                 (size_t)conv->window[0] * (size_t)conv->window[1] *
                 (size_t)conv->window[2];
  float *plain = host_scratch_get(HOST_SCRATCH_WEIGHTS, count * sizeof *plain);
  if (plain)
    copy_weights(conv, plain);
  return plain;
}
