// SPDX-License-Identifier: Apache-2.0
// The numbers of one execution.
#include <math.h>
#include <string.h>

#include "rules/graph/composite/composite.h"

// What scores that are not seen become is below all others: cudnn-frontend's
// first versions take -2^30 for a window, later ones -inf. Above it, scores
// that are not seen could count.
#define LOWEST (-0x1p30)

// NAN: the number is missing, or of a type that numbers do not have.
static double number_of(const sdg_graph_t *graph, void *const *pointer, int t) {
  union {
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
  } value;
  size_t bytes = sdg_graph_type_bytes(graph->tensor[t].type);
  if (!pointer[t] || bytes > sizeof value)
    return (double)NAN;
  memcpy(&value, pointer[t], bytes);
  switch ((int)graph->tensor[t].type) {
  case CUDNN_DATA_FLOAT:
    return (double)value.f32;
  case CUDNN_DATA_DOUBLE:
    return value.f64;
  case CUDNN_DATA_INT32:
    return value.i32;
  case CUDNN_DATA_INT64:
    return (double)value.i64;
  }
  return (double)NAN;
}

// A whole number that other indices can be added to.
static bool bound_read(const sdg_graph_t *graph, void *const *pointer, int t,
                       int64_t *out) {
  double bound = t < 0 ? 0 : number_of(graph, pointer, t);
  if (!(fabs(bound) <= (double)INT32_MAX) || bound != (double)(int64_t)bound)
    return false;
  *out = (int64_t)bound;
  return true;
}

static bool fill_read(const sdg_composite_t *c, const sdg_graph_t *graph,
                      void *const *pointer, float *out) {
  *out = -INFINITY;
  for (int i = 0; i < c->fills; i++) {
    double fill = number_of(graph, pointer, c->fill[i]);
    if (!(fill <= LOWEST))
      return false;
    // Where every row sees something, each number of a graph does the same.
    if (i == 0 || fill < (double)*out)
      *out = (float)fill;
  }
  return true;
}

static bool sizes_fit(const sdg_composite_t *c, const sdg_graph_t *graph,
                      void *const *pointer, const sdg_composite_band_t *band) {
  for (int i = 0; i < c->sizes; i++)
    if (number_of(graph, pointer, c->size_q[i]) != (double)band->size_q ||
        number_of(graph, pointer, c->size_kv[i]) != (double)band->size_kv)
      return false;
  return true;
}

bool sdg_composite_numbers(const sdg_composite_t *c, const sdg_graph_t *graph,
                           void *const *pointer, sdg_composite_band_t *out) {
  sdg_composite_extents_t extents = sdg_composite_extents(c, graph);
  sdg_composite_band_t band = {.right = c->right,
                               .left = c->left,
                               .bottom_right = c->bottom_right,
                               .by_lengths = c->by_lengths,
                               .size_q = extents.queries,
                               .size_kv = extents.keys};
  for (int i = 0; i < c->ones; i++)
    if (number_of(graph, pointer, c->one[i]) != 1)
      return false;
  band.scale = c->scale < 0 ? 1 : number_of(graph, pointer, c->scale);
  if (!isfinite(band.scale) ||
      !bound_read(graph, pointer, c->right_bound, &band.right_bound) ||
      !bound_read(graph, pointer, c->left_bound, &band.left_bound) ||
      !fill_read(c, graph, pointer, &band.fill) ||
      !sizes_fit(c, graph, pointer, &band))
    return false;
  if (c->left_folded)
    band.left_bound += extents.keys - extents.queries;
  *out = band;
  return true;
}
