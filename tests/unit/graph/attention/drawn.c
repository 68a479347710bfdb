// SPDX-License-Identifier: Apache-2.0
// Random pieces of attention, and what they must compute.
#include "tests/unit/graph/attention/drawn.h"

#include <math.h>
#include <string.h>

#include "tests/unit/random.h"

// ---- numbers ---------------------------------------------------------------

double drawn_round(cudnnDataType_t type, double value) {
  int bits = type == CUDNN_DATA_HALF       ? 11
             : type == CUDNN_DATA_BFLOAT16 ? 8
                                           : 24;
  int exponent;
  double fraction = frexp(value, &exponent);
  if (!isfinite(value) || type == CUDNN_DATA_INT32)
    return value;
  if (type == CUDNN_DATA_HALF && exponent < -13)
    bits -= -13 - exponent;
  return ldexp(nearbyint(ldexp(fraction, bits)), exponent - bits);
}

static double random_real(void) {
  return (double)random_in(-1000000, 1000000) / 1e6;
}

// ---- shapes ----------------------------------------------------------------

void drawn_extents(const sdg_attention_shape_t *s, int role, int64_t out[4]) {
  bool keys = role == SDG_COMPOSITE_K || role == SDG_COMPOSITE_DK;
  bool values = role == SDG_COMPOSITE_V || role == SDG_COMPOSITE_DV;
  bool length =
      role == SDG_COMPOSITE_LENGTH_Q || role == SDG_COMPOSITE_LENGTH_KV;
  out[0] = s->batch;
  out[1] = keys ? s->k_heads : values ? s->v_heads : s->heads;
  out[2] = keys || values ? s->keys : s->queries;
  out[3] = values || role == SDG_COMPOSITE_O || role == SDG_COMPOSITE_DO
               ? s->v_depth
               : s->depth;
  if (role == SDG_COMPOSITE_STATS)
    out[3] = 1;
  if (length)
    out[1] = out[2] = out[3] = 1;
  if (role == SDG_COMPOSITE_BIAS)
    memcpy(out, s->bias_dim, sizeof s->bias_dim);
}

int64_t drawn_elements(const sdg_attention_shape_t *s, int role) {
  int64_t dim[4];
  drawn_extents(s, role, dim);
  return dim[0] * dim[1] * dim[2] * dim[3];
}

static void tensor_draw(sdg_attention_shape_t *s, int role,
                        cudnnDataType_t type, bool heads_inside) {
  int64_t dim[4];
  drawn_extents(s, role, dim);
  s->tensor[role] = (sdg_attention_tensor_t){
      .there = true,
      .type = type,
      .alignment = 16,
      .stride = {dim[1] * dim[2] * dim[3],
                 heads_inside ? dim[3] : dim[2] * dim[3],
                 heads_inside ? dim[1] * dim[3] : dim[3], 1}};
}

static void tensors_draw(sdg_attention_shape_t *s, cudnnDataType_t type) {
  bool heads_inside = random_in(0, 1);
#define DRAW(role) tensor_draw(s, SDG_COMPOSITE_##role, type, heads_inside)
  DRAW(Q);
  DRAW(K);
  DRAW(V);
  DRAW(O);
  if (s->backward) {
    DRAW(DO);
    DRAW(DQ);
    DRAW(DK);
    DRAW(DV);
  }
#undef DRAW
  if (s->backward || random_in(0, 1))
    tensor_draw(s, SDG_COMPOSITE_STATS, CUDNN_DATA_FLOAT, false);
  if (!s->unified && random_in(0, 3) == 0) {
    const int64_t dim[] = {s->batch, s->heads, s->queries, s->keys};
    for (int d = 0; d < 4; d++)
      s->bias_dim[d] = d < 2 && random_in(0, 1) ? 1 : dim[d];
    tensor_draw(s, SDG_COMPOSITE_BIAS, type, false);
  }
  if (random_in(0, 3) == 0) {
    tensor_draw(s, SDG_COMPOSITE_LENGTH_Q, CUDNN_DATA_INT32, false);
    tensor_draw(s, SDG_COMPOSITE_LENGTH_KV, CUDNN_DATA_INT32, false);
  }
}

