// SPDX-License-Identifier: Apache-2.0
// The watching thread on a runtime whose events are reached when the test says.
#include "src/watch.h"

#include <nccl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/comm.h"
#include "src/job.h"
#include "src/options.h"
#include "src/vendor.h"
#include "tests/unit/brute.h"

// Transfers enqueued and ended; the event stands for those at its record.
static atomic_int enqueued, ended, recorded, records, aborts;

static cudaError_t fake_event_create(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  *out = (cudaEvent_t)(uintptr_t)1;
  return cudaSuccess;
}

static cudaError_t fake_event_record(cudaEvent_t event, cudaStream_t stream) {
  (void)event, (void)stream;
  atomic_store(&recorded, atomic_load(&enqueued));
  atomic_fetch_add(&records, 1);
  return cudaSuccess;
}

static cudaError_t fake_event_query(cudaEvent_t event) {
  (void)event;
  return atomic_load(&ended) >= atomic_load(&recorded) ? cudaSuccess
                                                       : cudaErrorNotReady;
}

static ncclResult_t fake_unique_id(ncclUniqueId *out) {
  memset(out, 0, sizeof *out);
  return ncclSuccess;
}

static ncclResult_t fake_comm_init(ncclComm_t *out, int ranks, ncclUniqueId id,
                                   int me, ncclConfig_t *config) {
  (void)ranks, (void)id, (void)me, (void)config;
  *out = (ncclComm_t)(uintptr_t)1;
  return ncclInProgress;
}

static atomic_int init_done = 1;

