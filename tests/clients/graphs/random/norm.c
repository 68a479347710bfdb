// SPDX-License-Identifier: Apache-2.0
// Graphs with a normalisation: drawn, computed by loops, and described.
#include "tests/clients/graphs/random/graph.h"

// ---- drawing ---------------------------------------------------------------

static bool splits(char letter) {
  return asked.split == letter || asked.second == letter;
}

static bool is_rows(const norm_t *n) {
  return n->mode == CUDNN_LAYER_NORM || n->mode == CUDNN_RMS_NORM ||
         n->mode == CUDNN_ADA_LAYER_NORM;
}

// Tokens [B, S, C], normalised over C; otherwise images.
static bool shape_draw(graph_t *g, int64_t *x) {
  norm_t *n = &g->norm;
  bool planes = splits('D') || splits('H') || splits('W');
  bool tokens = is_rows(n) && !planes && (splits('C') || draw_in(0, 1));
  g->dims = tokens        ? 3
            : splits('D') ? 5
                          : (int)draw_in(splits('H') ? 4 : 3, DIMS);
  g->last = !tokens && (is_rows(n) || draw_in(0, 1));
  for (int d = 0; d < DIMS; d++) {
    g->step[d] = 1;
    x[d] = d < g->dims ? draw_in(1, 5) : 1;
  }
  x[0] = asked.ones ? 3 : draw_in(1, 3) + (splits('N') ? 6 : 0);
  x[1] = draw_in(2, 7) + (splits('C') ? 6 : 0);
  for (const char *letter = "DHW"; *letter; letter++)
    if (splits(*letter))
      x[dimension_of(g, *letter)] = draw_in(8, 14);
  bool bare = !planes && !tokens && draw_in(0, 3) == 0; // [N, C, 1, 1]
  for (int d = 2; bare && d < g->dims; d++)
    x[d] = 1;
  bool whole = !planes && draw_in(0, 1); // over all but N
  for (int d = 0; d < g->dims; d++)
    n->shared[d] = n->mode == CUDNN_BATCH_NORM      ? d != 1
                   : n->mode == CUDNN_INSTANCE_NORM ? d > 1
                   : tokens                         ? d == 2
                                                    : d == 1 || (d && whole);
  return tokens;
}

static int tensor_draw(graph_t *g, const int64_t *dim, bool is_result) {
  int t = draw_tensor(g, dim, false, is_result);
  g->tensor[t].type = CUDNN_DATA_FLOAT;
  return t;
}

static void running_draw(graph_t *g, const int64_t *statistics) {
  norm_t *n = &g->norm;
  for (int i = 0; i < 2; i++)
    n->old[i] = tensor_draw(g, statistics, false);
  for (int i = 0; i < 2; i++)
    n->new[i] = tensor_draw(g, statistics, true);
}

enum { ROOM = 12 }; // tensors in memory

static int64_t in_memory(const graph_t *g) {
  int64_t count = 0;
  for (int t = 0; t < g->tensors; t++)
    count += !g->tensor[t].is_virtual;
  return count;
}

static void beside_draw(graph_t *g, const int64_t *x) {
  norm_t *n = &g->norm;
  int64_t statistics[DIMS] = {1, 1, 1, 1, 1}, scale[DIMS] = {1, 1, 1, 1, 1};
  // Without statistics the scale says what x is normalised over.
  bool has_scale = n->mode == CUDNN_BATCH_NORM || n->inference ||
                   n->mode == CUDNN_ADA_LAYER_NORM || draw_in(0, 3);
  bool reads = n->backward || (n->inference && n->mode == CUDNN_BATCH_NORM);
  for (int d = 0; d < g->dims; d++) {
    statistics[d] = n->shared[d] ? 1 : x[d];
    if (is_rows(n) ? n->shared[d] || (n->mode == CUDNN_ADA_LAYER_NORM && d == 0)
                   : d == 1)
      scale[d] = x[d];
  }
  if (has_scale) {
    n->scale = tensor_draw(g, scale, false);
    if (n->backward)
      n->dscale = tensor_draw(g, scale, true);
    if (draw_in(0, 2))
      *(n->backward ? &n->dbias : &n->bias) =
          tensor_draw(g, scale, n->backward);
  }
  if (n->inference && !reads)
    return;
  if (n->mode != CUDNN_RMS_NORM)
    n->mean = tensor_draw(g, statistics, !reads);
  n->inverse = tensor_draw(g, statistics, !reads);
  if (n->mode == CUDNN_BATCH_NORM && !reads && in_memory(g) + 5 <= ROOM &&
      draw_in(0, 1))
    running_draw(g, statistics);
}

