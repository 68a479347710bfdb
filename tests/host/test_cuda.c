// SPDX-License-Identifier: Apache-2.0
// The driver API on the host device: the calls of ordinary programs, and that
// it agrees with the runtime.
#include "tests/unit/harness.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <string.h>

#include "tests/calls.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static CUcontext start(void) {
  CUcontext context;
  CUdevice device;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}

START_TEST(nothing_works_before_it_is_initialized) {
  int count, version = 0;
  CUdeviceptr at;
  const char *name;
  IS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  IS(cuMemAlloc(&at, 16), CUDA_ERROR_NOT_INITIALIZED);
  OK(cuDriverGetVersion(&version));
  ck_assert_int_eq(version, CUDA_VERSION);
  OK(cuGetErrorName(CUDA_ERROR_INVALID_CONTEXT, &name));
  ck_assert_str_eq(name, "CUDA_ERROR_INVALID_CONTEXT");
  IS(cuGetErrorString((CUresult)12345, &name), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(name);
  IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  ck_assert_int_eq(count, 1);
  IS(cuMemAlloc(&at, 16), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(the_device_is_the_runtimes) {
  char name[64], tiny[4];
  size_t bytes;
  CUuuid uuid;
  CUdevice device;
  struct cudaDeviceProp properties;
  OK(cuInit(0));
  OK(cudaGetDeviceProperties(&properties, 0));
  IS(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  OK(cuDeviceGet(&device, 0));
  OK(cuDeviceGetName(name, sizeof name, device));
  ck_assert_str_eq(name, properties.name);
  OK(cuDeviceGetName(tiny, sizeof tiny, device));
  ck_assert_str_eq(tiny, "sun");
  OK(cuDeviceTotalMem(&bytes, device));
  ck_assert(bytes == properties.totalGlobalMem);
  OK(cuDeviceGetUuid(&uuid, device));
  ck_assert_mem_eq(uuid.bytes, properties.uuid.bytes, 16);
  const struct {
    CUdevice_attribute attribute;
    int value;
  } all[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, properties.major},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
       properties.multiProcessorCount},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
       properties.maxThreadsPerBlock},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, properties.warpSize},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int value;
    OK(cuDeviceGetAttribute(&value, all[i].attribute, device));
    ck_assert_int_eq(value, all[i].value);
  }
}
END_TEST

