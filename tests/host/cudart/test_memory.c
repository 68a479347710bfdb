// SPDX-License-Identifier: Apache-2.0
// Device addresses of the host device: they are guarded, found and given back.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/host/host.h"
#include "tests/calls.h"

static void *device_allocate(size_t bytes) {
  void *pointer = NULL;
  OK(cudaMalloc(&pointer, bytes));
  ck_assert_ptr_nonnull(pointer);
  return pointer;
}

START_TEST(an_allocation_is_aligned_and_not_empty) {
  static const size_t sizes[] = {1,    255,     256,           257,
                                 4096, 1 << 20, (1 << 20) + 1, 5 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    char *pointer = device_allocate(sizes[i]);
    ck_assert_uint_eq((uintptr_t)pointer % 256, 0);
    OK(cudaFree(pointer));
  }
  void *none = &none;
  OK(cudaMalloc(&none, 0));
  ck_assert_ptr_null(none);
  OK(cudaFree(NULL));
}
END_TEST

START_TEST(a_host_read_of_a_device_address_crashes) {
  volatile char *pointer = device_allocate(100);
  harness_crash_plainly();
  (void)*pointer;
}
END_TEST

START_TEST(a_host_write_to_a_device_address_crashes) {
  volatile char *pointer = device_allocate(3 << 20);
  harness_crash_plainly();
  *pointer = 1;
}
END_TEST

START_TEST(a_resolved_address_holds_what_was_copied) {
  char *pointer = device_allocate(1000), text[] = "halo", back[8] = "";
  OK(cudaMemcpy(pointer + 500, text, sizeof text, cudaMemcpyHostToDevice));
  char *readable = host_memory_resolve(pointer + 500, sizeof text);
  ck_assert_ptr_nonnull(readable);
  ck_assert_str_eq(readable, "halo");
  readable[0] = 'H';
  OK(cudaMemcpy(back, pointer + 500, sizeof text, cudaMemcpyDeviceToHost));
  ck_assert_str_eq(back, "Halo");
}
END_TEST

START_TEST(a_range_that_leaves_its_allocation_is_not_resolved) {
  static const size_t sizes[] = {1, 300, 256, 1 << 20, (3 << 20) + 7};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    size_t bytes = sizes[i];
    char *pointer = device_allocate(bytes);
    ck_assert_ptr_nonnull(host_memory_resolve(pointer, bytes));
    ck_assert_ptr_nonnull(host_memory_resolve(pointer + bytes - 1, 1));
    ck_assert_ptr_null(host_memory_resolve(pointer, bytes + 1));
    ck_assert_ptr_null(host_memory_resolve(pointer + bytes - 1, 2));
    ck_assert_ptr_null(host_memory_resolve(pointer + bytes, 1));
    ck_assert_ptr_null(host_memory_resolve(pointer, SIZE_MAX));
    OK(cudaFree(pointer));
  }
}
END_TEST

START_TEST(neither_pageable_nor_freed_memory_is_resolved) {
  char local[16];
  char *small = device_allocate(64), *large = device_allocate(8 << 20);
  ck_assert_ptr_null(host_memory_resolve(local, 1));
  ck_assert_ptr_null(host_memory_resolve(NULL, 0));
  OK(cudaFree(small));
  OK(cudaFree(large));
  ck_assert_ptr_null(host_memory_resolve(small, 0));
  ck_assert_ptr_null(host_memory_resolve(large, 1));
  ck_assert_ptr_null(host_memory_resolve(large + (5 << 20), 1));
  ck_assert_int_eq(cudaFree(small), cudaErrorInvalidValue);
  ck_assert_int_eq(cudaFree(local), cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemset(large, 0, 1), cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemcpy(local, small, 4, cudaMemcpyDefault),
                   cudaErrorInvalidValue);
}
END_TEST

START_TEST(the_inside_of_an_allocation_cannot_be_freed) {
  char *pointer = device_allocate(4096);
  ck_assert_int_eq(cudaFree(pointer + 256), cudaErrorInvalidValue);
  OK(cudaFree(pointer));
}
END_TEST

