// SPDX-License-Identifier: Apache-2.0
// Which phases of a stream share an event, on a runtime that counts events.
#include "src/exchange/phases.h"

#include <stdlib.h>

#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/job/job.h"
#include "tests/unit/harness.h"
#include "tests/unit/job.h"

enum { MORE = 2000 }; // phases than a ring has
static int records;
static bool ready; // the device has finished its work
static int64_t event_at[2 * MORE];

static cudaError_t fake_create(cudaEvent_t *out) {
  static uintptr_t events;
  REQUIRE(++events < 2 * MORE);
  *out = (cudaEvent_t)events;
  return cudaSuccess;
}

static cudaError_t fake_record(cudaEvent_t event, cudaStream_t stream) {
  (void)stream;
  event_at[(uintptr_t)event] = ++records;
  return cudaSuccess;
}

static cudaError_t fake_elapsed(float *out_ms, cudaEvent_t from,
                                cudaEvent_t to) {
  *out_ms = (float)(event_at[(uintptr_t)to] - event_at[(uintptr_t)from]);
  return ready ? cudaSuccess : cudaErrorNotReady;
}

static cudaError_t fake_synchronize(cudaStream_t stream) {
  (void)stream;
  return cudaSuccess;
}

static cudaError_t fake_last_error(void) {
  return cudaSuccess;
}

static void *fake_find(sdg_library_t library, const char *name) {
  static const job_fake_t table[] = {
      JOB_FAKE(cudaEventCreate, fake_create),
      JOB_FAKE(cudaEventRecord, fake_record),
      JOB_FAKE(cudaEventElapsedTime, fake_elapsed),
      JOB_FAKE(cudaStreamSynchronize, fake_synchronize),
      JOB_FAKE(cudaGetLastError, fake_last_error),
  };
  (void)library;
  return job_fake_find(table, sizeof table / sizeof *table, name);
}

static const cudaStream_t stream = (cudaStream_t)0x100,
                          other = (cudaStream_t)0x200;

static int begun(cudaStream_t on) {
  static char row; // nobody reads it
  int phase;
  REQUIRE(
      !sdg_phase_begin((sdg_report_row_t *)&row, SDG_PHASE_REAL, on, &phase));
  return phase;
}

static void ended(int phase, cudaStream_t on) {
  REQUIRE(!sdg_phase_end(phase, on));
}

// Returns how many events a phase needed.
static int events_of_phase(cudaStream_t on) {
  int before = records, phase = begun(on);
  REQUIRE(phase >= 0);
  ended(phase, on);
  return records - before;
}

static char folder[] = "/tmp/sdg-phases-XXXXXX";

static void setup(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
  char command[sizeof folder + 16];
  snprintf(command, sizeof command, "rm -r %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static void record_begin(void) {
  char record[sizeof folder + 32];
  snprintf(record, sizeof record, "SUNDOG_RECORD=%s", folder);
  REQUIRE(!sdg_options_load((char *[]){record, NULL}));
}

static void touch(int rank) {
  (void)rank;
  record_begin();
  ready = true;
  REQUIRE(events_of_phase(stream) == 3); // one to know the host's time
  REQUIRE(events_of_phase(stream) == 1);
  REQUIRE(events_of_phase(other) == 2);
  REQUIRE(events_of_phase(stream) == 1);
  REQUIRE(events_of_phase(other) == 1);
  sdg_phases_part(stream);
  REQUIRE(events_of_phase(stream) == 2);
  REQUIRE(events_of_phase(other) == 1);
}

START_TEST(phases_that_touch_share_an_event) {
  job_run("y=1", 1, "20", touch);
}
END_TEST

static void lie_apart(int rank) {
  int phase, phases = 0;
  (void)rank;
  record_begin();
  while ((phase = begun(stream)) >= 0) { // the device finishes nothing
    ended(phase, stream);
    REQUIRE(++phases < MORE);
  }
  ready = true;
  // Within the phase that was not timed, and after it.
  REQUIRE(events_of_phase(stream) == 2);
  ended(phase, stream);
  REQUIRE(events_of_phase(stream) == 2);
  REQUIRE(events_of_phase(stream) == 1);
}

START_TEST(a_phase_that_is_not_timed_lies_between_others) {
  job_run("y=1", 1, "20", lie_apart);
}
END_TEST

int main(void) {
  sdg_library_set_finder(fake_find);
  Suite *suite = suite_create("phases");
  TCase *cases = tcase_create("phases");
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, phases_that_touch_share_an_event);
  tcase_add_test(cases, a_phase_that_is_not_timed_lies_between_others);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
