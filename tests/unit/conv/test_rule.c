// SPDX-License-Identifier: Apache-2.0
// Plans and queries of convolutions, on a cuDNN of host functions that refuses
// the calls that a test names.
#include "rules/conv/rule.h"

#include <string.h>

#include "rules/vendor/args.h"
#include "src/exchange/exec.h"
#include "tests/unit/random.h"
#include "tests/unit/fake_conv.h"

enum { RANKS = 3, ROWS = 30, COLUMNS = 8 };

// ---- an engine that refuses some calls ------------------------------------

// Algorithm 1 refuses an x with fewer rows than this. With padding_only, 0 and
// 1 refuse an x without padding; others refuse padding, and an x with no more
// rows than a rank has (an assembled x has more, and no padding).
static int rows_least;
static bool padding_only;

// An assembled x needs a larger workspace than the program's own rows.
static size_t workspace_of(const fake_tensor_t *x, int algo) {
  return (size_t)(algo + 1) * 100 * (size_t)x->extent[2];
}

static bool takes(const fake_tensor_t *x, const fake_conv_t *conv, int algo) {
  if (x->extent[2] < rows_least && algo == 1)
    return false;
  if (!padding_only)
    return true;
  return conv->pad[0] > 0 ? algo < 2 && algo >= 0
                          : algo >= 2 && x->extent[2] > ROWS / RANKS;
}

static cudnnStatus_t get_workspace(cudnnHandle_t handle,
                                   const cudnnTensorDescriptor_t x,
                                   const cudnnFilterDescriptor_t w,
                                   const cudnnConvolutionDescriptor_t conv,
                                   const cudnnTensorDescriptor_t y,
                                   cudnnConvolutionFwdAlgo_t algo,
                                   size_t *out) {
  (void)handle, (void)w, (void)y;
  if (!takes((const fake_tensor_t *)x, (const fake_conv_t *)conv, (int)algo))
    return CUDNN_STATUS_NOT_SUPPORTED;
  *out = workspace_of((const fake_tensor_t *)x, (int)algo);
  return CUDNN_STATUS_SUCCESS;
}

static bool chooses = true; // the engine suggests an algorithm for every call

static cudnnStatus_t get_algorithm(cudnnHandle_t handle,
                                   const cudnnTensorDescriptor_t x,
                                   const cudnnFilterDescriptor_t w,
                                   const cudnnConvolutionDescriptor_t conv,
                                   const cudnnTensorDescriptor_t y, int room,
                                   int *out_count,
                                   cudnnConvolutionFwdAlgoPerf_t *out) {
  (void)handle, (void)w, (void)y, (void)room;
  *out_count = 0;
  for (int algo = 0; algo < 4 && chooses && *out_count == 0; algo++)
    if (takes((const fake_tensor_t *)x, (const fake_conv_t *)conv, algo)) {
      out->algo = (cudnnConvolutionFwdAlgo_t)algo;
      out->status = CUDNN_STATUS_SUCCESS;
      out->memory = workspace_of((const fake_tensor_t *)x, algo);
      *out_count = 1;
    }
  return CUDNN_STATUS_SUCCESS;
}

static const void *given_z, *given_z_desc;

