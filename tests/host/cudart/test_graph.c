// SPDX-License-Identifier: Apache-2.0
// Graphs of the host device: a graph runs what was captured, in its order.
#include "tests/host/cudart/graph.h"

#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 3, EVENTS = 4, STEPS = 40 };

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
  tcase_add_test(tests, objects_live_as_long_as_what_uses_them);
  tcase_add_test(tests, an_update_takes_the_objects_of_the_graph_along);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
