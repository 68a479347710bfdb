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

void reference_matmul(reference_t *r, const made_t *m,
                      const sdg_graph_node_t *node, double rounding) {
  int a = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  int b = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  int c = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  const sdg_graph_tensor_t *tensor = m->graph.tensor;
  int64_t depth = tensor[a].dim[tensor[a].rank - 1];
  for (int64_t i = 0; i < r->tensor[c].count; i++) {
    double sum = 0, terms = 0, error = 0;
    for (int64_t k = 0; k < depth; k++) {
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
