// SPDX-License-Identifier: Apache-2.0
// Memory of graphs: nodes that allocate and free it, captured or added one by
// one; and memory that the program frees.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#include "tests/calls.h"

#define FAILS(call, why) ck_assert_int_eq((call), cudaError##why)

enum { BYTES = 1 << 12 };

static cudaStream_t stream_new(void) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static uint64_t attribute(enum cudaGraphMemAttributeType which) {
  uint64_t value;
  OK(cudaDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

static struct cudaMemAllocNodeParams parameters(size_t bytes) {
  return (struct cudaMemAllocNodeParams){
      .poolProps = {.allocType = cudaMemAllocationTypePinned,
                    .location = {.type = cudaMemLocationTypeDevice}},
      .bytesize = bytes};
}

/* A capture that allocates, uses and frees can be launched again and again. */
START_TEST(captured_memory_is_used_and_freed) {
  cudaStream_t stream = stream_new();
  cudaGraph_t graph;
  cudaGraphExec_t exec, second;
  char *room, *result, have[BYTES];
  OK(cudaMalloc((void **)&result, BYTES));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync((void **)&room, BYTES, stream));
  OK(cudaMemsetAsync(room, 7, BYTES, stream));
  OK(cudaMemcpyAsync(result, room, BYTES, cudaMemcpyDeviceToDevice, stream));
  OK(cudaFreeAsync(room, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  size_t count = 9;
  cudaGraphNode_t nodes[9];
  OK(cudaGraphGetNodes(graph, nodes, &count));
  ck_assert_uint_eq(count, 4);
  enum cudaGraphNodeType type;
  struct cudaMemAllocNodeParams params;
  void *freed;
  OK(cudaGraphNodeGetType(nodes[0], &type));
  ck_assert_int_eq(type, cudaGraphNodeTypeMemAlloc);
  OK(cudaGraphMemAllocNodeGetParams(nodes[0], &params));
  ck_assert_ptr_eq(params.dptr, room);
  ck_assert_uint_eq(params.bytesize, BYTES);
  OK(cudaGraphMemFreeNodeGetParams(nodes[3], &freed));
  ck_assert_ptr_eq(freed, room);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  FAILS(cudaGraphInstantiate(&second, graph, 0), NotSupported);
  for (int i = 0; i < 3; i++) {
    OK(cudaMemset(result, 0, BYTES));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(have, result, BYTES, cudaMemcpyDeviceToHost));
    for (int b = 0; b < BYTES; b++)
      ck_assert_int_eq(have[b], 7);
  }
  FAILS(cudaFree(room), InvalidValue); /* the graph did */
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrReservedMemCurrent), BYTES);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrReservedMemCurrent), 0);
  FAILS(cudaMemset(room, 0, 1), InvalidValue); /* nobody's */
  OK(cudaFree(result));
  OK(cudaStreamDestroy(stream));
}
END_TEST

/* Memory that a graph leaves allocated must be freed, by the program or another
 * graph, before the graph is launched again. */
