// SPDX-License-Identifier: Apache-2.0
// While a program's callback is set, it is called for refusals.
#include <cudnn.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static int heard;
static char text[256];
static cudnnDebug_t last;

static void hear(cudnnSeverity_t severity, void *data,
                 const cudnnDebug_t *about, const char *message) {
  ck_assert_int_eq((int)severity, (int)CUDNN_SEV_ERROR);
  ck_assert_ptr_eq(data, &heard);
  heard++;
  last = *about;
  strncpy(text, message, sizeof text - 1);
}

START_TEST(refusals_are_heard) {
  cudnnTensorDescriptor_t tensor;
  ck_assert_int_eq((int)cudnnCreateTensorDescriptor(&tensor), 0);
  cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 1,
                             1, 1);
  ck_assert_int_eq(heard, 0);
  ck_assert_int_eq((int)cudnnSetCallback(CUDNN_SEV_ERROR_EN, &heard, hear), 0);
  cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1,
                             1, 1);
  ck_assert_int_eq(heard, 0);
  cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 1,
                             1, 1);
  ck_assert_int_eq(heard, 1);
  ck_assert_int_eq((int)last.cudnnStatus, (int)CUDNN_STATUS_BAD_PARAM);
  ck_assert_uint_eq(last.pid, (unsigned long long)getpid());
  char message[256];
  cudnnGetLastErrorString(message, sizeof message);
  ck_assert_str_eq(text, message);
  ck_assert_int_eq((int)cudnnSetCallback(0, NULL, NULL), 0);
  cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 1,
                             1, 1);
  ck_assert_int_eq(heard, 1);
  ck_assert_int_eq((int)cudnnDestroyTensorDescriptor(tensor), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn callback");
  TCase *cases = tcase_create("callback");
  tcase_add_test(cases, refusals_are_heard);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
