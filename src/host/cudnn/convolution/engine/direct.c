// SPDX-License-Identifier: Apache-2.0
// The direct engine: any type, strides and window. Rows of x are packed, with
// zeros for the padding and strided columns sorted by phase, so that the kernel
// only reads along a row. Every output is one chain of additions in the order
// channel, depth, row, column of the window.
#include "src/host/cudnn/convolution/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/convolution/engine/finish.h"
#include "src/host/cudnn/convolution/engine/kernel.h"

// Bytes of packed x per band: it stays in the second cache.
enum { HOST_BAND_BYTES = 1 << 19 };

typedef struct {
  const host_conv_t *conv;
  size_t bytes;    // bytes of one element
  int64_t phase;   // elements of one phase of a packed row
  int64_t row;     // elements of a packed row
  int64_t plane;   // elements of a packed plane of rows
  int64_t channel; // elements of a packed channel
  int64_t planes;  // output planes of a band
  int64_t rows;    // output rows of a band
  int64_t width;   // output columns, rounded up
  int taps, blocks;
} plan_t;

static int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

host_kernel_fn host_kernel(bool is_double) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f"))
    return is_double ? host_kernel_double_avx512 : host_kernel_float_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return is_double ? host_kernel_double_avx2 : host_kernel_float_avx2;
#endif
  return is_double ? host_kernel_double_base : host_kernel_float_base;
}

// Chooses planes and rows of a band that need at most `most` packed rows, so
// that few rows are packed per output row: neighbouring outputs share rows.
static void choose_band(plan_t *p, int64_t most) {
  const host_conv_t *conv = p->conv;
  bool dense = conv->dilation[HOST_D] == 1 &&
               conv->stride[HOST_D] <= conv->window[HOST_D];
  int64_t rest = host_conv_rows(conv, HOST_H, 1) - conv->stride[HOST_H];
  double best = 0;
  for (int64_t planes = 1; planes <= (dense ? conv->out[HOST_D] : 1);
       planes++) {
    int64_t deep = host_conv_rows(conv, HOST_D, planes);
    int64_t rows = (most / deep - rest) / conv->stride[HOST_H];
    rows = rows > conv->out[HOST_H] ? conv->out[HOST_H] : rows;
    if (planes > 1 && rows < 1)
      break;
    rows = rows < 1 ? 1 : rows;
    double cost = (double)(deep * host_conv_rows(conv, HOST_H, rows)) /
                  (double)(planes * rows);
    if (planes == 1 || cost < best) {
      best = cost;
      p->planes = planes;
      p->rows = rows;
    }
  }
}

static plan_t plan(const host_conv_t *conv) {
  plan_t p = {.conv = conv};
  p.bytes = conv->is_double ? sizeof(double) : sizeof(float);
  p.taps = conv->window[0] * conv->window[1] * conv->window[2];
  p.blocks = (conv->k + HOST_KERNEL_K - 1) / HOST_KERNEL_K;
  p.width = round_up(conv->out[HOST_W], HOST_KERNEL_SLACK);
  int reach = conv->dilation[HOST_W] * (conv->window[HOST_W] - 1);
  p.phase = p.width + reach / conv->stride[HOST_W] + 1;
  // Rows that start on odd multiples of a cache line do not alias.
  p.row = round_up(p.phase * conv->stride[HOST_W], 16) | 16;
  choose_band(&p, HOST_BAND_BYTES / (p.row * conv->c * (int64_t)p.bytes));
  p.plane = p.row * host_conv_rows(conv, HOST_H, p.rows);
  p.channel = p.plane * host_conv_rows(conv, HOST_D, p.planes);
  return p;
}

// Offsets of the window's elements in a packed channel, in the order of w.
static int64_t *taps_create(const plan_t *p) {
  const host_conv_t *conv = p->conv;
  int64_t *tap = malloc((size_t)p->taps * sizeof *tap);
  int at = 0;
  for (int d = 0; tap && d < conv->window[0]; d++)
    for (int h = 0; h < conv->window[1]; h++)
      for (int w = 0; w < conv->window[2]; w++) {
        int64_t column = (int64_t)w * conv->dilation[HOST_W];
        tap[at++] = (int64_t)d * conv->dilation[HOST_D] * p->plane +
                    (int64_t)h * conv->dilation[HOST_H] * p->row +
                    column % conv->stride[HOST_W] * p->phase +
                    column / conv->stride[HOST_W];
      }
  return tap;
}

