// SPDX-License-Identifier: Apache-2.0
// Captures of the host device: a call that cannot be captured invalidates the
// capture with the vendor's error.
#include "tests/host/cudart/graph.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>

static void ends_with(cudaStream_t stream, cudaError_t error) {
  cudaGraph_t graph;
  enum cudaStreamCaptureStatus status;
  ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), error);
  ck_assert_ptr_null(graph);
  OK(cudaStreamIsCapturing(stream, &status));
  ck_assert_int_eq(status, cudaStreamCaptureStatusNone);
  (void)cudaGetLastError();
}

/* An illegal call, its error, and the error at the end of the capture. */
#define SPOILS(statement, why)                                                 \
  do {                                                                         \
    OK(cudaStreamBeginCapture(stream, global));                                \
    FAILS(statement, why);                                                     \
    FAILS(cudaMemsetAsync(cells, 0, 4, stream), StreamCaptureInvalidated);     \
    ends_with(stream, cudaErrorStreamCaptureInvalidated);                      \
  } while (0)

START_TEST(a_forbidden_call_invalidates_the_capture) {
  cudaStream_t stream = stream_new(), other = stream_new();
  cudaEvent_t event = event_new();
  int *cells = cells_new();
  void *memory;
  SPOILS(cudaStreamSynchronize(stream), StreamCaptureUnsupported);
  SPOILS(cudaStreamQuery(stream), StreamCaptureUnsupported);
  SPOILS(cudaDeviceSynchronize(), StreamCaptureUnsupported);
  SPOILS(cudaMalloc(&memory, 4), StreamCaptureUnsupported);
  SPOILS(cudaFree(cells), StreamCaptureUnsupported);
  SPOILS(cudaMallocHost(&memory, 4), StreamCaptureUnsupported);
  SPOILS(cudaFreeAsync(cells, stream), InvalidValue);
  SPOILS(cudaStreamSynchronize(other), StreamCaptureUnsupported);
  SPOILS(cudaEventQuery(event), StreamCaptureUnsupported);
  SPOILS(cudaStreamWaitEvent(stream, event, 0), StreamCaptureIsolation);
  SPOILS(cudaMemcpy(cells, cells + 1, 4, cudaMemcpyDeviceToDevice),
         StreamCaptureUnsupported);
  SPOILS(cudaMemcpyAsync((void *)1, cells, 4, cudaMemcpyDeviceToDevice, stream),
         InvalidValue);
  OK(cudaStreamBeginCapture(stream, relaxed));
  OK(cudaEventRecord(event, stream));
  FAILS(cudaEventSynchronize(event), CapturedEvent);
  ends_with(stream, cudaErrorStreamCaptureInvalidated);
  OK(cudaEventDestroy(event));
}
END_TEST

START_TEST(the_legacy_stream_spoils_the_capture_of_a_blocking_one) {
  cudaStream_t stream;
  int *cells = cells_new();
  enum cudaStreamCaptureStatus status;
  OK(cudaStreamCreate(&stream));
  FAILS(cudaStreamBeginCapture(NULL, relaxed), StreamCaptureUnsupported);
  SPOILS(cudaMemsetAsync(cells, 0, 4, NULL), StreamCaptureImplicit);
  SPOILS(cudaMemcpy(cells, cells + 1, 4, cudaMemcpyDeviceToDevice),
         StreamCaptureImplicit);
  OK(cudaStreamBeginCapture(stream, relaxed));
  FAILS(cudaStreamIsCapturing(NULL, &status), StreamCaptureImplicit);
  OK(cudaStreamIsCapturing(stream, &status));
  ck_assert_int_eq(status, cudaStreamCaptureStatusActive);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
}
END_TEST

START_TEST(captures_are_forked_joined_and_kept_apart) {
  cudaStream_t stream = stream_new(), other = stream_new();
  cudaEvent_t event = event_new();
  cudaGraph_t graph;
  int *cells = cells_new();
  FAILS(cudaStreamEndCapture(stream, &graph), IllegalState);
  /* Forked, not joined. */
  OK(cudaStreamBeginCapture(stream, global));
  FAILS(cudaStreamBeginCapture(stream, global), IllegalState);
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event, 0));
  OK(cudaMemsetAsync(cells, 0, 4, other));
  FAILS(cudaStreamEndCapture(other, &graph), StreamCaptureUnmatched);
  ends_with(stream, cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(stream, global));
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event, 0));
  OK(cudaMemsetAsync(cells, 0, 4, other));
  ends_with(stream, cudaErrorStreamCaptureUnjoined);
  /* Two captures cannot be joined. */
  OK(cudaStreamBeginCapture(stream, global));
  OK(cudaStreamBeginCapture(other, global));
  OK(cudaEventRecord(event, stream));
  FAILS(cudaStreamWaitEvent(other, event, 0), StreamCaptureMerge);
  ends_with(stream, cudaErrorStreamCaptureInvalidated);
  ends_with(other, cudaErrorStreamCaptureInvalidated);
  /* The event belongs to a capture that has ended. */
  FAILS(cudaStreamWaitEvent(stream, event, 0), CapturedEvent);
  (void)cudaGetLastError();
  /* A destroyed stream ends its capture. */
  OK(cudaStreamBeginCapture(stream, global));
  OK(cudaMemsetAsync(cells, 0, 4, stream));
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(cells));
  OK(cudaEventDestroy(event));
}
END_TEST