static cudnnStatus_t bias_forward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t bytes, const void *alpha2,
    const cudnnTensorDescriptor_t z, const void *z_data,
    const cudnnTensorDescriptor_t bias, const void *bias_data,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y, void *y_data) {
  (void)handle, (void)alpha1, (void)x, (void)x_data, (void)w, (void)w_data;
  (void)conv, (void)algo, (void)workspace, (void)bytes, (void)alpha2;
  (void)bias, (void)bias_data, (void)activation, (void)y, (void)y_data;
  given_z = z_data;
  given_z_desc = z;
  return z ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

static const job_fake_t engine[] = {
    JOB_FAKE(cudnnGetConvolutionForwardWorkspaceSize, get_workspace),
    JOB_FAKE(cudnnGetConvolutionForwardAlgorithm_v7, get_algorithm),
    JOB_FAKE(cudnnConvolutionBiasActivationForward, bias_forward),
};

// ---- a 3x3 convolution on a middle rank -----------------------------------

static fake_conv_t conv_3x3 = {2, {1, 1}, {1, 1}, {1, 1}};
static fake_tensor_t x_10 = {4, {1, 2, 10, COLUMNS}, {160, 80, COLUMNS, 1}};
static sdg_mesh_t mesh;
static sdg_section_t section;
static sdg_tagging_t tagging;

static sdg_operand_t operand(sdg_role_t role, int64_t rows, int64_t stride_n) {
  sdg_operand_t o = {.role = role,
                     .elem_bytes = 4,
                     .dims = 4,
                     .extent = {1, 2, rows, COLUMNS}};
  int64_t strides[] = {stride_n, rows * COLUMNS, COLUMNS, 1};
  memcpy(o.stride, strides, sizeof strides);
  return o;
}

static sdg_call_t call_of(int entry, const void *args) {
  sdg_call_t call = {.entry = entry,
                     .entry_name = "cudnnTest",
                     .family = SDG_FAMILY_CONV,
                     .args = args,
                     .op_descriptor = &conv_3x3,
                     .operands = 3};
  call.operand[0] = operand(SDG_ROLE_X, 10, 160);
  call.operand[1] = operand(SDG_ROLE_W, 3, 0);
  call.operand[1].extent[0] = 2;
  call.operand[1].extent[3] = 3;
  call.operand[2] = operand(SDG_ROLE_Y, 10, 160);
  return call;
}

static void setup(void) {
  fake_conv_install(engine, sizeof engine / sizeof engine[0]);
  REQUIRE(!sdg_mesh_parse("y=3", RANKS, &mesh));
  section = (sdg_section_t){.strategy = SDG_STRATEGY_AUTO};
  tagging = (sdg_tagging_t){.section = &section,
                            .mesh = &mesh,
                            .rank = 1,
                            .axes = 1,
                            .ranks = RANKS,
                            .me = 1,
                            .rank_list = {0, 1, 2}};
  const int64_t extent[] = {1, 2, ROWS, COLUMNS};
  const sdg_split_t split = {.axes = 1};
  sdg_part_t part;
  REQUIRE(!sdg_part_parse("even", ROWS, RANKS, &part));
  static const int activations[] = {0, 2, 3};
  for (int i = 0; i < 3; i++) {
    sdg_placement_t *placement = &tagging.placement[activations[i]];
    REQUIRE(!sdg_placement_init(4, extent, placement));
    REQUIRE(!sdg_placement_split(placement, &mesh, 2, &split, &part));
  }
  sdg_part_fini(&part);
}

static size_t workspace_ask(int algo, int *out_vendor) {
  size_t bytes = 12345;
  struct sdg_args_cudnnGetConvolutionForwardWorkspaceSize args = {
      .algo = (cudnnConvolutionFwdAlgo_t)algo, .sizeInBytes = &bytes};
  sdg_call_t call =
      call_of(SDG_ENTRY_cudnnGetConvolutionForwardWorkspaceSize, &args);
  *out_vendor = 0;
  REQUIRE(!sdg_conv_answer(&call, &tagging, out_vendor));
  return bytes;
}

static sdg_status_t plan_ask(int algo, size_t bytes, sdg_plan_t **out_plan) {
  static const float zero;
  static struct sdg_args_cudnnConvolutionForward args;
  args = (struct sdg_args_cudnnConvolutionForward){
      .algo = (cudnnConvolutionFwdAlgo_t)algo,
      .xDesc = (cudnnTensorDescriptor_t)&x_10,
      .convDesc = (cudnnConvolutionDescriptor_t)&conv_3x3,
      .workSpaceSizeInBytes = bytes,
      .beta = &zero};
  sdg_call_t call = call_of(SDG_ENTRY_cudnnConvolutionForward, &args);
  return sdg_conv_plan(&call, &tagging, out_plan);
}

static void strategy_expect(int algo, const char *strategy) {
  int vendor;
  size_t bytes = workspace_ask(algo, &vendor);
  ck_assert_int_eq(vendor, 0);
  ck_assert_uint_eq(workspace_ask(algo, &vendor), bytes);
  sdg_plan_t *enough, *short_of_one;
  ck_assert_int_eq((int)plan_ask(algo, bytes, &enough), 0);
  ck_assert_str_eq(enough->strategy, strategy);
  ck_assert_int_eq((int)plan_ask(algo, bytes - 1, &short_of_one), 0);
  // With a byte less the plan allocates its own.
  ck_assert_uint_gt(short_of_one->scratch_bytes, enough->scratch_bytes);
  ck_assert_str_eq(sdg_last_error(), "");
  sdg_plan_destroy(enough);
  sdg_plan_destroy(short_of_one);
  ck_assert_int_eq(fake_conv_living(), 0);
}

START_TEST(the_workspace_that_a_query_names_is_enough_and_no_more) {
  strategy_expect(0, "repair");
  strategy_expect(1, "repair");
  section.strategy = SDG_STRATEGY_EXTEND;
  strategy_expect(0, "extend");
}
END_TEST

START_TEST(strips_may_use_another_algorithm_than_the_call) {
  rows_least = 8; // strips have three rows
  strategy_expect(1, "repair");
}
END_TEST

// Without a message, because nothing is wrong.
START_TEST(calls_that_repair_cannot_do_use_extend) {
  padding_only = true; // algorithms from 2 up accept an assembled x
  chooses = false;
  strategy_expect(2, "extend");
}
END_TEST

START_TEST(an_algorithm_that_the_engine_refuses_returns_its_status) {
  rows_least = 1000;
  int vendor;
  ck_assert_uint_eq(workspace_ask(1, &vendor), 12345);
  ck_assert_int_eq(vendor, CUDNN_STATUS_NOT_SUPPORTED);
  // Even if it would choose another for the pieces.
  sdg_plan_t *plan;
  ck_assert_int_eq((int)plan_ask(1, 0, &plan), 0);
  ck_assert_int_eq(plan->refusal, CUDNN_STATUS_NOT_SUPPORTED);
  ck_assert_int_eq(plan->steps, 0);
  sdg_plan_destroy(plan);
  ck_assert_int_eq(fake_conv_living(), 0);
}
END_TEST

START_TEST(a_call_without_z_reaches_the_real_function) {
  static const float one = 1;
  struct sdg_args_cudnnConvolutionBiasActivationForward args = {
      .xDesc = (cudnnTensorDescriptor_t)&x_10,
      .convDesc = (cudnnConvolutionDescriptor_t)&conv_3x3,
      .alpha2 = &one};
  sdg_call_t call =
      call_of(SDG_ENTRY_cudnnConvolutionBiasActivationForward, &args);
  sdg_plan_t *plan;
  ck_assert_int_eq((int)sdg_conv_plan(&call, &tagging, &plan), 0);
  sdg_exec_t exec = {.plan = plan, .call = &call};
  ck_assert_int_eq(plan->run(plan->state, 0, &call, &exec),
                   CUDNN_STATUS_BAD_PARAM);
  ck_assert_ptr_null(given_z);
  sdg_plan_destroy(plan);
}
END_TEST

START_TEST(z_keeps_its_own_strides) {
  static const float one = 1;
  struct sdg_args_cudnnConvolutionBiasActivationForward args = {
      .xDesc = (cudnnTensorDescriptor_t)&x_10,
      .convDesc = (cudnnConvolutionDescriptor_t)&conv_3x3,
      .alpha2 = &one};
  sdg_call_t call =
      call_of(SDG_ENTRY_cudnnConvolutionBiasActivationForward, &args);
  section.strategy = SDG_STRATEGY_EXTEND; // in the program's own y and z
  call.operands = 4;
  call.operand[3] = operand(SDG_ROLE_Z, 10, 999);
  call.operand[3].data = &call;
  sdg_plan_t *plan;
  ck_assert_int_eq((int)sdg_conv_plan(&call, &tagging, &plan), 0);
  sdg_exec_t exec = {.plan = plan, .call = &call};
  ck_assert_int_eq(plan->run(plan->state, 0, &call, &exec), 0);
  ck_assert_ptr_eq(given_z, &call);
  ck_assert_int_eq(((const fake_tensor_t *)given_z_desc)->stride[0], 999);
  sdg_plan_destroy(plan);
}
END_TEST

START_TEST(a_stride_beyond_an_int_is_refused) {
  sdg_plan_t *plan;
  static const float zero;
  struct sdg_args_cudnnConvolutionForward args = {.beta = &zero};
  sdg_call_t call = call_of(SDG_ENTRY_cudnnConvolutionForward, &args);
  call.operand[2].stride[0] = INT64_C(1) << 32;
  section.strategy = SDG_STRATEGY_EXTEND;
  ck_assert_int_eq((int)sdg_conv_plan(&call, &tagging, &plan),
                   SDG_E_VENDOR_CALL);
  ck_assert_int_eq(fake_conv_living(), 0);
}
END_TEST

// What is computed in place of rows [10, 20).
static const struct {
  const char *what;
  int elem_bytes, columns;
  int64_t x_row, y_row;
  bool channels_last, slow;
  cudnnMathType_t math;
} view_case[] = {
    {"half, all rows", 2, 9, 10, 10, false, false, 0},
    {"half, rows of 16 bytes", 2, 8, 11, 11, false, false, 0},
    {"half, x begins 18 bytes later", 2, 9, 11, 10, false, true, 0},
    {"half, y begins 18 bytes later", 2, 9, 10, 11, false, true, 0},
    {"half, both begin 144 bytes later", 2, 9, 18, 18, false, false, 0},
    {"half, channels last, 32 bytes", 2, 4, 11, 11, true, false, 0},
    {"half, channels last, 36 bytes", 2, 9, 11, 11, true, true, 0},
    {"int8, x begins 8 bytes later", 1, 8, 11, 10, false, true, 0},
    {"float as TF32, both begin 36 bytes later", 4, 9, 11, 11, false, true, 0},
    {"float as TF32, 32 bytes", 4, 8, 11, 11, false, false, 0},
    {"float itself", 4, 9, 11, 11, false, false, CUDNN_FMA_MATH},
    {"double", 8, 9, 11, 11, false, false, 0},
};

START_TEST(rows_that_engines_load_slowly_are_found) {
  sdg_call_t call = call_of(SDG_ENTRY_cudnnConvolutionForward, NULL);
  sdg_conv_t conv = {.x = 0, .y = 2, .z = -1, .op.dims = 4};
  conv.parameters.math = view_case[_i].math;
  int64_t columns = view_case[_i].columns;
  bool last = view_case[_i].channels_last;
  for (int i = 0; i < 3; i += 2) {
    sdg_operand_t *o = &call.operand[i];
    o->elem_bytes = view_case[_i].elem_bytes;
    o->extent[3] = columns;
    int64_t strides[] = {20 * columns, last ? 1 : 10 * columns,
                         last ? 2 * columns : columns, last ? 2 : 1};
    memcpy(o->stride, strides, sizeof strides);
  }
  conv.op.x_box = conv.op.y_box =
      (sdg_box_t){4, {{0, 1}, {0, 2}, {10, 20}, {0, columns}}};
  sdg_window_piece_t view = {.x = conv.op.x_box, .y = conv.op.y_box};
  view.x.dim[2].lo = view_case[_i].x_row;
  view.y.dim[2].lo = view_case[_i].y_row;
  sdg_conv_view_judge(&call, &conv, &view);
  ck_assert_msg(conv.op.slow_in_place == view_case[_i].slow, "%s",
                view_case[_i].what);
}
END_TEST

// The vendor's library copies a part of the rows of several images.
START_TEST(rows_that_the_library_would_copy_are_found) {
  static const struct {
    const char *what;
    int64_t images, x_row, y_row;
    bool channels_last, whole, slow;
  } part[] = {
      {"one image", 1, 11, 11, true, false, false},
      {"two images, rows of x", 2, 11, 10, true, false, true},
      {"two images, rows of y", 2, 10, 11, true, false, true},
      {"two images, all rows", 2, 10, 10, true, false, false},
      {"two images, channels first", 2, 11, 11, false, false, false},
      {"two images, whole view: our copies are as many", 2, 11, 11, true, true,
       false},
  };
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    sdg_call_t call = call_of(SDG_ENTRY_cudnnConvolutionForward, NULL);
    sdg_conv_t conv = {.x = 0, .y = 2, .z = -1, .op.dims = 4};
    conv.op.whole = part[i].whole;
    for (int o = 0; o < 3; o += 2) {
      call.operand[o].extent[0] = part[i].images;
      if (part[i].channels_last) {
        const int64_t strides[] = {20 * COLUMNS, 1, 2 * COLUMNS, 2};
        memcpy(call.operand[o].stride, strides, sizeof strides);
      }
    }
    conv.op.x_box = conv.op.y_box =
        (sdg_box_t){4, {{0, part[i].images}, {0, 2}, {10, 20}, {0, COLUMNS}}};
    sdg_window_piece_t view = {.x = conv.op.x_box, .y = conv.op.y_box};
    view.x.dim[2].lo = part[i].x_row;
    view.y.dim[2].lo = part[i].y_row;
    sdg_conv_view_judge(&call, &conv, &view);
    ck_assert_msg(conv.op.slow_in_place == part[i].slow, "%s", part[i].what);
  }
}
END_TEST

