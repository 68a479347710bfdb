// SPDX-License-Identifier: Apache-2.0
// Workspace and reserve sizes of normalisations on split tensors.
#include <cudnn.h>

#include "rules/args.h"
#include "rules/norm.h"
#include "rules/vendor.h"

// What the vendor says of this rank's tensors: enough for a call that is the
// program's own, and more than the sub-calls of others need, which is nothing.
static cudnnStatus_t ask(const sdg_cudnn_t *cudnn, const sdg_call_t *call) {
#define ARGS(entry) const struct sdg_args_##entry *a = call->args
  switch (call->entry) {
  case SDG_ENTRY_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize: {
    ARGS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize);
    return cudnn->cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        a->handle, a->mode, a->bnOps, a->xDesc, a->zDesc, a->yDesc,
        a->bnScaleBiasMeanVarDesc, a->activationDesc, a->sizeInBytes);
  }
  case SDG_ENTRY_cudnnGetBatchNormalizationBackwardExWorkspaceSize: {
    ARGS(cudnnGetBatchNormalizationBackwardExWorkspaceSize);
    return cudnn->cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        a->handle, a->mode, a->bnOps, a->xDesc, a->yDesc, a->dyDesc, a->dzDesc,
        a->dxDesc, a->dBnScaleBiasDesc, a->activationDesc, a->sizeInBytes);
  }
  case SDG_ENTRY_cudnnGetBatchNormalizationTrainingExReserveSpaceSize: {
    ARGS(cudnnGetBatchNormalizationTrainingExReserveSpaceSize);
    return cudnn->cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        a->handle, a->mode, a->bnOps, a->activationDesc, a->xDesc,
        a->sizeInBytes);
  }
  case SDG_ENTRY_cudnnGetNormalizationForwardTrainingWorkspaceSize: {
    ARGS(cudnnGetNormalizationForwardTrainingWorkspaceSize);
    return cudnn->cudnnGetNormalizationForwardTrainingWorkspaceSize(
        a->handle, a->mode, a->normOps, a->algo, a->xDesc, a->zDesc, a->yDesc,
        a->normScaleBiasDesc, a->activationDesc, a->normMeanVarDesc,
        a->sizeInBytes, a->groupCnt);
  }
  case SDG_ENTRY_cudnnGetNormalizationBackwardWorkspaceSize: {
    ARGS(cudnnGetNormalizationBackwardWorkspaceSize);
    return cudnn->cudnnGetNormalizationBackwardWorkspaceSize(
        a->handle, a->mode, a->normOps, a->algo, a->xDesc, a->yDesc, a->dyDesc,
        a->dzDesc, a->dxDesc, a->dNormScaleBiasDesc, a->activationDesc,
        a->normMeanVarDesc, a->sizeInBytes, a->groupCnt);
  }
  case SDG_ENTRY_cudnnGetNormalizationTrainingReserveSpaceSize: {
    ARGS(cudnnGetNormalizationTrainingReserveSpaceSize);
    return cudnn->cudnnGetNormalizationTrainingReserveSpaceSize(
        a->handle, a->mode, a->normOps, a->algo, a->activationDesc, a->xDesc,
        a->sizeInBytes, a->groupCnt);
  }
  default:
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
#undef ARGS
}

sdg_status_t sdg_norm_answer(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int *out_vendor) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  (void)tagging;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  *out_vendor = (int)ask(cudnn, call);
  return SDG_OK;
}
