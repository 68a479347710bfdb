// SPDX-License-Identifier: Apache-2.0
// The matrix engine: weights times tiles of columns of x, by oneDNN's product
// of matrices. For float, one group, and short columns.
//
// A tile is made of as many columns as HOST_COLUMNS divides: such products add
// alike wherever a column stands (tests/host checks that), so an output's bits
// depend on its own window.
#include "src/host/cudnn/matrix.h"

#include <omp.h>
#include <string.h>

#include "src/host/cudnn/finish.h"
#include "src/host/cudnn/pack.h"
#include "src/host/cudnn/primitive.h"
#include "src/host/cudnn/scratch.h"

enum {
  HOST_COLUMNS = 48,
  HOST_TILE_BYTES = 1 << 19,   /* of columns and sums: the second cache */
  HOST_TILE_MOST = 16,         /* times HOST_COLUMNS */
  HOST_LONG = 8 * HOST_COLUMNS /* a row whose end may waste most of a tile */
};

typedef struct {
  const host_conv_t *conv;
  const float *w; /* k x depth */
  int64_t depth;  /* elements of a column: c * taps */
  int64_t width;  /* columns of a tile, a multiple of HOST_COLUMNS */
  int64_t rows, positions;
  float *columns, *sums; /* depth x width, k x width */
} plan_t;

/* Part of a row of outputs: columns [w, w + count) of row h of plane d. */
typedef struct {
  int64_t n, d, h, w, count;
} run_t;

static run_t run_at(const plan_t *p, int64_t position, int64_t end) {
  const int64_t *out = p->conv->out;
  int64_t row = position / out[HOST_W];
  run_t run = {.w = position % out[HOST_W], .h = row % out[HOST_H]};
  run.d = row / out[HOST_H] % out[HOST_D];
  run.n = row / out[HOST_H] / out[HOST_D];
  run.count = out[HOST_W] - run.w;
  if (run.count > end - position)
    run.count = end - position;
  return run;
}

/* What one element of the window meets along a run: zeros, x, zeros. */
static void pack_tap(const host_conv_t *conv, const float *row, int64_t first,
                     int64_t count, float *to) {
  int64_t s = conv->stride[HOST_W], step = conv->x_stride[4];
  int64_t low = first < 0 ? (-first + s - 1) / s : 0;
  int64_t left = conv->in[HOST_W] - first;
  int64_t high = left > 0 ? (left + s - 1) / s : 0;
  low = low < count ? low : count;
  high = !row || high < low ? low : high < count ? high : count;
  memset(to, 0, (size_t)low * sizeof *to);
  if (s == 1 && step == 1 && high > low)
    memcpy(to + low, row + first + low, (size_t)(high - low) * sizeof *to);
  else if (s == 2 && step == 1) /* vectorises, as the stride is known */
    for (int64_t i = low; i < high; i++)
      to[i] = row[first + i * 2];
  else
    for (int64_t i = low; i < high; i++)
      to[i] = row[(first + i * s) * step];
  memset(to + high, 0, (size_t)(count - high) * sizeof *to);
}

static void pack_run(const plan_t *p, const run_t *run, float *to) {
  const host_conv_t *conv = p->conv;
  const int64_t *xs = conv->x_stride;
  for (int64_t c = 0; c < conv->c; c++)
    for (int kd = 0; kd < conv->window[HOST_D]; kd++)
      for (int kh = 0; kh < conv->window[HOST_H]; kh++) {
        int64_t d = run->d * conv->stride[HOST_D] - conv->pad[HOST_D] +
                    (int64_t)kd * conv->dilation[HOST_D];
        int64_t h = run->h * conv->stride[HOST_H] - conv->pad[HOST_H] +
                    (int64_t)kh * conv->dilation[HOST_H];
        bool inside =
            d >= 0 && d < conv->in[HOST_D] && h >= 0 && h < conv->in[HOST_H];
        const float *row = inside ? (const float *)conv->x + run->n * xs[0] +
                                        c * xs[1] + d * xs[2] + h * xs[3]
                                  : NULL;
        for (int kw = 0; kw < conv->window[HOST_W]; kw++, to += p->width)
          pack_tap(conv, row,
                   run->w * conv->stride[HOST_W] - conv->pad[HOST_W] +
                       (int64_t)kw * conv->dilation[HOST_W],
                   run->count, to);
      }
}

/* The columns of positions [at, end), and zeros up to the tile's width. */
static void pack_tile(const plan_t *p, int64_t at, int64_t end, int64_t width) {
  for (int64_t i = at; i < end;) {
    run_t run = run_at(p, i, end);
    pack_run(p, &run, p->columns + (i - at));
    i += run.count;
  }
  for (int64_t i = 0; i < p->depth && at + width > end; i++)
    memset(p->columns + i * p->width + (end - at), 0,
           (size_t)(at + width - end) * sizeof(float));
}

