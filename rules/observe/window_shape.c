// SPDX-License-Identifier: Apache-2.0
// The window of a call: what its descriptors, or a [function] section, say.
#include "rules/observe/window_shape.h"

#include <limits.h>
#include <string.h>

#include "rules/function/call.h"
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

// What an element of a function's results sees. No window if that is a whole
// dimension, or elements of the other end, or other images or channels.
static bool function_read(const sdg_call_t *call, sdg_call_window_t *out) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  int dims = call->operand[0].dims;
  out->spatial = dims - 2;
  for (int d = 0; d < dims; d++) {
    sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, dims);
    bool unsaid = function->reach[dim] == SDG_REACH_UNSAID;
    int64_t before = unsaid ? 0 : function->sees[dim].before;
    int64_t behind = unsaid ? 0 : function->sees[dim].behind;
    if (function->reach[dim] == SDG_REACH_ALL ||
        (function->reach[dim] > 0 &&
         (d < 2 || function->border[dim] == SDG_BORDER_WRAP)) ||
        before + behind >= INT_MAX)
      return false;
    if (d < 2)
      continue;
    out->kernel[d - 2] = (int)(before + behind + 1);
    out->pad[d - 2] = (int)before;
    out->stride[d - 2] = out->dilation[d - 2] = 1;
  }
  return true;
}

bool sdg_window_shape(const sdg_call_t *call, sdg_call_window_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  memset(out, 0, sizeof *out);
  if (call->window) {
    *out = *call->window;
    return true;
  }
  if (call->family == SDG_FAMILY_FUNCTION)
    return function_read(call, out);
  return cudnn && call->op_descriptor &&
         (sdg_family_is(call->family, SDG_FAMILY_FILTERS)
              ? filter_read(cudnn, call, out)
              : sdg_family_is(call->family, SDG_FAMILY_POOLS) &&
                    pool_read(cudnn, call, out));
}
