// SPDX-License-Identifier: Apache-2.0
// Mean and variance of values that several ranks hold, by one sum over them.
//
// The vendor's training function gives each rank, in one pass over x, the mean
// a_r and the unbiased variance v_r of its m_r values. Every rank writes these
// into rows of its own of a table that is otherwise zero, so that the sum of
// the tables has the rows of all ranks, not rounded. Then, with M values in
// all:
//
//   mean = sum m_r / M a_r
//   variance = sum ((m_r - 1) / M v_r + m_r / M (a_r - mean)^2)
//
// No term is the difference of large sums: no digits are lost, however large
// the mean is beside the deviation. Example: [1, 3] and [6] have a = 2, 6 and
// v = 2 and none; the mean is 10/3, the variance 2/3 + 2/3 (4/3)^2
// + 1/3 (8/3)^2.
#include "rules/norm/plan.h"
#include "rules/vendor/argument.h"

sdg_status_t sdg_norm_scratch(sdg_norm_maker_t *m, sdg_subcall_tensor_t *out) {
  int slab;
  SDG_TRY(sdg_plan_scratch(m->plan, &m->params, m->tensor[SDG_NORM_SCALE].slab,
                           &slab));
  *out = sdg_subcall_slab(m->plan, slab, m->type);
  return SDG_OK;
}

sdg_status_t sdg_norm_constant(sdg_norm_maker_t *m, int value,
                               sdg_subcall_tensor_t *out) {
  if (!value && m->has_zero) {
    *out = m->zero;
    return SDG_OK;
  }
  SDG_TRY(sdg_norm_scratch(m, out));
  return value ? sdg_subcall_set(m->plan, value, out)
               : sdg_plan_zero(m->plan, SDG_LANE_MAIN, out->slab, &out->box);
}

sdg_status_t sdg_norm_copy(sdg_norm_maker_t *m, sdg_norm_tensor_t like,
                           sdg_type_t type, sdg_subcall_tensor_t *out) {
  const sdg_subcall_tensor_t *of =
      &m->tensor[type == m->tensor[like].type ? like : SDG_NORM_SCALE];
  int slab;
  SDG_TRY(sdg_plan_scratch_of(m->plan, &m->own,
                              m->plan->slab[of->slab].elem_bytes,
                              m->tensor[like].slab, &slab));
  *out = sdg_subcall_slab(m->plan, slab, type);
  return SDG_OK;
}

// The vendor's functions do not state which alignment they need.
enum { ALIGN = 64 }; // elements

static int64_t aligned(int64_t elements) {
  return (elements + ALIGN - 1) / ALIGN * ALIGN;
}

static sdg_status_t line_add(sdg_norm_maker_t *m, int64_t elements,
                             int *out_slab) {
  sdg_box_t line = {.dims = 1, .dim = {{0, elements}}};
  return sdg_plan_scratch(m->plan, &line, m->tensor[SDG_NORM_SCALE].slab,
                          out_slab);
}

// Rows of statistics inside a line, from element `first` on, a row every `step`
// elements. `of`: the box of one row.
static sdg_status_t rows_within(sdg_norm_maker_t *m, int line, int64_t first,
                                int64_t rows, int64_t step, const sdg_box_t *of,
                                sdg_subcall_tensor_t *out) {
  int slab, like = m->tensor[SDG_NORM_SCALE].slab;
  size_t offset = (size_t)(first * m->plan->slab[like].elem_bytes);
  SDG_TRY(sdg_plan_within(m->plan, line, offset, of, like, &slab));
  sdg_slab_t *of_rows = &m->plan->slab[slab];
  of_rows->box.dim[m->rows].hi = of_rows->box.dim[m->rows].lo + rows;
  of_rows->stride[m->rows] = step;
  *out = sdg_subcall_slab(m->plan, slab, m->type);
  return SDG_OK;
}

sdg_status_t sdg_norm_pair(sdg_norm_maker_t *m, sdg_norm_pair_t *out) {
  int64_t room = aligned(sdg_box_count(&m->params));
  SDG_TRY(line_add(m, 2 * room, &out->slab));
  for (int i = 0; i < 2; i++)
    SDG_TRY(
        rows_within(m, out->slab, i * room, 1, room, &m->params, &out->sum[i]));
  return rows_within(m, out->slab, 0, 2, room, &m->params, &out->both);
}

