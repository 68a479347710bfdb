// SPDX-License-Identifier: Apache-2.0
// Arguments of calls by their meaning: every entry and every argument.
#include "rules/vendor/argument.h"

#include <string.h>

#include "tests/unit/harness.h"

static size_t bytes_of(int which) {
  switch (which) {
#define SDG_INT(name) case SDG_ARGUMENT_##name:
#include "rules/vendor/arguments.def"
    return sizeof(int);
#define SDG_SIZE(name) case SDG_ARGUMENT_##name:
#include "rules/vendor/arguments.def"
    return sizeof(size_t);
#define SDG_NUMBER(name) case SDG_ARGUMENT_##name:
#include "rules/vendor/arguments.def"
    return sizeof(double);
  default:
    return sizeof(void *);
  }
}

// Marks the bytes of a member; fails if another member has them, or if they are
// outside the struct.
static void take(char *taken, size_t bytes, uint16_t at, size_t size,
                 int entry) {
  REQUIRE_MSG(at == 0 || at - 1 + size <= bytes, "entry %d: %d", entry, at);
  for (size_t i = 0; at && i < size; i++) {
    REQUIRE_MSG(!taken[at - 1 + i], "entry %d: two names of byte %zu", entry,
                at - 1 + i);
    taken[at - 1 + i] = 1;
  }
}

START_TEST(each_argument_has_bytes_of_its_own) {
  int entries = 0;
  for (int entry = 0; entry < SDG_ENTRY_COUNT; entry++) {
    const sdg_argument_row_t *row = sdg_argument_row(entry);
    char taken[sizeof(sdg_args_t)] = {0};
    size_t bytes = sdg_invoke_bytes(entry);
    entries += bytes > 0;
    for (int i = 0; i < SDG_ARGUMENT_COUNT; i++)
      take(taken, bytes, row->argument[i], bytes_of(i), entry);
    for (int i = 0; i < SDG_ROLE_COUNT; i++) {
      take(taken, bytes, row->data[i], sizeof(void *), entry);
      REQUIRE(row->descriptor[i] <= bytes);
    }
  }
  REQUIRE(entries > 60);
}
END_TEST

// A different value for each argument, so that a mix-up is found.
static void *address_of(int which) {
  static char memory[SDG_ARGUMENT_COUNT + 2 * SDG_ROLE_COUNT];
  return &memory[which];
}

