// SPDX-License-Identifier: Apache-2.0
// The limits of a Hopper GPU for convolutions: which algorithms exist for which
// layouts and ranges, and the workspaces that they need.
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"
#include "tests/host/cudnn/model/call.h"
#include "tests/unit/harness.h"

#define YES CUDNN_STATUS_SUCCESS
#define NO  CUDNN_STATUS_NOT_SUPPORTED
#define BAD CUDNN_STATUS_BAD_PARAM

static void expect(const call_t *call, cudnnStatus_t status, int number) {
  cudnnStatus_t got = call_make(call);
  ck_assert_msg(got == status, "row %d, function %d, algorithm %d: %s, not %s",
                number, (int)call->function, call->algorithm,
                cudnnGetErrorString(got), cudnnGetErrorString(status));
}

// ---- algorithms ------------------------------------------------------------

// exist: the numbers of the algorithms.
typedef struct {
  function_t function;
  layout_t layout;
  int rank, count;
  const char *exist;
} list_t;

static const list_t lists[] = {
    {FORWARD, NCHW, 4, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "012"},
    {FORWARD_BIAS, NCHW, 4, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "012"},
    {FORWARD, NHWC, 4, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "01"},
    {FORWARD_BIAS, NHWC, 4, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "01"},
    {FORWARD, NCHW, 5, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "01"},
    {FORWARD, NHWC, 5, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "1"},
    {DATA, NCHW, 4, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, "01"},
    {DATA, NHWC, 4, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, "01"},
    {DATA, NCHW, 5, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, "01"},
    {DATA, NHWC, 5, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, "1"},
    {FILTER, NCHW, 4, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, "013"},
    {FILTER, NHWC, 4, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, "01"},
    {FILTER, NCHW, 5, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, "013"},
    {FILTER, NHWC, 5, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, "1"},
};
enum { LISTS = sizeof lists / sizeof *lists };

static bool exists(const list_t *list, int algorithm) {
  for (const char *at = list->exist; *at; at++)
    if (*at - '0' == algorithm)
      return true;
  return false;
}

START_TEST(algorithms_exist_by_layout_and_dimensions) {
  const cudnnDataType_t types[] = {F32, F64, F16, BF16};
  for (int i = 0; i < LISTS; i++)
    for (int t = 0; t < 4; t++)
      for (int a = 0; a < lists[i].count; a++) {
        shape_t shape = {types[t], lists[i].rank, 2, lists[i].layout};
        const call_t call = {lists[i].function, {shape, shape}, a, false};
        expect(&call, exists(&lists[i], a) ? YES : NO, i);
      }
}
END_TEST

// ---- layouts and ranges ----------------------------------------------------

// x and y, or their gradients. forward, data, filter: Y there is an algorithm,
// N there is none.
typedef struct {
  cudnnDataType_t type;
  int rank, images;
  layout_t x, y;
  char forward, data, filter;
} range_t;