START_TEST(pinned_and_managed_memory_is_readable_and_resolved) {
  char *pinned, *managed;
  OK(cudaMallocHost((void **)&pinned, 100));
  OK(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
  strcpy(pinned, "pinned");
  strcpy(managed, "managed");
  ck_assert_ptr_eq(host_memory_resolve(pinned, 100), pinned);
  ck_assert_ptr_eq(host_memory_resolve(managed, 100), managed);
  ck_assert_int_eq(cudaFree(pinned), cudaErrorInvalidValue);
  ck_assert_int_eq(cudaFreeHost(managed), cudaErrorInvalidValue);
  OK(cudaFreeHost(pinned));
  OK(cudaFree(managed));
  ck_assert_ptr_null(host_memory_resolve(pinned, 1));
}
END_TEST

START_TEST(registered_memory_is_resolved_until_it_is_unregistered) {
  static char array[4096];
  OK(cudaHostRegister(array, sizeof array, cudaHostRegisterDefault));
  ck_assert_ptr_eq(host_memory_resolve(array + 10, 10), array + 10);
  ck_assert_ptr_null(host_memory_resolve(array + 10, sizeof array));
  ck_assert_int_eq(cudaHostRegister(array + 5, 5, 0),
                   cudaErrorHostMemoryAlreadyRegistered);
  OK(cudaHostUnregister(array));
  ck_assert_ptr_null(host_memory_resolve(array, 1));
  ck_assert_int_eq(cudaHostUnregister(array), cudaErrorHostMemoryNotRegistered);
}
END_TEST

START_TEST(attributes_tell_what_an_address_is) {
  struct cudaPointerAttributes attributes;
  char *device = device_allocate(64), *pinned, *managed, local;
  OK(cudaMallocHost((void **)&pinned, 64));
  OK(cudaMallocManaged((void **)&managed, 64, cudaMemAttachGlobal));
  OK(cudaPointerGetAttributes(&attributes, device + 8));
  ck_assert_int_eq(attributes.type, cudaMemoryTypeDevice);
  ck_assert_ptr_eq(attributes.devicePointer, device + 8);
  ck_assert_ptr_null(attributes.hostPointer);
  OK(cudaPointerGetAttributes(&attributes, pinned));
  ck_assert_int_eq(attributes.type, cudaMemoryTypeHost);
  ck_assert_ptr_eq(attributes.hostPointer, pinned);
  OK(cudaPointerGetAttributes(&attributes, managed));
  ck_assert_int_eq(attributes.type, cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&attributes, &local));
  ck_assert_int_eq(attributes.type, cudaMemoryTypeUnregistered);
}
END_TEST

START_TEST(a_limit_that_is_no_number_gives_out_no_memory) {
  void *pointer;
  setenv("SUNDOG_HOST_MEMORY", "8GB", 1);
  ck_assert_int_eq(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
}
END_TEST

START_TEST(memory_beyond_the_limit_is_refused) {
  size_t free_bytes, total_bytes, less_bytes;
  void *pointer, *other;
  OK(cudaMemGetInfo(&free_bytes, &total_bytes));
  ck_assert_uint_eq(total_bytes, 100 << 20);
  ck_assert_uint_eq(free_bytes, total_bytes);
  ck_assert_int_eq(cudaMalloc(&pointer, total_bytes + 1),
                   cudaErrorMemoryAllocation);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
  ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
  OK(cudaMalloc(&pointer, 60 << 20));
  ck_assert_int_eq(cudaMalloc(&other, 60 << 20), cudaErrorMemoryAllocation);
  OK(cudaMemGetInfo(&less_bytes, &total_bytes));
  ck_assert_uint_eq(less_bytes, free_bytes - (60 << 20));
  OK(cudaFree(pointer));
  OK(cudaMalloc(&other, 60 << 20));
  ck_assert_int_eq(cudaMalloc(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
}
END_TEST

/* Resident pages of shared memory, from the second field after "RssShmem". */
static long shared_kib(void) {
  char line[256];
  long kib = -1;
  FILE *file = fopen("/proc/self/status", "r");
  ck_assert_ptr_nonnull(file);
  while (fgets(line, sizeof line, file))
    sscanf(line, "RssShmem: %ld", &kib);
  fclose(file);
  return kib;
}

START_TEST(the_memory_of_a_freed_large_block_goes_back) {
  size_t bytes = 64 << 20;
  void *pointer = device_allocate(bytes);
  OK(cudaMemset(pointer, 1, bytes));
  OK(cudaDeviceSynchronize());
  ck_assert_int_ge(shared_kib(), 64 << 10);
  OK(cudaFree(pointer));
  ck_assert_int_lt(shared_kib(), 8 << 10);
}
END_TEST

START_TEST(freed_memory_in_stock_is_used_again) {
  size_t bytes = 4 << 20;
  for (int i = 0; i < 200; i++) {
    void *pointer = device_allocate(bytes);
    memset(host_memory_resolve(pointer, bytes), i, bytes);
    OK(cudaFree(pointer));
  }
  ck_assert_int_lt(shared_kib(), 8 << 10);
}
END_TEST

START_TEST(live_allocations_never_overlap) {
  enum { COUNT = 400, ROUNDS = 8000 };
  static struct {
    char *at;
    size_t bytes;
    uint32_t mark;
  } live[COUNT];
  srand(1);
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    int i = rand() % COUNT;
    if (live[i].at) {
      uint32_t first, last;
      char *end = live[i].at + live[i].bytes - 4;
      memcpy(&first, host_memory_resolve(live[i].at, 4), 4);
      memcpy(&last, host_memory_resolve(end, 4), 4);
      ck_assert_uint_eq(first, live[i].mark);
      ck_assert_uint_eq(last, live[i].mark);
      OK(cudaFree(live[i].at));
      live[i].at = NULL;
      continue;
    }
    size_t bytes = (size_t)8 << rand() % 19;
    live[i].bytes = bytes + (size_t)rand() % bytes;
    live[i].at = device_allocate(live[i].bytes);
    live[i].mark = round;
    memcpy(host_memory_resolve(live[i].at, 4), &round, 4);
    memcpy(host_memory_resolve(live[i].at + live[i].bytes - 4, 4), &round, 4);
  }
}
END_TEST

START_TEST(fresh_memory_is_nan_where_this_is_asked_for) {
  setenv("SUNDOG_HOST_POISON", "1", 1);
  float *pointer = device_allocate(100 * sizeof *pointer);
  float *readable = host_memory_resolve(pointer, 100 * sizeof *pointer);
  for (int i = 0; i < 100; i++)
    ck_assert(readable[i] != readable[i]);
}
END_TEST

static void *churn(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < 2000; i++) {
    size_t bytes = (size_t)1 << rand_r(&seed) % 22;
    char *pointer, *end;
    if (cudaMalloc((void **)&pointer, bytes))
      return "cudaMalloc failed";
    end = host_memory_resolve(pointer + bytes - 1, 1);
    if (!end || host_memory_resolve(pointer, bytes + 1))
      return "resolve is wrong";
    *end = (char)seed;
    if (*end != (char)seed || cudaFree(pointer))
      return "memory is shared or cannot be freed";
  }
  return NULL;
}

START_TEST(threads_allocate_and_free_at_the_same_time) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
  for (int i = 0; i < 4; i++) {
    void *problem;
    pthread_join(threads[i], &problem);
    ck_assert_msg(!problem, "%s", (char *)problem);
  }
}
END_TEST

