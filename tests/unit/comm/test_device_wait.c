// SPDX-License-Identifier: Apache-2.0
// Waits for the device and captures, in several threads.
#include "src/comm/device_wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "tests/unit/harness.h"

enum { THREADS = 4, TIMES = 5000 };
static atomic_int waiting, capturing, overlaps;

static void *wait_often(void *unused) {
  for (int i = 0; i < TIMES; i++) {
    sdg_device_wait_begin();
    atomic_fetch_add(&waiting, 1);
    atomic_fetch_add(&overlaps, atomic_load(&capturing) > 0);
    atomic_fetch_sub(&waiting, 1);
    sdg_device_wait_end();
  }
  return unused;
}

static void *capture_often(void *unused) {
  for (int i = 0; i < TIMES; i++) {
    if (!sdg_device_capture_begin())
      continue;
    atomic_fetch_add(&capturing, 1);
    atomic_fetch_add(&overlaps, atomic_load(&waiting) > 0);
    atomic_fetch_sub(&capturing, 1);
    sdg_device_capture_end();
  }
  return unused;
}

START_TEST(waits_and_captures_never_overlap) {
  pthread_t thread[THREADS];
  for (int t = 0; t < THREADS; t++)
    ck_assert_int_eq(pthread_create(&thread[t], NULL,
                                    t % 2 ? wait_often : capture_often, NULL),
                     0);
  for (int t = 0; t < THREADS; t++)
    ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
  ck_assert_int_eq(atomic_load(&overlaps), 0);
}
END_TEST

START_TEST(a_capture_gives_way_to_a_wait_and_begins_after_it) {
  sdg_device_wait_begin();
  ck_assert(!sdg_device_capture_begin());
  sdg_device_wait_end();
  ck_assert(sdg_device_capture_begin());
  sdg_device_capture_end();
}
END_TEST

int main(void) {
  Suite *suite = suite_create("device_wait");
  TCase *cases = tcase_create("device_wait");
  tcase_add_test(cases, waits_and_captures_never_overlap);
  tcase_add_test(cases, a_capture_gives_way_to_a_wait_and_begins_after_it);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
