// SPDX-License-Identifier: Apache-2.0
// The watching thread, on a runtime whose events complete when the test says.
#include "src/comm/watch.h"

#include <nccl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/vendor.h"
#include "src/control/control.h"
#include "src/comm/comm.h"
#include "src/job/job.h"
#include "tests/unit/random.h"
#include "tests/unit/job.h"

// Transfers that were enqueued and that ended; an event counts those before it.
enum { EVENTS = 2 };
static atomic_int enqueued, ended, recorded[EVENTS], events, aborts;

// The thread that makes communicators has an event of its own.
static atomic_int made, makers_event;

static cudaError_t fake_event_create(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  *out = (cudaEvent_t)&makers_event;
  if (!atomic_load(&made))
    return cudaSuccess;
  *out = (cudaEvent_t)&recorded[atomic_fetch_add(&events, 1)];
  REQUIRE(atomic_load(&events) <= EVENTS);
  return cudaSuccess;
}

static cudaError_t fake_event_destroy(cudaEvent_t event) {
  REQUIRE(event == (cudaEvent_t)&makers_event);
  return cudaSuccess;
}

static cudaError_t fake_event_record(cudaEvent_t event, cudaStream_t stream) {
  (void)stream;
  atomic_store((atomic_int *)event, atomic_load(&enqueued));
  return cudaSuccess;
}

static _Thread_local enum cudaStreamCaptureMode capture_mode =
    cudaStreamCaptureModeGlobal;

static cudaError_t fake_capture_mode(enum cudaStreamCaptureMode *mode) {
  enum cudaStreamCaptureMode before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return cudaSuccess;
}

// A thread begins with device 0; the rank's is another one.
enum { RANKS_DEVICE = 3 };
static _Thread_local int current_device;

static cudaError_t fake_device(int *out) {
  *out = current_device;
  return cudaSuccess;
}

static cudaError_t fake_set_device(int device) {
  current_device = device;
  return cudaSuccess;
}

// Looks of the thread, and the most transfers that one look waited for.
static atomic_int look_us, looks, looked_for;

static cudaError_t fake_event_query(cudaEvent_t event) {
  if (event == (cudaEvent_t)&makers_event)
    return cudaSuccess;
  int recorded_now = atomic_load((atomic_int *)event);
  atomic_fetch_add(&looks, 1);
  if (recorded_now > atomic_load(&looked_for))
    atomic_store(&looked_for, recorded_now);
  usleep((unsigned)atomic_load(&look_us));
  REQUIRE(current_device == RANKS_DEVICE);
  // Otherwise a capture by the program would fail.
  REQUIRE(capture_mode == cudaStreamCaptureModeRelaxed);
  return atomic_load(&ended) >= recorded_now ? cudaSuccess : cudaErrorNotReady;
}

static ncclResult_t fake_unique_id(ncclUniqueId *out) {
  memset(out, 0, sizeof *out);
  return ncclSuccess;
}

static atomic_int init_done = 1;

// NCCL waits without a limit for ranks that do not come.
static ncclResult_t fake_comm_init(ncclComm_t *out, int ranks, ncclUniqueId id,
                                   int me, ncclConfig_t *config) {
  (void)ranks, (void)id, (void)me;
  REQUIRE(config->blocking == 1);
  while (!atomic_load(&init_done))
    usleep(10000);
  *out = (ncclComm_t)(uintptr_t)1;
  return ncclSuccess;
}

static ncclResult_t fake_split(ncclComm_t all, int color, int key,
                               ncclComm_t *out, ncclConfig_t *config) {
  (void)all, (void)color, (void)key, (void)config;
  *out = (ncclComm_t)(uintptr_t)2;
  return ncclSuccess;
}

static ncclResult_t fake_send(const void *data, size_t bytes,
                              ncclDataType_t type, int peer, ncclComm_t comm,
                              cudaStream_t stream) {
  (void)data, (void)bytes, (void)type, (void)peer, (void)comm, (void)stream;
  return ncclSuccess;
}

