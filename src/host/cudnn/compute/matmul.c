// SPDX-License-Identifier: Apache-2.0
// Nodes that multiply matrices: c = a b in the last two dimensions, for each
// index of the others, the batch.
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/product.h"
#include "src/host/cudnn/compute/run.h"

// Extents that a tensor gives for each matrix: rows and columns of c, depth.
enum { ROWS, COLUMNS, DEPTH, LIMITS };
static const cudnnBackendAttributeName_t overrides[LIMITS] = {
    CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
    CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
    CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};

typedef struct {
  int a, b, c;
  int limit[LIMITS]; // tensors, or -1
  int batch;         // dimensions in front of the matrices
} matmul_t;

static matmul_t matmul_of(const sdg_graph_t *graph,
                          const sdg_graph_node_t *node) {
  matmul_t m = {.a = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                .b = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                .c =
                    sdg_graph_operand(node, CUDNN_ATTR_OPERATION_MATMUL_CDESC)};
  for (int i = 0; i < LIMITS; i++)
    m.limit[i] = sdg_graph_operand(node, overrides[i]);
  m.batch = m.c < 0 ? 0 : graph->tensor[m.c].rank - 2;
  return m;
}

static bool extents_fit(const sdg_graph_tensor_t *a,
                        const sdg_graph_tensor_t *b,
                        const sdg_graph_tensor_t *c) {
  int m = c->rank - 2, n = c->rank - 1;
  if (m < 0 || a->rank != c->rank || b->rank != c->rank ||
      a->dim[m] != c->dim[m] || a->dim[n] != b->dim[m] ||
      b->dim[n] != c->dim[n])
    return false;
  for (int d = 0; d < m; d++)
    if (a->dim[d] < 1 || b->dim[d] < 1 || c->dim[d] % a->dim[d] ||
        c->dim[d] % b->dim[d])
      return false;
  return true;
}

// One number for each matrix, or for several.
static bool limit_fits(const sdg_graph_tensor_t *limit,
                       const sdg_graph_tensor_t *c) {
  if (limit->rank != c->rank)
    return false;
  for (int d = 0; d < c->rank; d++)
    if (limit->dim[d] != 1 && (d >= c->rank - 2 || limit->dim[d] != c->dim[d]))
      return false;
  return true;
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  matmul_t m = matmul_of(graph, node);
  if (m.a < 0 || m.b < 0 || m.c < 0)
    return "a product of matrices without one of its operands";
  if (!extents_fit(&graph->tensor[m.a], &graph->tensor[m.b],
                   &graph->tensor[m.c]))
    return "a product of matrices whose extents do not fit";
  for (int i = 0; i < LIMITS; i++)
    if (m.limit[i] >= 0 &&
        !limit_fits(&graph->tensor[m.limit[i]], &graph->tensor[m.c]))
      return "a product of matrices with several extents for one matrix";
  if (sdg_graph_integer(
          node, CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT,
          1) > 1)
    return "a product of matrices with irregular strides";
  return NULL;
}

// The batch of an operand under that of c: neighbouring matrices of c, as many
// as its extent is a multiple of the operand's, share one.
static void batch_under(const host_run_t *run, const matmul_t *m, int operand,
                        const host_region_t *c, host_region_t *out) {
  for (int d = 0; d < m->batch; d++) {
    int64_t ratio =
        host_run_of(run, m->c)->dim[d] / host_run_of(run, operand)->dim[d];
    out->lo[d] = c->lo[d] / ratio;
    out->hi[d] = (c->hi[d] - 1) / ratio + 1;
  }
}

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  matmul_t m = matmul_of(run->graph, node);
  const host_region_t *c = &run->tensor[m.c].need;
  host_region_t a = host_region_all(host_run_of(run, m.a));
  host_region_t b = host_region_all(host_run_of(run, m.b));
  batch_under(run, &m, m.a, c, &a);
  batch_under(run, &m, m.b, c, &b);
  a.lo[m.batch] = c->lo[m.batch];
  a.hi[m.batch] = c->hi[m.batch];
  b.lo[m.batch + 1] = c->lo[m.batch + 1];
  b.hi[m.batch + 1] = c->hi[m.batch + 1];
  host_run_need(run, m.a, &a);
  host_run_need(run, m.b, &b);
  for (int i = 0; i < LIMITS; i++) {
    if (m.limit[i] < 0)
      continue;
    host_region_t limit =
        host_region_broadcast(c, host_run_of(run, m.limit[i]));
    host_run_need(run, m.limit[i], &limit);
  }
}

static bool is_exact(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_INT8 ||
         type == CUDNN_DATA_UINT8 || type == CUDNN_DATA_INT32 ||
         type == CUDNN_DATA_INT64;
}