START_TEST(a_forked_child_cannot_use_the_device) {
  char *pointer = device_allocate(64);
  OK(cudaMemset(pointer, 7, 64));
  pid_t child = fork();
  if (child == 0) {
    void *other;
    int bad = cudaMemset(pointer, 1, 64) != cudaErrorInitializationError ||
              cudaMalloc(&other, 8) != cudaErrorInitializationError ||
              cudaDeviceSynchronize() != cudaErrorInitializationError;
    _exit(bad);
  }
  int status;
  waitpid(child, &status, 0);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  char value;
  OK(cudaMemcpy(&value, pointer, 1, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(value, 7);
}
END_TEST

START_TEST(a_child_forked_before_the_first_use_may_use_the_device) {
  pid_t child = fork();
  if (child == 0) {
    void *pointer;
    _exit(cudaMalloc(&pointer, 64) != cudaSuccess);
  }
  int status;
  waitpid(child, &status, 0);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(void) {
  setenv("SUNDOG_HOST_MEMORY", "104857600", 1);
  Suite *suite = suite_create("cudart_memory");
  TCase *tests = tcase_create("memory");
  tcase_add_test(tests, an_allocation_is_aligned_and_not_empty);
  tcase_add_test_raise_signal(tests, a_host_read_of_a_device_address_crashes,
                              SIGSEGV);
  tcase_add_test_raise_signal(tests, a_host_write_to_a_device_address_crashes,
                              SIGSEGV);
  tcase_add_test(tests, a_resolved_address_holds_what_was_copied);
  tcase_add_test(tests, a_range_that_leaves_its_allocation_is_not_resolved);
  tcase_add_test(tests, neither_pageable_nor_freed_memory_is_resolved);
  tcase_add_test(tests, the_inside_of_an_allocation_cannot_be_freed);
  tcase_add_test(tests, pinned_and_managed_memory_is_readable_and_resolved);
  tcase_add_test(tests, registered_memory_is_resolved_until_it_is_unregistered);
  tcase_add_test(tests, attributes_tell_what_an_address_is);
  tcase_add_test(tests, a_limit_that_is_no_number_gives_out_no_memory);
  tcase_add_test(tests, memory_beyond_the_limit_is_refused);
  tcase_add_test(tests, the_memory_of_a_freed_large_block_goes_back);
  tcase_add_test(tests, freed_memory_in_stock_is_used_again);
  tcase_add_test(tests, live_allocations_never_overlap);
  tcase_add_test(tests, fresh_memory_is_nan_where_this_is_asked_for);
  tcase_add_test(tests, threads_allocate_and_free_at_the_same_time);
  tcase_add_test(tests, a_forked_child_cannot_use_the_device);
  tcase_add_test(tests, a_child_forked_before_the_first_use_may_use_the_device);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
