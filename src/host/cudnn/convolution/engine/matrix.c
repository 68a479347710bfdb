// SPDX-License-Identifier: Apache-2.0
// The matrix engine: weights times tiles of columns of x, by oneDNN's product
// of matrices. For float, one group, and short columns.
//
// A tile has a multiple of HOST_COLUMNS columns. Such products add in the same
// order for every column (tests/host checks that), so an output's bits depend
// on its own window only.
#include "src/host/cudnn/convolution/engine/matrix.h"

#include <omp.h>
#include <string.h>

#include "src/host/cudnn/base/primitive.h"
#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/convolution/engine/finish.h"
#include "src/host/cudnn/convolution/engine/pack.h"

enum {
  HOST_COLUMNS = 16,
  HOST_TILE_BYTES = 1 << 19, // for columns and sums: the second cache
  HOST_TILE_MOST = 48,       // times HOST_COLUMNS
  HOST_LONG =
      24 * HOST_COLUMNS // the end of such a row may waste most of a tile
};

typedef struct {
  const host_conv_t *conv;
  const float *w; // k x depth, or its transpose
  int64_t w_pitch;
  char w_turned; // 'T' or 'N', as oneDNN expects
  int64_t depth; // elements of a column: c * taps
  int64_t width; // columns of a tile, a multiple of HOST_COLUMNS
  int64_t rows, positions;
  float *columns, *sums; // depth x width, k x width
  struct met *met;       // one entry per run of a tile
} plan_t;

// Part of a row of outputs: columns [w, w + count) of row h of plane d.
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

// What one element of the window reads along a run: zeros, x, zeros.
typedef struct met {
  int64_t at;               // column of the tile
  int64_t low, high, count; // x for columns [low, high) of `count`
  int64_t from;             // in x, for column 0 and the first channel
} met_t;

static met_t meet(const plan_t *p, const run_t *run,
                  const int tap[HOST_SPATIAL]) {
  const host_conv_t *conv = p->conv;
  const int64_t out[HOST_SPATIAL] = {run->d, run->h, run->w};
  int64_t in[HOST_SPATIAL], s = conv->stride[HOST_W];
  met_t met = {.count = run->count, .from = run->n * conv->x_stride[0]};
  bool inside = true;
  for (int i = 0; i < HOST_SPATIAL; i++) {
    in[i] = out[i] * conv->stride[i] - conv->pad[i] +
            (int64_t)tap[i] * conv->dilation[i];
    met.from += in[i] * conv->x_stride[2 + i];
    inside &= i == HOST_W || (in[i] >= 0 && in[i] < conv->in[i]);
  }
  int64_t left = conv->in[HOST_W] - in[HOST_W];
  int64_t low = in[HOST_W] < 0 ? (-in[HOST_W] + s - 1) / s : 0;
  int64_t high = left > 0 && inside ? (left + s - 1) / s : 0;
  met.low = low < met.count ? low : met.count;
  met.high = high < met.low ? met.low : high < met.count ? high : met.count;
  return met;
}

static void copy_met(const met_t *met, const float *x, int64_t step,
                     float *to) {
  if (met->low)
    memset(to, 0, (size_t)met->low * sizeof *to);
  if (step == 1 && met->high > met->low)
    memcpy(to + met->low, x + met->from + met->low,
           (size_t)(met->high - met->low) * sizeof *to);
  else if (step == 2) // vectorises, as the stride is known
    for (int64_t i = met->low; i < met->high; i++)
      to[i] = x[met->from + i * 2];
  else
    for (int64_t i = met->low; i < met->high; i++)
      to[i] = x[met->from + i * step];
  if (met->high < met->count)
    memset(to + met->high, 0, (size_t)(met->count - met->high) * sizeof *to);
}

// The columns of positions [at, end), then zeros up to the tile's width.
// Channel by channel, because each channel's rows are contiguous.
static void pack_tile(const plan_t *p, int64_t at, int64_t end, int64_t width) {
  const host_conv_t *conv = p->conv;
  const int *n = conv->window;
  int64_t step = conv->stride[HOST_W] * conv->x_stride[4];
  int64_t taps = p->depth / conv->c;
  for (int t = 0; t < taps; t++) {
    const int tap[] = {t / n[2] / n[1], t / n[2] % n[1], t % n[2]};
    int runs = 0;
    for (int64_t i = at; i < end; i += p->met[runs++].count) {
      run_t run = run_at(p, i, end);
      p->met[runs] = meet(p, &run, tap);
      p->met[runs].at = i - at;
    }
    for (int64_t c = 0; c < conv->c; c++) {
      const float *x = (const float *)conv->x + c * conv->x_stride[1];
      float *to = p->columns + (c * taps + t) * p->width;
      for (int i = 0; i < runs; i++)
        copy_met(&p->met[i], x, step, to + p->met[i].at);
    }
  }
  for (int64_t i = 0; i < p->depth && at + width > end; i++)
    memset(p->columns + i * p->width + (end - at), 0,
           (size_t)(at + width - end) * sizeof(float));
}

// Whether rows and planes of a tensor with y's extents are contiguous.
static bool rows_follow(const host_conv_t *conv, const int64_t stride[5]) {
  int64_t row = conv->out[HOST_W] * stride[4];
  return (conv->out[HOST_H] == 1 || stride[3] == row) &&
         (conv->out[HOST_D] == 1 || stride[2] == row * conv->out[HOST_H]);
}

