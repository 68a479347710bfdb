// SPDX-License-Identifier: Apache-2.0
// Graphs and captures of the host device: a graph runs what was captured, and a
// call that cannot be captured invalidates the capture with the vendor's error.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

#define FAILS(call, why) ck_assert_int_eq((call), cudaError##why)

enum { CELLS = 8, STREAMS = 3, EVENTS = 4, STEPS = 40 };

static const enum cudaStreamCaptureMode global = cudaStreamCaptureModeGlobal;
static const enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;

static cudaStream_t stream_new(void) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static cudaEvent_t event_new(void) {
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

static int *cells_new(void) {
  int *cells;
  OK(cudaMalloc((void **)&cells, CELLS * sizeof *cells));
  OK(cudaMemset(cells, 0, CELLS * sizeof *cells));
  return cells;
}

static int cell(const int *cells, int i) {
  int value;
  OK(cudaMemcpy(&value, cells + i, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

/* ---- a program of random steps, directly and as a graph ---- */

typedef struct program {
  unsigned seed;
  int *cells;   /* in device memory */
  int *counter; /* pinned */
  cudaStream_t streams[STREAMS];
  cudaEvent_t events[EVENTS];
} program_t;

static unsigned draw(program_t *p, unsigned below) {
  p->seed = p->seed * 1664525u + 1013904223u;
  return (p->seed >> 8) % below;
}

static void count_up(void *data) {
  ++*(int *)data;
}

/* Every step depends on all before it, so that only one result is possible. */
static void program_run(program_t *p, unsigned seed) {
  p->seed = seed;
  int at = 0; /* the stream that is ahead */
  for (int i = 0; i < STEPS; i++) {
    int next = (int)draw(p, STREAMS);
    if (next != at) {
      cudaEvent_t event = p->events[draw(p, EVENTS)];
      OK(cudaEventRecord(event, p->streams[at]));
      OK(cudaStreamWaitEvent(p->streams[next], event, 0));
      at = next;
    }
    cudaStream_t stream = p->streams[at];
    int *to = p->cells + draw(p, CELLS), *from = p->cells + draw(p, CELLS);
    switch (draw(p, 4)) {
    case 0:
      OK(cudaMemsetAsync(to, (int)draw(p, 256), sizeof *to, stream));
      break;
    case 1:
      OK(cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyDeviceToDevice,
                         stream));
      break;
    case 2:
      OK(cudaMemcpyAsync(to, p->counter, sizeof *to, cudaMemcpyHostToDevice,
                         stream));
      break;
    default:
      OK(cudaLaunchHostFunc(stream, count_up, p->counter));
    }
  }
  if (at != 0) {
    OK(cudaEventRecord(p->events[0], p->streams[at]));
    OK(cudaStreamWaitEvent(p->streams[0], p->events[0], 0));
  }
}

/* The others begin after the first. */
static void program_fork(program_t *p) {
  OK(cudaEventRecord(p->events[0], p->streams[0]));
  for (int i = 1; i < STREAMS; i++)
    OK(cudaStreamWaitEvent(p->streams[i], p->events[0], 0));
}

static void program_read(const program_t *p, int *out) {
  OK(cudaMemcpy(out, p->cells, CELLS * sizeof *out, cudaMemcpyDeviceToHost));
  out[CELLS] = *p->counter;
}

START_TEST(a_replayed_capture_does_what_the_program_does) {
  program_t p = {.cells = cells_new()};
  OK(cudaMallocHost((void **)&p.counter, sizeof *p.counter));
  for (int i = 0; i < STREAMS; i++)
    p.streams[i] = stream_new();
  for (int i = 0; i < EVENTS; i++)
    p.events[i] = event_new();
  for (unsigned seed = 0; seed < 60; seed++) {
    int direct[CELLS + 1], replayed[CELLS + 1];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    *p.counter = 0;
    OK(cudaMemset(p.cells, 0, CELLS * sizeof *p.cells));
    for (int i = 0; i < 2; i++) {
      program_run(&p, seed);
      OK(cudaDeviceSynchronize());
    }
    program_read(&p, direct);
    *p.counter = 0;
    OK(cudaMemset(p.cells, 0, CELLS * sizeof *p.cells));
    OK(cudaStreamBeginCapture(p.streams[0], global));
    program_fork(&p);
    program_run(&p, seed);
    OK(cudaStreamEndCapture(p.streams[0], &graph));
    ck_assert_int_eq(*p.counter, 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 2; i++)
      OK(cudaGraphLaunch(exec, p.streams[i]));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaDeviceSynchronize());
    program_read(&p, replayed);
    ck_assert_mem_eq(direct, replayed, sizeof direct);
  }
  for (int i = 0; i < EVENTS; i++)
    OK(cudaEventDestroy(p.events[i]));
}
END_TEST

/* ---- graphs made by hand ---- */

START_TEST(nodes_run_after_what_they_need) {
  cudaGraph_t graph, child;
  cudaGraphNode_t set, copy, inner, empty, host, found[4];
  cudaGraphExec_t exec;
  size_t count = 4;
  int *cells = cells_new(), *seen;
  OK(cudaMallocHost((void **)&seen, sizeof *seen));
  *seen = 0;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphCreate(&child, 0));
  OK(cudaGraphAddMemcpyNode1D(&copy, child, NULL, 0, cells + 1, cells,
                              sizeof *cells, cudaMemcpyDeviceToDevice));
  struct cudaMemsetParams params = {.dst = cells,
                                    .value = 0x01020304,
                                    .elementSize = 4,
                                    .width = 1,
                                    .height = 1};
  /* Added against their order. */
  OK(cudaGraphAddHostNode(&host, graph, NULL, 0,
                          &(struct cudaHostNodeParams){count_up, seen}));
  OK(cudaGraphAddChildGraphNode(&inner, graph, NULL, 0, child));
  OK(cudaGraphDestroy(child));
  OK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &params));
  OK(cudaGraphAddEmptyNode(&empty, graph, &set, 1));
  OK(cudaGraphAddDependencies(graph, (cudaGraphNode_t[]){empty, inner},
                              (cudaGraphNode_t[]){inner, host}, NULL, 2));
  OK(cudaGraphGetRootNodes(graph, found, &count));
  ck_assert_uint_eq(count, 1);
  ck_assert_ptr_eq(found[0], set);
  ck_assert_ptr_null(found[1]);
  OK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
  ck_assert_uint_eq(count, 3);
  OK(cudaGraphNodeGetDependentNodes(set, NULL, NULL, &count));
  ck_assert_uint_eq(count, 1);
  enum cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(inner, &type));
  ck_assert_int_eq(type, cudaGraphNodeTypeGraph);

  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, NULL));
  OK(cudaStreamSynchronize(NULL));
  ck_assert_int_eq(cell(cells, 1), 0x01020304);
  ck_assert_int_eq(*seen, 1);

  /* A graph with a cycle cannot run. */
  OK(cudaGraphAddDependencies(graph, &host, &set, NULL, 1));
  cudaGraphExec_t none;
  FAILS(cudaGraphInstantiate(&none, graph, 0), InvalidValue);
  OK(cudaGraphRemoveDependencies(graph, &host, &set, NULL, 1));
  OK(cudaGraphDestroyNode(empty));
  OK(cudaGraphGetNodes(graph, NULL, &count));
  ck_assert_uint_eq(count, 3);
  OK(cudaGraphExecDestroy(exec));
  /* The node's graph goes with the node. NVIDIA's sample destroys it again. */
  OK(cudaGraphChildGraphNodeGetGraph(inner, &child));
  OK(cudaGraphDestroy(graph));
  FAILS(cudaGraphDestroy(child), InvalidValue);
  FAILS(cudaGraphDestroy(graph), InvalidValue);
}
END_TEST

