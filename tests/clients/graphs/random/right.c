// SPDX-License-Identifier: Apache-2.0
// What is right: loops in double precision over the whole tensors.
#include "tests/clients/graphs/random/graph.h"

void place_of(const graph_t *g, const int64_t *dim, int64_t i, int64_t *out) {
  memset(out, 0, DIMS * sizeof *out);
  for (int d = g->dims; d-- > 0; i /= dim[d])
    out[d] = i % dim[d];
}

int64_t index_of(const graph_t *g, const int64_t *dim, const int64_t *at) {
  int64_t index = 0;
  for (int d = 0; d < g->dims; d++)
    index = index * dim[d] + (dim[d] == 1 ? 0 : at[d]);
  return index;
}

static void op_run(const graph_t *g, const op_t *op) {
  const tensor_t *x = &g->tensor[op->x], *y = &g->tensor[op->y];
  const tensor_t *b = op->b < 0 ? NULL : &g->tensor[op->b];
  for (int64_t i = 0; i < count_of(g, y->whole); i++) {
    int64_t at[DIMS];
    place_of(g, y->whole, i, at);
    double u = x->value[i], v = b ? b->value[index_of(g, b->whole, at)] : 0;
    y->value[i] = op->mode == CUDNN_POINTWISE_ADD        ? u + v
                  : op->mode == CUDNN_POINTWISE_SUB      ? u - v
                  : op->mode == CUDNN_POINTWISE_MUL      ? u * v
                  : op->mode == CUDNN_POINTWISE_NEG      ? -u
                  : op->mode == CUDNN_POINTWISE_TANH_FWD ? tanh(u)
                                                         : fmax(u, 0);
  }
}

int dimension_of(const graph_t *g, char letter) {
  return letter == 'N'   ? 0
         : letter == 'C' ? 1
         : letter == 'W' ? g->dims - 1
         : letter == 'H' ? g->dims - 2
                         : g->dims - 3;
}

// Adds every product of an output's place and a tap.
static void conv_run(const graph_t *g) {
  const tensor_t *x = &g->tensor[g->conv[X]], *w = &g->tensor[g->conv[W]],
                 *y = &g->tensor[g->conv[Y]];
  int64_t taps = count_of(g, w->whole), outputs = count_of(g, y->whole);
  int64_t in_group = w->whole[0] / g->groups;
  const tensor_t *result = &g->tensor[g->conv[g->kind]];
  for (int64_t i = 0; i < count_of(g, result->whole); i++)
    result->value[i] *= (double)g->beta;
  for (int64_t i = 0; i < outputs; i++)
    for (int64_t k = 0; k < taps; k++) {
      int64_t o[DIMS], tap[DIMS], at[DIMS];
      bool inside = true;
      place_of(g, y->whole, i, o);
      place_of(g, w->whole, k, tap);
      if (tap[0] != o[1])
        continue;
      at[0] = o[0];
      at[1] = tap[1] + o[1] / in_group * w->whole[1];
      for (int d = 2; d < g->dims; d++) {
        at[d] = o[d] * g->step[d] - g->pad[d] + tap[d] * g->dilation[d];
        if (asked.wraps && d == dimension_of(g, asked.split))
          at[d] = (at[d] + 8 * x->whole[d]) % x->whole[d];
        inside &= at[d] >= 0 && at[d] < x->whole[d];
      }
      int64_t from = inside ? index_of(g, x->whole, at) : 0;
      if (!inside)
        continue;
      if (g->kind == Y)
        y->value[i] += x->value[from] * w->value[k];
      else if (g->kind == W)
        w->value[k] += x->value[from] * y->value[i];
      else
        x->value[from] += y->value[i] * w->value[k];
    }
}

static void statistics_run(const graph_t *g, const sum_t *sum) {
  const tensor_t *x = &g->tensor[sum->x];
  for (int64_t i = 0; i < count_of(g, x->whole); i++) {
    int64_t at[DIMS];
    place_of(g, x->whole, i, at);
    g->tensor[sum->y].value[at[1]] += x->value[i];
    g->tensor[sum->squares].value[at[1]] += x->value[i] * x->value[i];
  }
}

