// SPDX-License-Identifier: Apache-2.0
// What is right: loops in double precision over the whole arrays; and how far
// rounding may take a result from it.
#include "tests/clients/graphs/attention/attention.h"

// Half a unit in the last place of 1, and the least that a type tells from 0.
static double unit(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF       ? 0x1p-11
         : type == CUDNN_DATA_BFLOAT16 ? 0x1p-8
                                       : 0x1p-24;
}

static double least(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF ? 0x1p-24 : 0;
}

// Results are rounded sums of rounded products of rounded weights: each
// rounding adds a unit of the sum of absolute values.
enum { ROUNDINGS = 6 };

// ---- one row of scores -----------------------------------------------------

enum { MOST_KEYS = 64 };
typedef struct {
  const case_t *c;
  int64_t b, h, g, i;    // g: the head of keys
  double p[MOST_KEYS];   // weights
  double off[MOST_KEYS]; // how far off each may be
  double stats, most, sum, stats_off;
} row_t;

static double at(const case_t *c, int array, int64_t b, int64_t h, int64_t s,
                 int64_t d) {
  return c->array[array].value[index_of(&c->array[array], b, h, s, d)];
}

static int64_t length_of(const case_t *c, int array, int64_t b, int64_t all) {
  return c->lengths ? (int64_t)at(c, array, b, 0, 0, 0) : all;
}

static bool is_seen(const case_t *c, int64_t b, int64_t i, int64_t j) {
  int64_t rows = length_of(c, LENGTHS_Q, b, c->s_q),
          columns = length_of(c, LENGTHS_KV, b, c->s_kv),
          row = i + (c->bottom ? columns - rows : 0);
  return i < rows && j < columns && (!c->has_right || row + c->right >= j) &&
         (!c->has_left || j + c->left > row);
}

// False: the row sees nothing.
static bool row_run(row_t *r) {
  const case_t *c = r->c;
  double most = -INFINITY, sum = 0, size[MOST_KEYS], largest = 0;
  for (int64_t j = 0; j < c->s_kv; j++) {
    r->p[j] = -INFINITY;
    size[j] = 0;
    if (!is_seen(c, r->b, r->i, j))
      continue;
    double score = 0;
    for (int64_t d = 0; d < c->d; d++) {
      double term =
          c->scale * at(c, Q, r->b, r->h, r->i, d) * at(c, K, r->b, r->g, j, d);
      score += term;
      size[j] += fabs(term);
    }
    r->p[j] = score + (c->bias ? at(c, BIAS, r->b, r->h, r->i, j) : 0);
    most = fmax(most, r->p[j]);
    largest = fmax(largest, size[j]);
  }
  for (int64_t j = 0; j < c->s_kv; j++)
    sum += r->p[j] = most > -INFINITY ? exp(r->p[j] - most) : 0;
  r->most = most;
  r->sum = sum;
  r->stats = sum > 0 ? most + log(sum) : 0;
  r->stats_off = 8 * 0x1p-24 * (4 + largest + fabs(most) + fabs(r->stats));
  for (int64_t j = 0; j < c->s_kv && sum > 0; j++) {
    r->p[j] /= sum;
    r->off[j] = r->p[j] * (ROUNDINGS * unit(c->type) +
                           8 * 0x1p-24 * (4 + size[j] + largest)) +
                least(c->type);
  }
  return sum > 0;
}

static void add(array_t *a, int64_t b, int64_t h, int64_t s, int64_t d,
                double value, double bound) {
  int64_t i = index_of(a, b, h, s, d);
  a->value[i] += value;
  a->bound[i] += bound;
}

static void forward(case_t *c, const row_t *r) {
  for (int64_t d = 0; d < c->d_v; d++)
    for (int64_t j = 0; j < c->s_kv; j++) {
      double v = at(c, V, r->b, r->g, j, d);
      add(&c->array[O], r->b, r->h, r->i, d, r->p[j] * v, r->off[j] * fabs(v));
    }
  if (c->array[STATS].exists)
    add(&c->array[STATS], r->b, r->h, r->i, 0, r->stats, r->stats_off);
  if (c->sums) {
    add(&c->array[MOST], r->b, r->h, r->i, 0, r->most, r->stats_off);
    add(&c->array[SUM], r->b, r->h, r->i, 0, r->sum, r->sum * r->stats_off);
  }
}