START_TEST(an_executable_graph_is_brought_up_to_date) {
  cudaGraph_t graph, other, clone;
  cudaGraphNode_t set, copy, cloned;
  cudaGraphExec_t exec;
  int *cells = cells_new();
  struct cudaMemsetParams params = {
      .dst = cells, .value = 1, .elementSize = 1, .width = 4, .height = 1};
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &params));
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, cells + 1, cells, 4,
                              cudaMemcpyDeviceToDevice));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  params.value = 2;
  OK(cudaGraphExecMemsetNodeSetParams(exec, set, &params));
  OK(cudaGraphLaunch(exec, NULL));
  ck_assert_int_eq(cell(cells, 1), 0x02020202);
  OK(cudaGraphMemsetNodeGetParams(set, &params));
  ck_assert_uint_eq(params.value, 1);
  FAILS(cudaGraphExecMemsetNodeSetParams(exec, copy, &params), InvalidValue);

  OK(cudaGraphClone(&clone, graph));
  OK(cudaGraphNodeFindInClone(&cloned, set, clone));
  params.value = 3;
  OK(cudaGraphMemsetNodeSetParams(cloned, &params));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, clone, &info));
  ck_assert_int_eq(info.result, cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(exec, NULL));
  ck_assert_int_eq(cell(cells, 1), 0x03030303);

  OK(cudaGraphNodeSetEnabled(exec, copy, 0));
  params.value = 4;
  OK(cudaGraphExecMemsetNodeSetParams(exec, set, &params));
  OK(cudaGraphLaunch(exec, NULL));
  ck_assert_int_eq(cell(cells, 0), 0x04040404);
  ck_assert_int_eq(cell(cells, 1), 0x03030303);

  OK(cudaGraphCreate(&other, 0));
  OK(cudaGraphAddMemsetNode(&set, other, NULL, 0, &params));
  FAILS(cudaGraphExecUpdate(exec, other, &info), GraphExecUpdateFailure);
  ck_assert_int_eq(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  OK(cudaGraphAddEmptyNode(&copy, other, &set, 1));
  FAILS(cudaGraphExecUpdate(exec, other, &info), GraphExecUpdateFailure);
  ck_assert_int_eq(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  ck_assert_ptr_eq(info.errorNode, copy);
  (void)cudaGetLastError();
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(other));
  OK(cudaGraphDestroy(clone));
}
END_TEST

