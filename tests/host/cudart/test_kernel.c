// SPDX-License-Identifier: Apache-2.0
// Kernels on the host device: functions of the program stand for them.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "tests/calls.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp);
cudaError_t cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block,
                                  void **args, size_t shared_bytes,
                                  cudaStream_t stream);

// Their addresses are what a program launches.
static int fill, fill_cxx, fill_template, fill_other, lone;

static const struct {
  const int *kernel;
  char name[48];
} kernels[] = {
    {&fill, "fill"},
    {&fill_cxx, "_ZN6solver4fillEPii"},
    {&fill_template, "_ZN6solver4fillIiLi2EEEvPT_i"},
    {&fill_other, "_ZN6solver4fillIiLi3EEEvPT_i"},
    {&lone, "_Z4lonePi"},
};

static void kernels_register(void) {
  static int binary;
  void **handle = __cudaRegisterFatBinary(&binary);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    __cudaRegisterFunction(handle, (const char *)kernels[i].kernel,
                           (char *)(uintptr_t)kernels[i].name, kernels[i].name,
                           -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterFatBinaryEnd(handle);
}

static void fill_with(int value, dim3 grid, dim3 block, void **args) {
  int *to = *(int **)args[0], count = *(int *)args[1];
  for (unsigned i = 0; i < grid.x * block.x && (int)i < count; i++)
    to[i] += value + (int)i;
}

#pragma GCC visibility push(default)

void fill__host(dim3 grid, dim3 block, void **args);
void fill__host(dim3 grid, dim3 block, void **args) {
  fill_with(100, grid, block, args);
}

// solver::fill__host(dim3, dim3, void **)
void of_cxx(dim3 grid, dim3 block,
            void **args) __asm__("_ZN6solver10fill__hostE4dim3S0_PPv");
void of_cxx(dim3 grid, dim3 block, void **args) {
  fill_with(200, grid, block, args);
}

// solver::fill__host<int, 2>(dim3, dim3, void **)
void of_template(dim3 grid, dim3 block, void **args) __asm__(
    "_ZN6solver10fill__hostIiLi2EEEv4dim3S1_PPv");
void of_template(dim3 grid, dim3 block, void **args) {
  fill_with(300, grid, block, args);
}

#pragma GCC visibility pop

static const dim3 two = {2, 1, 1}, four = {4, 1, 1};

// What element 5 becomes of 1000 where 6 of 8 threads have an element.
static int launched(const void *kernel, bool of_thread) {
  int *device, host[6], count = 6;
  void *args[] = {&device, &count};
  OK(cudaMalloc((void **)&device, sizeof host));
  for (int i = 0; i < 6; i++)
    host[i] = 1000;
  OK(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice,
                     of_thread ? cudaStreamPerThread : NULL));
  OK(of_thread ? cudaLaunchKernel_ptsz(kernel, two, four, args, 0, NULL)
               : cudaLaunchKernel(kernel, two, four, args, 0, NULL));
  OK(cudaMemcpyAsync(host, device, sizeof host, cudaMemcpyDeviceToHost,
                     of_thread ? cudaStreamPerThread : NULL));
  OK(cudaDeviceSynchronize());
  OK(cudaFree(device));
  return host[5];
}

START_TEST(the_twin_of_a_kernel_is_found_by_its_name) {
  kernels_register();
  ck_assert_int_eq(launched(&fill, false), 1105);
  ck_assert_int_eq(launched(&fill, true), 1105);
  ck_assert_int_eq(launched(&fill_cxx, false), 1205);
  ck_assert_int_eq(launched(&fill_template, false), 1305);
  ck_assert_int_eq(launched(&fill, false), 1105);
}
END_TEST

START_TEST(a_kernel_without_a_twin_is_refused) {
  void *args[] = {NULL};
  kernels_register();
  IS(cudaLaunchKernel(&lone, two, four, args, 0, NULL), cudaErrorNotSupported);
  // That of another instance is not its own.
  IS(cudaLaunchKernel(&fill_other, two, four, args, 0, NULL),
     cudaErrorNotSupported);
}
END_TEST

static sigjmp_buf back;
static void crashed(int number) {
  (void)number;
  siglongjmp(back, 1);
}

START_TEST(memory_is_out_of_reach_before_and_after) {
  volatile int *device;
  int count = 6;
  void *args[] = {&device, &count};
  struct sigaction action = {.sa_handler = crashed}, before;
  volatile int crashes = 0;
  kernels_register();
  OK(cudaMalloc((void **)&device, 64));
  sigaction(SIGSEGV, &action, &before);
  for (volatile int pass = 0; pass < 2; pass++) {
    if (sigsetjmp(back, 1) == 0)
      device[0] = 7;
    else
      crashes++;
    OK(cudaLaunchKernel(&fill, two, four, args, 0, NULL));
  }
  if (sigsetjmp(back, 1) == 0)
    device[0] = 7;
  else
    crashes++;
  sigaction(SIGSEGV, &before, NULL);
  ck_assert_int_eq(crashes, 3);
}
END_TEST

START_TEST(a_kernel_tells_its_name) {
  const char *name;
  struct cudaFuncAttributes attributes;
  kernels_register();
  OK(cudaFuncGetName(&name, &fill_cxx));
  ck_assert_str_eq(name, "_ZN6solver4fillEPii");
  IS(cudaFuncGetName(&name, &name), cudaErrorInvalidDeviceFunction);
  IS(cudaFuncGetName(NULL, &fill), cudaErrorInvalidValue);
  OK(cudaFuncGetAttributes(&attributes, &fill));
  ck_assert_int_eq(attributes.maxThreadsPerBlock, 1024);
  IS(cudaFuncGetAttributes(&attributes, &lone), cudaErrorInvalidDeviceFunction);
}
END_TEST

START_TEST(an_impossible_launch_is_refused) {
  static const dim3 zero = {0, 1, 1}, many = {1025, 1, 1}, deep = {1, 1, 65},
                    high = {1, 65536, 1};
  int *device, count = 0;
  void *args[] = {&device, &count};
  cudaStream_t stream;
  cudaGraph_t graph;
  kernels_register();
  IS(cudaLaunchKernel(&fill, zero, four, args, 0, NULL),
     cudaErrorInvalidConfiguration);
  IS(cudaLaunchKernel(&fill, two, zero, args, 0, NULL),
     cudaErrorInvalidConfiguration);
  IS(cudaLaunchKernel(&fill, two, many, args, 0, NULL),
     cudaErrorInvalidConfiguration);
  IS(cudaLaunchKernel(&fill, two, deep, args, 0, NULL),
     cudaErrorInvalidConfiguration);
  IS(cudaLaunchKernel(&fill, high, four, args, 0, NULL),
     cudaErrorInvalidConfiguration);
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  IS(cudaLaunchKernel(&fill, two, four, args, 0, stream),
     cudaErrorNotSupported);
  IS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("kernel");
  TCase *cases = tcase_create("kernel");
  tcase_add_test(cases, the_twin_of_a_kernel_is_found_by_its_name);
  tcase_add_test(cases, a_kernel_without_a_twin_is_refused);
  tcase_add_test(cases, memory_is_out_of_reach_before_and_after);
  tcase_add_test(cases, a_kernel_tells_its_name);
  tcase_add_test(cases, an_impossible_launch_is_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
