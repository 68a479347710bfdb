// SPDX-License-Identifier: Apache-2.0
// Memory pools, and advice about managed memory.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/calls.h"

#define FAILS(call, why) ck_assert_int_eq((call), cudaError##why)

enum { MEGA = 1 << 20, PAGE = 4096, PAGES = 64 };

static const struct cudaMemLocation device = {.type =
                                                  cudaMemLocationTypeDevice};
static const struct cudaMemLocation host = {.type = cudaMemLocationTypeHost};

static uint64_t attribute(cudaMemPool_t pool, enum cudaMemPoolAttr which) {
  uint64_t value = 77;
  OK(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

static cudaMemPool_t pool_new(size_t limit_bytes) {
  cudaMemPool_t pool;
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                   .location = device,
                                   .maxSize = limit_bytes};
  OK(cudaMemPoolCreate(&pool, &props));
  return pool;
}

START_TEST(a_pool_counts_what_is_allocated_from_it) {
  cudaMemPool_t pool = pool_new(0);
  void *a, *b;
  OK(cudaMallocFromPoolAsync(&a, 3 * MEGA, pool, NULL));
  OK(cudaMallocFromPoolAsync(&b, MEGA, pool, NULL));
  OK(cudaMemsetAsync(b, 1, MEGA, NULL));
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 4 * MEGA);
  OK(cudaFreeAsync(a, NULL));
  OK(cudaStreamSynchronize(NULL));
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrUsedMemCurrent), MEGA);
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrUsedMemHigh), 4 * MEGA);
  /* Without a threshold a synchronisation gives back unused memory. */
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrReservedMemCurrent),
                    2 * MEGA);
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrReservedMemHigh), 4 * MEGA);
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &(uint64_t){0}));
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrUsedMemHigh), MEGA);
  /* The pool is destroyed with its last allocation. */
  OK(cudaMemPoolDestroy(pool));
  FAILS(cudaMemPoolTrimTo(pool, 0), InvalidValue);
  OK(cudaFree(b));
}
END_TEST

START_TEST(a_pool_keeps_what_its_threshold_says_until_it_is_trimmed) {
  cudaMemPool_t pool = pool_new(0);
  void *a;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                             &(uint64_t){UINT64_MAX}));
  OK(cudaMallocFromPoolAsync(&a, 8 * MEGA, pool, NULL));
  OK(cudaFreeAsync(a, NULL));
  OK(cudaDeviceSynchronize());
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrReservedMemCurrent),
                    8 * MEGA);
  OK(cudaMemPoolTrimTo(pool, 4 * MEGA));
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrReservedMemCurrent),
                    4 * MEGA);
  OK(cudaMemPoolTrimTo(pool, 0));
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0);
  OK(cudaMemPoolDestroy(pool));
}
END_TEST

START_TEST(the_devices_pool_can_be_another_one) {
  cudaMemPool_t standard, pool = pool_new(MEGA), now;
  void *a;
  OK(cudaDeviceGetDefaultMemPool(&standard, 0));
  OK(cudaDeviceSetMemPool(0, pool));
  OK(cudaMallocAsync(&a, 1000, NULL));
  ck_assert_uint_eq(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 1000);
  FAILS(cudaMallocAsync(&a, MEGA, NULL), MemoryAllocation);
  OK(cudaDeviceGetMemPool(&now, 0));
  ck_assert_ptr_eq(now, pool);
  OK(cudaMemPoolDestroy(pool));
  OK(cudaDeviceGetMemPool(&now, 0));
  ck_assert_ptr_eq(now, standard);
  OK(cudaFreeAsync(a, NULL));
  OK(cudaMallocAsync(&a, MEGA, NULL));
  ck_assert_uint_eq(attribute(standard, cudaMemPoolAttrUsedMemCurrent), MEGA);
  OK(cudaFree(a));
  ck_assert_uint_eq(attribute(standard, cudaMemPoolAttrUsedMemCurrent), 0);
  FAILS(cudaMemPoolDestroy(standard), InvalidValue);
  FAILS(cudaDeviceSetMemPool(1, standard), InvalidDevice);
  FAILS(cudaMallocFromPoolAsync(&a, 1, NULL, NULL), InvalidValue);
}
END_TEST

