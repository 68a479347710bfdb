// SPDX-License-Identifier: Apache-2.0
// Streams of the host device beside the program's threads, and at its end.
#include "tests/host/cudart/queue.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "src/host/host.h"

static void *use_streams(void *argument) {
  _Atomic int *sum = argument;
  cudaStream_t streams[2];
  cudaEvent_t events[2];
  for (int i = 0; i < 2; i++)
    if (cudaStreamCreateWithFlags(&streams[i], (unsigned)i) ||
        cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming))
      return "create";
  for (int i = 0; i < 500; i++) {
    int me = i % 2;
    if (cudaStreamWaitEvent(streams[me], events[!me], 0) ||
        host_stream_submit(streams[me], log_run, sum, NULL) ||
        cudaEventRecord(events[me], streams[me]))
      return "submit";
    if (i % 50 == 0 && host_stream_submit(NULL, log_run, sum, NULL))
      return "submit to the default stream";
    if (i % 7 == 0 && cudaStreamSynchronize(streams[me]))
      return "synchronise";
    if (i % 13 == 0 && cudaEventSynchronize(events[me]))
      return "event";
  }
  if (cudaDeviceSynchronize())
    return "device";
  for (int i = 0; i < 2; i++)
    if (cudaStreamDestroy(streams[i]) || cudaEventDestroy(events[i]))
      return "destroy";
  return NULL;
}

START_TEST(threads_use_streams_at_the_same_time) {
  static _Atomic int sum;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, use_streams, &sum);
  for (int i = 0; i < 4; i++) {
    void *problem;
    pthread_join(threads[i], &problem);
    ck_assert_msg(!problem, "%s", (char *)problem);
  }
  ck_assert_int_eq(log_count, 4 * (500 + 10));
}
END_TEST

static _Atomic int submitted;

static void *submit_many(void *stream) {
  for (int i = 0; i < 3000; i++) {
    host_stream_submit(stream, log_run, NULL, NULL);
    atomic_fetch_add(&submitted, 1);
  }
  return NULL;
}

START_TEST(a_program_far_ahead_of_its_stream_waits) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  pthread_t thread;
  submit(stream, gate_run, 0);
  pthread_create(&thread, NULL, submit_many, stream);
  usleep(20000);
  ck_assert_int_lt(atomic_load(&submitted), 2000);
  atomic_store(&gate, 1);
  pthread_join(thread, NULL);
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(log_count, 3000);
}
END_TEST

static cudaStream_t late_stream;
static void *late_memory;

static void clean_up_late(void) {
  if (cudaFree(late_memory) || log_count != 1 ||
      cudaStreamDestroy(late_stream) || cudaDeviceSynchronize())
    _exit(3);
}

START_TEST(exit_handlers_may_use_the_device) {
  OK(cudaMalloc(&late_memory, 100));
  late_stream = stream_new(cudaStreamNonBlocking);
  atexit(clean_up_late);
  submit(late_stream, sleep_run, 5000);
  submit(late_stream, log_run, 1);
  exit(7);
}
END_TEST

START_TEST(a_process_may_exit_with_work_queued) {
  cudaStream_t stream = stream_new(cudaStreamNonBlocking);
  submit(stream, gate_run, 0); /* never opened */
  submit(stream, log_run, 1);
  exit(7);
}
END_TEST

static void use_stack(void *argument) {
  volatile char room[256 << 10];
  for (size_t i = 0; i < sizeof room; i += 512)
    room[i] = 1;
  *(_Atomic int *)argument += room[512];
}

static void *use_device(void *argument) {
  for (int i = 0; i < 100; i++) {
    OK(cudaLaunchHostFunc(0, use_stack, argument));
    OK(cudaStreamSynchronize(0));
  }
  return NULL;
}

/* The device's work does not need the thread that waits for it. */
START_TEST(small_stacks_are_enough_to_wait) {
  static _Atomic int count;
  pthread_attr_t attributes;
  pthread_t thread;
  ck_assert_int_eq(pthread_attr_init(&attributes), 0);
  ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  ck_assert_int_eq(
      pthread_create(&thread, &attributes, use_device, (void *)&count), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_eq(count, 100);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_threads");
  TCase *tests = tcase_create("threads");
  tcase_add_test(tests, small_stacks_are_enough_to_wait);
  tcase_add_test(tests, threads_use_streams_at_the_same_time);
  tcase_add_test(tests, a_program_far_ahead_of_its_stream_waits);
  tcase_add_exit_test(tests, exit_handlers_may_use_the_device, 7);
  tcase_add_exit_test(tests, a_process_may_exit_with_work_queued, 7);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
