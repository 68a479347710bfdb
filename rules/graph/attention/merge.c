// SPDX-License-Identifier: Apache-2.0
// Merges results of attention: one graph for the statistics and weights, one
// for the vectors.
#include "rules/graph/attention/merge.h"

#include "rules/graph/attention/attention.h"

// Statistics of queries that have seen nothing yet: below all others, and
// without a NaN in differences.
#define NOT_SEEN (-1e30)

static const int64_t by_sequence[SDG_DIMS_MAX] = {[SDG_HEADED_BATCH] = 3,
                                                  [SDG_HEADED_HEADS] = 2,
                                                  [SDG_HEADED_SEQ] = 4,
                                                  [SDG_HEADED_VECTOR] = 1};

// One number for each query.
static sdg_box_t numbers_of(const sdg_box_t *box) {
  sdg_box_t numbers = *box;
  numbers.dim[SDG_HEADED_VECTOR] = (sdg_range_t){0, 1};
  return numbers;
}

sdg_status_t sdg_graph_merge_open(sdg_plan_t *plan, const sdg_call_t *call,
                                  const sdg_box_t *box, sdg_type_t type,
                                  sdg_graph_merge_t *out) {
  sdg_box_t numbers = numbers_of(box);
  int *columns[] = {&out->total, &out->step, &out->kept, &out->added};
  *out = (sdg_graph_merge_t){.call = call, .type = type};
  SDG_TRY(sdg_plan_packed(plan, box, by_sequence,
                          (int)sdg_graph_type_bytes((cudnnDataType_t)type),
                          &out->part));
  SDG_TRY(sdg_plan_packed(plan, box, by_sequence, sizeof(float), &out->sum));
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    SDG_TRY(sdg_plan_packed(plan, &numbers, by_sequence, sizeof(float),
                            columns[i]));
  if (sdg_box_empty(box))
    return SDG_OK;
  sdg_subcall_tensor_t total =
      sdg_subcall_slab(plan, out->total, CUDNN_DATA_FLOAT);
  SDG_TRY(sdg_subcall_set(plan, NOT_SEEN, &total));
  return sdg_plan_zero(plan, SDG_LANE_MAIN, out->sum, box);
}

static sdg_rows_tensor_t number(int slab, const sdg_box_t *box) {
  return (sdg_rows_tensor_t){
      .type = CUDNN_DATA_FLOAT, .column = true, .slab = slab, .box = *box};
}

static sdg_rows_tensor_t vectors(sdg_type_t type, int slab,
                                 const sdg_box_t *box) {
  return (sdg_rows_tensor_t){.type = type, .slab = slab, .box = *box};
}

static sdg_rows_tensor_t between(bool column) {
  return (sdg_rows_tensor_t){
      .type = CUDNN_DATA_FLOAT, .column = column, .slab = -1};
}

static sdg_status_t weights_make(sdg_plan_t *plan,
                                 const sdg_graph_merge_t *merge,
                                 const sdg_box_t *numbers, int *io_refusal) {
  enum { OLD, NEW, MAX, D, E, D_T, E_T, SUM, LOG, KEPT, ADDED, ALL, COUNT };
  sdg_rows_t rows = {
      .rows = sdg_box_count(numbers),
      .columns = 1,
      .tensors = COUNT,
      .ops = 10,
      .op = {{CUDNN_POINTWISE_MAX, OLD, NEW, MAX},
             {CUDNN_POINTWISE_SUB, OLD, MAX, D},
             {CUDNN_POINTWISE_EXP, D, -1, E},
             {CUDNN_POINTWISE_SUB, NEW, MAX, D_T},
             {CUDNN_POINTWISE_EXP, D_T, -1, E_T},
             {CUDNN_POINTWISE_ADD, E, E_T, SUM},
             {CUDNN_POINTWISE_DIV, E, SUM, KEPT},
             {CUDNN_POINTWISE_DIV, E_T, SUM, ADDED},
             {CUDNN_POINTWISE_LOG, SUM, -1, LOG},
             {CUDNN_POINTWISE_ADD, MAX, LOG, ALL}},
  };
  for (int t = 0; t < COUNT; t++)
    rows.tensor[t] = between(true);
  rows.tensor[OLD] = rows.tensor[ALL] = number(merge->total, numbers);
  rows.tensor[NEW] = number(merge->step, numbers);
  rows.tensor[KEPT] = number(merge->kept, numbers);
  rows.tensor[ADDED] = number(merge->added, numbers);
  return sdg_rows_add(plan, merge->call, &rows, io_refusal);
}

static sdg_status_t vectors_merge(sdg_plan_t *plan,
                                  const sdg_graph_merge_t *merge,
                                  const sdg_box_t *box,
                                  const sdg_box_t *numbers, int *io_refusal) {
  enum { OLD, NEW, KEPT, ADDED, MINE, THEIRS, ALL, COUNT };
  int64_t columns = sdg_box_length(box, SDG_HEADED_VECTOR);
  sdg_rows_t rows = {
      .rows = sdg_box_count(box) / columns,
      .columns = columns,
      .tensors = COUNT,
      .ops = 3,
      .tensor = {[OLD] = vectors(CUDNN_DATA_FLOAT, merge->sum, box),
                 [NEW] = vectors(merge->type, merge->part, box),
                 [KEPT] = number(merge->kept, numbers),
                 [ADDED] = number(merge->added, numbers),
                 [MINE] = between(false),
                 [THEIRS] = between(false),
                 [ALL] = vectors(CUDNN_DATA_FLOAT, merge->sum, box)},
      .op = {{CUDNN_POINTWISE_MUL, OLD, KEPT, MINE},
             {CUDNN_POINTWISE_MUL, NEW, ADDED, THEIRS},
             {CUDNN_POINTWISE_ADD, MINE, THEIRS, ALL}},
  };
  return sdg_rows_add(plan, merge->call, &rows, io_refusal);
}

