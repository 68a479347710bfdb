// SPDX-License-Identifier: Apache-2.0
// Variant packs, and the execution of plans with them.
#include "src/host/cudnn/backend/check.h"

cudnnStatus_t host_check_pack(host_object_t *pack) {
  const host_value_t *ids = HOST_VALUE(pack, VARIANT_PACK_UNIQUE_IDS);
  const host_value_t *pointers = HOST_VALUE(pack, VARIANT_PACK_DATA_POINTERS);
  REFUSE_IF(ids->count != pointers->count, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
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

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
  cudnnStatus_t status = check(handle, executionPlan, variantPack);
  return status ? status
                : host_refuse(CUDNN_STATUS_NOT_SUPPORTED,
                              "the host device executes no graphs");
}

cudnnStatus_t cudnnBackendPopulateCudaGraph(
    cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
    cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  REFUSE_IF(!graph, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check(handle, executionPlan, variantPack);
  return status ? status
                : host_refuse(CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API,
                              "no engine makes nodes of CUDA graphs");
}

cudnnStatus_t cudnnBackendUpdateCudaGraph(
    cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
    cudnnBackendDescriptor_t variantPack, cudaGraph_t graph) {
  return cudnnBackendPopulateCudaGraph(handle, executionPlan, variantPack,
                                       graph);
}