// As run_at, to the end of the image, as columns of one long row.
static run_t image_at(const plan_t *p, int64_t position, int64_t end) {
  const int64_t *out = p->conv->out;
  int64_t image = out[0] * out[1] * out[2];
  run_t run = {.n = position / image, .w = position % image};
  run.count = image - run.w < end - position ? image - run.w : end - position;
  return run;
}

// The run after `run`, of which `left` positions are used.
static run_t run_behind(const plan_t *p, const run_t *run, int64_t left) {
  const int64_t *out = p->conv->out;
  run_t next = {.n = run->n, .d = run->d, .h = run->h + 1};
  if (next.h == out[HOST_H]) {
    next.h = 0;
    next.d++;
  }
  if (next.d == out[HOST_D]) {
    next.d = 0;
    next.n++;
  }
  next.count = out[HOST_W] < left ? out[HOST_W] : left;
  return next;
}

// Contiguous rows are finished as one; others channel by channel, because each
// channel's rows are contiguous.
static void finish_tile(const plan_t *p, int64_t at, int64_t end) {
  const host_conv_t *conv = p->conv;
  bool whole = rows_follow(conv, conv->y_stride) &&
               (conv->gamma == 0 || rows_follow(conv, conv->old_stride));
  for (int64_t i = at; whole && i < end;) {
    run_t run = image_at(p, i, end);
    for (int64_t k = 0; k < p->rows; k++)
      host_finish_along_w(conv, p->sums + k * p->width + (i - at), run.count,
                          (const int64_t[]){run.n, k, 0, 0, run.w});
    i += run.count;
  }
  if (whole)
    return;
  run_t first = run_at(p, at, end);
  for (int64_t k = 0; k < p->rows; k++) {
    run_t run = first;
    for (int64_t i = at; i < end; run = run_behind(p, &run, end - i)) {
      host_finish_along_w(conv, p->sums + k * p->width + (i - at), run.count,
                          (const int64_t[]){run.n, k, run.d, run.h, run.w});
      i += run.count;
    }
  }
}

// Contiguous rows under a window of one element become one row.
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
  // Larger tiles for more weights, because the weights are read once per tile.
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
  p->met =
      host_scratch_get(HOST_SCRATCH_TILE, (size_t)p->width * sizeof *p->met);
  return p->columns && p->sums && p->met;
}

// Single taps can be used in place if the channels are contiguous.
static bool take_weights(const host_conv_t *conv, plan_t *p) {
  const int64_t *s = conv->w_stride;
  bool turned = p->depth == conv->c && s[0] == 1 && s[1] >= conv->k;
  p->w = turned ? conv->w : host_pack_weights(conv);
  p->w_pitch = turned ? s[1] : p->depth;
  p->w_turned = turned ? 'T' : 'N';
  return p->w != NULL;
}

// y (rows x width) = weights times columns (depth x width).
static bool multiply(const plan_t *p, int64_t width, const float *columns,
                     int64_t columns_pitch, float *y, int64_t y_pitch) {
  return dnnl_sgemm(p->w_turned, 'N', p->rows, width, p->depth, 1, p->w,
                    p->w_pitch, columns, columns_pitch, 0, y,
                    y_pitch) == dnnl_success;
}

// Whether the sums of whole tiles have y's layout in memory.
static bool sums_are_y(const host_conv_t *conv) {
  return conv->alpha == 1 && conv->gamma == 0 && !conv->bias && !conv->relu &&
         conv->y_stride[4] == 1;
}

// The address in y for a tile's sums; NULL if they need finishing.
static float *tile_of_y(const plan_t *p, int64_t at, int64_t width) {
  const host_conv_t *conv = p->conv;
  const int64_t *s = conv->y_stride;
  int64_t image = conv->out[0] * conv->out[1] * conv->out[2];
  run_t run = image_at(p, at, at + width);
  return sums_are_y(conv) && rows_follow(conv, s) && run.count == width &&
                 s[1] >= image
             ? (float *)conv->y + run.n * s[0] + run.w
             : NULL;
}

// Long rows that need neither padding nor copies: x itself is the columns.
// Returns the number of positions from `at` on that are done; 0 for none.
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
  if (!take_weights(conv, &p))
    return false;
  int threads = host_threads_enter();
  bool ok = true;
  for (int64_t at = 0, done; ok && at < p.positions; at += done) {
    done = product_in_place(&p, at, &ok);
    if (done)
      continue;
    done = p.positions - at < p.width ? p.positions - at : p.width;
    // A tile at the end of a long row holds only that end.
    int64_t left = flat.out[HOST_W] - at % flat.out[HOST_W];
    if (flat.out[HOST_W] >= HOST_LONG && left < done)
      done = left;
    int64_t width = (done + HOST_COLUMNS - 1) / HOST_COLUMNS * HOST_COLUMNS;
    pack_tile(&p, at, at + done, width);
    float *y = done == width ? tile_of_y(&p, at, width) : NULL;
    ok = multiply(&p, width, p.columns, p.width, y ? y : p.sums,
                  y ? flat.y_stride[1] : p.width);
    if (!y)
      finish_tile(&p, at, at + done);
  }
  omp_set_num_threads(threads);
  return ok;
}

// dy of positions [at, end) as k x width.
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

// Whether x and dy can be used in place: one product per row.
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