START_TEST(access_and_attributes_are_checked) {
  cudaMemPool_t pool = pool_new(0);
  enum cudaMemAccessFlags flags;
  struct cudaMemLocation where = device;
  struct cudaMemAccessDesc access = {.location = device,
                                     .flags = cudaMemAccessFlagsProtReadWrite};
  int reuse = 7;
  OK(cudaMemPoolGetAccess(&flags, pool, &where));
  ck_assert_int_eq(flags, cudaMemAccessFlagsProtReadWrite);
  OK(cudaMemPoolSetAccess(pool, &access, 1));
  access.flags = cudaMemAccessFlagsProtNone;
  FAILS(cudaMemPoolSetAccess(pool, &access, 1), InvalidValue);
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
  ck_assert_int_eq(reuse, 1);
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic,
                             &(int){0}));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
  ck_assert_int_eq(reuse, 0);
  FAILS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent,
                                &(uint64_t){0}),
        InvalidValue);
  FAILS(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)99, &reuse),
        InvalidValue);
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                   .location = host};
  FAILS(cudaMemPoolCreate(&pool, &props), NotSupported);
}
END_TEST

static void *churn(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  void *kept[16] = {NULL};
  intptr_t bad = 0;
  for (int i = 0; i < 2000; i++) {
    void **at = &kept[rand_r(&seed) % 16];
    if (*at)
      bad += cudaFreeAsync(*at, cudaStreamPerThread) != cudaSuccess;
    bad += cudaMallocAsync(at, 1 + (size_t)rand_r(&seed) % 5000,
                           cudaStreamPerThread) != cudaSuccess;
  }
  for (int i = 0; i < 16; i++)
    bad += cudaFreeAsync(kept[i], cudaStreamPerThread) != cudaSuccess;
  return (void *)bad;
}

START_TEST(threads_share_a_pool) {
  pthread_t thread[3];
  cudaMemPool_t standard;
  for (uintptr_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)),
                     0);
  for (int i = 0; i < 3; i++) {
    void *bad;
    pthread_join(thread[i], &bad);
    ck_assert_ptr_null(bad);
  }
  OK(cudaDeviceSynchronize());
  OK(cudaDeviceGetDefaultMemPool(&standard, 0));
  ck_assert_uint_eq(attribute(standard, cudaMemPoolAttrUsedMemCurrent), 0);
}
END_TEST

/* ---- managed memory ---- */

typedef struct said {
  bool read_mostly, by_device, by_host;
  int preferred, prefetched;
} said_t;

static int range_attribute(enum cudaMemRangeAttribute which, const char *from,
                           size_t bytes) {
  int value;
  OK(cudaMemRangeGetAttribute(&value, sizeof value, which, from, bytes));
  return value;
}

static void say_random(char *memory, said_t *said) {
  int first = rand() % PAGES, count = 1 + rand() % (PAGES - first);
  int place = rand() % 2 ? 0 : cudaCpuDeviceId;
  struct cudaMemLocation where = place == 0 ? device : host;
  char *from = memory + (size_t)first * PAGE;
  size_t bytes = (size_t)count * PAGE;
  int what = 1 + rand() % 7;
  if (what == 7)
    OK(cudaMemPrefetchAsync(from, bytes, where, 0, NULL));
  else
    OK(cudaMemAdvise(from, bytes, (enum cudaMemoryAdvise)what, where));
  for (int i = first; i < first + count; i++) {
    if (what == 1 || what == 2)
      said[i].read_mostly = what == 1;
    if (what == 3 || what == 4)
      said[i].preferred = what == 3 ? place : cudaInvalidDeviceId;
    if (what == 5 || what == 6)
      *(place == 0 ? &said[i].by_device : &said[i].by_host) = what == 5;
    if (what == 7)
      said[i].prefetched = place;
  }
}