/* Whether rows and planes of a tensor of y's extents follow each other. */
static bool rows_follow(const host_conv_t *conv, const int64_t stride[5]) {
  int64_t row = conv->out[HOST_W] * stride[4];
  return (conv->out[HOST_H] == 1 || stride[3] == row) &&
         (conv->out[HOST_D] == 1 || stride[2] == row * conv->out[HOST_H]);
}

/* As run_at, but as far as the image goes, in columns of one long row. */
static run_t image_at(const plan_t *p, int64_t position, int64_t end) {
  const int64_t *out = p->conv->out;
  int64_t image = out[0] * out[1] * out[2];
  run_t run = {.n = position / image, .w = position % image};
  run.count = image - run.w < end - position ? image - run.w : end - position;
  return run;
}

static void finish_tile(const plan_t *p, int64_t at, int64_t end) {
  bool whole =
      rows_follow(p->conv, p->conv->y_stride) &&
      (p->conv->gamma == 0 || rows_follow(p->conv, p->conv->old_stride));
  for (int64_t i = at; i < end;) {
    run_t run = whole ? image_at(p, i, end) : run_at(p, i, end);
    for (int64_t k = 0; k < p->rows; k++)
      host_finish_along_w(p->conv, p->sums + k * p->width + (i - at), run.count,
                          (const int64_t[]){run.n, k, run.d, run.h, run.w});
    i += run.count;
  }
}

/* Rows behind each other, met by a window of one element, are one row. */
static void flatten(host_conv_t *conv) {
  for (int i = HOST_H; i >= HOST_D; i--) {
    for (int j = i; j < HOST_SPATIAL; j++)
      if (conv->window[j] != 1 || conv->stride[j] != 1 || conv->pad[j] != 0 ||
          conv->in[j] != conv->out[j])
        return;
    int64_t width = conv->in[HOST_W];
    const int64_t *const strides[] = {conv->x_stride, conv->y_stride,
                                      conv->old_stride};
    for (int s = 0; s < 3 && conv->in[i] != 1; s++)
      if (strides[s][2 + i] != width * strides[s][4])
        return;
    conv->in[HOST_W] = conv->out[HOST_W] = width * conv->in[i];
    conv->in[i] = conv->out[i] = 1;
  }
}

static bool plan(const host_conv_t *conv, plan_t *p) {
  const int64_t *out = conv->out;
  p->conv = conv;
  p->depth =
      (int64_t)conv->c * conv->window[0] * conv->window[1] * conv->window[2];
  p->rows = conv->k;
  p->positions = conv->images * out[0] * out[1] * out[2];
  int64_t unit = (p->depth + p->rows) * HOST_COLUMNS * (int64_t)sizeof(float);
  /* More where the weights are more, as they are read once a tile. */
  int64_t weights = p->depth * p->rows * (int64_t)sizeof(float);
  int64_t times =
      (weights > HOST_TILE_BYTES ? weights : HOST_TILE_BYTES) / unit;
  int64_t most = (p->positions + HOST_COLUMNS - 1) / HOST_COLUMNS;
  times = times > HOST_TILE_MOST ? HOST_TILE_MOST : times;
  times = times > most ? most : times;
  p->width = (times < 1 ? 1 : times) * HOST_COLUMNS;
  p->columns = host_scratch_get(HOST_SCRATCH_INPUT,
                                (size_t)(p->depth * p->width) * sizeof(float));
  p->sums = host_scratch_get(HOST_SCRATCH_OUTPUT,
                             (size_t)(p->rows * p->width) * sizeof(float));
  return p->columns && p->sums;
}

/* y (rows x width) = weights times columns (depth x width). */
static bool multiply(const plan_t *p, int64_t width, const float *columns,
                     int64_t columns_pitch, float *y, int64_t y_pitch) {
  return dnnl_sgemm('N', 'N', p->rows, width, p->depth, 1, p->w, p->depth,
                    columns, columns_pitch, 0, y, y_pitch) == dnnl_success;
}

/* Where the sums of whole tiles are y as it lies in memory. */
static bool sums_are_y(const host_conv_t *conv) {
  return conv->alpha == 1 && conv->gamma == 0 && !conv->bias && !conv->relu &&
         conv->y_stride[4] == 1;
}

/* Long rows that need neither padding nor copies: x is the columns. Returns
 * how many positions from `at` on are done, 0 for none. */