static void sum_run(const graph_t *g, const sum_t *sum) {
  const tensor_t *x = &g->tensor[sum->x], *y = &g->tensor[sum->y];
  int64_t count = count_of(g, x->whole), results = count_of(g, y->whole);
  for (int64_t i = 0; i < results; i++)
    y->value[i] = sum->op == CUDNN_REDUCE_TENSOR_MAX   ? -INFINITY
                  : sum->op == CUDNN_REDUCE_TENSOR_MIN ? INFINITY
                                                       : 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t at[DIMS];
    place_of(g, x->whole, i, at);
    double v = x->value[i], *to = &y->value[index_of(g, y->whole, at)];
    switch ((int)sum->op) {
    case CUDNN_REDUCE_TENSOR_MAX:
      *to = fmax(*to, v);
      break;
    case CUDNN_REDUCE_TENSOR_MIN:
      *to = fmin(*to, v);
      break;
    case CUDNN_REDUCE_TENSOR_AMAX:
      *to = fmax(*to, fabs(v));
      break;
    default:
      *to += v;
    }
  }
}

// ---- poolings --------------------------------------------------------------

// The index of a window's element in x, -1: it is padding. `o`: the window;
// `k`: which of its elements, last dimension innermost.
static int64_t window_at(const graph_t *g, const int64_t *o, int64_t k) {
  const tensor_t *x = &g->tensor[g->conv[X]];
  int64_t at[DIMS] = {o[0], o[1]}, tap[DIMS];
  place_of(g, g->window, k, tap);
  for (int d = 2; d < g->dims; d++) {
    at[d] = o[d] * g->step[d] - g->pad[d] + tap[d];
    if (asked.wraps && d == dimension_of(g, asked.split))
      at[d] = (at[d] + 8 * x->whole[d]) % x->whole[d];
    if (at[d] < 0 || at[d] >= x->whole[d])
      return -1;
  }
  return index_of(g, x->whole, at);
}

// The first of the largest elements of a window.
static int64_t largest(const graph_t *g, const double *x, const int64_t *o,
                       int64_t taps) {
  int64_t best = -1;
  double most = -INFINITY;
  for (int64_t k = 0; k < taps; k++) {
    int64_t i = window_at(g, o, k);
    if (i >= 0 && (best < 0 || x[i] > most)) {
      best = k;
      most = x[i];
    }
  }
  return best;
}

static void pool_run(const graph_t *g) {
  const tensor_t *x = &g->tensor[g->conv[X]], *y = &g->tensor[g->conv[Y]];
  bool is_max = g->mode == CUDNN_RESAMPLE_MAXPOOL, back = g->kind == X;
  const double *from = back && is_max ? g->tensor[g->of_x].value : x->value;
  int64_t taps = count_of(g, g->window);
  for (int64_t i = 0; i < count_of(g, y->whole); i++) {
    int64_t o[DIMS], inside = 0;
    double sum = 0;
    place_of(g, y->whole, i, o);
    for (int64_t k = 0; k < taps; k++) {
      int64_t at = window_at(g, o, k);
      inside += at >= 0;
      sum += at >= 0 && !back ? x->value[at] : 0;
    }
    int64_t count =
        g->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING ? inside : taps;
    int64_t best = is_max ? largest(g, from, o, taps) : -1;
    if (g->indices >= 0)
      g->tensor[g->indices].value[i] = (double)best;
    if (back && is_max) {
      x->value[window_at(g, o, best)] += y->value[i];
      g->tensor[g->of_y].value[i] = from[window_at(g, o, best)];
    } else if (is_max) {
      y->value[i] = from[window_at(g, o, best)];
    } else if (!back) {
      y->value[i] = sum / (double)count;
    }
    for (int64_t k = 0; k < taps && back && !is_max; k++)
      if (window_at(g, o, k) >= 0)
        x->value[window_at(g, o, k)] += y->value[i] / (double)count;
  }
}

void graph_compute(const graph_t *g) {
  for (int i = 0; i < g->before; i++)
    op_run(g, &g->op[i]);
  if (g->main == MAIN_CONV)
    conv_run(g);
  else if (g->main == MAIN_POOL)
    pool_run(g);
  else if (g->main == MAIN_PRODUCT)
    product_run(g);
  else if (g->main == MAIN_NORM)
    norm_run(g);
  for (int i = g->before; i < g->ops; i++)
    op_run(g, &g->op[i]);
  for (int i = 0; i < g->sums; i++)
    (g->sum[i].squares < 0 ? sum_run : statistics_run)(g, &g->sum[i]);
}
