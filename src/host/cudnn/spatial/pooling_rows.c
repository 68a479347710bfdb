// SPDX-License-Identifier: Apache-2.0
// Pooling of one plane, a row of outputs at a time: all columns take the same
// element of their windows, so that the loops vectorise.
//
// The elements of a window come in the order depth, row, column; the first of
// equal maxima receives the gradient. The result of a window does not depend on
// the extents around it.
#include "src/host/cudnn/spatial/pooling_rows.h"

#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/independent.h"

bool host_pool_averages(const struct cudnnPoolingStruct *how) {
  return how->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ||
         how->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

// The range of indices of output `at`'s window in one dimension of x.
typedef struct {
  int64_t low, high;
} range_t;

static range_t range_at(const host_pool_t *pool, int dim, int64_t at) {
  int64_t low = at * pool->how->stride[dim] - pool->how->pad[dim];
  int64_t high = low + pool->how->window[dim];
  return (range_t){low < 0 ? 0 : low,
                   high > pool->in[dim] ? pool->in[dim] : high};
}

// The divisor of a mean, for one dimension.
static double share(const host_pool_t *pool, int dim, int64_t at) {
  range_t in = range_at(pool, dim, at);
  bool all = pool->how->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  return (double)(all ? pool->how->window[dim] : in.high - in.low);
}

void host_pool_columns(const host_pool_t *pool, double *out_columns) {
  for (int64_t j = 0; j < pool->out[2]; j++)
    out_columns[j] = share(pool, 2, j);
}

// One element of the windows of a row of outputs. For columns low .. high - 1
// it lies inside x; column j reads index first + j * stride of a row of x.
typedef struct {
  int64_t low, high, first, stride;
} tap_t;

static tap_t tap_at(const host_pool_t *pool, int64_t i) {
  int64_t stride = pool->how->stride[2], first = i - pool->how->pad[2];
  tap_t tap = {0, pool->out[2], first, stride};
  if (first < 0)
    tap.low = (-first + stride - 1) / stride;
  int64_t inside =
      first < pool->in[2] ? (pool->in[2] - 1 - first) / stride + 1 : 0;
  if (tap.high > inside)
    tap.high = inside;
  return tap;
}

// Strides known to the compiler, and the others.
#define EACH_BY(step, statement)                                               \
  HOST_INDEPENDENT for (int64_t j = tap->low; j < tap->high; j++) {            \
    const int64_t i = tap->first + j * (step);                                 \
    statement;                                                                 \
  }
#define EACH(statement)                                                        \
  do {                                                                         \
    if (tap->stride == 1)                                                      \
      EACH_BY(1, statement)                                                    \
    else if (tap->stride == 2)                                                 \
      EACH_BY(2, statement)                                                    \
    else                                                                       \
      EACH_BY(tap->stride, statement)                                          \
  } while (0)

// Maxima are compared in their own type. NaN is greater than all values if it
// propagates, else less.
#define TAPS(T)                                                                \
  static void add_##T(const tap_t *tap, const T *x, double *sum) {             \
    EACH(sum[j] += (double)x[i]);                                              \
  }                                                                            \
  static void most_##T(const tap_t *tap, const T *x, bool nan, T *most) {      \
    if (nan)                                                                   \
      EACH(most[j] =                                                           \
               ((most[j] == most[j]) & !(x[i] <= most[j])) ? x[i] : most[j]);  \
    else                                                                       \
      EACH(most[j] = x[i] > most[j] ? x[i] : most[j]);                         \
  }                                                                            \
  static void choose_##T(const tap_t *tap, const T *x, bool nan, int32_t row,  \
                         T *most, int32_t *where) {                            \
    if (nan)                                                                   \
      EACH(const T value = x[i]; const T old = most[j];                        \
           const bool better =                                                 \
               (old == old) & (!(value <= old) | (where[j] < 0));              \
           most[j] = better ? value : old;                                     \
           where[j] = better ? row + (int32_t)i : where[j]);                   \
    else                                                                       \
      EACH(const T value = x[i]; const T old = most[j];                        \
           const bool better =                                                 \
               (value > old) | ((where[j] < 0) & (value == value));            \
           most[j] = better ? value : old;                                     \
           where[j] = better ? row + (int32_t)i : where[j]);                   \
  }                                                                            \
  static void none_##T(const host_pool_t *pool, T *most) {                     \
    for (int64_t j = 0; j < pool->out[2]; j++)                                 \
      most[j] = -(T)INFINITY;                                                  \
  }
TAPS(float)
TAPS(double)

static void spread(const tap_t *tap, const double *part, double *dx) {
  EACH(dx[i] += part[j]);
}

