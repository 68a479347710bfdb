// SPDX-License-Identifier: Apache-2.0
// The vendor's library is asked once about each description of a convolution.
#include "rules/conv/answers.h"

#include "rules/vendor/args.h"
#include "tests/unit/fake_conv.h"
#include "tests/unit/harness.h"

static int workspaces, choices; // how often the library was asked
static cudnnStatus_t status, choice;

static cudnnStatus_t workspace(cudnnHandle_t handle,
                               const cudnnTensorDescriptor_t x,
                               const cudnnFilterDescriptor_t w,
                               const cudnnConvolutionDescriptor_t conv,
                               const cudnnTensorDescriptor_t y,
                               cudnnConvolutionFwdAlgo_t algo, size_t *out) {
  (void)handle, (void)x, (void)w, (void)conv, (void)y;
  workspaces++;
  *out = 100 * (size_t)algo;
  return status;
}

static cudnnStatus_t algorithm(cudnnHandle_t handle,
                               const cudnnTensorDescriptor_t x,
                               const cudnnFilterDescriptor_t w,
                               const cudnnConvolutionDescriptor_t conv,
                               const cudnnTensorDescriptor_t y, int room,
                               int *out_count,
                               cudnnConvolutionFwdAlgoPerf_t *out) {
  (void)handle, (void)x, (void)w, (void)conv, (void)y, (void)room;
  choices++;
  *out = (cudnnConvolutionFwdAlgoPerf_t){
      .algo = 1, .memory = 77, .status = choice};
  *out_count = 1;
  return CUDNN_STATUS_SUCCESS;
}

static const job_fake_t engine[] = {
    JOB_FAKE(cudnnGetConvolutionForwardWorkspaceSize, workspace),
    JOB_FAKE(cudnnGetConvolutionForwardAlgorithm_v7, algorithm),
};

static fake_tensor_t x, y;
static fake_filter_t w;
static fake_conv_t conv;

static void setup(void) {
  fake_conv_install(engine, 2);
  x = y = (fake_tensor_t){4, {1, 2, 10, 8}, {160, 80, 8, 1}};
  w = (fake_filter_t){{2, 2, 3, 3}};
  conv = (fake_conv_t){2, {1, 1}, {1, 1}, {1, 1}};
  status = choice = CUDNN_STATUS_SUCCESS;
}

static const sdg_call_t call = {.entry = SDG_ENTRY_cudnnConvolutionForward,
                                .family = SDG_FAMILY_CONV};

// The descriptors are other objects each time.
static cudnnStatus_t choose(int algo, int *out_algo, size_t *out_bytes) {
  static fake_tensor_t xs[64], ys[64];
  static fake_filter_t ws[64];
  static fake_conv_t convs[64];
  static int used;
  int i = used++ % 64;
  xs[i] = x, ys[i] = y, ws[i] = w, convs[i] = conv;
  const sdg_conv_descriptors_t d = {
      .x = (cudnnTensorDescriptor_t)&xs[i],
      .y = (cudnnTensorDescriptor_t)&ys[i],
      .conv = (cudnnConvolutionDescriptor_t)&convs[i],
  };
  return sdg_conv_choose(&call, &d, (cudnnFilterDescriptor_t)&ws[i], algo,
                         out_algo, out_bytes);
}

// Whether the library is asked.
static bool asks(int algo) {
  int before = workspaces, got;
  size_t bytes = 0;
  REQUIRE(choose(algo, &got, &bytes) == CUDNN_STATUS_SUCCESS);
  REQUIRE(got == algo && bytes == 100 * (size_t)algo);
  return workspaces > before;
}

START_TEST(equal_descriptions_are_asked_about_once) {
  REQUIRE(asks(1));
  REQUIRE(!asks(1) && !asks(1));
  REQUIRE(asks(2));
  REQUIRE(!asks(1) && !asks(2));
  sdg_conv_answers_forget();
  REQUIRE(asks(1));
  sdg_conv_answers_forget();
}
END_TEST

START_TEST(any_difference_is_asked_about) {
  int *const differs[] = {&x.extent[2],    &x.stride[0],     &y.extent[3],
                          &y.stride[1],    &w.extent[0],     &conv.pad[0],
                          &conv.stride[1], &conv.dilation[0]};
  REQUIRE(asks(1));
  for (size_t i = 0; i < sizeof differs / sizeof *differs; i++) {
    ++*differs[i];
    REQUIRE(asks(1) && !asks(1));
    --*differs[i];
    REQUIRE(!asks(1));
  }
  sdg_conv_answers_forget();
}
END_TEST

START_TEST(refusals_and_choices_are_kept) {
  int algo;
  size_t bytes;
  status = CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < 3; i++) {
    REQUIRE(choose(0, &algo, &bytes) == CUDNN_STATUS_SUCCESS);
    REQUIRE(algo == 1 && bytes == 77);
  }
  REQUIRE(workspaces == 1 && choices == 1);
  sdg_conv_answers_forget();
  choice = CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < 3; i++)
    REQUIRE(choose(0, &algo, &bytes) == CUDNN_STATUS_NOT_SUPPORTED);
  REQUIRE(workspaces == 2 && choices == 2);
  sdg_conv_answers_forget();
}
END_TEST

START_TEST(failures_of_the_moment_are_not_kept) {
  int algo;
  size_t bytes;
  status = choice = CUDNN_STATUS_INTERNAL_ERROR;
  REQUIRE(choose(1, &algo, &bytes) == CUDNN_STATUS_INTERNAL_ERROR);
  status = CUDNN_STATUS_SUCCESS;
  REQUIRE(asks(1) && !asks(1));
  sdg_conv_answers_forget();
}
END_TEST

START_TEST(the_oldest_answers_are_dropped) {
  for (int rows = 10; rows < 10 + 5000; rows++) {
    x.extent[2] = rows;
    REQUIRE(asks(1));
  }
  REQUIRE(!asks(1));
  x.extent[2] = 10;
  REQUIRE(asks(1));
  sdg_conv_answers_forget();
}
END_TEST

int main(void) {
  Suite *suite = suite_create("convanswers");
  TCase *cases = tcase_create("convanswers");
  tcase_add_checked_fixture(cases, setup, NULL);
  tcase_add_test(cases, equal_descriptions_are_asked_about_once);
  tcase_add_test(cases, any_difference_is_asked_about);
  tcase_add_test(cases, refusals_and_choices_are_kept);
  tcase_add_test(cases, failures_of_the_moment_are_not_kept);
  tcase_add_test(cases, the_oldest_answers_are_dropped);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