static cudnnDataType_t compute_type(const sdg_graph_node_t *node) {
  return (cudnnDataType_t)sdg_graph_integer(node, CUDNN_ATTR_MATMUL_COMP_TYPE,
                                            CUDNN_DATA_FLOAT);
}

static bool in_double(const host_run_t *run, const sdg_graph_node_t *node,
                      const matmul_t *m) {
  return is_exact(compute_type(node)) ||
         is_exact(host_run_of(run, m->a)->type) ||
         is_exact(host_run_of(run, m->b)->type);
}

// Where an operand's matrix for batch index `at` of c begins in its values, at
// element (row, column) of the tensor.
static const double *matrix_at(const host_run_t *run, const matmul_t *m,
                               int operand, const int64_t *at, int64_t row,
                               int64_t column) {
  const host_region_t *in = &run->tensor[operand].need;
  int64_t step[CUDNN_DIM_MAX], offset;
  host_region_steps(in, step);
  offset =
      (row - in->lo[m->batch]) * step[m->batch] + column - in->lo[m->batch + 1];
  for (int d = 0; d < m->batch; d++) {
    int64_t ratio =
        host_run_of(run, m->c)->dim[d] / host_run_of(run, operand)->dim[d];
    offset += (at[d] / ratio - in->lo[d]) * step[d];
  }
  return run->tensor[operand].value + offset;
}

static int64_t width_of(const host_region_t *region, int d) {
  return region->hi[d] - region->lo[d];
}

// How many rows, columns or products the matrix at this row has.
static int64_t limit_at(const host_run_t *run, const matmul_t *m, int which,
                        const host_rows_of_t *rows, int64_t extent) {
  int limit = m->limit[which];
  int64_t step;
  if (limit < 0)
    return extent;
  const host_run_tensor_t *from = &run->tensor[limit];
  double given = from->value[host_rows_offset(rows, host_run_of(run, limit),
                                              &from->need, &step)];
  return given < 0 ? 0 : given < (double)extent ? (int64_t)given : extent;
}

// What the overrides cut off has the padding value.
static void rest_fill(const host_product_t *p, const host_region_t *c,
                      int batch, int64_t row_end, int64_t column_end,
                      double padding) {
  for (int64_t i = 0; i < p->m; i++) {
    int64_t from = c->lo[batch] + i >= row_end ? 0
                   : column_end > c->lo[batch + 1]
                       ? column_end - c->lo[batch + 1]
                       : 0;
    for (int64_t j = from; j < p->n; j++)
      p->c[i * p->n + j] = padding;
  }
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  matmul_t m = matmul_of(run->graph, node);
  double padding = sdg_graph_real(node, CUDNN_ATTR_MATMUL_PADDING_VALUE, 0);
  host_run_tensor_t *to = &run->tensor[m.c];
  const host_region_t *c = &to->need;
  int64_t k = host_run_of(run, m.a)->dim[m.batch + 1];
  host_product_t product = {.is_double = in_double(run, node, &m),
                            .m = width_of(c, m.batch),
                            .n = width_of(c, m.batch + 1),
                            .k = k,
                            .lda = k,
                            .c = to->value};
  host_region_t first = *c; // of each matrix
  for (int d = m.batch; d < c->rank; d++)
    first.hi[d] = first.lo[d] + 1;
  for (host_rows_of_t rows = host_rows_begin(&first); rows.more;
       host_rows_next(&rows), product.c += product.m * product.n) {
    product.k = limit_at(run, &m, DEPTH, &rows, k);
    if (product.k > 0) {
      product.ldb = width_of(&run->tensor[m.b].need, m.batch + 1);
      product.a = matrix_at(run, &m, m.a, rows.at, c->lo[m.batch], 0);
      product.b = matrix_at(run, &m, m.b, rows.at, 0, c->lo[m.batch + 1]);
    }
    if (!host_product_run(&product))
      return false;
    int64_t row_end = limit_at(run, &m, ROWS, &rows, c->hi[m.batch]);
    int64_t column_end = limit_at(run, &m, COLUMNS, &rows, c->hi[m.batch + 1]);
    rest_fill(&product, c, m.batch, row_end, column_end, padding);
  }
  int64_t count = host_region_count(c);
  if (!product.is_double)
    host_elements_round(CUDNN_DATA_FLOAT, to->value, count);
  host_elements_round(host_run_of(run, m.c)->type, to->value, count);
  return true;
}

const host_node_kind_t host_node_matmul = {
    .kind = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
    .lacks = lacks,
    .need = need,
    .compute = compute};
