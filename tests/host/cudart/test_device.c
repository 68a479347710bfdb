// SPDX-License-Identifier: Apache-2.0
// The properties of the host device, and how it refuses what it does not
// support.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "tests/calls.h"

/* Exported, and declared for C++ programs of nvcc only. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaUnregisterFatBinary(void **handle);

START_TEST(exactly_one_device_exists) {
  int count = 0, device = 9, version = 0;
  struct cudaDeviceProp properties;
  OK(cudaGetDeviceCount(&count));
  ck_assert_int_eq(count, 1);
  OK(cudaSetDevice(0));
  ck_assert_int_eq(cudaSetDevice(1), cudaErrorInvalidDevice);
  ck_assert_int_eq(cudaSetDevice(-1), cudaErrorInvalidDevice);
  OK(cudaGetDevice(&device));
  ck_assert_int_eq(device, 0);
  OK(cudaGetDeviceProperties(&properties, 0));
  ck_assert_str_eq(properties.name, "sundog host device");
  ck_assert_uint_gt(properties.totalGlobalMem, 1 << 20);
  ck_assert_int_ge(properties.multiProcessorCount, 1);
  OK(cudaRuntimeGetVersion(&version));
  ck_assert_int_eq(version, CUDART_VERSION);
  OK(cudaDriverGetVersion(&version));
  ck_assert_int_ge(version, CUDART_VERSION);
}
END_TEST

START_TEST(attributes_agree_with_the_properties) {
  struct cudaDeviceProp properties;
  int value;
  OK(cudaGetDeviceProperties(&properties, 0));
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  ck_assert_int_eq(value, properties.major);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  ck_assert_int_eq(value, properties.multiProcessorCount);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0));
  ck_assert_int_eq(value, properties.memoryPoolsSupported);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrTccDriver, 0));
  ck_assert_int_eq(value, 0);
  ck_assert_int_eq(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)0, 0),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1),
                   cudaErrorInvalidDevice);
}
END_TEST

START_TEST(the_bus_id_names_the_device) {
  char text[32];
  int device = 5;
  OK(cudaDeviceGetPCIBusId(text, sizeof text, 0));
  OK(cudaDeviceGetByPCIBusId(&device, text));
  ck_assert_int_eq(device, 0);
  ck_assert_int_eq(cudaDeviceGetPCIBusId(text, 4, 0), cudaErrorInvalidValue);
}
END_TEST

START_TEST(every_error_has_a_name_and_a_text) {
  static const cudaError_t codes[] = {cudaSuccess, cudaErrorInvalidValue,
                                      cudaErrorNotSupported,
                                      cudaErrorIllegalAddress};
  ck_assert_str_eq(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    ck_assert_str_ne(cudaGetErrorName(codes[i]), cudaGetErrorName(12345));
    ck_assert_uint_gt(strlen(cudaGetErrorString(codes[i])), 3);
  }
}
END_TEST

START_TEST(a_kernel_launch_is_an_error) {
  void **handle = __cudaRegisterFatBinary("");
  ck_assert_ptr_nonnull(handle);
  struct cudaFuncAttributes attributes;
  ck_assert_int_eq(cudaFuncGetAttributes(&attributes, (void *)1),
                   cudaErrorInvalidDeviceFunction);
  OK(cudaGetLastError() == cudaErrorInvalidDeviceFunction ? cudaSuccess
                                                          : cudaErrorUnknown);
  dim3 one = {1, 1, 1};
  ck_assert_int_eq(cudaLaunchKernel((void *)1, one, one, NULL, 0, NULL),
                   cudaErrorNotSupported);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorNotSupported);
  OK(cudaGetLastError());
  __cudaUnregisterFatBinary(handle);
}
END_TEST

START_TEST(missing_functions_are_refused_and_the_error_is_kept) {
  cudaArray_t array;
  struct cudaChannelFormatDesc format =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  ck_assert_int_eq(cudaMallocArray(&array, &format, 4, 4, 0),
                   cudaErrorNotSupported);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorNotSupported);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_device");
  TCase *tests = tcase_create("device");
  tcase_add_test(tests, exactly_one_device_exists);
  tcase_add_test(tests, attributes_agree_with_the_properties);
  tcase_add_test(tests, the_bus_id_names_the_device);
  tcase_add_test(tests, every_error_has_a_name_and_a_text);
  tcase_add_test(tests, a_kernel_launch_is_an_error);
  tcase_add_test(tests, missing_functions_are_refused_and_the_error_is_kept);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
