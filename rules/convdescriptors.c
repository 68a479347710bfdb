// SPDX-License-Identifier: Apache-2.0
// The vendor's descriptors of a convolution: read, and made for sub-calls.
#include <stdint.h>
#include <string.h>

#include "rules/conv.h"
#include "rules/vendor.h"

sdg_status_t sdg_conv_refused(const char *function, cudnnStatus_t status) {
  return sdg_fail(SDG_E_VENDOR_CALL, "%s: status %d", function, (int)status);
}

sdg_status_t sdg_conv_parameters(const void *descriptor,
                                 sdg_conv_parameters_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnConvolutionDescriptor_t conv =
      (cudnnConvolutionDescriptor_t)(uintptr_t)descriptor;
  // Seven is the most that the vendor's library takes.
  cudnnStatus_t got = cudnn->cudnnGetConvolutionNdDescriptor(
      conv, SDG_DIMS_MAX - 2, &out->spatial, out->pad, out->stride,
      out->dilation, &out->mode, &out->compute);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnGetConvolutionGroupCount(conv, &out->groups);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnGetConvolutionMathType(conv, &out->math);
  if (got != CUDNN_STATUS_SUCCESS)
    return sdg_conv_refused("cudnnGetConvolutionNdDescriptor", got);
  return SDG_OK;
}

static sdg_status_t tensor_set(const sdg_cudnn_t *cudnn,
                               cudnnTensorDescriptor_t descriptor, int type,
                               const sdg_box_t *box, const int64_t *stride) {
  int extent[SDG_DIMS_MAX], step[SDG_DIMS_MAX];
  for (int d = 0; d < box->dims; d++) {
    extent[d] = (int)(box->dim[d].hi - box->dim[d].lo);
    step[d] = (int)stride[d];
  }
  cudnnStatus_t got = cudnn->cudnnSetTensorNdDescriptor(
      descriptor, (cudnnDataType_t)type, box->dims, extent, step);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_conv_refused("cudnnSetTensorNdDescriptor", got);
}

static sdg_status_t conv_set(const sdg_cudnn_t *cudnn,
                             cudnnConvolutionDescriptor_t descriptor,
                             const sdg_conv_parameters_t *p, const int *pad) {
  cudnnStatus_t got = cudnn->cudnnSetConvolutionNdDescriptor(
      descriptor, p->spatial, pad, p->stride, p->dilation, p->mode, p->compute);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetConvolutionGroupCount(descriptor, p->groups);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetConvolutionMathType(descriptor, p->math);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_conv_refused("cudnnSetConvolutionNdDescriptor", got);
}

sdg_status_t sdg_conv_describe(const sdg_conv_t *conv, const sdg_call_t *call,
                               const sdg_conv_piece_t *piece,
                               const int64_t *x_stride, const int64_t *y_stride,
                               sdg_conv_descriptors_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  memset(out, 0, sizeof *out);
  // The output's type: BiasActivationForward and mixed types differ from x.
  int x_type = call->operand[conv->x].type;
  int y_type = conv->y >= 0 ? call->operand[conv->y].type : x_type;
  sdg_status_t status = SDG_OK;
  if (cudnn->cudnnCreateTensorDescriptor(&out->x) != CUDNN_STATUS_SUCCESS ||
      cudnn->cudnnCreateTensorDescriptor(&out->y) != CUDNN_STATUS_SUCCESS ||
      cudnn->cudnnCreateConvolutionDescriptor(&out->conv) !=
          CUDNN_STATUS_SUCCESS) {
    status = sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
    goto fail;
  }
  SDG_TRY_GOTO(tensor_set(cudnn, out->x, x_type, &piece->x, x_stride), fail);
  SDG_TRY_GOTO(tensor_set(cudnn, out->y, y_type, &piece->y, y_stride), fail);
  SDG_TRY_GOTO(conv_set(cudnn, out->conv, &conv->parameters, piece->pad), fail);
  return SDG_OK;
fail:
  sdg_conv_undescribe(out);
  return status;
}

void sdg_conv_undescribe(sdg_conv_descriptors_t *descriptors) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return;
  if (descriptors->x)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->x);
  if (descriptors->y)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->y);
  if (descriptors->conv)
    (void)cudnn->cudnnDestroyConvolutionDescriptor(descriptors->conv);
  memset(descriptors, 0, sizeof *descriptors);
}
