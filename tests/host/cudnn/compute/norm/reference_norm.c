// SPDX-License-Identifier: Apache-2.0
// Normalisations by loops over doubles, with bounds of what the roundings of
// their operands may change.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/compute/norm/made_norm.h"
#include "tests/host/cudnn/compute/reference.h"

/* A value and its bound. */
typedef struct {
  double v, e;
} number_t;

static number_t plus(number_t a, number_t b) {
  return (number_t){a.v + b.v, a.e + b.e};
}

static number_t minus(number_t a, number_t b) {
  return (number_t){a.v - b.v, a.e + b.e};
}

static number_t times(number_t a, number_t b) {
  return (number_t){a.v * b.v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e};
}

static number_t by(double factor, number_t a) {
  return (number_t){factor * a.v, fabs(factor) * a.e};
}

/* 1 / sqrt(a) */
static number_t inverse_root(number_t a) {
  double low = a.v - a.e, v = 1 / sqrt(a.v);
  return (number_t){v, low > 0 ? 1 / sqrt(low) - v : INFINITY};
}

/* The element of tensor t that belongs to element i of `all`; index 0 where its
 * extent is 1. */
static int64_t index_in(const made_t *m, int t, int all, int64_t i) {
  const sdg_graph_tensor_t *to = &m->graph.tensor[t],
                           *from = &m->graph.tensor[all];
  int64_t index = 0, step = 1;
  for (int d = from->rank; d-- > 0; i /= from->dim[d]) {
    index += to->dim[d] == 1 ? 0 : i % from->dim[d] * step;
    step *= to->dim[d];
  }
  return index;
}

typedef struct {
  reference_t *r;
  const made_t *m;
  made_norm_t norm;
  double rounding;
  int64_t count;   // elements of x
  int64_t *group;  // of each element of x: its statistics
  int64_t groups;  // owned, as `group`
  double of_group; // elements
} work_t;

static number_t get(const work_t *w, made_norm_tensor_t which, int64_t i) {
  int t = w->norm.tensor[which];
  int64_t at = index_in(w->m, t, w->norm.tensor[NORM_X], i);
  return (number_t){w->r->tensor[t].value[at], w->r->tensor[t].error[at]};
}

static bool has(const work_t *w, made_norm_tensor_t which) {
  return w->norm.tensor[which] >= 0;
}

static void put(const work_t *w, made_norm_tensor_t which, int64_t i,
                number_t value, double size) {
  if (has(w, which))
    reference_put(w->r, w->m, w->norm.tensor[which], i, value.v,
                  1.01 * value.e + w->rounding * (size + fabs(value.v)));
}

/* Puts numbers of statistics' extents. */
static void groups_make(work_t *w) {
  const sdg_graph_tensor_t *x = &w->m->graph.tensor[w->norm.tensor[NORM_X]];
  int64_t scale[MADE_RANK], dim[MADE_RANK];
  made_norm_extents(w->norm.mode, x->rank, x->dim, scale, dim);
  w->count = made_count(w->m, w->norm.tensor[NORM_X]);
  w->group = calloc((size_t)w->count + 1, sizeof *w->group);
  w->groups = 1;
  for (int d = 0; d < x->rank; d++)
    w->groups *= dim[d];
  w->of_group = (double)w->count / (double)w->groups;
  for (int64_t i = 0; i < w->count; i++) {
    int64_t rest = i, step = 1;
    for (int d = x->rank; d-- > 0; rest /= x->dim[d]) {
      w->group[i] += dim[d] == 1 ? 0 : rest % x->dim[d] * step;
      step *= dim[d];
    }
  }
}

/* Sums of `value` over the groups. */
static number_t *sums_of(const work_t *w, const number_t *value) {
  number_t *sum = calloc((size_t)w->groups, sizeof *sum);
  for (int64_t i = 0; i < w->count; i++)
    sum[w->group[i]] = plus(sum[w->group[i]], value[i]);
  return sum;
}

