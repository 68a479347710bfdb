// SPDX-License-Identifier: Apache-2.0
// The vendor's answers about normalisations: sizes of workspace and reserve,
// and whether the library accepts a part of a tensor.
#include <cudnn.h>

#include "rules/norm/rule.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"

// Returns the vendor's answer for this rank's tensors, because only the
// program's own call needs the workspace; sub-calls need none.
sdg_status_t sdg_norm_answer(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int *out_vendor) {
  (void)tagging;
  if (!sdg_cudnn_get())
    return SDG_E_LIBRARY_MISSING;
  *out_vendor = sdg_invoke(call->entry, call->args);
  return SDG_OK;
}

// Creates a descriptor of a part: in the program's tensor, or packed.
static bool part_describe(const sdg_operand_t *operand, const sdg_box_t *part,
                          bool packed, cudnnTensorDescriptor_t *out) {
  int64_t stride[SDG_DIMS_MAX];
  sdg_slab_pack(part, sdg_operand_nesting(operand), stride);
  return sdg_cudnn_get()->cudnnCreateTensorDescriptor(out) ==
             CUDNN_STATUS_SUCCESS &&
         sdg_tensor_set(*out, operand->type, part,
                        packed ? stride : operand->stride) == SDG_OK;
}

// Asks the library for the workspace of a part. It fails for tensors that the
// library would also reject in the call.
static bool part_ask(const sdg_call_t *call, const sdg_norm_t *norm,
                     const sdg_box_t *part, bool packed) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  bool backward = norm->kind == SDG_NORM_BACKWARD;
  const sdg_norm_tensor_t which[] = {SDG_NORM_X,
                                     backward ? SDG_NORM_DY : SDG_NORM_Y,
                                     backward ? SDG_NORM_DX : SDG_NORM_Y};
  cudnnTensorDescriptor_t d[3] = {NULL, NULL, NULL};
  cudnnTensorDescriptor_t scale =
      (cudnnTensorDescriptor_t)call->operand[norm->operand[SDG_NORM_SCALE]]
          .descriptor;
  cudnnHandle_t handle = (cudnnHandle_t)(uintptr_t)call->handle;
  bool takes = true;
  size_t bytes;
  for (int i = 0; i < 3 && takes; i++)
    takes = part_describe(&call->operand[norm->operand[which[i]]], part, packed,
                          &d[i]);
  if (takes && backward)
    takes = cudnn->cudnnGetBatchNormalizationBackwardExWorkspaceSize(
                handle, norm->mode, CUDNN_BATCHNORM_OPS_BN, d[0], NULL, d[1],
                NULL, d[2], scale, NULL, &bytes) == CUDNN_STATUS_SUCCESS;
  else if (takes)
    takes = cudnn->cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                handle, norm->mode, CUDNN_BATCHNORM_OPS_BN, d[0], NULL, d[1],
                scale, NULL, &bytes) == CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < 3; i++)
    if (d[i])
      (void)cudnn->cudnnDestroyTensorDescriptor(d[i]);
  return takes;
}

bool sdg_norm_accepted_in_place(const sdg_call_t *call, const sdg_norm_t *norm,
                                const sdg_box_t *part) {
  return sdg_box_empty(part) || part_ask(call, norm, part, false) ||
         !part_ask(call, norm, part, true);
}