START_TEST(event_nodes_order_a_graph_and_a_stream) {
  cudaStream_t stream = stream_new();
  cudaEvent_t event = event_new();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int *cells = cells_new();
  OK(cudaStreamBeginCapture(stream, relaxed));
  OK(cudaMemsetAsync(cells, 7, 4, stream));
  OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  FAILS(cudaEventElapsedTime(&(float){0}, event, event), InvalidResourceHandle);
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamWaitEvent(NULL, event, 0));
  ck_assert_int_eq(cell(cells, 0), 0x07070707);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}
END_TEST

/* ---- what invalidates a capture ---- */

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

START_TEST(objects_live_as_long_as_what_uses_them) {
  int destroyed = 0;
  cudaUserObject_t object;
  cudaGraph_t graph, clone;
  cudaGraphExec_t exec;
  FAILS(cudaUserObjectCreate(&object, &destroyed, count_up, 1, 0),
        InvalidValue);
  OK(cudaUserObjectCreate(&object, &destroyed, count_up, 2,
                          cudaUserObjectNoDestructorSync));
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  OK(cudaGraphRetainUserObject(graph, object, 3, 0));
  OK(cudaUserObjectRelease(object, 1));
  OK(cudaGraphReleaseUserObject(graph, object, 2));
  FAILS(cudaGraphReleaseUserObject(graph, object, 3), InvalidValue);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphClone(&clone, graph));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphExecDestroy(exec));
  ck_assert_int_eq(destroyed, 0);
  OK(cudaGraphDestroy(clone));
  ck_assert_int_eq(destroyed, 1);
}
END_TEST

static void mark(void *destroyed) {
  atomic_store((atomic_int *)destroyed, 1);
}

static atomic_int gate_open;

static void gate_wait(void *unused) {
  (void)unused;
  while (!atomic_load(&gate_open))
    sched_yield();
}

START_TEST(an_update_takes_the_objects_of_the_graph_along) {
  static atomic_int destroyed[2];
  cudaUserObject_t object;
  cudaGraph_t graph[2];
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  cudaGraphExecUpdateResultInfo info;
  cudaStream_t stream;
  struct cudaHostNodeParams wait = {.fn = gate_wait};
  OK(cudaStreamCreate(&stream));
  for (int i = 0; i < 2; i++) {
    atomic_store(&destroyed[i], 0);
    OK(cudaUserObjectCreate(&object, &destroyed[i], mark, 1,
                            cudaUserObjectNoDestructorSync));
    OK(cudaGraphCreate(&graph[i], 0));
    OK(cudaGraphAddHostNode(&node, graph[i], NULL, 0, &wait));
    OK(cudaGraphRetainUserObject(graph[i], object, 1, cudaGraphUserObjectMove));
  }
  atomic_store(&gate_open, 0);
  OK(cudaGraphInstantiate(&exec, graph[0], 0));
  OK(cudaGraphDestroy(graph[0]));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphExecUpdate(exec, graph[1], &info));
  OK(cudaGraphDestroy(graph[1]));
  ck_assert_int_eq(atomic_load(&destroyed[0]), 0); // the launch has it
  ck_assert_int_eq(atomic_load(&destroyed[1]), 0);
  atomic_store(&gate_open, 1);
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(atomic_load(&destroyed[0]), 1);
  ck_assert_int_eq(atomic_load(&destroyed[1]), 0);
  atomic_store(&gate_open, 0);
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphExecDestroy(exec));
  ck_assert_int_eq(atomic_load(&destroyed[1]), 0);
  atomic_store(&gate_open, 1);
  OK(cudaStreamSynchronize(stream));
  ck_assert_int_eq(atomic_load(&destroyed[1]), 1);
  OK(cudaStreamDestroy(stream));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_graph");
  TCase *tests = tcase_create("graph");
  tcase_add_test(tests, a_replayed_capture_does_what_the_program_does);
  tcase_add_test(tests, nodes_run_after_what_they_need);
  tcase_add_test(tests, an_executable_graph_is_brought_up_to_date);
  tcase_add_test(tests, event_nodes_order_a_graph_and_a_stream);
  tcase_add_test(tests, a_forbidden_call_invalidates_the_capture);
  tcase_add_test(tests, the_legacy_stream_spoils_the_capture_of_a_blocking_one);
  tcase_add_test(tests, captures_are_forked_joined_and_kept_apart);
  tcase_add_test(tests, modes_say_whose_calls_spoil_a_capture);
  tcase_add_test(tests, a_capture_goes_on_in_a_graph_of_the_programs);
  tcase_add_test(tests, a_graph_launched_into_a_capture_is_a_child);
  tcase_add_test(tests, objects_live_as_long_as_what_uses_them);
  tcase_add_test(tests, an_update_takes_the_objects_of_the_graph_along);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
