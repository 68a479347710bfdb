// SPDX-License-Identifier: Apache-2.0
// How much memory scratch takes, on a runtime that hands out addresses only.
#include "src/exchange/device.h"

#include "src/base/vendor.h"
#include "tests/unit/harness.h"
#include "tests/unit/job.h"

static const size_t MB = 1 << 20;

static size_t allocated, limit = SIZE_MAX;
static int calls;

static enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

static cudaError_t fake_mode(enum cudaStreamCaptureMode *io_mode) {
  enum cudaStreamCaptureMode was = mode;
  mode = *io_mode;
  *io_mode = was;
  return cudaSuccess;
}

// In another mode it would spoil a capture of another thread.
static void require_relaxed(void) {
  REQUIRE(mode == cudaStreamCaptureModeRelaxed);
}

static cudaError_t fake_malloc(void **out, size_t bytes) {
  static char memory;
  require_relaxed();
  calls++;
  if (bytes > limit)
    return cudaErrorMemoryAllocation;
  allocated = bytes;
  *out = &memory;
  return cudaSuccess;
}

static cudaError_t fake_free(void *data) {
  (void)data;
  require_relaxed();
  return cudaSuccess;
}

static cudaError_t fake_last_error(void) {
  return cudaSuccess;
}

static const char *fake_error_string(cudaError_t error) {
  (void)error;
  return "full";
}

static void *fake_find(sdg_library_t library, const char *name) {
  (void)library;
  static const job_fake_t table[] = {
      JOB_FAKE(cudaMalloc, fake_malloc),
      JOB_FAKE(cudaFree, fake_free),
      JOB_FAKE(cudaGetLastError, fake_last_error),
      JOB_FAKE(cudaGetErrorString, fake_error_string),
      JOB_FAKE(cudaThreadExchangeStreamCaptureMode, fake_mode),
  };
  return job_fake_find(table, sizeof table / sizeof table[0], name);
}

static size_t taken(size_t bytes) {
  void *data;
  sdg_scratch_forget();
  REQUIRE(sdg_scratch_get(SDG_SCRATCH_CALL, bytes, &data) == SDG_OK);
  REQUIRE(sdg_scratch_bytes() == allocated);
  REQUIRE(mode == cudaStreamCaptureModeGlobal);
  return allocated;
}

START_TEST(small_scratch_takes_a_quarter_more) {
  REQUIRE(taken(4 * MB) == 5 * MB);
  REQUIRE(taken(256 * MB) == 320 * MB);
}
END_TEST

START_TEST(large_scratch_takes_little_more) {
  REQUIRE(taken(257 * MB) == 321 * MB);
  REQUIRE(taken(8192 * MB) == 8256 * MB);
}
END_TEST

START_TEST(scratch_that_is_large_enough_stays) {
  void *data;
  (void)taken(100 * MB);
  calls = 0;
  REQUIRE(sdg_scratch_get(SDG_SCRATCH_CALL, 125 * MB, &data) == SDG_OK);
  REQUIRE(calls == 0);
}
END_TEST

START_TEST(without_room_for_more_scratch_takes_what_is_needed) {
  limit = 100 * MB;
  REQUIRE(taken(100 * MB) == 100 * MB);
  limit = SIZE_MAX;
}
END_TEST

int main(void) {
  sdg_library_set_finder(fake_find);
  Suite *suite = suite_create("scratch");
  TCase *cases = tcase_create("scratch");
  tcase_add_test(cases, small_scratch_takes_a_quarter_more);
  tcase_add_test(cases, large_scratch_takes_little_more);
  tcase_add_test(cases, scratch_that_is_large_enough_stays);
  tcase_add_test(cases, without_room_for_more_scratch_takes_what_is_needed);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