static void shape_draw(sdg_attention_shape_t *s, bool backward) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                          CUDNN_DATA_FLOAT};
  *s = (sdg_attention_shape_t){.backward = backward,
                               .deterministic = random_in(0, 3) == 0,
                               .batch = random_in(1, 2),
                               .heads = random_in(1, 6),
                               .queries = random_in(1, 40),
                               .keys = random_in(1, 40),
                               .depth = 8 * random_in(1, 4),
                               .v_depth = 8 * random_in(1, 4),
                               .right = random_in(0, 2) > 0,
                               .left = random_in(0, 2) == 0,
                               .scales = random_in(0, 3) > 0,
                               .scale_type = CUDNN_DATA_FLOAT,
                               .fill = -INFINITY};
  do {
    s->k_heads = random_in(1, s->heads);
  } while (s->heads % s->k_heads);
  s->v_heads = random_in(0, 2) ? s->k_heads : s->heads;
  s->right_bound = random_in(0, 1) ? 0 : random_in(0, s->keys);
  s->left_bound = random_in(1, s->keys + 1);
  s->unified = !backward && !s->right && !s->left && random_in(0, 1);
  tensors_draw(s, types[random_in(0, backward ? 1 : 2)]);
}

// ---- attention -------------------------------------------------------------

static int64_t index_of(const sdg_attention_shape_t *s, int role, int64_t b,
                        int64_t h, int64_t row, int64_t column) {
  int64_t dim[4], at[] = {b, h, row, column}, index = 0;
  drawn_extents(s, role, dim);
  at[1] = h * dim[1] / s->heads;
  for (int d = 0; d < 4; d++)
    index = index * dim[d] +
            (role == SDG_COMPOSITE_BIAS && dim[d] == 1 ? 0 : at[d]);
  return index;
}

static double *element(const sdg_attention_shape_t *s, double *const *value,
                       int role, int64_t b, int64_t h, int64_t row,
                       int64_t column) {
  return &value[role][index_of(s, role, b, h, row, column)];
}

static int64_t length_of(const drawn_t *d, int role, int64_t b,
                         int64_t otherwise) {
  return d->shape.tensor[role].there ? (int64_t)d->value[role][b] : otherwise;
}

static bool is_seen(const drawn_t *d, int64_t b, int64_t row, int64_t column) {
  const sdg_attention_shape_t *s = &d->shape;
  return row < length_of(d, SDG_COMPOSITE_LENGTH_Q, b, s->queries) &&
         column < length_of(d, SDG_COMPOSITE_LENGTH_KV, b, s->keys) &&
         (!s->right || row + d->shift[b] + s->right_bound >= column) &&
         (!s->left || column + s->left_bound > row + d->shift[b]);
}

