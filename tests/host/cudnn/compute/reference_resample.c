// SPDX-License-Identifier: Apache-2.0
// Resampling computed by loops over doubles: for each element of y, over x and
// its padding around the window.
#include <math.h>
#include <stdlib.h>

#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

typedef struct {
  const sdg_graph_node_t *node;
  const sdg_graph_tensor_t *x, *y;
  cudnnResampleMode_t mode;
  cudnnPaddingMode_t padding;
  bool nan;
  int rank; /* spatial */
} how_t;

static double number(const how_t *how, cudnnBackendAttributeName_t name,
                     int d) {
  const sdg_graph_parameter_t *p = sdg_graph_parameter(how->node, name);
  return p->type == CUDNN_TYPE_FRACTION ? p->value[d].real
                                        : (double)p->value[d].integer;
}

/* What position i of dimension d weighs for element o. */
static double weight(const how_t *how, int d, int64_t o, int64_t i) {
  double stride = number(how, CUDNN_ATTR_RESAMPLE_STRIDES, d);
  double pad = number(how, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, d);
  double window = number(how, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, d);
  double first = (double)o * stride - pad, at = first + stride / 2;
  switch ((int)how->mode) {
  case CUDNN_RESAMPLE_NEAREST:
    return (double)i <= at + 0.5 && at + 0.5 < (double)(i + 1);
  case CUDNN_RESAMPLE_BILINEAR:
    return fmax(0, 1 - fabs((double)i - at));
  }
  return (double)i >= first && (double)i < first + window;
}

/* One position of a window. */
typedef struct {
  int64_t at; /* in x; -1: padding */
  double weight;
  int64_t number; /* row by row */
} tap_t;

/* The taps of element `o` of y; returns their number. */
static int taps_of(const how_t *how, const int64_t *o, tap_t *taps) {
  int count = 0;
  int64_t i[3], lo[3], hi[3]; /* one more on each side than any mode needs */
  for (int d = 0; d < how->rank; d++) {
    double first =
        (double)o[2 + d] * number(how, CUDNN_ATTR_RESAMPLE_STRIDES, d) -
        number(how, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, d);
    i[d] = lo[d] = (int64_t)floor(first) - 1;
    hi[d] =
        lo[d] + 4 + (int64_t)number(how, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, d);
  }
  for (;;) {
    tap_t tap = {.at = o[0] * how->x->dim[1] + o[1], .weight = 1};
    bool inside = true;
    for (int d = 0; d < how->rank; d++) {
      int64_t extent = how->x->dim[2 + d], at = i[d];
      double window = number(how, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, d);
      double first =
          (double)o[2 + d] * number(how, CUDNN_ATTR_RESAMPLE_STRIDES, d) -
          number(how, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, d);
      tap.weight *= weight(how, d, o[2 + d], i[d]);
      tap.number = tap.number * (int64_t)window + i[d] - (int64_t)first;
      if (how->padding == CUDNN_EDGE_VAL_PAD &&
          how->mode != CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING)
        at = at < 0 ? 0 : at >= extent ? extent - 1 : at;
      inside &= at >= 0 && at < extent;
      tap.at = tap.at * extent + at;
    }
    if (!inside)
      tap.at = -1;
    if (tap.weight != 0)
      taps[count++] = tap;
    int d = how->rank - 1;
    while (d >= 0 && ++i[d] >= hi[d]) {
      i[d] = lo[d];
      d--;
    }
    if (d < 0)
      return count;
  }
}

/* The tap with the largest value, or NULL. */
static const tap_t *most(const how_t *how, const reference_tensor_t *x,
                         const tap_t *taps, int count, double *out_value,
                         double *out_error) {
  const tap_t *found = NULL;
  *out_value = -INFINITY;
  *out_error = 0;
  for (int k = 0; k < count; k++) {
    bool padding = taps[k].at < 0;
    if (padding && how->padding == CUDNN_NEG_INF_PAD)
      continue;
    double value = padding ? 0 : x->value[taps[k].at];
    if (isnan(value) && !how->nan)
      continue;
    *out_error = fmax(*out_error, padding ? 0 : x->error[taps[k].at]);
    if (!found ||
        (!isnan(*out_value) && (value > *out_value || isnan(value)))) {
      found = &taps[k];
      *out_value = value;
    }
  }
  return found;
}