static const range_t ranges[] = {
    // Ranges of rows.
    {F32, 4, 2, NCHW_ROWS, NCHW, 'Y', 'Y', 'N'},
    {F32, 4, 2, NCHW, NCHW_ROWS, 'Y', 'N', 'Y'},
    {F16, 4, 2, NCHW_ROWS, NCHW_ROWS, 'Y', 'N', 'N'},
    {F16, 4, 1, NCHW_ROWS, NCHW, 'Y', 'Y', 'N'},
    {F16, 4, 1, NHWC_ROWS, NHWC_ROWS, 'Y', 'Y', 'Y'},
    {F32, 4, 2, NHWC_ROWS, NHWC_ROWS, 'Y', 'Y', 'Y'},
    {F32, 4, 2, NHWC, NHWC_ROWS, 'Y', 'Y', 'Y'},
    {F32, 5, 2, NCHW_ROWS, NCHW, 'Y', 'Y', 'N'},
    {F32, 5, 2, NCHW_SLICES, NCHW, 'Y', 'Y', 'N'},
    {F32, 5, 2, NCHW, NCHW_SLICES, 'Y', 'N', 'Y'},
    {F32, 5, 1, NHWC_SLICES, NHWC_SLICES, 'Y', 'Y', 'Y'},
    {F32, 5, 2, NHWC_ROWS, NHWC_SLICES, 'Y', 'Y', 'Y'},
    // Ranges of columns.
    {F32, 4, 2, NCHW_COLUMNS, NCHW, 'Y', 'N', 'N'},
    {F32, 4, 2, NCHW, NCHW_COLUMNS, 'Y', 'N', 'N'},
    {F16, 4, 1, NHWC_COLUMNS, NHWC, 'N', 'N', 'N'},
    {F16, 4, 2, NHWC, NHWC_COLUMNS, 'N', 'N', 'N'},
    {F32, 5, 1, NHWC_COLUMNS, NHWC, 'N', 'N', 'N'},
    // Orders.
    {F32, 4, 2, NCHW, NHWC, 'N', 'N', 'N'},
    {F16, 4, 2, NHWC, NCHW, 'N', 'N', 'N'},
    {F32, 4, 2, CNHW, CNHW, 'N', 'N', 'N'},
    // Integers have no gradients.
    {I8, 4, 1, NHWC_ROWS, NHWC_ROWS, 'Y', 'N', 'N'},
    {I8, 4, 2, NHWC, NHWC, 'Y', 'N', 'N'},
    {I8, 4, 2, NHWC_ROWS, NHWC_ROWS, 'N', 'N', 'N'},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

START_TEST(ranges_and_orders_of_x_and_y_are_those_that_engines_take) {
  for (int i = 0; i < RANGES; i++) {
    const range_t *r = &ranges[i];
    const struct {
      function_t function;
      char letter;
    } of[] = {{FORWARD, r->forward},
              {FORWARD_BIAS, r->forward},
              {DATA, r->data},
              {FILTER, r->filter}};
    for (int k = 0; k < 4; k++) {
      const call_t call = {of[k].function,
                           {{r->type, r->rank, r->images, r->x},
                            {r->type, r->rank, r->images, r->y}},
                           1,
                           false};
      if (r->type != I8 || of[k].function != FORWARD_BIAS)
        expect(&call, of[k].letter == 'Y' ? YES : NO, i);
    }
  }
}
END_TEST

// ---- workspaces ------------------------------------------------------------

typedef struct {
  cudnnDataType_t type;
  int rank, images;
  layout_t x, y;
  bool needed; // as many bytes as x and y have
} room_t;

static const room_t rooms[] = {
    {F32, 4, 2, NCHW, NCHW, true},        {F16, 4, 1, NCHW, NCHW, true},
    {F32, 5, 2, NCHW, NCHW, true},        {F64, 4, 2, NCHW, NCHW, false},
    {F16, 4, 2, NHWC, NHWC, false},       {F32, 5, 2, NHWC, NHWC, false},
    {F16, 4, 1, NHWC_ROWS, NHWC, false},  {F16, 4, 2, NHWC_ROWS, NHWC, true},
    {F64, 4, 2, NHWC, NHWC_ROWS, true},   {F32, 5, 1, NHWC_ROWS, NHWC, false},
    {F32, 5, 2, NHWC_SLICES, NHWC, true},
};
enum { ROOMS = sizeof rooms / sizeof *rooms };

static size_t packed_bytes(const room_t *room) {
  size_t bytes = room->type == F64 ? 8 : room->type == F32 ? 4 : 2;
  bytes *= (size_t)room->images * 2;
  for (int d = 2; d < room->rank; d++)
    bytes *= 4;
  return bytes;
}

// The bytes of each algorithm that exists: by the query, and in the list of
// algorithms.
static size_t asked_bytes(const room_t *room) {
  const int pad[3] = {0}, step[3] = {1, 1, 1}, window[5] = {2, 2, 1, 1, 1};
  const shape_t x = {room->type, room->rank, room->images, room->x};
  const shape_t y = {room->type, room->rank, room->images, room->y};
  cudnnTensorDescriptor_t dx = call_tensor(&x), dy = call_tensor(&y);
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnConvolutionFwdAlgoPerf_t perf;
  size_t bytes;
  int count;
  OK(cudnnCreateFilterDescriptor(&w));
  OK(cudnnSetFilterNdDescriptor(w, room->type, CUDNN_TENSOR_NCHW, room->rank,
                                window));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  OK(cudnnSetConvolutionNdDescriptor(conv, room->rank - 2, pad, step, step,
                                     CUDNN_CROSS_CORRELATION,
                                     room->type == F64 ? F64 : F32));
  OK(cudnnGetConvolutionForwardAlgorithm_v7(call_handle(), dx, w, conv, dy, 1,
                                            &count, &perf));
  ck_assert_int_eq((int)perf.algo, 1);
  OK(cudnnGetConvolutionForwardWorkspaceSize(call_handle(), dx, w, conv, dy,
                                             perf.algo, &bytes));
  ck_assert_uint_eq(perf.memory, bytes);
  if (room->rank == 4) {
    OK(cudnnGetConvolutionForwardWorkspaceSize(
        call_handle(), dx, w, conv, dy,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
    ck_assert_uint_eq(perf.memory, bytes);
  }
  OK(cudnnDestroyConvolutionDescriptor(conv));
  OK(cudnnDestroyFilterDescriptor(w));
  OK(cudnnDestroyTensorDescriptor(dx));
  OK(cudnnDestroyTensorDescriptor(dy));
  return bytes;
}

START_TEST(workspaces_hold_copies_of_x_and_y) {
  for (int i = 0; i < ROOMS; i++) {
    const room_t *r = &rooms[i];
    ck_assert_uint_eq(asked_bytes(r), r->needed ? 2 * packed_bytes(r) : 0);
    const shape_t x = {r->type, r->rank, r->images, r->x};
    const shape_t y = {r->type, r->rank, r->images, r->y};
    const function_t functions[] = {FORWARD, FORWARD_BIAS};
    for (int k = 0; k < 2 && r->needed; k++) {
      call_t call = {functions[k], {x, y}, 1, true};
      expect(&call, BAD, i);
      call.short_of = false;
      expect(&call, YES, i);
    }
  }
  for (int algorithm = 0; algorithm < 2; algorithm++) {
    const shape_t nchw = {F16, 4, 2, NCHW}, rows = {F16, 4, 2, NHWC_ROWS};
    const call_t calls[] = {{DATA, {nchw, nchw}, algorithm, true},
                            {FILTER, {nchw, nchw}, algorithm, true},
                            {DATA, {rows, rows}, algorithm, true},
                            {FILTER, {rows, rows}, algorithm, true}};
    for (int i = 0; i < 4; i++)
      expect(&calls[i], BAD, 100 + i);
  }
}
END_TEST

// ---- the library's choice --------------------------------------------------

static cudnnDeterminism_t expected(const list_t *list, int algorithm) {
  bool varies =
      (list->function == DATA && algorithm == 0) ||
      (list->function == FILTER && (algorithm == 0 || algorithm == 3));
  return varies ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
}

static void choice_check(const list_t *list, int returned, const int algo[],
                         const cudnnStatus_t status[],
                         const cudnnDeterminism_t determinism[]) {
  ck_assert_int_eq(returned, list->count);
  ck_assert_int_eq(algo[0], 1);
  for (int i = 0; i < returned; i++) {
    bool there = exists(list, algo[i]);
    ck_assert_int_eq((int)status[i], (int)(there ? YES : NO));
    if (there)
      ck_assert_int_eq((int)determinism[i], (int)expected(list, algo[i]));
  }
}

START_TEST(the_library_chooses_algorithm_1_which_computes_the_same_bits_again) {
  const int pad[2] = {0}, step[2] = {1, 1}, window[4] = {2, 2, 1, 1};
  enum { MANY = 16 };
  int algo[MANY], count;
  cudnnStatus_t status[MANY];
  cudnnDeterminism_t same[MANY];
  cudnnConvolutionFwdAlgoPerf_t forward[MANY];
  cudnnConvolutionBwdDataAlgoPerf_t data[MANY];
  cudnnConvolutionBwdFilterAlgoPerf_t filter[MANY];
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  OK(cudnnCreateFilterDescriptor(&w));
  OK(cudnnSetFilterNdDescriptor(w, F32, CUDNN_TENSOR_NCHW, 4, window));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  OK(cudnnSetConvolutionNdDescriptor(conv, 2, pad, step, step,
                                     CUDNN_CROSS_CORRELATION, F32));
  for (int i = 0; i < LISTS; i++) {
    const list_t *list = &lists[i];
    if (list->rank != 4 || list->function == FORWARD_BIAS)
      continue;
    const shape_t shape = {F32, 4, 2, list->layout};
    cudnnTensorDescriptor_t x = call_tensor(&shape), y = call_tensor(&shape);
    if (list->function == FORWARD)
      OK(cudnnGetConvolutionForwardAlgorithm_v7(call_handle(), x, w, conv, y,
                                                MANY, &count, forward));
    else if (list->function == DATA)
      OK(cudnnGetConvolutionBackwardDataAlgorithm_v7(call_handle(), w, y, conv,
                                                     x, MANY, &count, data));
    else
      OK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
          call_handle(), x, y, conv, w, MANY, &count, filter));
    for (int k = 0; k < count; k++) {
      algo[k] = list->function == FORWARD ? (int)forward[k].algo
                : list->function == DATA  ? (int)data[k].algo
                                          : (int)filter[k].algo;
      status[k] = list->function == FORWARD ? forward[k].status
                  : list->function == DATA  ? data[k].status
                                            : filter[k].status;
      same[k] = list->function == FORWARD ? forward[k].determinism
                : list->function == DATA  ? data[k].determinism
                                          : filter[k].determinism;
    }
    choice_check(list, count, algo, status, same);
    OK(cudnnDestroyTensorDescriptor(x));
    OK(cudnnDestroyTensorDescriptor(y));
  }
  OK(cudnnDestroyConvolutionDescriptor(conv));
  OK(cudnnDestroyFilterDescriptor(w));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn algorithms");
  TCase *cases = tcase_create("algorithms");
  tcase_add_checked_fixture(cases, call_start, call_stop);
  tcase_add_test(cases, algorithms_exist_by_layout_and_dimensions);
  tcase_add_test(cases,
                 ranges_and_orders_of_x_and_y_are_those_that_engines_take);
  tcase_add_test(cases, workspaces_hold_copies_of_x_and_y);
  tcase_add_test(
      cases,
      the_library_chooses_algorithm_1_which_computes_the_same_bits_again);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