// The whole view computes on rows of the program's own tensors. Rank 1 reads
// from row 9: at 8 columns, 72 bytes behind the tensor in int8, 144 in half.
START_TEST(a_rank_extends_where_its_rows_are_loaded_slowly) {
  static const struct {
    int elem_bytes;
    sdg_strategy_t strategy;
    const char *expected;
  } way[] = {{1, SDG_STRATEGY_AUTO, "extend"},
             {1, SDG_STRATEGY_REPAIR, "window"},
             {2, SDG_STRATEGY_AUTO, "window"},
             {4, SDG_STRATEGY_AUTO, "window"}};
  static const float zero;
  struct sdg_args_cudnnConvolutionForward args = {
      .xDesc = (cudnnTensorDescriptor_t)&x_10,
      .wDesc = (cudnnFilterDescriptor_t)&x_10, // of which nothing is read
      .yDesc = (cudnnTensorDescriptor_t)&x_10,
      .convDesc = (cudnnConvolutionDescriptor_t)&conv_3x3,
      .workSpaceSizeInBytes = 1 << 20,
      .beta = &zero};
  for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
    sdg_call_t call = call_of(SDG_ENTRY_cudnnConvolutionForward, &args);
    call.operand[0] = operand(SDG_ROLE_X, ROWS, 2 * ROWS * COLUMNS);
    call.operand[2] = operand(SDG_ROLE_Y, ROWS, 2 * ROWS * COLUMNS);
    call.operand[0].elem_bytes = call.operand[2].elem_bytes = way[i].elem_bytes;
    for (int o = 0; o < call.operands; o++)
      call.operand[o].data = &call;
    section.strategy = way[i].strategy;
    sdg_plan_t *plan = NULL;
    ck_assert_int_eq((int)sdg_conv_share(&call, &tagging, &plan), 0);
    ck_assert_ptr_nonnull(plan);
    ck_assert_str_eq(plan->strategy, way[i].expected);
    sdg_plan_destroy(plan);
  }
  ck_assert_int_eq(fake_conv_living(), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("conv");
  TCase *cases = tcase_create("conv");
  tcase_add_checked_fixture(cases, setup, NULL);
  tcase_add_test(cases, the_workspace_that_a_query_names_is_enough_and_no_more);
  tcase_add_test(cases, strips_may_use_another_algorithm_than_the_call);
  tcase_add_test(cases, calls_that_repair_cannot_do_use_extend);
  tcase_add_test(cases,
                 an_algorithm_that_the_engine_refuses_returns_its_status);
  tcase_add_test(cases, a_call_without_z_reaches_the_real_function);
  tcase_add_test(cases, z_keeps_its_own_strides);
  tcase_add_test(cases, a_stride_beyond_an_int_is_refused);
  tcase_add_loop_test(cases, rows_that_engines_load_slowly_are_found, 0,
                      sizeof view_case / sizeof *view_case);
  tcase_add_test(cases, rows_that_the_library_would_copy_are_found);
  tcase_add_test(cases, a_rank_extends_where_its_rows_are_loaded_slowly);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
