// SPDX-License-Identifier: Apache-2.0
// Variant packs, and the execution of plans with them.
#include "src/host/cudnn/backend/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/backend/engine.h"
#include "src/host/cudnn/compute/compute.h"
#include "src/host/host.h"

cudnnStatus_t host_check_pack(host_object_t *pack) {
  const host_value_t *ids = HOST_VALUE(pack, VARIANT_PACK_UNIQUE_IDS);
  const host_value_t *pointers = HOST_VALUE(pack, VARIANT_PACK_DATA_POINTERS);
  REFUSE_IF(ids->count != pointers->count, CUDNN_STATUS_BAD_PARAM);
  bool shapes = HOST_VALUE(pack, VARIANT_PACK_OVERRIDE_SHAPES)->count > 0 &&
                HOST_VALUE(pack, VARIANT_PACK_OVERRIDE_STRIDES)->count > 0;
  REFUSE_IF(HOST_VALUE(pack, VARIANT_PACK_OVERRIDE_UNIQUE_IDS)->count > 0 &&
                !shapes,
            CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// The largest element of a tensor passed by value.
enum { VALUE_BYTES = 16 };

// Queued work. After `data`, one for each tensor of the graph, come as many
// values of tensors that are passed by value.
typedef struct {
  sdg_graph_t *graph; // a reference
  void *data[];
} job_t;

static size_t job_bytes(const sdg_graph_t *graph) {
  size_t tensors = (size_t)graph->tensor_count;
  return sizeof(job_t) + tensors * (sizeof(void *) + VALUE_BYTES);
}

static void *job_value(job_t *job, int tensor) {
  char *values = (char *)&job->data[job->graph->tensor_count];
  return values + (size_t)tensor * VALUE_BYTES;
}

static cudaError_t run(void *argument) {
  job_t *job = argument;
  for (int t = 0; t < job->graph->tensor_count; t++)
    if (job->graph->tensor[t].is_by_value)
      job->data[t] = job_value(job, t);
  return host_graph_compute(job->graph, job->data) ? cudaSuccess
                                                   : cudaErrorMemoryAllocation;
}

static void release(void *argument) {
  job_t *job = argument;
  sdg_graph_release(job->graph);
  free(job);
}

static void *again(const void *argument) {
  const job_t *job = argument;
  job_t *copy = malloc(job_bytes(job->graph));
  if (!copy)
    return NULL;
  memcpy(copy, job, job_bytes(job->graph));
  sdg_graph_retain(copy->graph);
  return copy;
}

// Bytes from a tensor's first element to its last; 0 if it has none. False if
// no memory is that large.
static bool tensor_bytes(const sdg_graph_tensor_t *tensor, size_t *out) {
  uint64_t last = 0;
  *out = 0;
  for (int i = 0; i < tensor->rank; i++) {
    uint64_t step;
    if (tensor->dim[i] == 0)
      return true;
    if (__builtin_mul_overflow((uint64_t)tensor->dim[i] - 1,
                               (uint64_t)tensor->stride[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  return !__builtin_add_overflow(last, 1, &last) &&
         !__builtin_mul_overflow(last, sdg_graph_type_bytes(tensor->type), out);
}

static cudnnStatus_t bind(host_object_t *pack, job_t *job, int t) {
  const sdg_graph_tensor_t *tensor = &job->graph->tensor[t];
  const host_value_t *ids = HOST_VALUE(pack, VARIANT_PACK_UNIQUE_IDS);
  const host_value_t *pointers = HOST_VALUE(pack, VARIANT_PACK_DATA_POINTERS);
  int64_t at = 0;
  while (at < ids->count && ids->slot[at].integer != tensor->uid)
    at++;
  REFUSE_IF(at == ids->count, CUDNN_STATUS_BAD_PARAM);
  void *pointer = pointers->slot[at].pointer;
  size_t bytes = 0;
  REFUSE_IF(!tensor_bytes(tensor, &bytes), CUDNN_STATUS_BAD_PARAM);
  if (bytes == 0)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!pointer, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  if (tensor->is_by_value) {
    // Device memory is not readable here, nor on a GPU. cudnn-frontend gives
    // it while it warms a deserialized plan up, and goes on.
    const void *mapped = host_memory_resolve(pointer, bytes);
    REFUSE_IF(mapped && mapped != pointer, CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(bytes > VALUE_BYTES, CUDNN_STATUS_NOT_SUPPORTED);
    memcpy(job_value(job, t), pointer, bytes);
    return CUDNN_STATUS_SUCCESS;
  }
  job->data[t] = host_memory_resolve(pointer, bytes);
  REFUSE_IF(!job->data[t], CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_workspace(host_object_t *plan, host_object_t *pack) {
  int64_t bytes =
      host_object_integer(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
  const host_value_t *workspace = HOST_VALUE(pack, VARIANT_PACK_WORKSPACE);
  void *pointer = workspace->count > 0 ? workspace->slot[0].pointer : NULL;
  if (bytes == 0)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!pointer, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  REFUSE_IF(!host_memory_resolve(pointer, (size_t)bytes),
            CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

// What is not computed here is refused by its name, once on stderr.
static cudnnStatus_t check_graph(const sdg_graph_t *graph) {
  const char *lacks = host_graph_lacks(graph);
  static _Atomic int said;
  if (!lacks)
    return CUDNN_STATUS_SUCCESS;
  if (atomic_exchange(&said, 1) == 0)
    fprintf(stderr,
            "sundog host device: cudnnBackendExecute does not compute a graph "
            "with %s\n",
            lacks);
  return host_refuse(CUDNN_STATUS_NOT_SUPPORTED, lacks);
}

// The handle, a plan and a variant pack, both finalized.
static cudnnStatus_t check(cudnnHandle_t handle, const host_object_t *plan,
                           const host_object_t *pack) {
  REFUSE_IF(!handle || !plan || !pack, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(plan->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
                pack->kind != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!plan->finalized || !pack->finalized,
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  return CUDNN_STATUS_SUCCESS;
}

// Other shapes than the graph's.
static bool overrides(host_object_t *pack) {
  return HOST_VALUE(pack, VARIANT_PACK_OVERRIDE_UNIQUE_IDS)->count > 0 ||
         HOST_VALUE(pack, VARIANT_PACK_OVERRIDE_SHAPES)->count > 0 ||
         HOST_VALUE(pack, VARIANT_PACK_OVERRIDE_STRIDES)->count > 0;
}

static cudnnStatus_t prepare(host_object_t *plan, host_object_t *pack,
                             job_t *job) {
  cudnnStatus_t status = check_workspace(plan, pack);
  for (int t = 0; t < job->graph->tensor_count && !status; t++)
    if (!job->graph->tensor[t].is_virtual)
      status = bind(pack, job, t);
  return status;
}

// The work of an execution; NULL after an error.
static cudnnStatus_t job_create(cudnnHandle_t handle, host_object_t *plan,
                                host_object_t *pack, job_t **out) {
  cudnnStatus_t status = check(handle, plan, pack);
  *out = NULL;
  if (status)
    return status;
  REFUSE_IF(overrides(pack), CUDNN_STATUS_NOT_SUPPORTED);
  status = check_graph(plan->graph);
  if (status)
    return status;
  job_t *job = calloc(1, job_bytes(plan->graph));
  REFUSE_IF(!job, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  job->graph = sdg_graph_retain(plan->graph);
  status = prepare(plan, pack, job);
  if (status)
    release(job);
  else
    *out = job;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
  job_t *job;
  cudnnStatus_t status = job_create(handle, executionPlan, variantPack, &job);
  if (status)
    return status;
  cudaError_t queued =
      host_stream_submit_again(handle->stream, run, job, release, again);
  REFUSE_IF(queued != cudaSuccess, CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

// ---- graphs of CUDA --------------------------------------------------------

// Whether the plan's engine has the note that says so.
static bool makes_nodes(host_object_t *plan) {
  host_object_t *from =
      host_object_child(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  sdg_graph_config_t config;
  sdg_graph_t *graph;
  host_engine_t engine;
  if (!from || host_config_read(from, &config, &graph) ||
      !host_plan_engine(graph, config.engine, &engine))
    return false;
  for (int i = 0; i < engine.behavior_count; i++)
    if (engine.behavior[i] ==
        CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API)
      return true;
  return false;
}

// The node has the values that tensors passed by value have now.
static cudnnStatus_t into(cudnnHandle_t handle, host_object_t *plan,
                          host_object_t *pack, cudaGraph_t graph,
                          bool replaces) {
  job_t *job;
  REFUSE_IF(!graph, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = job_create(handle, plan, pack, &job);
  if (status)
    return status;
  if (!makes_nodes(plan)) {
    release(job);
    return host_refuse(CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API,
                       "the engine makes no nodes of CUDA graphs");
  }
  cudaError_t added =
      host_graph_add_again(graph, replaces, run, job, release, again);
  REFUSE_IF(added != cudaSuccess, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendPopulateCudaGraph(
    cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
    cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return into(handle, executionPlan, variantPack, graph, false);
}

cudnnStatus_t cudnnBackendUpdateCudaGraph(
    cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
    cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return into(handle, executionPlan, variantPack, graph, true);
}
