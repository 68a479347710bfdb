// SPDX-License-Identifier: Apache-2.0
// The limits of a Hopper GPU for everything but convolutions: a call within a
// limit succeeds, a call beyond it is refused with cuDNN's status.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/calls.h"
#include "tests/host/cudnn/model/call.h"
#include "tests/unit/harness.h"

#define YES CUDNN_STATUS_SUCCESS
#define NO  CUDNN_STATUS_NOT_SUPPORTED
#define BAD CUDNN_STATUS_BAD_PARAM

static void expect(const call_t *call, cudnnStatus_t status, const char *what,
                   int number) {
  cudnnStatus_t got = call_make(call);
  ck_assert_msg(got == status, "function %d, %s %d: %s, not %s",
                (int)call->function, what, number, cudnnGetErrorString(got),
                cudnnGetErrorString(status));
}

// A call of tensors that are all of one shape.
static call_t alike(function_t function, shape_t shape) {
  call_t call = {.function = function};
  for (int i = 0; i < CALL_TENSORS; i++)
    call.shape[i] = shape;
  return call;
}

// ---- ranks and types -------------------------------------------------------

// types: of float, double, half, bfloat16, int8, int32 in this order: Y
// computed, N not supported, B bad parameter, - the limits do not say.
typedef struct {
  function_t function;
  int low, high; // numbers of dimensions
  const char *types;
} row_t;

