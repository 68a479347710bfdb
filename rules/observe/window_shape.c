// SPDX-License-Identifier: Apache-2.0
// Asks cuDNN for the window that the descriptors of a call have.
#include "rules/observe/window_shape.h"

#include <string.h>

#include "rules/vendor/vendor.h"

static bool filter_read(const sdg_cudnn_t *cudnn, const sdg_call_t *call,
                        sdg_call_window_t *out) {
  cudnnConvolutionMode_t mode;
  cudnnDataType_t type;
  const sdg_operand_t *filter = NULL;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].kind == SDG_OPERAND_FILTER)
      filter = &call->operand[i];
  if (!filter ||
      cudnn->cudnnGetConvolutionNdDescriptor(
          (cudnnConvolutionDescriptor_t)(uintptr_t)call->op_descriptor,
          SDG_DIMS_MAX - 2, &out->spatial, out->pad, out->stride, out->dilation,
          &mode, &type) != CUDNN_STATUS_SUCCESS)
    return false;
  for (int i = 0; i < out->spatial && i + 2 < filter->dims; i++)
    out->kernel[i] = (int)filter->extent[i + 2];
  return out->spatial == filter->dims - 2;
}

static bool pool_read(const sdg_cudnn_t *cudnn, const sdg_call_t *call,
                      sdg_call_window_t *out) {
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  for (int i = 0; i < SDG_DIMS_MAX; i++)
    out->dilation[i] = 1;
  return cudnn->cudnnGetPoolingNdDescriptor(
             (cudnnPoolingDescriptor_t)(uintptr_t)call->op_descriptor,
             SDG_DIMS_MAX - 2, &mode, &nan, &out->spatial, out->kernel,
             out->pad, out->stride) == CUDNN_STATUS_SUCCESS;
}

bool sdg_window_shape(const sdg_call_t *call, sdg_call_window_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  memset(out, 0, sizeof *out);
  if (call->window) {
    *out = *call->window;
    return true;
  }
  return cudnn && call->op_descriptor &&
         (sdg_family_is(call->family, SDG_FAMILY_FILTERS)
              ? filter_read(cudnn, call, out)
              : sdg_family_is(call->family, SDG_FAMILY_POOLS) &&
                    pool_read(cudnn, call, out));
}