void norm_draw(graph_t *g) {
  static const cudnnBackendNormMode_t modes[] = {
      CUDNN_LAYER_NORM, CUDNN_RMS_NORM, CUDNN_ADA_LAYER_NORM,
      CUDNN_INSTANCE_NORM, CUDNN_BATCH_NORM};
  int64_t x[DIMS];
  int from[] = {-1, -1};
  norm_t *n = &g->norm;
  *n = (norm_t){.dy = -1,
                .scale = -1,
                .bias = -1,
                .mean = -1,
                .inverse = -1,
                .dscale = -1,
                .dbias = -1,
                .old = {-1, -1},
                .new = {-1, -1},
                .number = {1e-3F, 0.125F}};
  n->mode = modes[draw_in(0, 4)];
  n->backward = draw_in(0, 1);
  n->inference = !n->backward && draw_in(0, 3) == 0;
  (void)shape_draw(g, x);
  g->kind = Y;
  for (int i = 0; i <= n->backward; i++)
    from[i] = draw_tensor(g, x, false, false);
  n->far = !asked.in_half && n->mode != CUDNN_RMS_NORM && draw_in(0, 2) == 0;
  for (int64_t i = 0; n->far && i < count_of(g, x); i++)
    g->tensor[from[0]].value[i] += 256;
  if (draw_in(0, 2) == 0)
    from[n->backward] = draw_chain(g, from[n->backward], (int)draw_in(1, 2),
                                   draw_in(0, 2) == 0, -1);
  g->conv[X] = from[0];
  n->dy = from[1];
  g->before = g->ops;
  beside_draw(g, x);
  // An op behind it may have two tensors in memory.
  int64_t room = ROOM - 1 - in_memory(g);
  int length = (int)draw_in(0, room < 4 ? room / 2 : 2);
  g->conv[Y] = draw_tensor(g, x, length > 0 && draw_in(0, 3), true);
  int end = draw_chain(g, g->conv[Y], length, true, -1);
  // A sum of elements that make 0 together is the mean's rounding.
  if (draw_in(0, 3) == 0 && !asked.ones && !n->far && in_memory(g) < ROOM)
    draw_sum(g, end);
}

// ---- what is right ---------------------------------------------------------

// For each element of x: that of its statistic, or of a parameter.
static double *at(const graph_t *g, int tensor, int64_t i) {
  const tensor_t *x = &g->tensor[g->conv[X]], *t = &g->tensor[tensor];
  int64_t place[DIMS];
  place_of(g, x->whole, i, place);
  return &t->value[index_of(g, t->whole, place)];
}

// Statistics of x, in memory that the caller frees.
typedef struct {
  int64_t dim[DIMS], count, elements; /* of statistics; of each of them */
  double *mean, *variance, *inverse;
} statistics_t;

static int64_t statistic(const graph_t *g, const statistics_t *s, int64_t i) {
  int64_t place[DIMS];
  place_of(g, g->tensor[g->conv[X]].whole, i, place);
  return index_of(g, s->dim, place);
}

static statistics_t statistics_of(const graph_t *g) {
  const norm_t *n = &g->norm;
  const tensor_t *x = &g->tensor[g->conv[X]];
  statistics_t s = {.dim = {1, 1, 1, 1, 1}};
  int64_t count = count_of(g, x->whole);
  for (int d = 0; d < g->dims; d++)
    s.dim[d] = n->shared[d] ? 1 : x->whole[d];
  s.count = count_of(g, s.dim);
  s.elements = count / s.count;
  s.mean = calloc((size_t)s.count, sizeof *s.mean);
  s.variance = calloc((size_t)s.count, sizeof *s.variance);
  s.inverse = calloc((size_t)s.count, sizeof *s.inverse);
  CHECK(!s.mean || !s.variance || !s.inverse);
  for (int64_t i = 0; i < count && n->mode != CUDNN_RMS_NORM; i++)
    s.mean[statistic(g, &s, i)] += x->value[i] / (double)s.elements;
  for (int64_t i = 0; i < count; i++) {
    double off = x->value[i] - s.mean[statistic(g, &s, i)];
    s.variance[statistic(g, &s, i)] += off * off / (double)s.elements;
  }
  for (int64_t i = 0; i < s.count; i++)
    s.inverse[i] = 1 / sqrt(s.variance[i] + (double)n->number[EPSILON]);
  return s;
}

