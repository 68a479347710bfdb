// SPDX-License-Identifier: Apache-2.0
// Rows of x, padding included, as a dense channels-last buffer.
#include "src/host/cudnn/pack.h"

#include <string.h>

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
