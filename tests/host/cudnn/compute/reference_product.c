// SPDX-License-Identifier: Apache-2.0
// Products of matrices computed by loops over doubles.
#include <math.h>

#include "tests/host/cudnn/compute/reference.h"

/* Element (row, column) of an operand's matrix for element `i` of c: where c
 * has several matrices for one, neighbours share it. */
static int64_t element(const sdg_graph_tensor_t *c,
                       const sdg_graph_tensor_t *of, int64_t i, int64_t row,
                       int64_t column) {
  int64_t index[MADE_RANK], at = 0;
  for (int d = c->rank - 1; d >= 0; d--) {
    index[d] = i % c->dim[d];
    i /= c->dim[d];
  }
  for (int d = 0; d < c->rank - 2; d++)
    at = at * of->dim[d] + index[d] * of->dim[d] / c->dim[d];
  at = at * of->dim[c->rank - 2] + (row < 0 ? index[c->rank - 2] : row);
  return at * of->dim[c->rank - 1] + (column < 0 ? index[c->rank - 1] : column);
}

/* The extent that an override (0: rows, 1: columns, 2: depth) gives the matrix
 * of element `i` of c. */
static int64_t limit(const reference_t *r, const made_t *m,
                     const sdg_graph_node_t *node, int which, int c, int64_t i,
                     int64_t extent) {
  static const cudnnBackendAttributeName_t names[] = {
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};
  int t = sdg_graph_operand(node, names[which]);
  if (t < 0)
    return extent;
  int64_t at = element(&m->graph.tensor[c], &m->graph.tensor[t], i, 0, 0);
  return (int64_t)fmin(r->tensor[t].value[at], (double)extent);
}

void reference_matmul(reference_t *r, const made_t *m,
                      const sdg_graph_node_t *node, double rounding) {
  int a = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  int b = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  int c = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  const sdg_graph_tensor_t *tensor = m->graph.tensor;
  const int64_t columns = tensor[c].dim[tensor[c].rank - 1],
                rows = tensor[c].dim[tensor[c].rank - 2],
                depth = tensor[a].dim[tensor[a].rank - 1];
  for (int64_t i = 0; i < r->tensor[c].count; i++) {
    double sum = 0, terms = 0, error = 0;
    if (i / columns % rows >= limit(r, m, node, 0, c, i, rows) ||
        i % columns >= limit(r, m, node, 1, c, i, columns)) {
      reference_put(r, m, c, i,
                    sdg_graph_real(node, CUDNN_ATTR_MATMUL_PADDING_VALUE, 0),
                    0);
      continue;
    }
    int64_t last = limit(r, m, node, 2, c, i, depth);
    for (int64_t k = 0; k < last; k++) {
      int64_t at_a = element(&tensor[c], &tensor[a], i, -1, k);
      int64_t at_b = element(&tensor[c], &tensor[b], i, k, -1);
      double va = r->tensor[a].value[at_a], ea = r->tensor[a].error[at_a];
      double vb = r->tensor[b].value[at_b], eb = r->tensor[b].error[at_b];
      sum += va * vb;
      terms += fabs(va * vb);
      error += fabs(va) * eb + fabs(vb) * ea + ea * eb;
    }
    reference_put(r, m, c, i, sum,
                  error + 32 * rounding * terms + rounding * fabs(sum));
  }
}