static ncclResult_t fake_async(ncclComm_t comm, ncclResult_t *out) {
  (void)comm;
  *out = atomic_load(&init_done) ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

static ncclResult_t fake_abort(ncclComm_t comm) {
  (void)comm;
  atomic_fetch_add(&aborts, 1);
  return ncclSuccess;
}

static void unused_function(void) {
  abort();
}

static void *find(sdg_library_t library, const char *name) {
  (void)library;
  static const struct {
    const char *name;
    void (*function)(void);
  } table[] = {
      {"cudaEventCreateWithFlags", (void (*)(void))fake_event_create},
      {"cudaEventRecord", (void (*)(void))fake_event_record},
      {"cudaEventQuery", (void (*)(void))fake_event_query},
      {"ncclGetUniqueId", (void (*)(void))fake_unique_id},
      {"ncclCommInitRankConfig", (void (*)(void))fake_comm_init},
      {"ncclCommGetAsyncError", (void (*)(void))fake_async},
      {"ncclCommAbort", (void (*)(void))fake_abort},
  };
  void (*function)(void) = unused_function;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (strcmp(table[i].name, name) == 0)
      function = table[i].function;
  void *address;
  memcpy(&address, &function, sizeof address);
  return address;
}

static void transfer(void) {
  atomic_fetch_add(&enqueued, 1);
  REQUIRE(!sdg_watch_transfer(NULL, "cudnnTest"));
}

// True once `*word` is at least `value`; false after some seconds.
static bool comes(atomic_int *word, int value) {
  for (int i = 0; i < 500; i++) {
    if (atomic_load(word) >= value)
      return true;
    usleep(10000);
  }
  return false;
}

// Two ranks; rank 0 runs `body`, rank 1 makes the communicator and idles.
static void run(const char *timeout, void (*body)(void)) {
  char folder[] = "/tmp/sdg-test-XXXXXX", meet[64], limit[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(meet, sizeof meet, "SUNDOG_RENDEZVOUS=file:%s/meet", folder);
  snprintf(limit, sizeof limit, "SUNDOG_TIMEOUT=%s", timeout);
  int failed = 0;
  pid_t pid[2];
  for (int r = 0; r < 2; r++) {
    pid[r] = fork();
    ck_assert_int_ge(pid[r], 0);
    if (pid[r] > 0)
      continue;
    alarm(20);
    setenv("SUNDOG_RANK", r ? "1" : "0", 1);
    setenv("SUNDOG_SIZE", "2", 1);
    char split[] = "SUNDOG_SPLIT=H";
    REQUIRE(!sdg_options_load((char *[]){split, meet, limit, NULL}));
    sdg_mesh_t mesh;
    sdg_comm_t *comm;
    REQUIRE(!sdg_mesh_parse("y=2", 2, &mesh));
    REQUIRE(!sdg_job_join(&mesh, 1));
    REQUIRE(!sdg_comm_get(1, &comm));
    if (r == 0)
      body();
    else
      pause();
    sdg_job_finish();
    _exit(0);
  }
  int status;
  ck_assert_int_eq(waitpid(pid[0], &status, 0), pid[0]);
  failed = status;
  kill(pid[1], SIGKILL);
  ck_assert_int_eq(waitpid(pid[1], &status, 0), pid[1]);
  (void)unlink(strcat(strcpy(meet, folder), "/meet"));
  (void)unlink(strcat(meet, ".lock"));
  ck_assert_int_eq(rmdir(folder), 0);
  ck_assert_int_eq(failed, 0);
}

static void last_body(void) {
  transfer();
  transfer(); // while the first is in flight
  atomic_store(&ended, 1);
  REQUIRE(comes(&sdg_job_failure, SDG_E_PEER_TIMEOUT));
  REQUIRE(comes(&aborts, 1));
}

START_TEST(the_last_of_several_transfers_is_watched_too) {
  run("0.6", last_body);
}
END_TEST

static void idle_body(void) {
  for (int i = 0; i < 20; i++) {
    transfer();
    usleep(1000);
  }
  atomic_store(&ended, 20);
  REQUIRE(comes(&records, 2)); // what came while the first was in flight
  usleep(900000);
  REQUIRE(!sdg_job_failed() && atomic_load(&aborts) == 0);
}

START_TEST(transfers_that_end_are_no_failure) {
  run("0.5", idle_body);
}
END_TEST

static void broken_body(void) {
  transfer();
  (void)sdg_job_fail(SDG_E_CUDA);
  REQUIRE(comes(&aborts, 1));
  usleep(100000);
  REQUIRE(atomic_load(&aborts) == 1);
}

START_TEST(whoever_breaks_the_job_what_is_in_flight_is_ended) {
  run("20", broken_body);
}
END_TEST

static void aborted_body(void) {
  sdg_comm_t *comm;
  sdg_comm_abort_all();
  REQUIRE(sdg_comm_lock() == SDG_E_JOB_BROKEN);
  REQUIRE(!sdg_comm_get(1, &comm));
  REQUIRE(sdg_comm_check(comm, ncclInProgress, "test") == SDG_E_JOB_BROKEN);
}

START_TEST(nothing_is_asked_of_an_aborted_communicator) {
  run("20", aborted_body);
}
END_TEST

static void stalled_body(void) {
  sdg_comm_t *comm;
  REQUIRE(!sdg_comm_get(1, &comm));
  atomic_store(&init_done, 0);
  REQUIRE(sdg_comm_check(comm, ncclInProgress, "test") == SDG_E_PEER_TIMEOUT);
}

START_TEST(an_operation_that_stays_in_progress_ends_within_the_limit) {
  run("0.5", stalled_body);
}
END_TEST

int main(void) {
  sdg_library_set_finder(find);
  Suite *suite = suite_create("watch");
  TCase *cases = tcase_create("watch");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, the_last_of_several_transfers_is_watched_too);
  tcase_add_test(cases, transfers_that_end_are_no_failure);
  tcase_add_test(cases, whoever_breaks_the_job_what_is_in_flight_is_ended);
  tcase_add_test(cases, nothing_is_asked_of_an_aborted_communicator);
  tcase_add_test(cases,
                 an_operation_that_stays_in_progress_ends_within_the_limit);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