START_TEST(memory_outlives_the_launch_that_allocated_it) {
  cudaStream_t stream = stream_new();
  cudaGraph_t graph, freeing;
  cudaGraphExec_t exec, free_exec;
  cudaGraphNode_t alloc, fill, free_node;
  struct cudaMemAllocNodeParams params = parameters(BYTES);
  char have = 0;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphCreate(&freeing, 0));
  OK(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
  OK(cudaGraphAddMemsetNode(&fill, graph, &alloc, 1,
                            &(struct cudaMemsetParams){.dst = params.dptr,
                                                       .value = 5,
                                                       .elementSize = 1,
                                                       .width = BYTES,
                                                       .height = 1}));
  OK(cudaGraphAddMemFreeNode(&free_node, freeing, NULL, 0, params.dptr));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphInstantiate(&free_exec, freeing, 0));
  FAILS(cudaGraphLaunch(free_exec, stream), InvalidValue);
  for (int i = 0; i < 3; i++) {
    OK(cudaGraphLaunch(exec, stream));
    ck_assert_uint_eq(attribute(cudaGraphMemAttrUsedMemCurrent), BYTES);
    FAILS(cudaGraphLaunch(exec, stream), InvalidValue);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(&have, (char *)params.dptr + BYTES - 1, 1,
                  cudaMemcpyDeviceToHost));
    ck_assert_int_eq(have, 5);
    if (i == 0)
      OK(cudaFree(params.dptr));
    else if (i == 1)
      OK(cudaFreeAsync(params.dptr, stream));
    else
      OK(cudaGraphLaunch(free_exec, stream));
    ck_assert_uint_eq(attribute(cudaGraphMemAttrUsedMemCurrent), 0);
  }
  /* After the graph is destroyed, its memory stays until it is freed. */
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphExecDestroy(free_exec));
  OK(cudaGraphDestroy(freeing));
  OK(cudaMemset(params.dptr, 1, BYTES));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrReservedMemCurrent), BYTES);
  OK(cudaFree(params.dptr));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrReservedMemCurrent), 0);
  FAILS(cudaFree(params.dptr), InvalidValue);
  OK(cudaStreamDestroy(stream));
}
END_TEST

START_TEST(the_auto_free_flag_frees_memory_before_a_launch) {
  cudaStream_t stream = stream_new();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  void *room;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync(&room, BYTES, stream));
  OK(cudaMemsetAsync(room, 3, BYTES, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph,
                          cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int i = 0; i < 3; i++)
    OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrUsedMemCurrent), BYTES);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaFreeAsync(room, stream));
  OK(cudaStreamSynchronize(stream));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrReservedMemCurrent), 0);
  uint64_t zero = 0;
  OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrUsedMemHigh), 0);
  OK(cudaDeviceGraphMemTrim(0));
  OK(cudaStreamDestroy(stream));
}
END_TEST

START_TEST(graphs_with_memory_do_not_go_everywhere) {
  cudaGraph_t graph, parent, copy;
  cudaGraphNode_t alloc, free_node, child;
  struct cudaMemAllocNodeParams params = parameters(BYTES), bad = parameters(0);
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphCreate(&parent, 0));
  FAILS(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &bad), InvalidValue);
  bad = parameters(BYTES);
  bad.poolProps.location.id = 1;
  FAILS(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &bad), InvalidValue);
  OK(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
  FAILS(cudaGraphAddMemFreeNode(&free_node, graph, &alloc, 1, &params),
        InvalidValue);
  OK(cudaGraphAddMemFreeNode(&free_node, graph, &alloc, 1, params.dptr));
  FAILS(cudaGraphAddMemFreeNode(&free_node, graph, &alloc, 1, params.dptr),
        InvalidValue);
  FAILS(cudaGraphClone(&copy, graph), NotSupported);
  FAILS(cudaGraphAddChildGraphNode(&child, parent, NULL, 0, graph),
        NotSupported);
  FAILS(cudaGraphDestroyNode(alloc), NotSupported);
  FAILS(cudaGraphRemoveDependencies(graph, &alloc, &free_node, NULL, 1),
        NotSupported);
  struct cudaGraphNodeParams any = {.type = cudaGraphNodeTypeMemAlloc};
  any.alloc.poolProps = params.poolProps;
  any.alloc.bytesize = 100;
  OK(cudaGraphAddNode(&alloc, graph, NULL, NULL, 0, &any));
  ck_assert_ptr_nonnull(any.alloc.dptr);
  FAILS(cudaGraphNodeSetParams(alloc, &any), InvalidValue);
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(parent));
  ck_assert_uint_eq(attribute(cudaGraphMemAttrReservedMemCurrent), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart graph memory");
  TCase *tests = tcase_create("memory");
  tcase_add_test(tests, captured_memory_is_used_and_freed);
  tcase_add_test(tests, memory_outlives_the_launch_that_allocated_it);
  tcase_add_test(tests, the_auto_free_flag_frees_memory_before_a_launch);
  tcase_add_test(tests, graphs_with_memory_do_not_go_everywhere);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
