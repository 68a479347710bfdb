// SPDX-License-Identifier: Apache-2.0
// What a graph computes, and what was recognised.
#include "tests/unit/graph/composite/meaning.h"

#include <math.h>
#include <string.h>

#include "tests/unit/graph/attention/drawn.h"
#include "tests/unit/random.h"

// ---- memory ----------------------------------------------------------------

static double input_draw(const sdg_graph_t *graph, int t,
                         const sdg_composite_t *c) {
  sdg_composite_extents_t e = sdg_composite_extents(c, graph);
  if (t == c->tensor[SDG_COMPOSITE_LENGTH_Q])
    return (double)random_in(1, e.queries);
  if (t == c->tensor[SDG_COMPOSITE_LENGTH_KV])
    return (double)random_in(1, e.keys);
  return (double)random_in(-1000, 1000) / 1000;
}

static bool is_in(int t, const int *list, int count) {
  for (int i = 0; i < count; i++)
    if (list[i] == t)
      return true;
  return false;
}

static double number_draw(const sdg_graph_t *graph, int t,
                          const sdg_composite_t *c) {
  sdg_composite_extents_t e = sdg_composite_extents(c, graph);
  if (is_in(t, c->fill, c->fills))
    return -(double)INFINITY;
  if (is_in(t, c->one, c->ones))
    return 1;
  if (is_in(t, c->size_q, c->sizes))
    return (double)e.queries;
  if (is_in(t, c->size_kv, c->sizes))
    return (double)e.keys;
  if (t == c->right_bound)
    return 3;
  if (t == c->left_bound)
    return (double)(4 - (c->left_folded ? e.keys - e.queries : 0));
  return 0.625; // the scale
}

static bool is_written(const sdg_graph_t *graph, int t) {
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->node[n].operand_count; i++)
      if (graph->node[n].operand[i].tensor == t &&
          sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name))
        return true;
  return false;
}

void program_number(program_t *p, const sdg_graph_tensor_t *tensor, int t,
                    double number) {
  p->value[t][0] = number;
  if (tensor->type == CUDNN_DATA_INT32)
    p->number[t].i32 = (int32_t)number;
  else
    p->number[t].f32 = (float)number;
}

void program_create(program_t *p, const sdg_graph_t *graph,
                    const sdg_composite_t *c) {
  memset(p, 0, sizeof *p);
  for (int t = 0; t < graph->tensor_count; t++) {
    const sdg_graph_tensor_t *tensor = &graph->tensor[t];
    int64_t elements = compute_elements(tensor);
    if (tensor->is_virtual || is_written(graph, t))
      continue;
    // A mutant's tensor may be twice as long.
    elements *= tensor->is_by_value ? 1 : 2;
    p->value[t] = calloc(2 * (size_t)elements, sizeof(double));
    for (int64_t i = 0; i < elements; i++)
      p->value[t][i] = tensor->is_by_value ? number_draw(graph, t, c)
                                           : input_draw(graph, t, c);
    if (!tensor->is_by_value)
      continue;
    p->pointer[t] = &p->number[t];
    program_number(p, tensor, t, p->value[t][0]);
  }
}

void program_destroy(program_t *p) {
  for (int t = 0; t < COMPUTE_TENSORS; t++)
    free(p->value[t]);
}

// ---- what must be computed -------------------------------------------------

// A tensor's array with rows before columns.
static double *plain(const sdg_graph_tensor_t *tensor, const double *value,
                     bool turned) {
  int64_t elements = compute_elements(tensor);
  int64_t rows = tensor->dim[turned ? 3 : 2],
          columns = tensor->dim[turned ? 2 : 3];
  double *out = calloc((size_t)elements, sizeof *out);
  for (int64_t i = 0; i < elements; i++) {
    int64_t rest = i / (rows * columns), row = i / columns % rows,
            column = i % columns;
    out[i] = value[turned ? (rest * columns + column) * rows + row : i];
  }
  return out;
}

static void shape_of(const sdg_graph_t *graph, const sdg_composite_t *c,
                     const sdg_composite_band_t *band,
                     sdg_attention_shape_t *s) {
  sdg_composite_extents_t e = sdg_composite_extents(c, graph);
  *s = (sdg_attention_shape_t){.backward = c->backward,
                               .batch = e.batch,
                               .heads = e.heads,
                               .k_heads = e.k_heads,
                               .v_heads = e.v_heads,
                               .queries = e.queries,
                               .keys = e.keys,
                               .depth = e.depth,
                               .v_depth = e.v_depth,
                               .right = band->right,
                               .left = band->left,
                               .right_bound = band->right_bound,
                               .left_bound = band->left_bound,
                               .scales = true};
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    s->tensor[role].there = c->tensor[role] >= 0;
  if (c->tensor[SDG_COMPOSITE_BIAS] >= 0)
    memcpy(s->bias_dim, graph->tensor[c->tensor[SDG_COMPOSITE_BIAS]].dim,
           sizeof s->bias_dim);
}

static void drawn_of(const sdg_graph_t *graph, const sdg_composite_t *c,
                     const sdg_composite_band_t *band, double *const *value,
                     drawn_t *out) {
  memset(out, 0, sizeof *out);
  shape_of(graph, c, band, &out->shape);
  out->scale = band->scale;
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    int t = c->tensor[role];
    if (t >= 0 && value[t])
      out->value[role] = plain(&graph->tensor[t], value[t], c->turned[role]);
  }
  for (int64_t b = 0; b < out->shape.batch && band->bottom_right; b++)
    out->shift[b] = band->by_lengths
                        ? (int64_t)(out->value[SDG_COMPOSITE_LENGTH_KV][b] -
                                    out->value[SDG_COMPOSITE_LENGTH_Q][b])
                        : band->size_kv - band->size_q;
}

static bool alike(const double *got, const double *right, int64_t elements) {
  for (int64_t i = 0; i < elements; i++)
    if (!isnan(right[i]) &&
        !(fabs(got[i] - right[i]) <= 1e-9 * (1 + fabs(right[i]))))
      return false;
  return true;
}

static bool computes(const sdg_graph_t *graph, const sdg_composite_t *c,
                     const sdg_composite_band_t *band, double *const *value) {
  double *right[SDG_COMPOSITE_ROLES];
  drawn_t drawn;
  bool good = true;
  drawn_of(graph, c, band, value, &drawn);
  drawn_solve(&drawn, right);
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    if (right[role])
      good &= alike(drawn.value[role], right[role],
                    compute_elements(&graph->tensor[c->tensor[role]]));
    free(right[role]);
  }
  drawn_destroy(&drawn);
  return good;
}

meaning_t meaning_of(const sdg_graph_t *graph, const program_t *p) {
  double *value[COMPUTE_TENSORS];
  sdg_composite_band_t band;
  sdg_composite_t c;
  bool is;
  if (sdg_composite_read(graph, &is, &c) ||
      !sdg_composite_numbers(&c, graph, p->pointer, &band))
    return MEANING_REFUSED;
  memcpy(value, p->value, sizeof value);
  bool right = compute_graph(graph, value) && computes(graph, &c, &band, value);
  for (int t = 0; t < COMPUTE_TENSORS; t++)
    if (value[t] != p->value[t])
      free(value[t]);
  return right ? MEANING_RIGHT : MEANING_WRONG;
}