START_TEST(contexts_are_a_stack_of_each_thread) {
  CUcontext primary, made, found;
  CUdevice device;
  unsigned flags;
  int active;
  OK(cuInit(0));
  OK(cuCtxGetCurrent(&found));
  ck_assert_ptr_null(found);
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  ck_assert_int_eq(active, 0);
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  ck_assert_int_eq(active, 1);
  IS(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxPushCurrent(primary));
  OK(cuCtxGetDevice(&device));
  OK(cuCtxCreate(&made, NULL, CU_CTX_SCHED_YIELD, 0));
  OK(cuCtxGetCurrent(&found));
  ck_assert_ptr_eq(found, made);
  OK(cuCtxGetFlags(&flags));
  ck_assert_int_eq(flags, CU_CTX_SCHED_YIELD);
  OK(cuCtxDestroy(made));
  IS(cuCtxDestroy(made), CUDA_ERROR_INVALID_CONTEXT);
  IS(cuCtxPushCurrent(made), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxPopCurrent(&found));
  ck_assert_ptr_eq(found, primary);
  IS(cuCtxPopCurrent(&found), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuDevicePrimaryCtxRelease(0));
  IS(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

/* Calls of the runtime make the primary context current. */
START_TEST(the_runtime_makes_the_primary_context_current) {
  CUcontext found, primary;
  OK(cudaFree(NULL));
  OK(cuCtxGetCurrent(&found));
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  ck_assert_ptr_eq(found, primary);
  OK(cuCtxSynchronize());
}
END_TEST

START_TEST(memory_is_shared_with_the_runtime) {
  enum { COUNT = 1000 };
  int sent[COUNT], got[COUNT];
  CUdeviceptr at, base, other;
  CUstream stream;
  unsigned kind;
  size_t bytes;
  start();
  OK(cuMemAlloc(&at, sizeof sent));
  OK(cuMemAlloc(&other, sizeof sent));
  for (int i = 0; i < COUNT; i++)
    sent[i] = i * 7;
  OK(cuMemcpyHtoD(at, sent, sizeof sent));
  OK(cuMemcpyDtoD(other, at, sizeof sent));
  OK(cudaMemcpy(got, (void *)(uintptr_t)other, sizeof got,
                cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(got, sent, sizeof sent);
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuMemsetD32Async(at + 4, 0xdeadbeef, COUNT - 1, stream));
  OK(cuMemsetD16Async(at + 8, 0x1234, 1, stream));
  OK(cuMemcpyDtoHAsync(got, at, sizeof got, stream));
  OK(cuStreamSynchronize(stream));
  ck_assert(got[0] == 0 && (unsigned)got[1] == 0xdeadbeef &&
            (unsigned)got[2] == 0xdead1234 &&
            (unsigned)got[COUNT - 1] == 0xdeadbeef);
  OK(cuMemsetD2D16(at, 16, 7, 3, 4));
  OK(cuMemcpyDtoH(got, at, sizeof got));
  ck_assert(got[0] == 0x70007 && got[1] == (int)0xdead0007 &&
            got[4] == 0x70007 && (unsigned)got[6] == 0xdeadbeef);
  IS(cuMemsetD32(at + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  IS(cuMemsetD32(at, 0, COUNT + 200000), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemGetAddressRange(&base, &bytes, at + 100));
  ck_assert(base == at && bytes >= sizeof sent);
  OK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
  ck_assert_int_eq(kind, CU_MEMORYTYPE_DEVICE);
  IS(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                           (CUdeviceptr)(uintptr_t)got),
     CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy(stream));
  OK(cuMemFree(at));
  OK(cudaFree((void *)(uintptr_t)other));
  IS(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(rectangles_are_copied) {
  char from[6][10], to[6][10] = {{0}};
  CUdeviceptr at;
  size_t pitch;
  start();
  memset(from, 'x', sizeof from);
  from[2][3] = 'y';
  OK(cuMemAllocPitch(&at, &pitch, 8, 4, 4));
  CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                      .srcHost = from,
                      .srcPitch = 10,
                      .srcXInBytes = 2,
                      .srcY = 1,
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                      .dstDevice = at,
                      .dstPitch = pitch,
                      .WidthInBytes = 8,
                      .Height = 4};
  CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                       .srcDevice = at,
                       .srcPitch = pitch,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstHost = to,
                       .dstPitch = 10,
                       .dstXInBytes = 1,
                       .WidthInBytes = 8,
                       .Height = 4};
  OK(cuMemcpy2D(&in));
  OK(cuMemcpy2D(&out));
  ck_assert(to[1][2] == 'y' && to[0][1] == 'x' && to[0][0] == 0 &&
            to[4][1] == 0);
  in.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  IS(cuMemcpy2D(&in), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(at));
}
END_TEST

static void count_up(void *data) {
  ++*(int *)data;
}

START_TEST(streams_and_events_are_the_runtimes) {
  CUstream stream;
  CUevent first, second;
  float ms;
  int count = 0;
  start();
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&first, 0));
  OK(cuEventCreate(&second, 0));
  OK(cuEventRecord(first, stream));
  OK(cuLaunchHostFunc(stream, count_up, &count));
  OK(cudaEventRecord(second, stream));
  OK(cuStreamWaitEvent(NULL, second, 0));
  OK(cuEventSynchronize(second));
  OK(cuEventElapsedTime(&ms, first, second));
  ck_assert(ms >= 0 && count == 1);
  OK(cuEventQuery(second));
  OK(cuCtxSynchronize());
  OK(cuStreamQuery(stream));
  OK(cuEventDestroy(first));
  OK(cuEventDestroy(second));
  OK(cuStreamDestroy(stream));
  IS(cuStreamQuery((CUstream)(uintptr_t)0x1000), CUDA_ERROR_INVALID_HANDLE);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  enum cudaStreamCaptureMode found = cudaStreamCaptureModeGlobal;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cudaThreadExchangeStreamCaptureMode(&found));
  ck_assert_int_eq(found, cudaStreamCaptureModeRelaxed);
}
END_TEST

START_TEST(the_runtimes_last_error_is_left_alone) {
  start();
  OK(cudaGetLastError());
  IS(cuMemFree(4711), CUDA_ERROR_INVALID_VALUE);
  OK(cudaPeekAtLastError());
  IS(cudaSetDevice(7), cudaErrorInvalidDevice);
  IS(cuMemFree(4711), CUDA_ERROR_INVALID_VALUE);
  IS(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

START_TEST(functions_are_found_by_name_and_version) {
  CUresult (*function)(size_t *, size_t *);
  CUdriverProcAddressQueryResult status;
  void *found, *older;
  size_t free, total;
  start();
  OK(cuGetProcAddress("cuMemGetInfo", &found, CUDA_VERSION, 0, &status));
  IS(status, CU_GET_PROC_ADDRESS_SUCCESS);
  memcpy(&function, &found, sizeof function);
  OK(function(&free, &total));
  ck_assert(total >= free && total > 0);
  OK(cuGetProcAddress("cuCtxCreate", &found, 13000, 0, NULL));
  OK(cuGetProcAddress("cuCtxCreate", &older, 11000, 0, NULL));
  ck_assert_ptr_ne(found, older);
  IS(cuGetProcAddress("cuNothing", &found, 13000, 0, &status),
     CUDA_ERROR_NOT_FOUND);
  ck_assert(found == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  IS(cuGetProcAddress("printf", &found, 13000, 0, &status),
     CUDA_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(each_thread_may_have_a_default_stream) {
  CUresult (*set)(CUdeviceptr, unsigned, size_t);
  CUresult (*set_async)(CUdeviceptr, unsigned, size_t, CUstream);
  void *found;
  CUdeviceptr at;
  unsigned got[4];
  start();
  OK(cuMemAlloc(&at, sizeof got));
  OK(cuGetProcAddress("cuMemsetD32", &found, CUDA_VERSION,
                      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
  memcpy(&set, &found, sizeof set);
  ck_assert(set != cuMemsetD32);
  OK(set(at, 5, 4));
  OK(cuGetProcAddress("cuMemsetD32Async", &found, CUDA_VERSION,
                      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
  memcpy(&set_async, &found, sizeof set_async);
  OK(set_async(at, 6, 2, NULL));
  OK(cuMemcpyDtoHAsync(got, at, sizeof got, CU_STREAM_PER_THREAD));
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  ck_assert(got[0] == 6 && got[1] == 6 && got[2] == 5 && got[3] == 5);
  OK(cuMemFree(at));
}
END_TEST

START_TEST(functions_that_need_device_code_are_refused) {
  CUmodule module;
  start();
  IS(cuModuleLoadData(&module, "nothing"), CUDA_ERROR_NOT_SUPPORTED);
  IS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
     CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cuda");
  TCase *tests = tcase_create("driver");
  tcase_add_test(tests, nothing_works_before_it_is_initialized);
  tcase_add_test(tests, the_device_is_the_runtimes);
  tcase_add_test(tests, contexts_are_a_stack_of_each_thread);
  tcase_add_test(tests, the_runtime_makes_the_primary_context_current);
  tcase_add_test(tests, memory_is_shared_with_the_runtime);
  tcase_add_test(tests, rectangles_are_copied);
  tcase_add_test(tests, streams_and_events_are_the_runtimes);
  tcase_add_test(tests, the_runtimes_last_error_is_left_alone);
  tcase_add_test(tests, functions_are_found_by_name_and_version);
  tcase_add_test(tests, each_thread_may_have_a_default_stream);
  tcase_add_test(tests, functions_that_need_device_code_are_refused);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