static ncclResult_t fake_recv(void *data, size_t bytes, ncclDataType_t type,
                              int peer, ncclComm_t comm, cudaStream_t stream) {
  return fake_send(data, bytes, type, peer, comm, stream);
}

static ncclResult_t fake_sum(const void *from, void *to, size_t count,
                             ncclDataType_t type, ncclRedOp_t op,
                             ncclComm_t comm, cudaStream_t stream) {
  (void)from, (void)to, (void)count, (void)type, (void)op, (void)comm,
      (void)stream;
  return ncclSuccess;
}

static ncclResult_t fake_group(void) {
  return ncclSuccess;
}

static cudaError_t fake_malloc(void **out, size_t bytes) {
  *out = malloc(bytes);
  return cudaSuccess;
}

static cudaError_t fake_priorities(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

static cudaError_t fake_stream_create(cudaStream_t *out, unsigned flags,
                                      int priority) {
  (void)flags, (void)priority;
  *out = NULL;
  return cudaSuccess;
}

static cudaError_t fake_stream_destroy(cudaStream_t stream) {
  (void)stream;
  return cudaSuccess;
}

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

// Each rank has its own GPU.
static cudaError_t fake_bus(char *out, int bytes, int device) {
  snprintf(out, (size_t)bytes, "0000:%02X:%02X.0", (unsigned)sdg_job_rank(),
           (unsigned)device);
  return cudaSuccess;
}

static void *find(sdg_library_t library, const char *name) {
  (void)library;
  static const job_fake_t table[] = {
      JOB_FAKE(cudaGetDevice, fake_device),
      JOB_FAKE(cudaDeviceGetPCIBusId, fake_bus),
      JOB_FAKE(cudaSetDevice, fake_set_device),
      JOB_FAKE(cudaMalloc, fake_malloc),
      JOB_FAKE(cudaDeviceGetStreamPriorityRange, fake_priorities),
      JOB_FAKE(cudaStreamCreateWithPriority, fake_stream_create),
      JOB_FAKE(cudaStreamDestroy, fake_stream_destroy),
      JOB_FAKE(cudaEventDestroy, fake_event_destroy),
      JOB_FAKE(ncclCommSplit, fake_split),
      JOB_FAKE(ncclGroupStart, fake_group),
      JOB_FAKE(ncclGroupEnd, fake_group),
      JOB_FAKE(ncclSend, fake_send),
      JOB_FAKE(ncclRecv, fake_recv),
      JOB_FAKE(ncclAllReduce, fake_sum),
      JOB_FAKE(cudaEventCreateWithFlags, fake_event_create),
      JOB_FAKE(cudaEventRecord, fake_event_record),
      JOB_FAKE(cudaEventQuery, fake_event_query),
      JOB_FAKE(cudaThreadExchangeStreamCaptureMode, fake_capture_mode),
      JOB_FAKE(ncclGetUniqueId, fake_unique_id),
      JOB_FAKE(ncclCommInitRankConfig, fake_comm_init),
      JOB_FAKE(ncclCommGetAsyncError, fake_async),
      JOB_FAKE(ncclCommAbort, fake_abort),
  };
  return job_fake_find(table, sizeof table / sizeof table[0], name);
}

static void transfer(void) {
  atomic_fetch_add(&enqueued, 1);
  REQUIRE(!sdg_watch_begin("cudnnTest"));
  REQUIRE(!sdg_watch_end(SDG_OK, NULL));
}

// Waits until `*word` is at least `value`; returns false after some seconds.
static bool comes(atomic_int *word, int value) {
  for (int i = 0; i < 500; i++) {
    if (atomic_load(word) >= value)
      return true;
    usleep(10000);
  }
  return false;
}

static void (*body_of_rank_0)(void);

static void rank_body(int rank) {
  sdg_comm_t *comm;
  current_device = RANKS_DEVICE;
  REQUIRE(!sdg_comm_get(1, &comm));
  atomic_store(&made, 1);
  if (rank == 0)
    body_of_rank_0();
}

// Two ranks make a communicator; one continues with `body`, the other ends.
static void run(const char *timeout_s, void (*body)(void)) {
  body_of_rank_0 = body;
  job_run("y=2", 1, timeout_s, rank_body);
}

static void during_body(void) {
  atomic_store(&look_us, 50000);
  atomic_store(&ended, 1); // before it is enqueued: one look is enough
  transfer();
  REQUIRE(comes(&looks, 1));
}

// The job finishes during a look; no signal follows.
START_TEST(a_process_may_end_during_a_look) {
  run("20", during_body);
}
END_TEST

static void last_body(void) {
  transfer();
  transfer(); // while the first is in flight
  atomic_store(&ended, 1);
  REQUIRE(comes(&sdg_job_failure, 1));
  REQUIRE(atomic_load(&sdg_job_failure) == SDG_E_PEER_TIMEOUT);
  REQUIRE(comes(&aborts, 1));
}

START_TEST(the_last_of_several_transfers_is_watched_too) {
  run("0.6", last_body);
}
END_TEST

// Work that the program enqueues after a transfer is not watched.
static void behind_body(void) {
  transfer();
  transfer();
  atomic_fetch_add(&enqueued, 1);
  atomic_store(&ended, 2);
  usleep(900000);
  REQUIRE(atomic_load(&looked_for) == 2);
  REQUIRE(!sdg_job_failed() && atomic_load(&aborts) == 0);
}

START_TEST(work_behind_the_last_transfer_is_not_watched) {
  run("0.5", behind_body);
}
END_TEST

static void idle_body(void) {
  for (int i = 0; i < 20; i++) {
    transfer();
    usleep(1000);
  }
  atomic_store(&ended, 20);
  REQUIRE(comes(&looked_for, 20)); // the later transfer
  usleep(900000);
  REQUIRE(!sdg_job_failed() && atomic_load(&aborts) == 0);
}

START_TEST(transfers_that_end_are_no_failure) {
  run("0.5", idle_body);
}
END_TEST

// NCCL waits for a rank while the transfer is enqueued, and returns when the
// communicator is aborted.
static void stuck_body(void) {
  REQUIRE(!sdg_watch_begin("cudnnTest"));
  REQUIRE(!sdg_comm_lock());
  REQUIRE(comes(&aborts, 1));
  sdg_comm_unlock();
  REQUIRE(atomic_load(&sdg_job_failure) == SDG_E_PEER_TIMEOUT);
  REQUIRE(sdg_watch_end(SDG_E_NCCL, NULL) == SDG_E_NCCL);
  REQUIRE(sdg_comm_lock() == SDG_E_JOB_BROKEN);
}

START_TEST(a_transfer_that_cannot_be_enqueued_ends_within_the_limit) {
  run("0.6", stuck_body);
}
END_TEST

// The same thread enqueues for longer than the limit, but one after another.
static void busy_body(void) {
  for (int i = 0; i < 30; i++) {
    REQUIRE(!sdg_watch_begin("cudnnTest"));
    usleep(50000);
    REQUIRE(sdg_watch_end(SDG_E_CUDA, NULL) == SDG_E_CUDA);
  }
  REQUIRE(!sdg_job_failed() && atomic_load(&aborts) == 0);
}

START_TEST(each_transfer_has_the_limit_for_itself) {
  run("0.6", busy_body);
}
END_TEST

static void lost_body(void) {
  sdg_control_count(sdg_job_control(), 0, 3, "cudnnTest");
  transfer();
  REQUIRE(comes(&sdg_job_failure, 1));
  REQUIRE(atomic_load(&sdg_job_failure) == SDG_E_PEER_LOST);
  REQUIRE(comes(&aborts, 1));
}

START_TEST(a_rank_that_left_before_a_transfer_ends_the_wait) {
  run("20", lost_body);
}
END_TEST

// Ranks 0 and 1 split one tensor, ranks 2 and 3 another.
static void groups_body(int rank) {
  sdg_comm_t *comm;
  current_device = RANKS_DEVICE;
  REQUIRE(!sdg_comm_get(2, &comm));
  atomic_store(&made, 1);
  if (rank >= 2)
    return;
  sdg_control_count(sdg_job_control(), 0, 3, "cudnnTest");
  if (rank == 0)
    transfer();
  usleep(1500000);
  REQUIRE(!sdg_job_failed());
}

START_TEST(ranks_of_other_groups_may_end_at_any_time) {
  job_run("d=2,y=2", 2, "20", groups_body);
}
END_TEST

static void broken_body(void) {
  transfer();
  (void)sdg_job_fail(SDG_E_CUDA);
  REQUIRE(comes(&aborts, 1));
  usleep(100000);
  REQUIRE(atomic_load(&aborts) == 1);
}

START_TEST(transfers_in_flight_end_when_the_job_breaks) {
  run("20", broken_body);
}
END_TEST

static void aborted_body(void) {
  sdg_comm_t *comm;
  sdg_comm_abort_all();
  REQUIRE(sdg_comm_lock() == SDG_E_JOB_BROKEN);
  REQUIRE(!sdg_comm_get(1, &comm));
  REQUIRE(sdg_comm_check(comm->sum, ncclInProgress, "test") ==
          SDG_E_JOB_BROKEN);
}

START_TEST(an_aborted_communicator_is_not_queried) {
  run("20", aborted_body);
}
END_TEST

static void stalled_body(void) {
  sdg_comm_t *comm;
  REQUIRE(!sdg_comm_get(1, &comm));
  atomic_store(&init_done, 0);
  REQUIRE(sdg_comm_check(comm->sum, ncclInProgress, "test") ==
          SDG_E_PEER_TIMEOUT);
}

START_TEST(an_operation_that_stays_in_progress_ends_within_the_limit) {
  run("0.5", stalled_body);
}
END_TEST

// Rank 1 has gone, and NCCL does not say so.
static void unmade_body(int rank) {
  sdg_comm_t *comm;
  atomic_store(&init_done, rank);
  sdg_status_t status = sdg_comm_get(1, &comm);
  REQUIRE(status == (rank == 0 ? SDG_E_PEER_TIMEOUT : SDG_OK));
  usleep(rank == 0 ? 0 : 1500000);
}

START_TEST(communicators_that_are_never_made_end_within_the_limit) {
  job_run("y=2", 1, "0.5", unmade_body);
}
END_TEST

int main(void) {
  sdg_library_set_finder(find);
  Suite *suite = suite_create("watch");
  TCase *cases = tcase_create("watch");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, a_process_may_end_during_a_look);
  tcase_add_test(cases, the_last_of_several_transfers_is_watched_too);
  tcase_add_test(cases, work_behind_the_last_transfer_is_not_watched);
  tcase_add_test(cases, transfers_that_end_are_no_failure);
  tcase_add_test(cases, a_rank_that_left_before_a_transfer_ends_the_wait);
  tcase_add_test(cases, ranks_of_other_groups_may_end_at_any_time);
  tcase_add_test(cases, transfers_in_flight_end_when_the_job_breaks);
  tcase_add_test(cases, an_aborted_communicator_is_not_queried);
  tcase_add_test(cases,
                 an_operation_that_stays_in_progress_ends_within_the_limit);
  tcase_add_test(cases,
                 a_transfer_that_cannot_be_enqueued_ends_within_the_limit);
  tcase_add_test(cases, each_transfer_has_the_limit_for_itself);
  tcase_add_test(cases, communicators_that_are_never_made_end_within_the_limit);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