static int64_t product_in_place(const plan_t *p, int64_t at, bool *ok) {
  const host_conv_t *conv = p->conv;
  const int64_t *xs = conv->x_stride, *ys = conv->y_stride;
  int64_t row = conv->out[HOST_W];
  for (int i = 0; i < HOST_SPATIAL; i++)
    if (conv->window[i] != 1 || conv->stride[i] != 1 || conv->pad[i] != 0)
      return 0;
  if (row < HOST_LONG || xs[4] != 1 || xs[1] < row)
    return 0;
  run_t run = run_at(p, at, at + row);
  if (run.count < HOST_COLUMNS)
    return 0;
  bool direct = sums_are_y(conv) && ys[1] >= row;
  int64_t width = run.count / HOST_COLUMNS * HOST_COLUMNS;
  if (!direct && width > p->width)
    width = p->width;
  const float *x = (const float *)conv->x + run.n * xs[0] + run.d * xs[2] +
                   run.h * xs[3] + run.w;
  float *y = direct ? (float *)conv->y + run.n * ys[0] + run.d * ys[2] +
                          run.h * ys[3] + run.w
                    : p->sums;
  *ok = multiply(p, width, x, xs[1], y, direct ? ys[1] : p->width);
  if (!direct)
    finish_tile(p, at, at + width);
  return width;
}

bool host_conv_matrix(const host_conv_t *conv) {
  host_conv_t flat = *conv;
  flatten(&flat);
  plan_t p;
  if (!plan(&flat, &p))
    return false;
  p.w = host_pack_weights(conv);
  if (!p.w)
    return false;
  int threads = host_threads_enter();
  bool ok = true;
  for (int64_t at = 0, done; ok && at < p.positions; at += done) {
    done = product_in_place(&p, at, &ok);
    if (done)
      continue;
    done = p.positions - at < p.width ? p.positions - at : p.width;
    /* The end of a long row only. */
    int64_t left = flat.out[HOST_W] - at % flat.out[HOST_W];
    if (flat.out[HOST_W] >= HOST_LONG && left < done)
      done = left;
    int64_t width = (done + HOST_COLUMNS - 1) / HOST_COLUMNS * HOST_COLUMNS;
    pack_tile(&p, at, at + done, width);
    ok = multiply(&p, width, p.columns, p.width, p.sums, p.width);
    finish_tile(&p, at, at + done);
  }
  omp_set_num_threads(threads);
  return ok;
}

/* dy of positions [at, end) as k x width. */
static void pack_dy(const plan_t *p, int64_t at, int64_t end) {
  const host_conv_t *conv = p->conv;
  const int64_t *s = conv->y_stride;
  bool whole = rows_follow(conv, s);
  for (int64_t i = at; i < end;) {
    run_t run = whole ? image_at(p, i, end) : run_at(p, i, end);
    const float *from = (const float *)conv->y + run.n * s[0] + run.d * s[2] +
                        run.h * s[3] + run.w * s[4];
    for (int64_t k = 0; k < p->rows; k++, from += s[1]) {
      float *to = p->sums + k * p->width + (i - at);
      if (s[4] == 1)
        memcpy(to, from, (size_t)run.count * sizeof *to);
      else
        for (int64_t j = 0; j < run.count; j++)
          to[j] = from[j * s[4]];
    }
    i += run.count;
  }
}

/* x and dy as they lie in memory: one product per row. */
static bool rows_are_matrices(const host_conv_t *conv) {
  for (int i = 0; i < HOST_SPATIAL; i++)
    if (conv->window[i] != 1 || conv->stride[i] != 1 || conv->pad[i] != 0)
      return false;
  int64_t row = conv->out[HOST_W];
  return row >= HOST_LONG && conv->x_stride[4] == 1 && conv->y_stride[4] == 1 &&
         conv->x_stride[1] >= row && conv->y_stride[1] >= row;
}

bool host_wgrad_matrix(const host_conv_t *conv, float *sums) {
  host_conv_t flat = *conv;
  memcpy(flat.old_stride, flat.y_stride, sizeof flat.old_stride);
  flatten(&flat);
  plan_t p;
  if (!plan(&flat, &p))
    return false;
  int threads = host_threads_enter();
  bool ok = true, in_place = rows_are_matrices(&flat);
  const int64_t *xs = flat.x_stride, *ys = flat.y_stride;
  for (int64_t at = 0, done; ok && at < p.positions; at += done) {
    done = p.positions - at < p.width ? p.positions - at : p.width;
    const float *x = p.columns, *dy = p.sums;
    if (in_place) {
      run_t run = run_at(&p, at, p.positions);
      done = run.count;
      x = (const float *)flat.x + run.n * xs[0] + run.d * xs[2] + run.h * xs[3];
      dy =
          (const float *)flat.y + run.n * ys[0] + run.d * ys[2] + run.h * ys[3];
    } else {
      pack_tile(&p, at, at + done, done);
      pack_dy(&p, at, at + done);
    }
    ok = dnnl_sgemm('N', 'T', p.rows, p.depth, done, 1, dy,
                    in_place ? ys[1] : p.width, x, in_place ? xs[1] : p.width,
                    at ? 1 : 0, sums, p.depth) == dnnl_success;
  }
  omp_set_num_threads(threads);
  return ok;
}