static void backward(case_t *c, const row_t *r) {
  array_t *a = c->array;
  double delta = 0, delta_size = 0;
  for (int64_t d = 0; d < c->d_v; d++) {
    double product =
        at(c, D_O, r->b, r->h, r->i, d) * at(c, O, r->b, r->h, r->i, d);
    delta += product;
    delta_size += fabs(product);
  }
  for (int64_t j = 0; j < c->s_kv; j++) {
    double slope = 0, size = 0;
    for (int64_t d = 0; d < c->d_v; d++) {
      double d_o = at(c, D_O, r->b, r->h, r->i, d);
      double v = at(c, V, r->b, r->g, j, d);
      add(&a[D_V], r->b, r->g, j, d, r->p[j] * d_o, r->off[j] * fabs(d_o));
      slope += d_o * v;
      size += fabs(d_o * v);
    }
    slope = r->p[j] * (slope - delta);
    double off = r->off[j] * (size + delta_size) + least(c->type);
    if (c->d_bias)
      add(&a[D_BIAS], r->b, r->h, r->i, j, slope, off);
    for (int64_t d = 0; d < c->d; d++) {
      double q = c->scale * at(c, Q, r->b, r->h, r->i, d);
      double k = c->scale * at(c, K, r->b, r->g, j, d);
      add(&a[D_Q], r->b, r->h, r->i, d, slope * k, off * fabs(k));
      add(&a[D_K], r->b, r->g, j, d, slope * q, off * fabs(q));
    }
  }
}

// A row beyond the length has a result of 0, and any statistics.
static void unseen_row(case_t *c, const row_t *r) {
  for (int a = STATS; a <= SUM; a++)
    if (c->array[a].exists)
      c->array[a].bound[index_of(&c->array[a], r->b, r->h, r->i, 0)] = INFINITY;
}

static void rows_run(case_t *c, void (*each)(case_t *c, const row_t *r)) {
  for (int64_t b = 0; b < c->b; b++)
    for (int64_t h = 0; h < c->h; h++)
      for (int64_t i = 0; i < c->s_q; i++) {
        row_t r = {.c = c, .b = b, .h = h, .g = h / (c->h / c->g), .i = i};
        (row_run(&r) ? each : unseen_row)(c, &r);
      }
}

// ---- values ----------------------------------------------------------------

// Queries and keys are such that weights of a row differ much.
static void values_draw(case_t *c, int array, double most) {
  array_t *a = &c->array[array];
  for (int64_t i = 0; a->exists && i < count_of(a->whole); i++)
    a->value[i] = rounded(c->type, most * (double)draw_in(-1000, 1000) / 1000);
}

// The first batch has its full length. Every row sees a key if there are as
// many of these, at least.
static void lengths_draw(case_t *c) {
  for (int64_t b = 0; c->lengths && b < c->b; b++) {
    int64_t kv = b ? draw_in(1, c->s_kv) : c->s_kv;
    int64_t most = c->bottom || c->has_left ? kv : c->s_q;
    int64_t q = b ? draw_in(1, most < c->s_q ? most : c->s_q) : c->s_q;
    c->array[LENGTHS_Q].value[b] = (double)q;
    c->array[LENGTHS_KV].value[b] = (double)kv;
  }
}

// A number near 0 is rounded to a multiple of the least one.
static void results_round(case_t *c) {
  for (int a = 0; a < ARRAYS; a++)
    for (int64_t i = 0;
         c->array[a].is_result && i < count_of(c->array[a].whole); i++)
      c->array[a].bound[i] += ROUNDINGS * least(c->array[a].type);
}

void case_compute(case_t *c) {
  for (int a = 0; a < ARRAYS; a++)
    if (c->array[a].exists) {
      size_t count = (size_t)count_of(c->array[a].whole);
      c->array[a].value = calloc(count, sizeof(double));
      c->array[a].bound = calloc(count, sizeof(double));
      CHECK(!c->array[a].value || !c->array[a].bound);
    }
  values_draw(c, Q, 2);
  values_draw(c, K, 2);
  values_draw(c, V, 1);
  if (asked.same)
    memcpy(c->array[V].value, c->array[Q].value,
           sizeof(double) * (size_t)count_of(c->array[Q].whole));
  values_draw(c, BIAS, 2);
  values_draw(c, D_O, 1);
  lengths_draw(c);
  if (c->scale_in_memory)
    c->array[SCALE].value[0] = c->scale;
  rows_run(c, forward);
  // The program gives what forward wrote.
  array_t *o = &c->array[O];
  for (int64_t i = 0; c->kind == BACKWARD && i < count_of(o->whole); i++)
    o->value[i] = rounded(c->type, o->value[i]);
  if (c->kind == BACKWARD)
    rows_run(c, backward);
  results_round(c);
}
