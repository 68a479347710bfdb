// SPDX-License-Identifier: Apache-2.0
// Sums over a whole tensor, part by part: reductions, and the statistics of
// channels.
#include <math.h>
#include <stdlib.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/part.h"

// ---- one operator ----------------------------------------------------------

// join: takes one more element into a result. merge: joins two results.
typedef struct {
  cudnnReduceTensorOp_t op;
  double start;
  double (*join)(double sum, double value);
  double (*merge)(double sum, double other);
} operator_t;

static double added(double sum, double value) {
  return sum + value;
}

static double multiplied(double sum, double value) {
  return sum * value;
}

static double multiplied_unless_zero(double sum, double value) {
  return value == 0 ? sum : sum * value;
}

// NaN is the smallest and the largest.
static double smaller(double sum, double value) {
  return value < sum || isnan(value) ? value : sum;
}

static double larger(double sum, double value) {
  return value > sum || isnan(value) ? value : sum;
}

static double larger_size(double sum, double value) {
  return larger(sum, fabs(value));
}

static double added_size(double sum, double value) {
  return sum + fabs(value);
}

static double added_square(double sum, double value) {
  return sum + value * value;
}

static const operator_t operators[] = {
    {CUDNN_REDUCE_TENSOR_ADD, 0, added, added},
    {CUDNN_REDUCE_TENSOR_MUL, 1, multiplied, multiplied},
    {CUDNN_REDUCE_TENSOR_MIN, INFINITY, smaller, smaller},
    {CUDNN_REDUCE_TENSOR_MAX, -INFINITY, larger, larger},
    {CUDNN_REDUCE_TENSOR_AMAX, 0, larger_size, larger},
    {CUDNN_REDUCE_TENSOR_AVG, 0, added, added},
    {CUDNN_REDUCE_TENSOR_NORM1, 0, added_size, added},
    {CUDNN_REDUCE_TENSOR_NORM2, 0, added_square, added},
    {CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, 1, multiplied_unless_zero, multiplied},
};

static const operator_t *operator_of(int64_t op) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if ((int64_t)operators[i].op == op)
      return &operators[i];
  return NULL;
}

// ---- over regions ----------------------------------------------------------

static bool sums_begin(host_run_t *run, int result, double start) {
  host_region_t all = host_region_all(host_run_of(run, result));
  int64_t count = host_region_count(&all);
  double *sums = malloc(((size_t)count + 1) * sizeof *sums);
  for (int64_t i = 0; i < count && sums; i++)
    sums[i] = start;
  run->tensor[result].sums = sums;
  return sums;
}

// Adds the part's elements. Neighbouring elements of x, as many as x's extent
// is a multiple of the result's, belong to one result.
static void sums_add(host_run_t *run, int x, int result,
                     const host_region_t *part, const operator_t *by) {
  const sdg_graph_tensor_t *from = host_run_of(run, x);
  const sdg_graph_tensor_t *to = host_run_of(run, result);
  host_region_t all = host_region_all(to);
  int64_t step[CUDNN_DIM_MAX], ratio[CUDNN_DIM_MAX], x_step;
  int last = from->rank - 1;
  host_region_steps(&all, step);
  for (int d = 0; d <= last; d++)
    ratio[d] = from->dim[d] / to->dim[d];
  for (host_rows_of_t rows = host_rows_begin(part); rows.more;
       host_rows_next(&rows)) {
    const double *values =
        run->tensor[x].value +
        host_rows_offset(&rows, from, &run->tensor[x].need, &x_step);
    double *sums = run->tensor[result].sums;
    for (int d = 0; d < last; d++)
      sums += rows.at[d] / ratio[d] * step[d];
    if (to->dim[last] == 1) {
      double sum = by->start;
      for (int64_t i = 0; i < rows.width; i++)
        sum = by->join(sum, values[i]);
      *sums = by->merge(*sums, sum);
      continue;
    }
    for (int64_t i = 0; i < rows.width; i++) {
      double *sum = sums + (rows.at[last] + i) / ratio[last];
      *sum = by->join(*sum, values[i]);
    }
  }
}

// ---- reductions ------------------------------------------------------------

static int x_of(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
}

static int y_of(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
}

static const operator_t *by_of(const sdg_graph_node_t *node) {
  return operator_of(
      sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1));
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  const sdg_graph_tensor_t *x = &graph->tensor[x_of(node)];
  const sdg_graph_tensor_t *y = &graph->tensor[y_of(node)];
  if (!by_of(node))
    return "this operator of a reduction";
  if (x->rank != y->rank)
    return "a reduction to another number of dimensions";
  for (int d = 0; d < x->rank; d++)
    if (y->dim[d] < 1 || x->dim[d] % y->dim[d])
      return "a reduction whose extents do not divide each other";
  return NULL;
}

// What the elements of a result in this region are reduced from.
static host_region_t under(const host_run_t *run, const sdg_graph_node_t *node,
                           const host_region_t *result) {
  const sdg_graph_tensor_t *x = host_run_of(run, x_of(node));
  const sdg_graph_tensor_t *y = host_run_of(run, y_of(node));
  host_region_t region = *result;
  for (int d = 0; d < x->rank; d++) {
    region.lo[d] *= x->dim[d] / y->dim[d];
    region.hi[d] *= x->dim[d] / y->dim[d];
  }
  return region;
}

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  if (host_run_is_sum(run, (int)(node - run->graph->node))) {
    host_run_need(run, x_of(node), part);
    return;
  }
  host_region_t x = under(run, node, &run->tensor[y_of(node)].need);
  host_run_need(run, x_of(node), &x);
}