sdg_status_t sdg_norm_pair_zero(sdg_norm_maker_t *m,
                                const sdg_norm_pair_t *pair) {
  return sdg_plan_zero(m->plan, SDG_LANE_MAIN, pair->slab,
                       &m->plan->slab[pair->slab].box);
}

bool sdg_norm_aliased(const sdg_norm_maker_t *m, sdg_norm_tensor_t a,
                      sdg_norm_tensor_t b) {
  const void *data = sdg_norm_data(m->call, m->norm, a);
  return !m->packs && data && data == sdg_norm_data(m->call, m->norm, b);
}

sdg_status_t sdg_norm_overwritable(sdg_norm_maker_t *m, sdg_norm_tensor_t y,
                                   const sdg_norm_tensor_t *later,
                                   sdg_subcall_tensor_t *out) {
  bool wanted = sdg_norm_number(m->call, m->norm, SDG_NORM_BETA) != 0;
  for (; *later != SDG_NORM_TENSORS; later++)
    wanted |= sdg_norm_aliased(m, y, *later);
  if (wanted)
    return sdg_norm_copy(m, y, m->tensor[y].type, out);
  *out = m->tensor[y];
  return SDG_OK;
}

// What the ranks add: one row of each tensor for every rank.
typedef struct table {
  int slab;
  sdg_subcall_tensor_t mean, variance;
  sdg_subcall_tensor_t merged; // one row, the same on all ranks: the variance
  sdg_subcall_tensor_t weight; // one number a row; not if parts are even
  sdg_subcall_tensor_t work;   // as `mean`, but this rank's alone
} table_t;

static sdg_subcall_tensor_t row_of(const sdg_norm_maker_t *m,
                                   const sdg_subcall_tensor_t *rows,
                                   int64_t index) {
  sdg_subcall_tensor_t row = *rows;
  sdg_range_t *range = &row.box.dim[m->rows];
  *range = (sdg_range_t){range->lo + index, range->lo + index + 1};
  return row;
}

static sdg_status_t table_open(sdg_norm_maker_t *m, table_t *out) {
  int64_t step = sdg_box_count(&m->params), row = aligned(step);
  int64_t room = aligned(m->ranks * step), after = 2 * room + 2 * row;
  sdg_box_t one = {.dims = m->params.dims};
  int work;
  for (int d = 0; d < one.dims; d++)
    one.dim[d] = (sdg_range_t){0, 1};
  SDG_TRY(line_add(m, after + (m->even ? 0 : m->ranks), &out->slab));
  SDG_TRY(rows_within(m, out->slab, 0, m->ranks, step, &m->params, &out->mean));
  SDG_TRY(rows_within(m, out->slab, room, m->ranks, step, &m->params,
                      &out->variance));
  SDG_TRY(
      rows_within(m, out->slab, 2 * room, 1, step, &m->params, &out->merged));
  SDG_TRY(
      rows_within(m, out->slab, 2 * room + row, 1, step, &m->params, &m->zero));
  if (!m->even)
    SDG_TRY(rows_within(m, out->slab, after, m->ranks, 1, &one, &out->weight));
  SDG_TRY(line_add(m, room, &work));
  SDG_TRY(rows_within(m, work, 0, m->ranks, step, &m->params, &out->work));
  m->has_zero = true;
  return sdg_plan_zero(m->plan, SDG_LANE_MAIN, out->slab,
                       &m->plan->slab[out->slab].box);
}

// Computes mean and unbiased variance of x over `mode`'s values.
static sdg_status_t found_add(sdg_norm_maker_t *m, cudnnBatchNormMode_t mode,
                              const sdg_subcall_tensor_t *x,
                              const sdg_subcall_tensor_t *waste,
                              const sdg_subcall_tensor_t *mean,
                              const sdg_subcall_tensor_t *variance) {
  const sdg_norm_params_t params = {.scale = m->tensor[SDG_NORM_SCALE],
                                    .bias = m->tensor[SDG_NORM_SCALE],
                                    .mean = *mean,
                                    .variance = *variance};
  return sdg_norm_subcall_statistics(m, mode, x, &params, waste);
}