// The functions below exist for float and double.
#define TYPED(T)                                                               \
  /* w of one group as [block][c][tap][k in block]. */                         \
  static void weights_##T(const plan_t *p, int group, T *to) {                 \
    const host_conv_t *conv = p->conv;                                         \
    const int64_t *s = conv->w_stride;                                         \
    for (int b = 0; b < p->blocks; b++) {                                      \
      int first = conv->k * b / p->blocks;                                     \
      int end = conv->k * (b + 1) / p->blocks;                                 \
      for (int c = 0; c < conv->c; c++)                                        \
        for (int t = 0; t < p->taps; t++) {                                    \
          int i = conv->flip ? p->taps - 1 - t : t;                            \
          int64_t w = i % conv->window[2];                                     \
          int64_t h = i / conv->window[2] % conv->window[1];                   \
          int64_t d = i / conv->window[2] / conv->window[1];                   \
          const T *from =                                                      \
              (const T *)conv->w + c * s[1] + d * s[2] + h * s[3] + w * s[4];  \
          for (int k = first; k < end; k++)                                    \
            *to++ = from[(group * (int64_t)conv->k + k) * s[0]];               \
        }                                                                      \
    }                                                                          \
  }                                                                            \
                                                                               \
  /* One row of x from column -pad on; zeros outside x. */                     \
  static void row_##T(const plan_t *p, const T *from, T *to) {                 \
    const host_conv_t *conv = p->conv;                                         \
    int64_t s = conv->stride[HOST_W], pad = conv->pad[HOST_W];                 \
    int64_t step = conv->x_stride[4], in = conv->in[HOST_W];                   \
    for (int64_t f = 0; f < s; f++, to += p->phase) {                          \
      /* columns j * s + f - pad inside [0, in) */                             \
      int64_t low = pad > f ? (pad - f + s - 1) / s : 0;                       \
      int64_t high = in + pad > f ? (in + pad - f + s - 1) / s : 0;            \
      if (high > p->phase)                                                     \
        high = p->phase;                                                       \
      if (low > high)                                                          \
        low = high;                                                            \
      memset(to, 0, (size_t)low * sizeof(T));                                  \
      if (!from)                                                               \
        high = low;                                                            \
      else if (s == 1 && step == 1)                                            \
        memcpy(to + low, from + low - pad, (size_t)(high - low) * sizeof(T));  \
      else                                                                     \
        for (int64_t j = low; j < high; j++)                                   \
          to[j] = from[(j * s + f - pad) * step];                              \
      memset(to + high, 0, (size_t)(p->phase - high) * sizeof(T));             \
    }                                                                          \
  }                                                                            \
                                                                               \
  /* The x under output rows [h0, h0 + rows) of output planes [d0, d0 +        \
   * planes). */                                                               \
  static void pack_##T(const plan_t *p, int64_t n, int64_t group, int64_t d0,  \
                       int64_t planes, int64_t h0, int64_t rows, T *to) {      \
    const host_conv_t *conv = p->conv;                                         \
    const int64_t *xs = conv->x_stride;                                        \
    int64_t d_first = d0 * conv->stride[HOST_D] - conv->pad[HOST_D];           \
    int64_t h_first = h0 * conv->stride[HOST_H] - conv->pad[HOST_H];           \
    int64_t height = host_conv_rows(conv, HOST_H, rows);                       \
    int64_t step = p->planes == 1 ? conv->dilation[HOST_D] : 1;                \
    for (int c = 0; c < conv->c; c++)                                          \
      for (int64_t j = 0; j < host_conv_rows(conv, HOST_D, planes);            \
           j += step) {                                                        \
        int64_t d = d_first + j;                                               \
        T *plane = to + c * p->channel + j * p->plane;                         \
        for (int64_t i = 0; i < height; i++) {                                 \
          int64_t h = h_first + i;                                             \
          bool inside = d >= 0 && d < conv->in[HOST_D] && h >= 0 &&            \
                        h < conv->in[HOST_H];                                  \
          const T *from = inside ? (const T *)conv->x + n * xs[0] +            \
                                       (group * conv->c + c) * xs[1] +         \
                                       d * xs[2] + h * xs[3]                   \
                                 : NULL;                                       \
          row_##T(p, from, plane + i * p->row);                                \
        }                                                                      \
      }                                                                        \
  }
TYPED(float)
TYPED(double)

static void band(const plan_t *p, const host_kernel_row_t *job, int64_t n,
                 int64_t group, int64_t d0, int64_t planes, int64_t h0,
                 int64_t rows) {
  const host_conv_t *conv = p->conv;
  host_kernel_fn run = host_kernel(conv->is_double);
  host_kernel_row_t row = *job;
  for (int64_t d = 0; d < planes; d++)
    for (int64_t h = 0; h < rows; h++) {
      row.x = (const char *)job->x + (d * conv->stride[HOST_D] * p->plane +
                                      h * conv->stride[HOST_H] * p->row) *
                                         (int64_t)p->bytes;
      run(&row);
      for (int k = 0; k < conv->k; k++)
        host_finish_along_w(
            conv, (const char *)job->sums + k * p->width * (int64_t)p->bytes,
            conv->out[HOST_W],
            (const int64_t[]){n, group * conv->k + k, d0 + d, h0 + h, 0});
    }
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

bool host_conv_direct(const host_conv_t *conv) {
  plan_t p = plan(conv);
  size_t weights = (size_t)conv->k * (size_t)conv->c * (size_t)p.taps;
  void *w = host_scratch_get(HOST_SCRATCH_WEIGHTS, weights * p.bytes);
  size_t packed = (size_t)(conv->c * p.channel + HOST_KERNEL_SLACK);
  void *x = host_scratch_get(HOST_SCRATCH_INPUT, packed * p.bytes);
  void *sums = host_scratch_get(HOST_SCRATCH_TILE,
                                (size_t)(conv->k * p.width) * p.bytes);
  int64_t *tap = taps_create(&p);
  if (!w || !x || !sums || !tap) {
    free(tap);
    return false;
  }
  host_kernel_row_t job = {x,        w,         tap,
                           p.taps,   conv->c,   conv->k,
                           p.blocks, p.channel, conv->out[HOST_W],
                           p.width,  sums};
  for (int group = 0; group < conv->groups; group++) {
    if (conv->is_double)
      weights_double(&p, group, w);
    else
      weights_float(&p, group, w);
    for (int64_t n = 0; n < conv->images; n++)
      for (int64_t d = 0; d < conv->out[HOST_D]; d += p.planes)
        for (int64_t h = 0; h < conv->out[HOST_H]; h += p.rows) {
          int64_t planes = least(conv->out[HOST_D] - d, p.planes);
          int64_t rows = least(conv->out[HOST_H] - h, p.rows);
          if (conv->is_double)
            pack_double(&p, n, group, d, planes, h, rows, x);
          else
            pack_float(&p, n, group, d, planes, h, rows, x);
          band(&p, &job, n, group, d, planes, h, rows);
        }
  }
  free(tap);
  return true;
}