static bool begin(host_run_t *run, const sdg_graph_node_t *node) {
  return sums_begin(run, y_of(node), by_of(node)->start);
}

static bool add(host_run_t *run, const sdg_graph_node_t *node,
                const host_region_t *part) {
  sums_add(run, x_of(node), y_of(node), part, by_of(node));
  return true;
}

// Elements of x for one of y.
static double each(const host_run_t *run, const sdg_graph_node_t *node) {
  host_region_t from = host_region_all(host_run_of(run, x_of(node)));
  host_region_t to = host_region_all(host_run_of(run, y_of(node)));
  return (double)host_region_count(&from) / (double)host_region_count(&to);
}

static double finished(cudnnReduceTensorOp_t op, double each, double sum) {
  return op == CUDNN_REDUCE_TENSOR_AVG     ? sum / each
         : op == CUDNN_REDUCE_TENSOR_NORM2 ? sqrt(sum)
                                           : sum;
}

static bool end(host_run_t *run, const sdg_graph_node_t *node) {
  int y = y_of(node);
  host_region_t to = host_region_all(host_run_of(run, y));
  double *sums = run->tensor[y].sums;
  for (int64_t i = 0; i < host_region_count(&to); i++)
    sums[i] = finished(by_of(node)->op, each(run, node), sums[i]);
  host_run_finish(run, y);
  return true;
}

// Rows of x that are at hand whole.
static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  const host_run_tensor_t *x = &run->tensor[x_of(node)];
  const host_run_tensor_t *y = &run->tensor[y_of(node)];
  const sdg_graph_tensor_t *from = host_run_of(run, x_of(node));
  const operator_t *by = by_of(node);
  host_region_t region = under(run, node, &y->need);
  int last = region.rank - 1;
  int64_t width = from->dim[last] / host_run_of(run, y_of(node))->dim[last];
  double count = each(run, node), *out = y->value;
  for (host_rows_of_t rows = host_rows_begin(&region); rows.more;
       host_rows_next(&rows)) {
    int64_t step;
    const double *values =
        x->value + host_rows_offset(&rows, from, &x->need, &step);
    for (int64_t i = 0; i < rows.width; i += width) {
      double sum = by->start;
      for (int64_t j = i; j < i + width; j++)
        sum = by->join(sum, values[j]);
      *out++ = finished(by->op, count, sum);
    }
  }
  host_elements_round(host_run_of(run, y_of(node))->type, y->value,
                      host_region_count(&y->need));
  return true;
}

// ---- statistics of channels ------------------------------------------------

static int statistics_x(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
}

static int sum_of(const sdg_graph_node_t *node, bool squares) {
  return sdg_graph_operand(node, squares
                                     ? CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC
                                     : CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
}

static const char *statistics_lacks(const sdg_graph_t *graph,
                                    const sdg_graph_node_t *node) {
  const sdg_graph_tensor_t *x = &graph->tensor[statistics_x(node)];
  for (int i = 0; i < 2; i++) {
    const sdg_graph_tensor_t *sum = &graph->tensor[sum_of(node, i)];
    if (sum->rank != x->rank)
      return "statistics with another number of dimensions";
    for (int d = 0; d < x->rank; d++)
      if (sum->dim[d] != (d == 1 ? x->dim[1] : 1))
        return "statistics that are not those of channels";
  }
  return NULL;
}

static void statistics_need(host_run_t *run, const sdg_graph_node_t *node,
                            const host_region_t *part) {
  host_run_need(run, statistics_x(node), part);
}

static bool statistics_begin(host_run_t *run, const sdg_graph_node_t *node) {
  return sums_begin(run, sum_of(node, false), 0) &&
         sums_begin(run, sum_of(node, true), 0);
}

static bool statistics_add(host_run_t *run, const sdg_graph_node_t *node,
                           const host_region_t *part) {
  int x = statistics_x(node);
  sums_add(run, x, sum_of(node, false), part,
           operator_of(CUDNN_REDUCE_TENSOR_ADD));
  sums_add(run, x, sum_of(node, true), part,
           operator_of(CUDNN_REDUCE_TENSOR_NORM2));
  return true;
}

static bool statistics_end(host_run_t *run, const sdg_graph_node_t *node) {
  host_run_finish(run, sum_of(node, false));
  host_run_finish(run, sum_of(node, true));
  return true;
}

const host_node_kind_t host_node_reduction = {
    .kind = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
    .lacks = lacks,
    .need = need,
    .compute = compute,
    .over = x_of,
    .begin = begin,
    .add = add,
    .end = end};
const host_node_kind_t host_node_statistics = {
    .kind = CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
    .lacks = statistics_lacks,
    .need = statistics_need,
    .over = statistics_x,
    .begin = statistics_begin,
    .add = statistics_add,
    .end = statistics_end};
