// SPDX-License-Identifier: Apache-2.0
// Elements that change their place, and parameters of normalisations, computed
// by loops over doubles.
#include <math.h>
#include <stdlib.h>

#include "tests/host/cudnn/compute/reference.h"

/* An element and where it lies. */
typedef struct {
  int64_t at, element;
} place_t;

static int compare(const void *a, const void *b) {
  int64_t first = ((const place_t *)a)->at, second = ((const place_t *)b)->at;
  return (first > second) - (first < second);
}

/* The elements in the order of memory. */
static place_t *places(const made_t *m, int tensor) {
  int64_t count = made_count(m, tensor);
  place_t *place = malloc(((size_t)count + 1) * sizeof *place);
  for (int64_t i = 0; i < count; i++)
    place[i] = (place_t){made_byte(&m->graph.tensor[tensor], i), i};
  qsort(place, (size_t)count, sizeof *place, compare);
  return place;
}

void reference_reshape(reference_t *r, const made_t *m,
                       const sdg_graph_node_t *node) {
  int x = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  int y = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  place_t *from = places(m, x), *to = places(m, y);
  for (int64_t i = 0; i < r->tensor[y].count; i++)
    reference_put(r, m, y, to[i].element, r->tensor[x].value[from[i].element],
                  r->tensor[x].error[from[i].element]);
  free(from);
  free(to);
}

void reference_concat(reference_t *r, const made_t *m,
                      const sdg_graph_node_t *node) {
  int y = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC);
  int axis = (int)sdg_graph_integer(node, CUDNN_ATTR_OPERATION_CONCAT_AXIS, -1);
  const sdg_graph_tensor_t *to = &m->graph.tensor[y];
  int64_t inner = 1, first = 0;
  for (int d = axis + 1; d < to->rank; d++)
    inner *= to->dim[d];
  for (int k = 0; k < node->operand_count; k++) {
    int x = node->operand[k].tensor;
    int64_t own = m->graph.tensor[x].dim[axis] * inner;
    if (x == y)
      continue;
    for (int64_t i = 0; i < r->tensor[x].count; i++)
      reference_put(r, m, y,
                    i / own * to->dim[axis] * inner + first * inner + i % own,
                    r->tensor[x].value[i], r->tensor[x].error[i]);
    first += m->graph.tensor[x].dim[axis];
  }
}

#define AT(name)                                                               \
  sdg_graph_operand(node, CUDNN_ATTR_OPERATION_BN_FINALIZE_##name)

static double value(const reference_t *r, int tensor, int64_t i) {
  return tensor < 0 ? 0 : r->tensor[tensor].value[i];
}

static void put(reference_t *r, const made_t *m, int tensor, int64_t i,
                double number, double rounding) {
  if (tensor >= 0)
    reference_put(r, m, tensor, i, number, rounding * fabs(number));
}

/* Inputs are exact. */
void reference_finalize(reference_t *r, const made_t *m,
                        const sdg_graph_node_t *node, double rounding) {
  bool trains = sdg_graph_integer(
                    node, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, 0) == 0;
  double n = value(r, AT(ACCUM_COUNT_DESC), 0);
  double f = value(r, AT(EXP_AVERATE_FACTOR_DESC), 0);
  double epsilon = value(r, AT(EPSILON_DESC), 0);
  for (int64_t i = 0; i < r->tensor[AT(Y_SUM_DESC)].count; i++) {
    double old_mean = value(r, AT(PREV_RUNNING_MEAN_DESC), i);
    double old_variance = value(r, AT(PREV_RUNNING_VAR_DESC), i);
    double mean = old_mean, variance = old_variance;
    if (trains) {
      mean = value(r, AT(Y_SUM_DESC), i) / n;
      variance = value(r, AT(Y_SQ_SUM_DESC), i) / n - mean * mean;
    }
    double inverse = 1 / sqrt(variance + epsilon);
    double scale = value(r, AT(SCALE_DESC), i) * inverse;
    put(r, m, AT(SAVED_MEAN_DESC), i, mean, rounding);
    put(r, m, AT(SAVED_INV_STD_DESC), i, inverse, rounding);
    put(r, m, AT(UPDATED_RUNNING_MEAN_DESC), i,
        old_mean + f * (mean - old_mean), rounding);
    put(r, m, AT(UPDATED_RUNNING_VAR_DESC), i,
        old_variance + f * (variance * n / (n - 1) - old_variance), rounding);
    put(r, m, AT(EQ_SCALE_DESC), i, scale, rounding);
    put(r, m, AT(EQ_BIAS_DESC), i, value(r, AT(BIAS_DESC), i) - mean * scale,
        rounding);
  }
}