static void said_check(const char *memory, const said_t *said) {
  int first = rand() % PAGES, count = 1 + rand() % (PAGES - first);
  const char *from = memory + (size_t)first * PAGE;
  size_t bytes = (size_t)count * PAGE;
  said_t all = said[first];
  for (int i = first; i < first + count; i++) {
    all.read_mostly = all.read_mostly && said[i].read_mostly;
    all.by_device = all.by_device && said[i].by_device;
    all.by_host = all.by_host && said[i].by_host;
    if (all.preferred != said[i].preferred)
      all.preferred = cudaInvalidDeviceId;
    if (all.prefetched != said[i].prefetched)
      all.prefetched = cudaInvalidDeviceId;
  }
  ck_assert_int_eq(
      range_attribute(cudaMemRangeAttributeReadMostly, from, bytes),
      all.read_mostly);
  ck_assert_int_eq(
      range_attribute(cudaMemRangeAttributePreferredLocation, from, bytes),
      all.preferred);
  ck_assert_int_eq(
      range_attribute(cudaMemRangeAttributeLastPrefetchLocation, from, bytes),
      all.prefetched);
  int who[3], expected[3] = {cudaInvalidDeviceId, cudaInvalidDeviceId,
                             cudaInvalidDeviceId};
  int at = 0;
  if (all.by_device)
    expected[at++] = 0;
  if (all.by_host)
    expected[at++] = cudaCpuDeviceId;
  OK(cudaMemRangeGetAttribute(who, sizeof who, cudaMemRangeAttributeAccessedBy,
                              from, bytes));
  ck_assert_mem_eq(who, expected, sizeof who);
}

START_TEST(advice_about_managed_memory_can_be_read_back) {
  static said_t said[PAGES];
  char *memory;
  srand(5);
  OK(cudaMallocManaged((void **)&memory, (size_t)PAGES * PAGE,
                       cudaMemAttachGlobal));
  for (int i = 0; i < PAGES; i++)
    said[i].preferred = said[i].prefetched = cudaInvalidDeviceId;
  for (int i = 0; i < 3000; i++) {
    say_random(memory, said);
    said_check(memory, said);
  }
  OK(cudaFree(memory));
  OK(cudaMallocManaged((void **)&memory, (size_t)PAGES * PAGE,
                       cudaMemAttachGlobal));
  ck_assert_int_eq(range_attribute(cudaMemRangeAttributeReadMostly, memory, 1),
                   0);
}
END_TEST

START_TEST(advice_is_for_managed_memory_only) {
  char *memory;
  int value;
  OK(cudaMalloc((void **)&memory, PAGE));
  FAILS(cudaMemAdvise(memory, PAGE, cudaMemAdviseSetReadMostly, device),
        InvalidValue);
  FAILS(cudaMemPrefetchAsync(memory, PAGE, device, 0, NULL), InvalidValue);
  FAILS(cudaMemRangeGetAttribute(&value, sizeof value,
                                 cudaMemRangeAttributeReadMostly, memory, PAGE),
        InvalidValue);
  OK(cudaMallocManaged((void **)&memory, PAGE, cudaMemAttachGlobal));
  FAILS(cudaMemAdvise(memory, PAGE, (enum cudaMemoryAdvise)9, device),
        InvalidValue);
  FAILS(cudaMemAdvise(memory, PAGE + 1, cudaMemAdviseSetReadMostly, device),
        InvalidValue);
  FAILS(cudaMemPrefetchAsync(memory, PAGE,
                             (struct cudaMemLocation){
                                 .type = cudaMemLocationTypeDevice, .id = 3},
                             0, NULL),
        InvalidDevice);
  FAILS(cudaMemRangeGetAttribute(&value, 3, cudaMemRangeAttributeReadMostly,
                                 memory, PAGE),
        InvalidValue);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_pool");
  TCase *tests = tcase_create("pool");
  tcase_add_test(tests, a_pool_counts_what_is_allocated_from_it);
  tcase_add_test(tests,
                 a_pool_keeps_what_its_threshold_says_until_it_is_trimmed);
  tcase_add_test(tests, the_devices_pool_can_be_another_one);
  tcase_add_test(tests, access_and_attributes_are_checked);
  tcase_add_test(tests, threads_share_a_pool);
  tcase_add_test(tests, advice_about_managed_memory_can_be_read_back);
  tcase_add_test(tests, advice_is_for_managed_memory_only);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