static void all_put(sdg_rebind_t *rebind) {
  // First, because attention describes its weights in the op's descriptor.
  for (int i = 0; i < SDG_ROLE_COUNT; i++)
    sdg_rebind_tensor(rebind, (sdg_role_t)i, address_of(SDG_ARGUMENT_COUNT + i),
                      address_of(SDG_ARGUMENT_COUNT + SDG_ROLE_COUNT + i));
#define SDG_SCALAR(name)                                                       \
  sdg_rebind_scalar(rebind, SDG_##name, address_of(SDG_##name));
#define SDG_POINTER(name)                                                      \
  sdg_rebind_pointer(rebind, SDG_##name, address_of(SDG_##name));
#define SDG_SIZE(name) sdg_rebind_size(rebind, SDG_##name, 100 + SDG_##name);
#define SDG_INT(name)  sdg_rebind_int(rebind, SDG_##name, 200 + SDG_##name);
#include "rules/vendor/arguments.def"
}

static void all_check(const sdg_call_t *call) {
  const sdg_argument_row_t *row = sdg_argument_row(call->entry);
#define SDG_SCALAR(name)                                                       \
  REQUIRE(sdg_call_scalar_at(call, SDG_##name) ==                              \
          (row->argument[SDG_##name] ? address_of(SDG_##name) : NULL));
#define SDG_POINTER(name)                                                      \
  REQUIRE(sdg_call_pointer(call, SDG_##name) ==                                \
          (row->argument[SDG_##name] ? address_of(SDG_##name) : NULL));
#define SDG_SIZE(name)                                                         \
  REQUIRE(sdg_call_size(call, SDG_##name) ==                                   \
          (row->argument[SDG_##name] ? 100 + (size_t)SDG_##name : 0));
#define SDG_INT(name)                                                          \
  REQUIRE(sdg_call_int(call, SDG_##name) ==                                    \
          (row->argument[SDG_##name] ? 200 + (int)SDG_##name : 0));
#include "rules/vendor/arguments.def"
  for (int i = 0; i < SDG_ROLE_COUNT; i++)
    REQUIRE(sdg_call_data(call, (sdg_role_t)i) ==
            (row->data[i] ? address_of(SDG_ARGUMENT_COUNT + SDG_ROLE_COUNT + i)
                          : NULL));
}

START_TEST(arguments_that_are_set_are_read_back_on_every_entry) {
  sdg_args_t args;
  memset(&args, 0, sizeof args);
  for (int entry = -1; entry < SDG_ENTRY_COUNT; entry++) {
    sdg_call_t call = {.entry = entry, .args = &args};
    sdg_rebind_t rebind;
    sdg_rebind_init(&call, &rebind);
    all_put(&rebind);
    call.args = &rebind.args;
    all_check(&call);
  }
}
END_TEST

START_TEST(an_entry_without_tensors_has_no_arguments) {
  static const int entries[] = {-1, SDG_ENTRY_cublasSgemm_v2,
                                SDG_ENTRY_cudaMemcpy};
  double scalar[SDG_CALL_SCALARS];
  for (int i = 0; i < 3; i++) {
    sdg_call_t call = {.entry = entries[i]};
    REQUIRE(!sdg_call_has(&call, SDG_ARGUMENT_BETA));
    REQUIRE(!sdg_call_scalar_at(&call, SDG_BETA));
    REQUIRE(sdg_call_scalar(&call, SDG_BETA) == 0);
    REQUIRE(sdg_call_scalars(&call, scalar) == 0);
    REQUIRE(sdg_call_number(&call, SDG_EPSILON) == 0);
    REQUIRE(!sdg_call_descriptor(&call, SDG_ROLE_X));
  }
}
END_TEST

// What planners ask about each entry of an op. A missing answer would look like
// NULL or 0.
static const struct {
  int entry[2];
  int argument[4];
} asked[] = {
    {{SDG_ENTRY_cudnnGetConvolutionForwardWorkspaceSize,
      SDG_ENTRY_cudnnGetConvolutionForwardWorkspaceSize},
     {SDG_ARGUMENT_ALGO, SDG_ARGUMENT_OUT_BYTES}},
    {{SDG_ENTRY_cudnnConvolutionForward,
      SDG_ENTRY_cudnnConvolutionBiasActivationForward},
     {SDG_ARGUMENT_OP, SDG_ARGUMENT_ALGO, SDG_ARGUMENT_WORKSPACE,
      SDG_ARGUMENT_WORKSPACE_BYTES}},
    {{SDG_ENTRY_cudnnConvolutionBackwardData,
      SDG_ENTRY_cudnnConvolutionBackwardData},
     {SDG_ARGUMENT_BETA, SDG_ARGUMENT_ALGO, SDG_ARGUMENT_WORKSPACE,
      SDG_ARGUMENT_WORKSPACE_BYTES}},
    {{SDG_ENTRY_cudnnConvolutionBackwardFilter,
      SDG_ENTRY_cudnnConvolutionBackwardFilter},
     {SDG_ARGUMENT_BETA, SDG_ARGUMENT_ALGO, SDG_ARGUMENT_WORKSPACE,
      SDG_ARGUMENT_WORKSPACE_BYTES}},
    {{SDG_ENTRY_cudnnConvolutionBackwardBias,
      SDG_ENTRY_cudnnConvolutionBackwardBias},
     {SDG_ARGUMENT_ALPHA, SDG_ARGUMENT_BETA}},
    {{SDG_ENTRY_cudnnPoolingForward, SDG_ENTRY_cudnnPoolingBackward},
     {SDG_ARGUMENT_OP, SDG_ARGUMENT_ALPHA, SDG_ARGUMENT_BETA}},
    {{SDG_ENTRY_cudnnReduceTensor, SDG_ENTRY_cudnnReduceTensor},
     {SDG_ARGUMENT_ALPHA, SDG_ARGUMENT_BETA, SDG_ARGUMENT_INDICES,
      SDG_ARGUMENT_INDICES_BYTES}},
    {{SDG_ENTRY_cudnnSoftmaxForward, SDG_ENTRY_cudnnSoftmaxBackward},
     {SDG_ARGUMENT_ALGO, SDG_ARGUMENT_MODE, SDG_ARGUMENT_ALPHA,
      SDG_ARGUMENT_BETA}},
    {{SDG_ENTRY_cudnnLRNCrossChannelForward,
      SDG_ENTRY_cudnnLRNCrossChannelForward},
     {SDG_ARGUMENT_ALPHA, SDG_ARGUMENT_BETA}},
    {{SDG_ENTRY_cudnnBatchNormalizationForwardInference,
      SDG_ENTRY_cudnnBatchNormalizationForwardInference},
     {SDG_ARGUMENT_MODE, SDG_ARGUMENT_ALPHA, SDG_ARGUMENT_BETA,
      SDG_ARGUMENT_EPSILON}},
    {{SDG_ENTRY_cudnnBatchNormalizationForwardTraining,
      SDG_ENTRY_cudnnBatchNormalizationForwardTrainingEx},
     {SDG_ARGUMENT_MODE, SDG_ARGUMENT_ALPHA, SDG_ARGUMENT_BETA,
      SDG_ARGUMENT_FACTOR}},
    {{SDG_ENTRY_cudnnBatchNormalizationBackward,
      SDG_ENTRY_cudnnBatchNormalizationBackwardEx},
     {SDG_ARGUMENT_MODE, SDG_ARGUMENT_ALPHA2, SDG_ARGUMENT_BETA2,
      SDG_ARGUMENT_EPSILON}},
    {{SDG_ENTRY_cudnnNormalizationForwardTraining,
      SDG_ENTRY_cudnnNormalizationBackward},
     {SDG_ARGUMENT_MODE, SDG_ARGUMENT_OPS, SDG_ARGUMENT_GROUPS,
      SDG_ARGUMENT_EPSILON}},
    {{SDG_ENTRY_cudnnMultiHeadAttnForward,
      SDG_ENTRY_cudnnMultiHeadAttnBackwardData},
     {SDG_ARGUMENT_WINDOW_LO, SDG_ARGUMENT_WINDOW_HI, SDG_ARGUMENT_WEIGHT_BYTES,
      SDG_ARGUMENT_RESERVE_BYTES}},
    {{SDG_ENTRY_cudnnMultiHeadAttnBackwardWeights,
      SDG_ENTRY_cudnnMultiHeadAttnBackwardWeights},
     {SDG_ARGUMENT_ADDS, SDG_ARGUMENT_WEIGHT_BYTES,
      SDG_ARGUMENT_RESERVE_BYTES}},
    {{SDG_ENTRY_cudnnGetMultiHeadAttnBuffers,
      SDG_ENTRY_cudnnGetMultiHeadAttnBuffers},
     {SDG_ARGUMENT_OUT_BYTES, SDG_ARGUMENT_OUT_RESERVE_BYTES}},
    {{SDG_ENTRY_cudnnDropoutGetReserveSpaceSize,
      SDG_ENTRY_cudnnDropoutGetReserveSpaceSize},
     {SDG_ARGUMENT_OUT_BYTES}},
    {{SDG_ENTRY_cudnnDropoutForward, SDG_ENTRY_cudnnDropoutForward},
     {SDG_ARGUMENT_OP, SDG_ARGUMENT_RESERVE, SDG_ARGUMENT_RESERVE_BYTES}},
};

START_TEST(planners_find_every_argument_that_they_use) {
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
    for (int k = 0; k < 4; k++) {
      int which = asked[i].argument[k];
      for (int e = 0; e < 2; e++)
        REQUIRE_MSG((k > 0 && which == 0) ||
                        sdg_argument_row(asked[i].entry[e])->argument[which],
                    "entry %d lacks argument %d", asked[i].entry[e], which);
    }
}
END_TEST

START_TEST(arguments_have_the_vendors_names) {
  double two = 2, three = 3;
  float four = 4;
  int x, dw, work;
  struct sdg_args_cudnnConvolutionBackwardFilter filter = {
      .alpha = &two,
      .beta = &three,
      .x = &x,
      .dw = &dw,
      .algo = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
      .workSpace = &work,
      .workSpaceSizeInBytes = 77};
  sdg_call_t call = {.entry = SDG_ENTRY_cudnnConvolutionBackwardFilter,
                     .args = &filter,
                     .operand = {{.type = SDG_TYPE_DOUBLE}}};
  REQUIRE(sdg_call_scalar(&call, SDG_ALPHA) == 2);
  REQUIRE(sdg_call_scalar(&call, SDG_BETA) == 3);
  REQUIRE(sdg_call_int(&call, SDG_ALGO) == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
  REQUIRE(sdg_call_pointer(&call, SDG_WORKSPACE) == &work);
  REQUIRE(sdg_call_size(&call, SDG_WORKSPACE_BYTES) == 77);
  REQUIRE(sdg_call_data(&call, SDG_ROLE_X) == &x);
  REQUIRE(sdg_call_data(&call, SDG_ROLE_DW) == &dw);
  struct sdg_args_cudnnBatchNormalizationBackwardEx norm = {
      .betaParamDiff = &four,
      .epsilon = 5,
      .dBnBiasData = &x,
      .savedInvVariance = &dw,
      .activationDesc = (void *)&work};
  call = (sdg_call_t){.entry = SDG_ENTRY_cudnnBatchNormalizationBackwardEx,
                      .args = &norm};
  REQUIRE(sdg_call_scalar(&call, SDG_BETA2) == 4);
  REQUIRE(sdg_call_number(&call, SDG_EPSILON) == 5);
  REQUIRE(sdg_call_data(&call, SDG_ROLE_DSHIFT) == &x);
  REQUIRE(sdg_call_data(&call, SDG_ROLE_SAVED_INVERSE) == &dw);
  REQUIRE(sdg_call_pointer(&call, SDG_OP) == &work);
  double all[SDG_CALL_SCALARS];
  REQUIRE(sdg_call_scalars(&call, all) == 5); // 4 scalars and epsilon
  call.operands = 11; // x y dy dz dx, scale bias dscale dbias, mean inverse
  REQUIRE(sdg_call_is_complete(&call));
  call.operands = 10;
  REQUIRE(!sdg_call_is_complete(&call));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("argument");
  TCase *tc = tcase_create("argument");
  tcase_add_test(tc, each_argument_has_bytes_of_its_own);
  tcase_add_test(tc, arguments_that_are_set_are_read_back_on_every_entry);
  tcase_add_test(tc, an_entry_without_tensors_has_no_arguments);
  tcase_add_test(tc, planners_find_every_argument_that_they_use);
  tcase_add_test(tc, arguments_have_the_vendors_names);
  suite_add_tcase(suite, tc);
  return harness_run(suite);
}