// x's row h at depth d.
static const void *row_of(const host_pool_t *pool, int64_t d, int64_t h) {
  int64_t at = d * pool->deep + h * pool->down;
  return pool->is_float ? (const void *)((const float *)pool->x + at)
                        : (const void *)((const double *)pool->x + at);
}

// The divisor of the means of a row, without `columns`.
static double rows_share(const host_pool_t *pool, const int64_t at[2]) {
  return share(pool, 0, at[0]) * share(pool, 1, at[1]);
}

static void forward_mean(const host_pool_t *pool, const int64_t at[2],
                         double *y) {
  range_t deep = range_at(pool, 0, at[0]), down = range_at(pool, 1, at[1]);
  double rows = rows_share(pool, at);
  memset(y, 0, (size_t)pool->out[2] * sizeof *y);
  for (int64_t d = deep.low; d < deep.high; d++)
    for (int64_t h = down.low; h < down.high; h++)
      for (int64_t i = 0; i < pool->how->window[2]; i++) {
        tap_t tap = tap_at(pool, i);
        if (pool->is_float)
          add_float(&tap, row_of(pool, d, h), y);
        else
          add_double(&tap, row_of(pool, d, h), y);
      }
  for (int64_t j = 0; j < pool->out[2]; j++)
    y[j] /= rows * pool->columns[j];
}

static void most_none(const host_pool_t *pool, void *most) {
  if (pool->is_float)
    none_float(pool, most);
  else
    none_double(pool, most);
}

static void forward_most(const host_pool_t *pool, const int64_t at[2],
                         void *most) {
  range_t deep = range_at(pool, 0, at[0]), down = range_at(pool, 1, at[1]);
  bool nan = pool->how->nan == CUDNN_PROPAGATE_NAN;
  most_none(pool, most);
  for (int64_t d = deep.low; d < deep.high; d++)
    for (int64_t h = down.low; h < down.high; h++)
      for (int64_t i = 0; i < pool->how->window[2]; i++) {
        tap_t tap = tap_at(pool, i);
        if (pool->is_float)
          most_float(&tap, row_of(pool, d, h), nan, most);
        else
          most_double(&tap, row_of(pool, d, h), nan, most);
      }
}

void host_pool_forward(const host_pool_t *pool, const int64_t at[2], void *most,
                       double *out_y) {
  if (host_pool_averages(pool->how)) {
    forward_mean(pool, at, out_y);
    return;
  }
  forward_most(pool, at, pool->is_float ? most : out_y);
  const float *from = most;
  for (int64_t j = 0; pool->is_float && j < pool->out[2]; j++)
    out_y[j] = (double)from[j];
}

// The last element of windows comes first, so that an element of dx adds the
// values of a row in the order of its columns.
static void backward_mean(const host_pool_t *pool, const int64_t at[2],
                          const double *dy, double *part, double *dx) {
  range_t deep = range_at(pool, 0, at[0]), down = range_at(pool, 1, at[1]);
  double rows = rows_share(pool, at);
  for (int64_t j = 0; j < pool->out[2]; j++)
    part[j] = dy[j] / (rows * pool->columns[j]);
  for (int64_t d = deep.low; d < deep.high; d++)
    for (int64_t h = down.low; h < down.high; h++)
      for (int64_t i = pool->how->window[2] - 1; i >= 0; i--) {
        tap_t tap = tap_at(pool, i);
        spread(&tap, part, dx + (d * pool->in[1] + h) * pool->in[2]);
      }
}

static void backward_most(const host_pool_t *pool, const int64_t at[2],
                          const double *dy, void *most, int32_t *where,
                          double *dx) {
  range_t deep = range_at(pool, 0, at[0]), down = range_at(pool, 1, at[1]);
  bool nan = pool->how->nan == CUDNN_PROPAGATE_NAN;
  most_none(pool, most);
  memset(where, 0xff,
         (size_t)pool->out[2] * sizeof *where); // -1: no element
  for (int64_t d = deep.low; d < deep.high; d++)
    for (int64_t h = down.low; h < down.high; h++)
      for (int64_t i = 0; i < pool->how->window[2]; i++) {
        tap_t tap = tap_at(pool, i);
        int32_t row = (int32_t)((d * pool->in[1] + h) * pool->in[2]);
        if (pool->is_float)
          choose_float(&tap, row_of(pool, d, h), nan, row, most, where);
        else
          choose_double(&tap, row_of(pool, d, h), nan, row, most, where);
      }
  for (int64_t j = 0; j < pool->out[2]; j++)
    if (where[j] >= 0)
      dx[where[j]] += dy[j];
}

void host_pool_backward(const host_pool_t *pool, const int64_t at[2],
                        const double *dy, void *most, int32_t *where,
                        double *io_dx) {
  if (host_pool_averages(pool->how))
    backward_mean(pool, at, dy, most, io_dx);
  else
    backward_most(pool, at, dy, most, where, io_dx);
}