#define AT(value, role, row, column)                                           \
  (*element(s, value, SDG_COMPOSITE_##role, b, h, row, column))

static double score_of(const drawn_t *d, int64_t b, int64_t h, int64_t i,
                       int64_t j) {
  const sdg_attention_shape_t *s = &d->shape;
  double score = 0;
  for (int64_t e = 0; e < s->depth; e++)
    score += AT(d->value, Q, i, e) * AT(d->value, K, j, e);
  score *= s->scales ? d->scale : 1;
  return score +
         (s->tensor[SDG_COMPOSITE_BIAS].there ? AT(d->value, BIAS, i, j) : 0);
}

// A row of O, and its statistic.
static void row_forward(const drawn_t *d, int64_t b, int64_t h, int64_t i,
                        double *const *out) {
  const sdg_attention_shape_t *s = &d->shape;
  double most = -INFINITY, sum = 0;
  for (int64_t j = 0; j < s->keys; j++)
    if (is_seen(d, b, i, j))
      most = fmax(most, score_of(d, b, h, i, j));
  for (int64_t e = 0; e < s->v_depth; e++)
    AT(out, O, i, e) = most == -INFINITY ? (double)NAN : 0;
  for (int64_t j = 0; j < s->keys; j++)
    if (is_seen(d, b, i, j))
      sum += exp(score_of(d, b, h, i, j) - most);
  for (int64_t j = 0; j < s->keys; j++) {
    if (!is_seen(d, b, i, j))
      continue;
    double weight = exp(score_of(d, b, h, i, j) - most) / sum;
    for (int64_t e = 0; e < s->v_depth; e++)
      AT(out, O, i, e) += weight * AT(d->value, V, j, e);
  }
  if (out[SDG_COMPOSITE_STATS])
    AT(out, STATS, i, 0) = most == -INFINITY ? (double)NAN : most + log(sum);
}

static void row_backward(const drawn_t *d, int64_t b, int64_t h, int64_t i,
                         double *const *out) {
  const sdg_attention_shape_t *s = &d->shape;
  double delta = 0;
  for (int64_t e = 0; e < s->v_depth; e++)
    delta += AT(d->value, O, i, e) * AT(d->value, DO, i, e);
  for (int64_t j = 0; j < s->keys; j++) {
    if (!is_seen(d, b, i, j))
      continue;
    double weight = exp(score_of(d, b, h, i, j) - AT(d->value, STATS, i, 0));
    double slope = -delta;
    for (int64_t e = 0; e < s->v_depth; e++) {
      AT(out, DV, j, e) += weight * AT(d->value, DO, i, e);
      slope += AT(d->value, DO, i, e) * AT(d->value, V, j, e);
    }
    slope *= weight * (s->scales ? d->scale : 1);
    for (int64_t e = 0; e < s->depth; e++) {
      AT(out, DK, j, e) += slope * AT(d->value, Q, i, e);
      AT(out, DQ, i, e) += slope * AT(d->value, K, j, e);
    }
  }
}

static void solve(const drawn_t *d, bool backward, double *const *out) {
  const sdg_attention_shape_t *s = &d->shape;
  for (int64_t b = 0; b < s->batch; b++)
    for (int64_t h = 0; h < s->heads; h++)
      for (int64_t i = 0; i < s->queries; i++)
        if (backward)
          row_backward(d, b, h, i, out);
        else
          row_forward(d, b, h, i, out);
}

void drawn_solve(const drawn_t *d, double *out[SDG_COMPOSITE_ROLES]) {
  static const int forward[] = {SDG_COMPOSITE_O, SDG_COMPOSITE_STATS},
                   backward[] = {SDG_COMPOSITE_DQ, SDG_COMPOSITE_DK,
                                 SDG_COMPOSITE_DV};
  const int *roles = d->shape.backward ? backward : forward;
  memset(out, 0, sizeof *out * SDG_COMPOSITE_ROLES);
  for (int i = 0; i < (d->shape.backward ? 3 : 2); i++)
    if (d->shape.tensor[roles[i]].there)
      out[roles[i]] =
          calloc((size_t)drawn_elements(&d->shape, roles[i]), sizeof **out);
  solve(d, d->shape.backward, out);
}

// ---- inputs ----------------------------------------------------------------

static double input_draw(const sdg_attention_shape_t *s, int role) {
  if (role == SDG_COMPOSITE_LENGTH_Q)
    return (double)random_in(1, s->queries);
  if (role == SDG_COMPOSITE_LENGTH_KV)
    return (double)random_in(1, s->keys);
  return drawn_round(s->tensor[role].type, random_real());
}

void drawn_create(drawn_t *d, bool backward) {
  memset(d, 0, sizeof *d);
  shape_draw(&d->shape, backward);
  d->scale = drawn_round(CUDNN_DATA_FLOAT, random_real());
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    int64_t elements = drawn_elements(&d->shape, role);
    if (!d->shape.tensor[role].there)
      continue;
    d->value[role] = calloc((size_t)elements, sizeof(double));
    for (int64_t i = 0; i < elements; i++)
      d->value[role][i] = input_draw(&d->shape, role);
  }
  if (!backward)
    return;
  solve(d, false, d->value);
  static const int saved[] = {SDG_COMPOSITE_O, SDG_COMPOSITE_STATS};
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < drawn_elements(&d->shape, saved[k]); i++) {
      double *value = &d->value[saved[k]][i];
      // Rows without keys have no slopes, whatever their statistics are.
      *value = isnan(*value)
                   ? 0
                   : drawn_round(d->shape.tensor[saved[k]].type, *value);
    }
}

void drawn_destroy(drawn_t *d) {
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    free(d->value[role]);
}

const char *drawn_text(const sdg_attention_shape_t *s, char text[256]) {
  snprintf(text, 256,
           "%s%s, type %d, b %d, heads %d %d %d, rows %d %d, depth %d %d, "
           "right %d, left %d%s%s%s",
           s->unified    ? "one op"
           : s->backward ? "backward"
                         : "forward",
           s->deterministic ? ", deterministic" : "",
           (int)s->tensor[SDG_COMPOSITE_Q].type, (int)s->batch, (int)s->heads,
           (int)s->k_heads, (int)s->v_heads, (int)s->queries, (int)s->keys,
           (int)s->depth, (int)s->v_depth, s->right ? (int)s->right_bound : -1,
           s->left ? (int)s->left_bound : -1,
           s->tensor[SDG_COMPOSITE_BIAS].there ? ", bias" : "",
           s->tensor[SDG_COMPOSITE_LENGTH_Q].there ? ", lengths" : "",
           s->scales ? ", scale" : "");
  return text;
}