static const row_t rows[] = {
    {TRANSFORM, 2, 8, "YYYYYN"},    {ADD, 4, 5, "YYYYYN"},
    {OP, 4, 5, "YYYYNN"},           {SET, 4, 5, "YYYYYN"},
    {SCALE, 4, 5, "YYYYYN"},        {REDUCE, 3, 8, "YYYNNN"},
    {SOFTMAX, 3, 8, "YYYYNN"},      {SOFTMAX_BACKWARD, 3, 8, "YYYYNN"},
    {ACTIVATION, 3, 8, "YYYY--"},   {ACTIVATION_BACKWARD, 3, 8, "YYYY--"},
    {POOL, 4, 5, "YYYY--"},         {POOL_BACKWARD, 4, 5, "YYYY--"},
    {BN_INFERENCE, 4, 5, "YYYY--"}, {BN, 4, 5, "YYYY--"},
    {BN_BACKWARD, 4, 5, "YYYY--"},  {NORM_INFERENCE, 4, 5, "YYYY--"},
    {NORM, 4, 5, "YYYY--"},         {NORM_BACKWARD, 4, 5, "YYYY--"},
    {LRN, 4, 5, "YYYN--"},          {LRN_BACKWARD, 4, 5, "YYYN--"},
    {BIAS, 4, 6, "YYYNNN"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const cudnnDataType_t types[] = {F32, F64, F16, BF16, I8, I32};
enum { TYPES = sizeof types / sizeof *types };

START_TEST(tensors_have_the_ranks_that_the_function_takes) {
  for (int i = 0; i < ROWS; i++)
    for (int rank = 3; rank <= 8; rank++) {
      const row_t *row = &rows[i];
      call_t call = alike(row->function, (shape_t){F32, rank, 2, NCHW});
      expect(&call, rank < row->low || rank > row->high ? NO : YES, "rank",
             rank);
    }
  call_t pair = alike(TRANSFORM, (shape_t){F32, 2, 2, NCHW});
  expect(&pair, YES, "rank", 2);
}
END_TEST

START_TEST(tensors_have_the_types_that_the_function_takes) {
  for (int i = 0; i < ROWS; i++)
    for (int t = 0; t < TYPES; t++) {
      char letter = rows[i].types[t];
      if (letter == '-')
        continue;
      call_t call = alike(rows[i].function, (shape_t){types[t], 4, 2, NCHW});
      expect(&call, letter == 'Y' ? YES : letter == 'B' ? BAD : NO, "type", t);
    }
}
END_TEST

// A row for each type of x, a letter for each type of y.
static const char *const turned[TYPES] = {"YYYYYN", "YYYNYN", "YYYNYN",
                                          "YNNYNN", "YYYNYN", "NNNNNN"};

START_TEST(transforms_convert_some_pairs_of_types) {
  for (int x = 0; x < TYPES; x++)
    for (int y = 0; y < TYPES; y++) {
      const call_t call = {
          TRANSFORM,
          {{types[x], 4, 2, NCHW}, {types[y], 4, 2, NHWC_ROWS}},
          0,
          false};
      expect(&call, turned[x][y] == 'Y' ? YES : NO, "types", 10 * x + y);
    }
}
END_TEST

// A row for each type of A and B, a letter for each type of C.
static const char *const added[TYPES] = {"YNYYNN", "NYNNNN", "YNYNNN",
                                         "YNNYNN", "NNNNNN", "NNNNNN"};

START_TEST(op_tensor_takes_a_and_b_of_one_type_and_few_of_c) {
  for (int a = 0; a < TYPES; a++)
    for (int b = 0; b < TYPES; b++)
      for (int c = 0; c < TYPES; c++) {
        const call_t call = {OP,
                             {{types[a], 4, 2, NCHW},
                              {types[b], 4, 2, NHWC},
                              {types[c], 4, 2, NCHW}},
                             0,
                             false};
        expect(&call, a == b && added[a][c] == 'Y' ? YES : NO, "types",
               100 * a + 10 * b + c);
      }
}
END_TEST

// ---- conditions ------------------------------------------------------------

typedef struct {
  cudnnStatus_t status;
  call_t call;
} condition_t;

// clang-format off
static const condition_t conditions[] = {
    {BAD, {ADD, {{F16, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, 0, 0}},
    // The strides of both may differ.
    {YES, {ADD, {{F16, 5, 2, NCHW}, {F16, 5, 2, NHWC}}, 0, 0}},
    {YES, {SET, {{BF16, 4, 2, NHWC_COLUMNS}}, 0, 0}},
    {YES, {SCALE, {{F16, 5, 2, NCHW_ROWS}}, 0, 0}},
    {YES, {SOFTMAX, {{BF16, 3, 2, NCHW}, {BF16, 3, 2, NHWC}}, 0, 0}},
    {YES, {ACTIVATION, {{F32, 3, 2, NCHW}, {F32, 3, 2, NHWC}}, 0, 0}},
    {YES, {POOL, {{BF16, 5, 2, NCHW_ROWS}, {BF16, 5, 2, NHWC}}, 0, 0}},
    // OpTensor: which tensors may share memory.
    {YES, {OP_IN_A, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {OP_IN_A, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, 0, 0}},
    {NO, {OP_IN_A, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F16, 4, 2, NCHW}}, 0, 0}},
    {NO, {OP_IN_B, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, 0, 0}},
    {YES, {OP_A_IS_B, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}}, 0, 0}},
    // ReduceTensor: what it reduces to, and in which type it computes.
    {YES, {REDUCE, {{F16, 4, 2, NCHW}, {F32}}, 0, 0}},
    {BAD, {REDUCE_NOTHING, {{F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {REDUCE_IN_HALF, {{F16, 4, 2, NCHW}}, 0, 0}},
    // Equal strides, also of dimensions of extent 1.
    {YES, {SOFTMAX_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}}, 0, 0}},
    {NO, {SOFTMAX_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {SOFTMAX_BACKWARD, {{F32, 3, 1, NCHW}, {F32, 3, 1, NCHW_COLUMNS}, {F32, 3, 1, NCHW}}, 0, 0}},
    {YES, {ACTIVATION_IN_PLACE, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, 0, 0}},
    {BAD, {ACTIVATION_IN_PLACE, {{F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}}, 0, 0}},
    {YES, {ACTIVATION_BACKWARD, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, 0, 0}},
    {NO, {ACTIVATION_BACKWARD, {{F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {ACTIVATION_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {ACTIVATION_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {ACTIVATION_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}}, 0, 0}},
    {NO, {ACTIVATION_BACKWARD, {{F32, 4, 1, NCHW}, {F32, 4, 1, NCHW_ROWS}, {F32, 4, 1, NCHW}, {F32, 4, 1, NCHW}}, 0, 0}},
    {YES, {POOL_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, 0, 0}},
    {NO, {POOL_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {POOL_BACKWARD, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}, {F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {POOL_BACKWARD, {{F32, 4, 1, NCHW}, {F32, 4, 1, NCHW}, {F32, 4, 1, NCHW_SLICES}, {F32, 4, 1, NCHW}}, 0, 0}},
    // Batch normalisation: scales in float, and what can be fused.
    {YES, {BN_OWN_SCALES, {{F32, 4, 2, NCHW}, {F32, 4, 2, NCHW}}, 0, 0}},
    {NO, {BN_OWN_SCALES, {{BF16, 4, 2, NCHW}, {BF16, 4, 2, NCHW}}, 0, 0}},
    {YES, {BN, {{F32, 4, 2, NCHW_ROWS}, {F32, 4, 2, NHWC}}, 0, 0}},
    {YES, {BN_ACTIVATION, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION, {{F16, 4, 2, NCHW}, {F16, 4, 2, NCHW}}, 0, 0}},
    {NO, {BN_ACTIVATION, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION, {{BF16, 4, 2, NHWC}, {BF16, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION, {{F16, 4, 2, NHWC_ROWS}, {F16, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC_COLUMNS}}, 0, 0}},
    {NO, {BN_ACTIVATION, {{F16, 5, 2, NHWC}, {F16, 5, 2, NHWC}}, 0, 0}},
    {YES, {BN_ACTIVATION_BACKWARD, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION_BACKWARD, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC_ROWS}, {F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION_BACKWARD, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}, {F16, 4, 2, NHWC_ROWS}, {F16, 4, 2, NHWC}}, 0, 0}},
    {NO, {BN_ACTIVATION_BACKWARD, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}, {F16, 4, 2, NHWC_ROWS}}, 0, 0}},
    {YES, {NORM_ACTIVATION, {{F16, 4, 2, NHWC}, {F16, 4, 2, NHWC}}, 0, 0}},
    {NO, {NORM_ACTIVATION, {{F32, 4, 2, NHWC}, {F32, 4, 2, NHWC}}, 0, 0}},
    {NO, {NORM_ACTIVATION_BACKWARD, {{F16, 4, 2, NCHW}, {F16, 4, 2, NCHW}, {F16, 4, 2, NCHW}, {F16, 4, 2, NCHW}}, 0, 0}},
    // LRN: in 5 dimensions the spatial ones are packed.
    {YES, {LRN, {{F32, 4, 2, NHWC}, {F32, 4, 2, NCHW_COLUMNS}}, 0, 0}},
    {YES, {LRN, {{F32, 5, 2, NCHW_SLICES}, {F32, 5, 2, NCHW}}, 0, 0}},
    {NO, {LRN, {{F32, 5, 2, NCHW_COLUMNS}, {F32, 5, 2, NCHW}}, 0, 0}},
    {NO, {LRN, {{F32, 5, 2, NHWC}, {F32, 5, 2, NHWC}}, 0, 0}},
};
// clang-format on
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

START_TEST(strides_and_memory_are_as_the_function_takes_them) {
  for (int i = 0; i < CONDITIONS; i++)
    expect(&conditions[i].call, conditions[i].status, "condition", i);
}
END_TEST

// ---- messages --------------------------------------------------------------

// Makes two calls that one limit refuses; what they print is in `out`.
static void refusals_read(const call_t *call, char *out, size_t bytes) {
  FILE *file = tmpfile();
  int own = dup(STDERR_FILENO);
  ck_assert(file && own >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
  for (int i = 0; i < 2; i++)
    ck_assert_int_ne((int)call_make(call), (int)YES);
  ck_assert(dup2(own, STDERR_FILENO) >= 0);
  close(own);
  rewind(file);
  size_t length = fread(out, 1, bytes - 1, file);
  out[length] = 0;
  fclose(file);
}

START_TEST(each_limit_is_printed_once_with_call_row_and_remedy) {
  const call_t bf16 = alike(REDUCE, (shape_t){BF16, 4, 2, NCHW});
  const call_t fused = alike(BN_ACTIVATION, (shape_t){F32, 4, 2, NHWC});
  char text[1024];
  refusals_read(&bf16, text, sizeof text);
  ck_assert_str_eq(
      text, "sundog host device: cudnnReduceTensor is refused, as by cuDNN "
            "9.19 on a Hopper GPU, which takes 3 to 8 dimensions; types f32 "
            "f64 f16, not bf16; computed in f32 or f64. "
            "SUNDOG_HOST_MODEL=any computes it\n");
  refusals_read(&fused, text, sizeof text);
  ck_assert_ptr_nonnull(
      strstr(text, "cudnnBatchNormalizationForwardTrainingEx is refused"));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn limits");
  TCase *cases = tcase_create("limits");
  tcase_add_checked_fixture(cases, call_start, call_stop);
  tcase_add_test(cases, tensors_have_the_ranks_that_the_function_takes);
  tcase_add_test(cases, tensors_have_the_types_that_the_function_takes);
  tcase_add_test(cases, transforms_convert_some_pairs_of_types);
  tcase_add_test(cases, op_tensor_takes_a_and_b_of_one_type_and_few_of_c);
  tcase_add_test(cases, strides_and_memory_are_as_the_function_takes_them);
  tcase_add_test(cases, each_limit_is_printed_once_with_call_row_and_remedy);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
