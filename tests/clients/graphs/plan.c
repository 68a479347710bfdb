// SPDX-License-Identifier: Apache-2.0
// Plans of graphs, and their executions.
#include "tests/clients/graphs/build.h"

#include <cuda_runtime_api.h>

int64_t build_configs(build_t graph, cudnnBackendHeurMode_t mode,
                      build_t out[BUILD_CONFIGS]) {
  build_t heuristic = build_create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  int64_t count, fetched;
  BUILD_GIVE(heuristic, ENGINEHEUR_OPERATION_GRAPH, graph);
  BUILD_SET(heuristic, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  CHECK(cudnnBackendFinalize(heuristic));
  BUILD_GET(heuristic, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL);
  if (count > BUILD_CONFIGS)
    count = BUILD_CONFIGS;
  for (int64_t i = 0; i < count; i++)
    out[i] = build_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  BUILD_GET(heuristic, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, count, &fetched,
            out);
  for (int64_t i = fetched; i < count; i++)
    build_destroy(out[i]);
  build_destroy(heuristic);
  return fetched;
}

build_t build_plan(cudnnHandle_t handle, build_t config,
                   int64_t *out_workspace) {
  build_t plan = build_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  BUILD_SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  BUILD_GIVE(plan, EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) {
    build_destroy(plan);
    return NULL;
  }
  BUILD_GET(plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, NULL, out_workspace);
  return plan;
}

build_t build_first_plan(cudnnHandle_t handle, build_t graph,
                         cudnnBackendHeurMode_t mode, int64_t *out_workspace) {
  build_t config[BUILD_CONFIGS], plan = NULL;
  int64_t count = build_configs(graph, mode, config);
  for (int64_t i = 0; i < count; i++) {
    if (!plan)
      plan = build_plan(handle, config[i], out_workspace);
    build_destroy(config[i]);
  }
  return plan;
}

build_t build_pack(const int64_t *uids, void **pointers, int64_t count,
                   void *workspace) {
  build_t pack = build_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  BUILD_SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, pointers);
  BUILD_SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, count, uids);
  BUILD_SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace);
  CHECK(cudnnBackendFinalize(pack));
  return pack;
}

cudnnStatus_t build_execute(cudnnHandle_t handle, build_t plan,
                            const int64_t *uids, void **pointers, int64_t count,
                            void *workspace) {
  build_t pack = build_pack(uids, pointers, count, workspace);
  cudnnStatus_t status = cudnnBackendExecute(handle, plan, pack);
  build_destroy(pack);
  return status;
}

cudnnStatus_t build_execute_once(cudnnHandle_t handle, build_t plan,
                                 const int64_t *uids, void **pointers,
                                 int64_t count, int64_t workspace_bytes) {
  void *space = NULL;
  if (workspace_bytes)
    CHECK(cudaMalloc(&space, (size_t)workspace_bytes));
  cudnnStatus_t status =
      build_execute(handle, plan, uids, pointers, count, space);
  CHECK(cudaFree(space)); // waits for the execution
  return status;
}
