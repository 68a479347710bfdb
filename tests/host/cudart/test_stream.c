// SPDX-License-Identifier: Apache-2.0
// Streams and events of the host device: order, overlap, errors.
#include "tests/host/cudart/queue.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "src/host/host.h"

static cudaError_t fail_run(void *argument) {
  (void)argument;
  return cudaErrorIllegalAddress;
}

static void wait_for_log(int count) {
  for (int i = 0; i < 50000 && atomic_load(&log_count) < count; i++)
    usleep(100);
  ck_assert_int_ge(atomic_load(&log_count), count);
}

START_TEST(work_of_a_stream_runs_in_order) {
  enum { COUNT = 20000 };
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  for (int i = 0; i < 64; i++)
    submit(stream, log_run, i);
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(log_count, 64);
  for (int i = 0; i < 64; i++)
    ck_assert_int_eq(log_entry[i], i);
  for (int i = 0; i < COUNT; i++)
    submit(stream, log_run, i);
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(log_count, 64 + COUNT);
  OK(cudaStreamDestroy(stream));
}
END_TEST

START_TEST(work_progresses_while_nobody_waits) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  for (int i = 0; i < 20; i++) {
    submit(stream, log_run, i);
    wait_for_log(i + 1);
    if (i % 4 == 0)
      usleep(3000); /* let the worker fall asleep */
  }
}
END_TEST

START_TEST(independent_streams_overlap) {
  cudaStream_t a = stream_new(cudaStreamNonBlocking);
  cudaStream_t b = stream_new(cudaStreamNonBlocking);
  submit(a, gate_run, 0);
  submit(b, log_run, 1);
  OK(cudaStreamSynchronize(b));
  ck_assert_int_eq(log_count, 1);
  ck_assert_int_eq(cudaStreamQuery(a), cudaErrorNotReady);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorNotReady);
  atomic_store(&gate, 1);
  OK(cudaStreamSynchronize(a));
  OK(cudaStreamQuery(a));
}
END_TEST

START_TEST(an_event_orders_two_streams) {
  cudaStream_t a = stream_new(cudaStreamNonBlocking);
  cudaStream_t b = stream_new(cudaStreamNonBlocking);
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  OK(cudaEventQuery(event));
  submit(a, gate_run, 0);
  submit(a, log_run, 1);
  OK(cudaEventRecord(event, a));
  OK(cudaStreamWaitEvent(b, event, 0));
  submit(b, log_run, 2);
  OK(cudaEventRecord(event, b)); /* the wait keeps the first record */
  OK(cudaEventDestroy(event));
  usleep(5000);
  ck_assert_int_eq(log_count, 0);
  atomic_store(&gate, 1);
  OK(cudaStreamSynchronize(b));
  ck_assert_int_eq(log_count, 2);
  ck_assert_int_eq(log_entry[0], 1);
  ck_assert_int_eq(log_entry[1], 2);
}
END_TEST

START_TEST(an_event_is_passed_before_later_work) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  cudaEvent_t event;
  OK(cudaEventCreate(&event));
  submit(stream, log_run, 1);
  OK(cudaEventRecord(event, stream));
  submit(stream, gate_run, 0);
  OK(cudaEventSynchronize(event));
  ck_assert_int_eq(log_count, 1);
  ck_assert_int_eq(cudaStreamQuery(stream), cudaErrorNotReady);
  OK(cudaEventRecord(event, stream));
  ck_assert_int_eq(cudaEventQuery(event), cudaErrorNotReady);
  atomic_store(&gate, 1);
  OK(cudaEventSynchronize(event));
}
END_TEST

START_TEST(elapsed_time_is_that_of_the_work_between) {
  cudaStream_t stream = stream_new(cudaStreamDefault);
  cudaEvent_t start, end, untimed;
  float ms = -1;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  ck_assert_int_eq(cudaEventElapsedTime(&ms, start, end),
                   cudaErrorInvalidResourceHandle);
  submit(stream, gate_run, 0);
  OK(cudaEventRecord(start, stream));
  submit(stream, sleep_run, 20000);
  OK(cudaEventRecord(end, stream));
  OK(cudaEventRecord(untimed, stream));
  ck_assert_int_eq(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
  usleep(50000);
  atomic_store(&gate, 1);
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&ms, start, end));
  ck_assert_float_ge(ms, 19.9f);
  ck_assert_int_eq(cudaEventElapsedTime(&ms, start, untimed),
                   cudaErrorInvalidResourceHandle);
}
END_TEST

