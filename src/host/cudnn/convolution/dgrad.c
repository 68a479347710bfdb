// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's data, as forward convolutions of dy.
//
// The elements of dx with the same remainder r modulo the stride s use the same
// taps of the window: those k with (r + pad - k * dilation) divisible by s.
// They are one convolution of dy without stride, with these taps in reverse
// order and input and output channels exchanged. Example: s = 2, window 3, pad
// 1: even rows use tap 1, odd rows use taps 0 and 2.
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/convolution/engine/engine.h"
#include "src/host/cudnn/convolution/engine/finish.h"

// Weights per tap above which exchanging the channels costs too much.
enum { HOST_MANY = 64 * 64 };

// The taps first, first + step, ... (count of them) of one dimension. For dx's
// row `r` the first uses dy's row `offset`, each later one the row `dilation`
// rows before.
typedef struct {
  int first, step, count, dilation;
  int64_t offset;
} taps_t;

static int divisor(int a, int b) {
  while (b) {
    int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static taps_t taps_of(const host_conv_t *conv, int d, int r) {
  int s = conv->stride[d], dilation = conv->dilation[d];
  int g = divisor(s, dilation);
  taps_t t = {.step = s / g, .dilation = dilation / g};
  for (; t.first < t.step && t.first < conv->window[d]; t.first++) {
    int64_t at = r + conv->pad[d] - (int64_t)t.first * dilation;
    if (at % s == 0) {
      t.offset = at / s;
      t.count = (conv->window[d] - 1 - t.first) / t.step + 1;
      break;
    }
  }
  return t;
}

// Channels exchanged at once: their weights stay in the first cache.
enum { HOST_TURN = 16 };

// The weights that `taps` select, as groups * C x K x taps, last tap first.
#define WEIGHTS(T)                                                             \
  static void weights_##T(const host_conv_t *conv, const int64_t *tap,         \
                          int64_t taps, T *to) {                               \
    const int64_t *s = conv->w_stride;                                         \
    for (int64_t g = 0; g < conv->groups; g++)                                 \
      for (int64_t c0 = 0; c0 < conv->c; c0 += HOST_TURN)                      \
        for (int64_t k0 = 0; k0 < conv->k; k0 += HOST_TURN)                    \
          for (int64_t c = c0; c < conv->c && c < c0 + HOST_TURN; c++)         \
            for (int64_t k = k0; k < conv->k && k < k0 + HOST_TURN; k++) {     \
              const T *from =                                                  \
                  (const T *)conv->w + (g * conv->k + k) * s[0] + c * s[1];    \
              T *at = to + ((g * conv->c + c) * conv->k + k) * taps;           \
              for (int64_t t = 0; t < taps; t++)                               \
                at[t] = from[tap[t]];                                          \
            }                                                                  \
  }
WEIGHTS(float)
WEIGHTS(double)

// Offsets of the weights that `taps` select, last tap first; owned by the
// caller.
static int64_t *offsets_create(const host_conv_t *conv,
                               const taps_t taps[HOST_SPATIAL],
                               int64_t *out_count) {
  int64_t count = 0;
  int64_t *offset = malloc((size_t)taps[0].count * (size_t)taps[1].count *
                           (size_t)taps[2].count * sizeof *offset);
  for (int d = taps[0].count - 1; offset && d >= 0; d--)
    for (int h = taps[1].count - 1; h >= 0; h--)
      for (int w = taps[2].count - 1; w >= 0; w--) {
        const int at[] = {d, h, w};
        int64_t sum = 0;
        for (int i = 0; i < HOST_SPATIAL; i++) {
          int tap = taps[i].first + at[i] * taps[i].step;
          if (conv->flip)
            tap = conv->window[i] - 1 - tap;
          sum += tap * conv->w_stride[2 + i];
        }
        offset[count++] = sum;
      }
  *out_count = count;
  return offset;
}

// Elements of dx that no window covers: only their old values count.
static bool finish_nothing(const host_conv_t *part) {
  size_t unit = part->is_double ? sizeof(double) : sizeof(float);
  size_t bytes = (size_t)part->out[HOST_W] * unit;
  void *zeros = host_scratch_get(HOST_SCRATCH_TILE, bytes);
  if (!zeros)
    return false;
  memset(zeros, 0, bytes);
  int64_t at[5] = {0};
  for (at[0] = 0; at[0] < part->images; at[0]++)
    for (at[1] = 0; at[1] < (int64_t)part->groups * part->k; at[1]++)
      for (at[2] = 0; at[2] < part->out[0]; at[2]++)
        for (at[3] = 0; at[3] < part->out[1]; at[3]++)
          host_finish_along_w(part, zeros, part->out[HOST_W], at);
  return true;
}

// Clears all of dx at once if rows are contiguous and no old values are needed.
// Clearing elements that are written later costs less than clearing some alone.
static bool clear(const host_conv_t *conv) {
  const int64_t *s = conv->x_stride;
  int64_t width = conv->in[HOST_W];
  size_t unit = conv->is_double ? sizeof(double) : sizeof(float);
  if (conv->gamma != 0 || s[4] != 1)
    return false;
  bool planes = s[3] == width; // rows follow each other
  int64_t rows = planes ? 1 : conv->in[HOST_H];
  size_t bytes = (size_t)(planes ? width * conv->in[HOST_H] : width) * unit;
  for (int64_t n = 0; n < conv->images; n++)
    for (int64_t c = 0; c < (int64_t)conv->groups * conv->c; c++)
      for (int64_t d = 0; d < conv->in[HOST_D]; d++)
        for (int64_t h = 0; h < rows; h++)
          memset((char *)conv->x +
                     (size_t)(n * s[0] + c * s[1] + d * s[2] + h * s[3]) * unit,
                 0, bytes);
  return true;
}

// The weights at `tap` in the order of the exchanged problem: in place if a
// transposed matrix gives that order, else copied to `room`.
static void exchange(const host_conv_t *conv, const int64_t *tap, int64_t taps,
                     void *room, host_conv_t *part) {
  int64_t unit = conv->is_double ? sizeof(double) : sizeof(float);
  part->w_stride[4] = 1;
  for (int i = 3; i >= 1; i--)
    part->w_stride[i] = part->w_stride[i + 1] * part->window[i - 1];
  part->w_stride[0] = part->w_stride[1] * conv->k;
  part->w = room;
  if (taps == 1 && conv->groups == 1) {
    part->w = (const char *)conv->w + tap[0] * unit;
    part->w_stride[0] = conv->w_stride[1];
    part->w_stride[1] = conv->w_stride[0];
  } else if (conv->is_double) {
    weights_double(conv, tap, taps, room);
  } else {
    weights_float(conv, tap, taps, room);
  }
}

// The part of dx with remainders `r`. If dx is `cleared`, parts that no window
// covers are complete.
static bool run_part(const host_conv_t *conv, const int r[HOST_SPATIAL],
                     bool cleared, void *weights) {
  taps_t taps[HOST_SPATIAL];
  int64_t unit = conv->is_double ? sizeof(double) : sizeof(float), start = 0;
  host_conv_t part = {.is_double = conv->is_double,
                      .images = conv->images,
                      .groups = conv->groups,
                      .c = conv->k,
                      .k = conv->c,
                      .x = conv->y,
                      .alpha = conv->alpha,
                      .gamma = conv->gamma};
  memcpy(part.x_stride, conv->y_stride, sizeof part.x_stride);
  memcpy(part.y_stride, conv->x_stride, sizeof part.y_stride);
  bool covered = true;
  for (int i = 0; i < HOST_SPATIAL; i++) {
    taps[i] = taps_of(conv, i, r[i]);
    covered &= taps[i].count > 0;
    part.in[i] = conv->out[i];
    part.out[i] = (conv->in[i] - r[i] + conv->stride[i] - 1) / conv->stride[i];
    part.window[i] = taps[i].count;
    part.stride[i] = 1;
    part.dilation[i] = taps[i].dilation;
    part.pad[i] =
        (int)((taps[i].count - 1) * (int64_t)taps[i].dilation - taps[i].offset);
    start += r[i] * conv->x_stride[2 + i];
    part.y_stride[2 + i] *= conv->stride[i];
  }
  part.y = (char *)conv->x + start * unit;
  part.old = part.y;
  memcpy(part.old_stride, part.y_stride, sizeof part.old_stride);
  if (!covered)
    return cleared || finish_nothing(&part);
  int64_t count, *tap = offsets_create(conv, taps, &count);
  if (!tap)
    return false;
  exchange(conv, tap, count, weights, &part);
  free(tap);
  host_conv_trim(&part);
  return host_conv_run(&part);
}

// Where oneDNN's kernels are known to obey the law in engine.h, found by
// comparing pieces of any size with the whole. With dilation and stride oneDNN
// uses products of matrices instead of these kernels. With stride and windows
// that are not as high as wide, or not as wide as the stride, the extents
// change the order of additions. With unequal strides the extents decide
// whether these kernels are used at all if the caches are small.
static bool lawful(const host_conv_t *conv) {
  const int *n = conv->window, *s = conv->stride;
  bool deep = conv->c == 1 && conv->k == 1 && conv->groups % 16 == 0;
  if ((!deep && (conv->c % 16 != 0 || conv->k % 16 != 0)) ||
      n[HOST_W] > (deep ? 5 : 3))
    return false;
  bool strided = false, dilated = false, alike = n[HOST_H] == n[HOST_W];
  for (int i = 0; i < HOST_SPATIAL; i++) {
    strided |= s[i] > 1;
    dilated |= conv->dilation[i] > 1;
    alike &= s[i] <= 2 && s[i] <= n[i] && (n[i] == 1 || s[i] == s[HOST_W]);
  }
  return !strided ||
         (alike && !dilated && (n[HOST_D] == 1 || n[HOST_D] == n[HOST_H]));
}

// Uses oneDNN's own kernels, which need neither exchanged weights nor one part
// per remainder: faster for many weights and for strides.
static bool try_onednn(const host_conv_t *conv, bool *out_done) {
  host_conv_t exchanged = *conv;
  exchanged.c = conv->k;
  exchanged.k = conv->c;
  *out_done = false;
  bool strided = false;
  for (int i = 0; i < HOST_SPATIAL; i++)
    strided |= conv->stride[i] > 1;
  bool worth = strided || conv->c * (int64_t)conv->k >= HOST_MANY;
  if (!lawful(conv) || !worth || !host_conv_turns(&exchanged))
    return true;
  return host_dgrad_onednn(conv, out_done);
}

bool host_conv_backward_data(const host_conv_t *conv) {
  bool done;
  if (!try_onednn(conv, &done))
    return false;
  if (done)
    return true;
  size_t unit = conv->is_double ? sizeof(double) : sizeof(float);
  size_t elements = (size_t)conv->groups * (size_t)conv->k * (size_t)conv->c;
  int64_t count[HOST_SPATIAL];
  for (int i = 0; i < HOST_SPATIAL; i++) {
    elements *= (size_t)conv->window[i];
    count[i] = conv->stride[i] < conv->in[i] ? conv->stride[i] : conv->in[i];
  }
  void *weights = host_scratch_get(HOST_SCRATCH_FILTER, elements * unit);
  if (!weights)
    return false;
  bool holes = false;
  for (int i = 0; i < HOST_SPATIAL; i++)
    for (int j = 0; j < count[i]; j++)
      holes |= taps_of(conv, i, j).count == 0;
  bool cleared = holes && clear(conv);
  int r[HOST_SPATIAL];
  for (r[0] = 0; r[0] < count[0]; r[0]++)
    for (r[1] = 0; r[1] < count[1]; r[1]++)
      for (r[2] = 0; r[2] < count[2]; r[2]++)
        if (!run_part(conv, r, cleared, weights))
          return false;
  return true;
}