// What the graph reads of statistics is in float; in inference others than x's.
static void statistics_put(const graph_t *g, const statistics_t *s) {
  const norm_t *n = &g->norm;
  bool reads = n->backward || n->inference;
  for (int64_t i = 0; i < s->count; i++) {
    if (n->inference && n->inverse >= 0) {
      s->mean[i] += 0.25;
      s->inverse[i] *= 1.5;
    }
    if (reads) {
      s->mean[i] = (double)(float)s->mean[i];
      s->inverse[i] = (double)(float)s->inverse[i];
    }
    if (n->mean >= 0)
      g->tensor[n->mean].value[i] = s->mean[i];
    if (n->inverse >= 0)
      g->tensor[n->inverse].value[i] = s->inverse[i];
  }
}

static void running_run(const graph_t *g, const statistics_t *s) {
  const norm_t *n = &g->norm;
  double elements = (double)s->elements;
  for (int64_t i = 0; i < s->count && n->old[0] >= 0; i++) {
    double unbiased = s->elements > 1 ? elements / (elements - 1) : 1;
    const double found[] = {s->mean[i], s->variance[i] * unbiased};
    for (int k = 0; k < 2; k++) {
      double old = g->tensor[n->old[k]].value[i];
      g->tensor[n->new[k]].value[i] =
          old + (double)n->number[FACTOR] * (found[k] - old);
    }
  }
}

static void forward_run(const graph_t *g, const statistics_t *s) {
  const norm_t *n = &g->norm;
  const tensor_t *x = &g->tensor[g->conv[X]];
  for (int64_t i = 0; i < count_of(g, x->whole); i++) {
    int64_t k = statistic(g, s, i);
    double value = (x->value[i] - s->mean[k]) * s->inverse[k];
    value *= n->scale < 0 ? 1 : *at(g, n->scale, i);
    g->tensor[g->conv[Y]].value[i] =
        value + (n->bias < 0 ? 0 : *at(g, n->bias, i));
  }
}

static void backward_run(const graph_t *g, const statistics_t *s) {
  const norm_t *n = &g->norm;
  const tensor_t *x = &g->tensor[g->conv[X]], *dy = &g->tensor[n->dy];
  int64_t count = count_of(g, x->whole);
  double *along = calloc((size_t)s->count, sizeof *along);
  double *shift = calloc((size_t)s->count, sizeof *shift);
  CHECK(!along || !shift);
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < count; i++) {
      int64_t k = statistic(g, s, i);
      double normal = (x->value[i] - s->mean[k]) * s->inverse[k];
      double slope = dy->value[i] * (n->scale < 0 ? 1 : *at(g, n->scale, i));
      if (pass == 0) {
        along[k] += slope * normal / (double)s->elements;
        shift[k] += n->mode == CUDNN_RMS_NORM ? 0 : slope / (double)s->elements;
        if (n->dscale >= 0)
          *at(g, n->dscale, i) += dy->value[i] * normal;
        if (n->dbias >= 0)
          *at(g, n->dbias, i) += dy->value[i];
      } else {
        g->tensor[g->conv[Y]].value[i] =
            s->inverse[k] * (slope - shift[k] - normal * along[k]);
      }
    }
  free(along);
  free(shift);
}

void norm_run(const graph_t *g) {
  statistics_t s = statistics_of(g);
  statistics_put(g, &s);
  running_run(g, &s);
  (g->norm.backward ? backward_run : forward_run)(g, &s);
  free(s.mean);
  free(s.variance);
  free(s.inverse);
}