static void *ask(void *argument) {
  void *memory;
  enum cudaStreamCaptureMode *mode = argument;
  if (mode)
    (void)cudaThreadExchangeStreamCaptureMode(mode);
  cudaError_t error = cudaMalloc(&memory, 4);
  if (!error)
    error = cudaFree(memory);
  return (void *)(intptr_t)error;
}

static cudaError_t ask_elsewhere(enum cudaStreamCaptureMode *mode) {
  pthread_t thread;
  void *result;
  ck_assert_int_eq(pthread_create(&thread, NULL, ask, mode), 0);
  pthread_join(thread, &result);
  return (cudaError_t)(intptr_t)result;
}

START_TEST(modes_say_whose_calls_spoil_a_capture) {
  cudaStream_t stream = stream_new();
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
  cudaGraph_t graph;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  OK(ask_elsewhere(NULL));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamBeginCapture(stream, global));
  OK(ask_elsewhere(&mode));
  FAILS(ask_elsewhere(NULL), StreamCaptureUnsupported);
  ends_with(stream, cudaErrorStreamCaptureInvalidated);
  mode = relaxed;
  OK(cudaStreamBeginCapture(stream, global));
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  ck_assert_int_eq(mode, global);
  ck_assert_ptr_null(ask(NULL));
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
}
END_TEST

START_TEST(a_capture_goes_on_in_a_graph_of_the_programs) {
  cudaStream_t stream = stream_new();
  cudaGraph_t graph, same;
  cudaGraphNode_t first;
  const cudaGraphNode_t *tips;
  size_t count;
  unsigned long long id;
  enum cudaStreamCaptureStatus status;
  int *cells = cells_new();
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
  OK(cudaStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, global));
  OK(cudaMemsetAsync(cells, 0, 4, stream));
  OK(cudaStreamGetCaptureInfo(stream, &status, &id, &same, &tips, NULL,
                              &count));
  ck_assert_int_eq(status, cudaStreamCaptureStatusActive);
  ck_assert_ptr_eq(same, graph);
  ck_assert_uint_eq(count, 1);
  OK(cudaGraphNodeGetDependencies(tips[0], NULL, NULL, &count));
  ck_assert_uint_eq(count, 1);
  OK(cudaStreamUpdateCaptureDependencies(stream, &first, NULL, 1,
                                         cudaStreamAddCaptureDependencies));
  OK(cudaMemsetAsync(cells, 0, 4, stream));
  OK(cudaStreamEndCapture(stream, &same));
  ck_assert_ptr_eq(same, graph);
  OK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
  ck_assert_uint_eq(count, 3);
  OK(cudaGraphDestroy(graph));
}
END_TEST

START_TEST(a_graph_launched_into_a_capture_is_a_child) {
  cudaStream_t stream = stream_new();
  cudaGraph_t graph, outer;
  cudaGraphExec_t exec, both;
  int *cells = cells_new();
  OK(cudaStreamBeginCapture(stream, global));
  OK(cudaMemsetAsync(cells, 5, 4, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaStreamBeginCapture(stream, global));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaMemcpyAsync(cells + 1, cells, 4, cudaMemcpyDeviceToDevice, stream));
  OK(cudaStreamEndCapture(stream, &outer));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphInstantiate(&both, outer, 0));
  ck_assert_int_eq(cell(cells, 1), 0);
  OK(cudaGraphLaunch(both, stream));
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(cell(cells, 1), 0x05050505);
  OK(cudaGraphExecDestroy(both));
  OK(cudaGraphDestroy(outer));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_capture");
  TCase *tests = tcase_create("capture");
  tcase_add_test(tests, a_forbidden_call_invalidates_the_capture);
  tcase_add_test(tests, the_legacy_stream_spoils_the_capture_of_a_blocking_one);
  tcase_add_test(tests, captures_are_forked_joined_and_kept_apart);
  tcase_add_test(tests, modes_say_whose_calls_spoil_a_capture);
  tcase_add_test(tests, a_capture_goes_on_in_a_graph_of_the_programs);
  tcase_add_test(tests, a_graph_launched_into_a_capture_is_a_child);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
