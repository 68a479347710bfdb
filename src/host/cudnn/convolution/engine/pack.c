// SPDX-License-Identifier: Apache-2.0
// Copies between the program's tensors and dense channels-last buffers; plain
// weights.
#include "src/host/cudnn/convolution/engine/pack.h"

#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/transpose.h"
#include "src/host/cudnn/convolution/engine/finish.h"

// `count` channels from `first` on, of `columns` columns of x, as columns x C.
static void pack_run(const host_conv_t *conv, const float *from, int64_t first,
                     int64_t count, int64_t columns, float *to) {
  int64_t channels = (int64_t)conv->groups * conv->c;
  int64_t c_step = conv->x_stride[1], w_step = conv->x_stride[4];
  if (c_step == 1 && w_step == channels && count == channels)
    memcpy(to, from, (size_t)(columns * channels) * sizeof *to);
  else if (c_step == 1)
    for (int64_t w = 0; w < columns; w++)
      memcpy(to + w * channels + first, from + w * w_step + first,
             (size_t)count * sizeof *to);
  else if (w_step == 1)
    host_transpose(from + first * c_step, c_step, count, columns, to + first,
                   channels);
  else
    for (int64_t w = 0; w < columns; w++)
      for (int64_t c = first; c < first + count; c++)
        to[w * channels + c] = from[w * w_step + c * c_step];
}

// The parts of [first, first + count) before [0, extent) and inside it.
static void cut(int64_t first, int64_t count, int64_t extent,
                int64_t *out_before, int64_t *out_inside) {
  int64_t before = first < 0 ? -first : 0;
  int64_t behind = first + count > extent ? first + count - extent : 0;
  *out_before = before < count ? before : count;
  *out_inside = behind < count - *out_before ? count - *out_before - behind : 0;
}

// Channels of a row that are converted before the next row's: the processor can
// follow so many streams of memory.
enum { HOST_STREAMS = 16 };

// `rows` rows of x in plane `d`, from row `h` on.
static void pack_rows(const host_conv_t *conv, const host_box_t *box, int64_t n,
                      int64_t d, int64_t h, int64_t rows, float *to) {
  const int64_t *s = conv->x_stride;
  int64_t channels = (int64_t)conv->groups * conv->c, width = box->count[2];
  int64_t low, inside;
  cut(box->first[2], width, conv->in[HOST_W], &low, &inside);
  const float *from = (const float *)conv->x + n * s[0] + d * s[2] + h * s[3] +
                      (box->first[2] + low) * s[4];
  if (inside == width &&
      (rows == 1 || s[3] == width * s[4])) { // the rows are contiguous
    pack_run(conv, from, 0, channels, rows * width, to);
    return;
  }
  int64_t row = width * channels;
  size_t column = (size_t)channels * sizeof *to;
  for (int64_t i = 0; i < rows; i++) {
    memset(to + i * row, 0, (size_t)low * column);
    memset(to + i * row + (low + inside) * channels, 0,
           (size_t)(width - low - inside) * column);
  }
  int64_t step = s[1] == 1 ? channels : HOST_STREAMS;
  for (int64_t c = 0; c < channels && inside; c += step)
    for (int64_t i = 0; i < rows; i++)
      pack_run(conv, from + i * s[3], c,
               channels - c < step ? channels - c : step, inside,
               to + i * row + low * channels);
}

void host_pack_x(const host_conv_t *conv, const host_box_t *box, int64_t n,
                 float *to) {
  const int64_t *first = box->first;
  const int32_t *count = box->count;
  int64_t row = (int64_t)count[2] * conv->groups * conv->c;
  int64_t before, inside;
  cut(first[1], count[1], conv->in[HOST_H], &before, &inside);
  for (int64_t i = 0; i < count[0]; i++, to += row * count[1]) {
    int64_t d = first[0] + i;
    int64_t rows = d < 0 || d >= conv->in[HOST_D] ? 0 : inside;
    int64_t above = rows ? before : count[1];
    memset(to, 0, (size_t)(above * row) * sizeof *to);
    if (!rows)
      continue;
    pack_rows(conv, box, n, d, first[1] + above, rows, to + above * row);
    memset(to + (above + rows) * row, 0,
           (size_t)((count[1] - above - rows) * row) * sizeof *to);
  }
}

void host_pack_under(const host_conv_t *conv, int i, int64_t out, int64_t count,
                     bool zeros, host_box_t *box) {
  int64_t first = out * conv->stride[i] - conv->pad[i];
  int64_t rows = host_conv_rows(conv, i, count);
  int64_t window = host_conv_rows(conv, i, 1), before, inside;
  cut(first, rows, conv->in[i], &before, &inside);
  bool skips =
      !zeros && inside && before < window && rows - before - inside < window;
  box->pad[i] = skips ? (int32_t)before : 0;
  box->first[i] = skips ? first + before : first;
  box->count[i] = (int32_t)(skips ? inside : rows);
}

// Whether sums of rows have y's layout in memory, transposed.
static bool sums_are_y(const host_conv_t *conv) {
  return conv->alpha == 1 && conv->gamma == 0 && !conv->bias && !conv->relu &&
         conv->y_stride[4] == 1;
}

static void unpack_row(const host_conv_t *conv, const float *sums,
                       int64_t width, float *turn, const int64_t at[5]) {
  int64_t channels = (int64_t)conv->groups * conv->k;
  const int64_t *s = conv->y_stride;
  int64_t point[5] = {at[0], at[1], at[2], at[3], at[4]};
  if (s[1] == 1) {
    for (int64_t w = 0; w < width; w++) {
      point[4] = w;
      host_finish_along_c(conv, sums + w * channels, channels, point);
    }
    return;
  }
  if (sums_are_y(conv)) {
    float *y = (float *)conv->y + at[0] * s[0] + at[2] * s[2] + at[3] * s[3];
    host_transpose(sums, channels, width, channels, y, s[1]);
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

// Whether rows of a tensor with y's extents are contiguous.
static bool rows_follow(const host_conv_t *conv, const int64_t stride[5]) {
  return stride[3] == conv->out[HOST_W] * stride[4];
}

void host_unpack_rows(const host_conv_t *conv, const float *sums, int64_t pitch,
                      int64_t rows, float *turn, const int64_t at[5]) {
  int64_t width = conv->out[HOST_W];
  if (pitch == width && rows_follow(conv, conv->y_stride) &&
      (conv->gamma == 0 || rows_follow(conv, conv->old_stride))) {
    unpack_row(conv, sums, rows * width, turn, at);
    return;
  }
  int64_t row = pitch * conv->groups * conv->k;
  for (int64_t i = 0; i < rows; i++)
    unpack_row(conv, sums + i * row, width, turn,
               (const int64_t[]){at[0], at[1], at[2], at[3] + i, at[4]});
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