// More events than one piece of work can have, recorded while it runs, while it
// is queued, and, in odd rounds, while it ends.
START_TEST(events_of_one_moment_have_times_in_order) {
  enum { EACH = 5, EVENTS = 3 * EACH };
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  cudaEvent_t event[EVENTS];
  for (int i = 0; i < EVENTS; i++)
    OK(cudaEventCreate(&event[i]));
  for (int round = 0; round < 200; round++) {
    bool held = round % 2 == 0;
    atomic_store(&gate, !held);
    atomic_store(&log_count, 0);
    submit(stream, gate_run, 0);
    for (int i = 0; i < EVENTS; i++) {
      if (i % EACH == 0)
        submit(stream, log_run, i);
      OK(cudaEventRecord(event[i], stream));
      if (held)
        ck_assert_int_eq(cudaEventQuery(event[i]), cudaErrorNotReady);
    }
    ck_assert_int_eq(cudaGetLastError(),
                     held ? cudaErrorNotReady : cudaSuccess);
    atomic_store(&gate, 1);
    for (int i = 0; i < EVENTS; i++) {
      float ms = -1;
      OK(cudaEventSynchronize(event[i]));
      OK(cudaEventElapsedTime(&ms, event[i ? i - 1 : 0], event[i]));
      ck_assert(ms >= 0);
      ck_assert_int_ge(atomic_load(&log_count), i / EACH + 1);
    }
    OK(cudaStreamSynchronize(stream));
  }
  for (int i = 0; i < EVENTS; i++)
    OK(cudaEventDestroy(event[i]));
}
END_TEST

START_TEST(the_default_stream_waits_for_blocking_streams) {
  cudaStream_t blocking = stream_new(cudaStreamDefault);
  submit(blocking, gate_run, 0);
  submit(blocking, log_run, 1);
  submit(NULL, log_run, 2);
  usleep(3000);
  ck_assert_int_eq(log_count, 0);
  atomic_store(&gate, 1);
  OK(cudaStreamSynchronize(NULL));
  ck_assert_int_eq(log_entry[0], 1);
  ck_assert_int_eq(log_entry[1], 2);
}
END_TEST

START_TEST(blocking_streams_wait_for_the_default_stream) {
  cudaStream_t blocking = stream_new(cudaStreamDefault);
  cudaStream_t free_one = stream_new(cudaStreamNonBlocking);
  submit(cudaStreamLegacy, gate_run, 0);
  submit(blocking, log_run, 1);
  submit(cudaStreamPerThread, log_run, 2);
  submit(free_one, log_run, 3);
  OK(cudaStreamSynchronize(free_one));
  usleep(3000);
  ck_assert_int_eq(log_count, 1);
  ck_assert_int_eq(log_entry[0], 3);
  atomic_store(&gate, 1);
  OK(cudaDeviceSynchronize());
  ck_assert_int_eq(log_count, 3);
}
END_TEST