static double counted(const how_t *how, const tap_t *taps, int count) {
  int met = 0;
  for (int k = 0; k < count; k++)
    met += taps[k].at >= 0;
  switch ((int)how->mode) {
  case CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING:
    return count;
  case CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING:
    return met ? met : 1;
  }
  return 1;
}

static void unfold(const sdg_graph_tensor_t *t, int64_t i, int64_t *index) {
  for (int d = t->rank - 1; d >= 0; d--) {
    index[d] = i % t->dim[d];
    i /= t->dim[d];
  }
}

static void forward(reference_t *r, const made_t *m, const how_t *how,
                    double rounding, tap_t *taps) {
  const sdg_graph_node_t *node = how->node;
  int tx = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  int ty = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  int ti = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC);
  const reference_tensor_t *x = &r->tensor[tx];
  int64_t o[MADE_RANK];
  for (int64_t i = 0; i < r->tensor[ty].count; i++) {
    double sum = 0, terms = 0, error = 0;
    unfold(how->y, i, o);
    int count = taps_of(how, o, taps);
    if (how->mode == CUDNN_RESAMPLE_MAXPOOL) {
      const tap_t *found = most(how, x, taps, count, &sum, &error);
      reference_put(r, m, ty, i, sum, error);
      if (ti >= 0)
        reference_put(r, m, ti, i, found ? (double)found->number : 0,
                      error > 0 ? INFINITY : 0);
      continue;
    }
    for (int k = 0; k < count; k++)
      if (taps[k].at >= 0) {
        sum += taps[k].weight * x->value[taps[k].at];
        terms += fabs(taps[k].weight * x->value[taps[k].at]);
        error += taps[k].weight * x->error[taps[k].at];
      }
    double of = counted(how, taps, count);
    reference_put(r, m, ty, i, sum / of, (error + 4 * rounding * terms) / of);
  }
}

static void backward(reference_t *r, const made_t *m, const how_t *how,
                     double rounding, tap_t *taps) {
  const sdg_graph_node_t *node = how->node;
  int tx = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC);
  int ty = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC);
  int ti = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC);
  int from = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC);
  int64_t total = r->tensor[tx].count, o[MADE_RANK];
  double *sums = calloc(3 * (size_t)total + 1, sizeof *sums), value, unsure;
  double *terms = sums + total, *errors = terms + total;
  for (int64_t i = 0; i < r->tensor[ty].count; i++) {
    unfold(how->y, i, o);
    int count = taps_of(how, o, taps);
    double of = counted(how, taps, count), dy = r->tensor[ty].value[i] / of;
    double error = r->tensor[ty].error[i] / of;
    const tap_t *found = NULL;
    if (how->mode == CUDNN_RESAMPLE_MAXPOOL && ti < 0) {
      found = most(how, &r->tensor[from], taps, count, &value, &unsure);
      REQUIRE(unsure == 0);
    }
    for (int k = 0; k < count; k++) {
      if (how->mode == CUDNN_RESAMPLE_MAXPOOL &&
          (ti < 0 ? &taps[k] != found
                  : (double)taps[k].number != r->tensor[ti].value[i]))
        continue;
      if (taps[k].at < 0)
        continue;
      sums[taps[k].at] += taps[k].weight * dy;
      terms[taps[k].at] += fabs(taps[k].weight * dy);
      errors[taps[k].at] += taps[k].weight * error;
    }
  }
  for (int64_t i = 0; i < total; i++)
    reference_put(r, m, tx, i, sums[i], errors[i] + 4 * rounding * terms[i]);
  free(sums);
}

void reference_resample(reference_t *r, const made_t *m,
                        const sdg_graph_node_t *node, double rounding) {
  bool back = node->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
  int x =
      sdg_graph_operand(node, back ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC
                                   : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  int y =
      sdg_graph_operand(node, back ? CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC
                                   : CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  how_t how = {
      .node = node,
      .x = &m->graph.tensor[x],
      .y = &m->graph.tensor[y],
      .mode = (cudnnResampleMode_t)sdg_graph_integer(
          node, CUDNN_ATTR_RESAMPLE_MODE, -1),
      .padding = (cudnnPaddingMode_t)sdg_graph_integer(
          node, CUDNN_ATTR_RESAMPLE_PADDING_MODE, -1),
      .nan = sdg_graph_integer(node, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, 0),
      .rank = m->graph.tensor[x].rank - 2};
  tap_t *taps = malloc(1024 * sizeof *taps);
  if (back)
    backward(r, m, &how, rounding, taps);
  else
    forward(r, m, &how, rounding, taps);
  free(taps);
}