static void forward(const work_t *w) {
  bool centred = w->norm.mode != CUDNN_RMS_NORM;
  bool known = w->norm.inference && has(w, NORM_INVERSE);
  number_t *from = calloc((size_t)w->count + 1, sizeof *from);
  number_t *square = calloc((size_t)w->count + 1, sizeof *square);
  for (int64_t i = 0; i < w->count; i++)
    from[i] = get(w, NORM_X, i);
  number_t *mean = sums_of(w, from);
  for (int64_t i = 0; i < w->count; i++) {
    number_t middle =
        known ? get(w, NORM_MEAN, i) : by(1 / w->of_group, mean[w->group[i]]);
    if (centred)
      from[i] = minus(from[i], middle);
    square[i] = times(from[i], from[i]);
  }
  number_t *variance = sums_of(w, square);
  for (int64_t i = 0; i < w->count; i++) {
    number_t v = by(1 / w->of_group, variance[w->group[i]]);
    number_t middle = by(1 / w->of_group, mean[w->group[i]]);
    number_t inverse = known ? get(w, NORM_INVERSE, i)
                             : inverse_root(plus(v, get(w, NORM_EPSILON, i)));
    number_t y = times(from[i], inverse);
    if (has(w, NORM_SCALE))
      y = times(y, get(w, NORM_SCALE, i));
    double size = fabs(y.v);
    if (has(w, NORM_BIAS))
      y = plus(y, get(w, NORM_BIAS, i));
    put(w, NORM_Y, i, y, size);
    if (!known) {
      put(w, NORM_MEAN, w->group[i], middle, 0);
      put(w, NORM_INVERSE, w->group[i], inverse, 0);
    }
    if (!has(w, NORM_NEW_MEAN))
      continue;
    number_t factor = get(w, NORM_FACTOR, i);
    double n = w->of_group;
    number_t old = get(w, NORM_OLD_MEAN, i);
    put(w, NORM_NEW_MEAN, w->group[i],
        plus(old, times(factor, minus(middle, old))), 1);
    old = get(w, NORM_OLD_VARIANCE, i);
    put(w, NORM_NEW_VARIANCE, w->group[i],
        plus(old, times(factor, minus(by(n > 1 ? n / (n - 1) : 1, v), old))),
        1);
  }
  free(from);
  free(square);
  free(mean);
  free(variance);
}

static void parameters(const work_t *w, made_norm_tensor_t which,
                       const number_t *value) {
  int t = w->norm.tensor[which];
  if (t < 0)
    return;
  number_t *sum = calloc((size_t)made_count(w->m, t) + 1, sizeof *sum);
  for (int64_t i = 0; i < w->count; i++) {
    int64_t at = index_in(w->m, t, w->norm.tensor[NORM_X], i);
    sum[at] = plus(sum[at], value[i]);
    sum[at].e += w->rounding * fabs(value[i].v);
  }
  for (int64_t i = 0; i < made_count(w->m, t); i++)
    put(w, which, i, sum[i], 0);
  free(sum);
}

static void backward(const work_t *w) {
  bool centred = w->norm.mode != CUDNN_RMS_NORM;
  size_t room = (size_t)w->count + 1;
  number_t *normal = calloc(room, sizeof *normal);
  number_t *slope = calloc(room, sizeof *slope);
  number_t *along = calloc(room, sizeof *along);
  number_t *dy = calloc(room, sizeof *dy), *dscale = calloc(room, sizeof *dy);
  for (int64_t i = 0; i < w->count; i++) {
    number_t x = get(w, NORM_X, i);
    normal[i] = times(centred ? minus(x, get(w, NORM_MEAN, i)) : x,
                      get(w, NORM_INVERSE, i));
    dy[i] = get(w, NORM_DY, i);
    slope[i] = has(w, NORM_SCALE) ? times(dy[i], get(w, NORM_SCALE, i)) : dy[i];
    along[i] = times(slope[i], normal[i]);
    dscale[i] = times(dy[i], normal[i]);
  }
  number_t *first = sums_of(w, slope), *second = sums_of(w, along);
  for (int64_t i = 0; i < w->count; i++) {
    number_t dx = minus(
        slope[i], by(1 / w->of_group, times(normal[i], second[w->group[i]])));
    double size = fabs(slope[i].v) + fabs(dx.v - slope[i].v);
    if (centred)
      dx = minus(dx, by(1 / w->of_group, first[w->group[i]]));
    number_t inverse = get(w, NORM_INVERSE, i);
    put(w, NORM_DX, i, times(dx, inverse), size * inverse.v);
  }
  parameters(w, NORM_DSCALE, dscale);
  parameters(w, NORM_DBIAS, dy);
  free(normal);
  free(slope);
  free(along);
  free(dy);
  free(dscale);
  free(first);
  free(second);
}

void reference_norm(reference_t *r, const made_t *m,
                    const sdg_graph_node_t *node, double rounding) {
  work_t w = {.r = r, .m = m, .norm = made_norm_of(node), .rounding = rounding};
  groups_make(&w);
  if (w.norm.backward)
    backward(&w);
  else
    forward(&w);
  free(w.group);
}