START_TEST(a_blocking_copy_waits_for_blocking_streams) {
  cudaStream_t blocking = stream_new(cudaStreamDefault);
  char *pointer, value = 0;
  OK(cudaMalloc((void **)&pointer, 1 << 20));
  OK(cudaMemset(pointer, 1, 1 << 20));
  submit(blocking, sleep_run, 20000);
  OK(cudaMemsetAsync(pointer, 5, 1 << 20, blocking));
  OK(cudaMemcpy(&value, pointer, 1, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(value, 5);
}
END_TEST

START_TEST(a_pageable_source_may_change_after_an_async_copy) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  int source = 1, back[2] = {0, 0}, *pointer;
  OK(cudaMalloc((void **)&pointer, sizeof back));
  submit(stream, gate_run, 0);
  for (int i = 0; i < 2; i++) {
    source = i + 1;
    OK(cudaMemcpyAsync(pointer + i, &source, sizeof source,
                       cudaMemcpyHostToDevice, stream));
  }
  source = 99;
  atomic_store(&gate, 1);
  OK(cudaMemcpyAsync(back, pointer, sizeof back, cudaMemcpyDeviceToHost,
                     stream));
  ck_assert_int_eq(back[0], 1); /* pageable: done at return */
  ck_assert_int_eq(back[1], 2);
}
END_TEST

START_TEST(a_failure_stays_until_the_device_is_reset) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  void *pointer;
  submit(stream, gate_run, 0);
  submit(stream, fail_run, 0);
  submit(stream, log_run, 1);
  atomic_store(&gate, 1);
  ck_assert_int_eq(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  ck_assert_int_eq(log_count, 0); /* skipped, but released */
  ck_assert_int_eq(released, 3);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
  ck_assert_int_eq(cudaMalloc(&pointer, 8), cudaErrorIllegalAddress);
  ck_assert_int_eq(host_stream_submit(stream, log_run, NULL, count_release),
                   cudaErrorIllegalAddress);
  ck_assert_int_eq(released, 4);
  OK(cudaDeviceReset());
  OK(cudaGetLastError());
  OK(cudaMalloc(&pointer, 8));
}
END_TEST

START_TEST(handles_that_are_not_open_are_refused) {
  cudaStream_t stream = stream_new(cudaStreamDefault);
  cudaEvent_t event;
  OK(cudaStreamDestroy(stream));
  ck_assert_int_eq(cudaStreamSynchronize(stream),
                   cudaErrorInvalidResourceHandle);
  ck_assert_int_eq(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
  ck_assert_int_eq(host_stream_submit(stream, log_run, NULL, count_release),
                   cudaErrorInvalidResourceHandle);
  ck_assert_int_eq(released, 1);
  OK(cudaEventCreate(&event));
  OK(cudaEventDestroy(event));
  ck_assert_int_eq(cudaEventRecord(event, NULL),
                   cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(a_destroyed_stream_finishes_its_work) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  submit(stream, gate_run, 0);
  submit(stream, log_run, 1);
  OK(cudaStreamDestroy(stream));
  cudaStream_t other = stream_new(cudaStreamNonBlocking);
  ck_assert_ptr_ne(other, stream);
  atomic_store(&gate, 1);
  wait_for_log(1);
}
END_TEST

static void host_function(void *argument) {
  cudaError_t *inside = argument;
  *inside = cudaDeviceSynchronize();
}

static void callback(cudaStream_t stream, cudaError_t status, void *argument) {
  (void)stream;
  *(cudaError_t *)argument = status;
}

START_TEST(host_functions_run_in_order_and_may_not_call_cuda) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  cudaError_t inside = cudaSuccess, status = cudaErrorUnknown;
  submit(stream, log_run, 1);
  OK(cudaLaunchHostFunc(stream, host_function, &inside));
  OK(cudaStreamAddCallback(stream, callback, &status, 0));
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(inside, cudaErrorNotPermitted);
  ck_assert_int_eq(status, cudaSuccess);
}
END_TEST

/* Random work on all kinds of streams: when a piece runs, it checks that those
 * before it have run. */
enum { PIECES = 4000, LANES = 7, MARKS = 4, NEEDS = LANES + MARKS };

static struct { int needs[NEEDS], count; } piece[PIECES];
static _Atomic bool ran[PIECES];
static _Atomic int too_early;

static cudaError_t piece_run(void *argument) {
  int me = (int)(intptr_t)argument;
  for (int i = 0; i < piece[me].count; i++)
    if (!atomic_load(&ran[piece[me].needs[i]]))
      atomic_fetch_add(&too_early, 1);
  if (me % 97 == 0)
    usleep(300);
  atomic_store(&ran[me], true);
  return cudaSuccess;
}

static void piece_need(int me, int other) {
  if (other >= 0)
    piece[me].needs[piece[me].count++] = other;
}

START_TEST(random_work_never_runs_before_what_it_needs) {
  cudaStream_t lane[LANES] = {cudaStreamLegacy, cudaStreamPerThread};
  cudaEvent_t mark[MARKS];
  int last[LANES], marked[MARKS], awaited[LANES][MARKS];
  for (int i = 0; i < LANES; i++) {
    last[i] = -1;
    for (int j = 0; j < MARKS; j++)
      awaited[i][j] = -1;
    if (i >= 2)
      lane[i] = stream_new(i < 5 ? cudaStreamDefault : cudaStreamNonBlocking);
  }
  for (int j = 0; j < MARKS; j++) {
    marked[j] = -1;
    OK(cudaEventCreateWithFlags(&mark[j], j % 2 ? cudaEventDisableTiming
                                                : cudaEventDefault));
  }
  srand(5);
  for (int me = 0; me < PIECES;) {
    int at = rand() % LANES, which = rand() % MARKS, what = rand() % 40;
    if (what < 5 && at > 0) { /* the legacy stream's marks hold more */
      OK(cudaEventRecord(mark[which], lane[at]));
      marked[which] = last[at];
    } else if (what < 10) {
      OK(cudaStreamWaitEvent(lane[at], mark[which], 0));
      awaited[at][which] = marked[which];
    } else if (what == 10) {
      OK(cudaStreamSynchronize(lane[at]));
      ck_assert(last[at] < 0 || atomic_load(&ran[last[at]]));
    } else if (what == 11) {
      OK(cudaEventSynchronize(mark[which]));
      ck_assert(marked[which] < 0 || atomic_load(&ran[marked[which]]));
    } else {
      piece_need(me, last[at]);
      for (int j = 0; j < MARKS; j++)
        piece_need(me, awaited[at][j]);
      if (at == 0)
        for (int i = 1; i < 5; i++)
          piece_need(me, last[i]);
      else if (at < 5)
        piece_need(me, last[0]);
      submit(lane[at], piece_run, me);
      last[at] = me++;
    }
  }
  OK(cudaDeviceSynchronize());
  for (int me = 0; me < PIECES; me++)
    ck_assert(atomic_load(&ran[me]));
  ck_assert_int_eq(too_early, 0);
}
END_TEST

START_TEST(a_blocking_memset_of_pinned_memory_is_done_at_return) {
  cudaStream_t blocking = stream_new(cudaStreamDefault);
  char *pinned;
  OK(cudaMallocHost((void **)&pinned, 100));
  pinned[99] = 1;
  submit(blocking, sleep_run, 5000);
  OK(cudaMemset(pinned, 6, 100));
  ck_assert_int_eq(pinned[99], 6);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_stream");
  TCase *tests = tcase_create("stream");
  tcase_add_test(tests, work_of_a_stream_runs_in_order);
  tcase_add_test(tests, work_progresses_while_nobody_waits);
  tcase_add_test(tests, independent_streams_overlap);
  tcase_add_test(tests, an_event_orders_two_streams);
  tcase_add_test(tests, an_event_is_passed_before_later_work);
  tcase_add_test(tests, elapsed_time_is_that_of_the_work_between);
  tcase_add_test(tests, events_of_one_moment_have_times_in_order);
  tcase_add_test(tests, the_default_stream_waits_for_blocking_streams);
  tcase_add_test(tests, blocking_streams_wait_for_the_default_stream);
  tcase_add_test(tests, a_blocking_copy_waits_for_blocking_streams);
  tcase_add_test(tests, a_pageable_source_may_change_after_an_async_copy);
  tcase_add_test(tests, a_failure_stays_until_the_device_is_reset);
  tcase_add_test(tests, handles_that_are_not_open_are_refused);
  tcase_add_test(tests, a_destroyed_stream_finishes_its_work);
  tcase_add_test(tests, host_functions_run_in_order_and_may_not_call_cuda);
  tcase_add_test(tests, random_work_never_runs_before_what_it_needs);
  tcase_add_test(tests, a_blocking_memset_of_pinned_memory_is_done_at_return);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