sdg_status_t sdg_graph_merge_add(sdg_plan_t *plan,
                                 const sdg_graph_merge_t *merge,
                                 const sdg_box_t *box, int statistics,
                                 int *io_refusal) {
  sdg_box_t numbers = numbers_of(box);
  SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, statistics, merge->step, NULL,
                        &numbers, SDG_COPY_STRIP));
  SDG_TRY(weights_make(plan, merge, &numbers, io_refusal));
  return vectors_merge(plan, merge, box, &numbers, io_refusal);
}

// ---- results of several ranks ----------------------------------------------

// kept = exp(total - step), where step has the largest of all ranks' statistics
static sdg_status_t shares_make(sdg_plan_t *plan,
                                const sdg_graph_merge_t *merge,
                                const sdg_box_t *numbers, int *io_refusal) {
  enum { TOTAL, MOST, LESS, KEPT, COUNT };
  sdg_rows_t rows = {
      .rows = sdg_box_count(numbers),
      .columns = 1,
      .tensors = COUNT,
      .ops = 2,
      .tensor = {[TOTAL] = number(merge->total, numbers),
                 [MOST] = number(merge->step, numbers),
                 [LESS] = between(true),
                 [KEPT] = number(merge->kept, numbers)},
      .op = {{CUDNN_POINTWISE_SUB, TOTAL, MOST, LESS},
             {CUDNN_POINTWISE_EXP, LESS, -1, KEPT}},
  };
  return sdg_rows_add(plan, merge->call, &rows, io_refusal);
}

// sum = sum mode kept
static sdg_status_t sums_weigh(sdg_plan_t *plan, const sdg_graph_merge_t *merge,
                               const sdg_box_t *box, cudnnPointwiseMode_t mode,
                               int *io_refusal) {
  enum { SUM, KEPT, RESULT, COUNT };
  int64_t columns = sdg_box_length(box, SDG_HEADED_VECTOR);
  sdg_box_t numbers = numbers_of(box);
  sdg_rows_t rows = {
      .rows = sdg_box_count(box) / columns,
      .columns = columns,
      .tensors = COUNT,
      .ops = 1,
      .tensor = {[SUM] = vectors(CUDNN_DATA_FLOAT, merge->sum, box),
                 [KEPT] = number(merge->kept, &numbers),
                 [RESULT] = vectors(CUDNN_DATA_FLOAT, merge->sum, box)},
      .op = {{mode, SUM, KEPT, RESULT}},
  };
  return sdg_rows_add(plan, merge->call, &rows, io_refusal);
}

// total = step + log(kept)
static sdg_status_t total_make(sdg_plan_t *plan, const sdg_graph_merge_t *merge,
                               const sdg_box_t *numbers, int *io_refusal) {
  enum { MOST, KEPT, LOG, TOTAL, COUNT };
  sdg_rows_t rows = {
      .rows = sdg_box_count(numbers),
      .columns = 1,
      .tensors = COUNT,
      .ops = 2,
      .tensor = {[MOST] = number(merge->step, numbers),
                 [KEPT] = number(merge->kept, numbers),
                 [LOG] = between(true),
                 [TOTAL] = number(merge->total, numbers)},
      .op = {{CUDNN_POINTWISE_LOG, KEPT, -1, LOG},
             {CUDNN_POINTWISE_ADD, MOST, LOG, TOTAL}},
  };
  return sdg_rows_add(plan, merge->call, &rows, io_refusal);
}

sdg_status_t sdg_graph_merge_ranks(sdg_plan_t *plan,
                                   const sdg_graph_merge_t *merge,
                                   const sdg_box_t *box, int *io_refusal) {
  sdg_box_t numbers = numbers_of(box);
  SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, merge->total, merge->step, NULL,
                        &numbers, SDG_COPY_STRIP));
  SDG_TRY(
      sdg_plan_reduce(plan, merge->step, CUDNN_DATA_FLOAT, SDG_COMBINE_MAX));
  SDG_TRY(shares_make(plan, merge, &numbers, io_refusal));
  SDG_TRY(sums_weigh(plan, merge, box, CUDNN_POINTWISE_MUL, io_refusal));
  SDG_TRY(sdg_plan_reduce(plan, merge->sum, CUDNN_DATA_FLOAT, SDG_COMBINE_SUM));
  SDG_TRY(
      sdg_plan_reduce(plan, merge->kept, CUDNN_DATA_FLOAT, SDG_COMBINE_SUM));
  SDG_TRY(sums_weigh(plan, merge, box, CUDNN_POINTWISE_DIV, io_refusal));
  return total_make(plan, merge, &numbers, io_refusal);
}