// Writes this rank's own rows of the table.
static sdg_status_t own_add(sdg_norm_maker_t *m,
                            const sdg_subcall_tensor_t *waste,
                            const table_t *table) {
  sdg_subcall_tensor_t mean = row_of(m, &table->mean, m->place);
  sdg_subcall_tensor_t variance = row_of(m, &table->variance, m->place);
  double total = (double)m->total;
  SDG_TRY(found_add(m, m->norm->mode, &m->tensor[SDG_NORM_X], waste, &mean,
                    &variance));
  // One value has no unbiased variance.
  if (m->count == 1)
    SDG_TRY(
        sdg_plan_zero(m->plan, SDG_LANE_MAIN, variance.slab, &variance.box));
  if (m->even)
    return SDG_OK;
  const sdg_subcall_tensor_t weight = row_of(m, &table->weight, m->place);
  SDG_TRY(
      sdg_subcall_scale(m->plan, (double)(m->count - 1) / total, &variance));
  return sdg_subcall_set(m->plan, (double)m->count / total, &weight);
}

// Merges rows with equal counts: the vendor's training function finds the mean
// of the means and their spread.
static sdg_status_t even_add(sdg_norm_maker_t *m, const table_t *table,
                             const sdg_subcall_tensor_t *mean) {
  cudnnBatchNormMode_t mode = m->norm->mode == CUDNN_BATCHNORM_PER_ACTIVATION
                                  ? CUDNN_BATCHNORM_PER_ACTIVATION
                                  : CUDNN_BATCHNORM_SPATIAL;
  double ranks = m->ranks, count = (double)m->count;
  // The function reads the old numbers, though with a factor of 0.
  SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, mean->slab, &mean->box));
  SDG_TRY(found_add(m, mode, &table->mean, &table->work, mean, &table->merged));
  return sdg_subcall_reduce(m->plan, CUDNN_REDUCE_TENSOR_AVG,
                            (count - 1) / count, &table->variance,
                            (ranks - 1) / ranks, &table->merged);
}

// Merges rows by the weights. Rows of `variance` have theirs already.
static sdg_status_t uneven_add(sdg_norm_maker_t *m, const table_t *table,
                               const sdg_subcall_tensor_t *mean) {
  const sdg_subcall_tensor_t *rows = &table->mean, *work = &table->work;
  sdg_plan_t *plan = m->plan;
  SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, 1, rows, 1, &table->weight,
                         0, work));
  SDG_TRY(sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_ADD, 1, work, 0, mean));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, rows, -1, mean, 0, rows));
  SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, 1, rows, 1, &table->weight,
                         0, work));
  SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, 1, work, 1, rows, 1,
                         &table->variance));
  return sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_ADD, 1, &table->variance,
                            0, &table->merged);
}

sdg_status_t sdg_norm_statistics(sdg_norm_maker_t *m,
                                 const sdg_subcall_tensor_t *waste,
                                 const sdg_subcall_tensor_t *mean,
                                 sdg_subcall_tensor_t *out_variance) {
  table_t table;
  SDG_TRY(table_open(m, &table));
  *out_variance = table.merged;
  if (m->count > 0)
    SDG_TRY(own_add(m, waste, &table));
  m->plan->reduce_axes = m->axes;
  SDG_TRY(sdg_plan_reduce(m->plan, table.slab, m->type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  return m->even ? even_add(m, &table, mean) : uneven_add(m, &table, mean);
}

sdg_status_t sdg_norm_inverse(sdg_norm_maker_t *m,
                              const sdg_subcall_tensor_t *variance,
                              const sdg_subcall_tensor_t *inverse) {
  sdg_subcall_tensor_t one, zero;
  SDG_TRY(sdg_norm_constant(m, 1, &one));
  SDG_TRY(sdg_norm_constant(m, 0, &zero));
  const sdg_norm_params_t params = {one, zero, zero, *variance};
  return sdg_norm_subcall_inference(m, m->norm->mode, SDG_NORM_ONE, &one,
                                    &params, SDG_NORM_PROGRAM, SDG_NORM_ZERO,
                                    inverse);
}
