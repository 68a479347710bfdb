// SPDX-License-Identifier: Apache-2.0
// Descriptors that turn a data gradient with strides into one without: blocks
// of as many points as the strides span become channels of x and of w.
//
// It answers as NVIDIA's library does, including padding to eight channels;
// only vectors of channels are refused here. As there, if a stride is over 1
// the folded convolution gives the gradient only with mode
// CUDNN_CROSS_CORRELATION (mirroring a folded filter mirrors blocks, not
// points), without dilation and without groups (transform.c folds block by
// block, so a group's channels are not contiguous). Points of x behind the last
// window are left out and unfold to 0, whatever beta was.
#include "src/host/cudnn/descriptor/types.h"

#include "src/host/cudnn/descriptor/life.h"

enum { LANES = 8, SPACE = 2 };

typedef struct {
  int fold[SPACE], pad[SPACE];      // pad: of the folded conv
  int before[SPACE], after[SPACE];  // zeros around the window
  int window[SPACE], extent[SPACE]; // folded
  int grown[SPACE];                 // outputs added
  int surplus[SPACE]; // points that unfolding cuts off; negative: adds
  int more_channels, more_outputs,
      all_folds; // zeros added; product of the folds
} plan_t;

static int64_t up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// NVIDIA's library ignores dilation here, and rounds to zero if the window is
// larger than the extent.
static cudnnStatus_t plan_dimension(int64_t stride, int64_t pad, int64_t window,
                                    int64_t extent, int i, plan_t *plan) {
  REFUSE_IF(stride < 1, CUDNN_STATUS_BAD_PARAM);
  int64_t before = up(pad, stride) - pad;
  int64_t folded = up(window + before, stride) / stride;
  int64_t outputs = (extent + 2 * pad - window) / stride + 1;
  // Points of x behind the last window are left out.
  int64_t used = stride * (outputs - 1) - pad + window;
  int64_t left = up(used < extent ? used : extent, stride) / stride;
  int64_t grown = left + 2 * (up(pad, stride) / stride) - folded + 1 - outputs;
  REFUSE_IF(window + before > INT32_MAX - stride ||
                extent > INT32_MAX - stride || grown != (int32_t)grown,
            CUDNN_STATUS_NOT_SUPPORTED);
  plan->fold[i] = (int)stride;
  plan->pad[i] = (int)(up(pad, stride) / stride);
  plan->before[i] = (int)before;
  plan->after[i] = (int)(folded * stride - before - window);
  plan->window[i] = (int)folded;
  plan->extent[i] = (int)left;
  plan->surplus[i] = (int)(left * stride - extent);
  plan->grown[i] = (int)grown;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t make_plan(const struct cudnnFilterStruct *w,
                               const struct cudnnConvolutionStruct *conv,
                               const struct cudnnTensorStruct *grad,
                               plan_t *out) {
  plan_t plan = {0};
  for (int i = 0; i < SPACE; i++) {
    cudnnStatus_t status =
        plan_dimension(conv->stride[i], conv->pad[i], w->dim[2 + i],
                       grad->dim[2 + i], i, &plan);
    if (status)
      return status;
  }
  int64_t folds = (int64_t)plan.fold[0] * plan.fold[1];
  REFUSE_IF(folds > INT32_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  int64_t channels = up(w->dim[1] * folds, LANES) / folds;
  REFUSE_IF(grad->dim[1] + channels > INT32_MAX / folds ||
                w->dim[0] > INT32_MAX - LANES,
            CUDNN_STATUS_NOT_SUPPORTED);
  plan.more_channels = (int)(channels - w->dim[1]);
  plan.more_outputs = (int)(up(w->dim[0], LANES) - w->dim[0]);
  plan.all_folds = (int)folds;
  *out = plan;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t folded_shapes(const plan_t *plan,
                                   const struct cudnnFilterStruct *w,
                                   const struct cudnnTensorStruct *diff,
                                   const struct cudnnConvolutionStruct *conv,
                                   const struct cudnnTensorStruct *grad,
                                   cudnnTensorFormat_t format,
                                   cudnnFilterDescriptor_t folded_w,
                                   cudnnTensorDescriptor_t padded_diff,
                                   cudnnConvolutionDescriptor_t folded_conv,
                                   cudnnTensorDescriptor_t folded_grad) {
  cudnnStatus_t status = cudnnSetFilter4dDescriptor(
      folded_w, w->type, format, w->dim[0] + plan->more_outputs,
      (w->dim[1] + plan->more_channels) * plan->all_folds, plan->window[0],
      plan->window[1]);
  if (!status) {
    int dim[CUDNN_DIM_MAX];
    for (int i = 0; i < diff->rank; i++) {
      int more = i == 1           ? plan->more_outputs
                 : i > 1 && i < 4 ? plan->grown[i - 2]
                                  : 0;
      REFUSE_IF(__builtin_add_overflow(diff->dim[i], more, &dim[i]),
                CUDNN_STATUS_NOT_SUPPORTED);
    }
    status = cudnnSetTensorNdDescriptorEx(
        padded_diff, diff->rank < 4 ? CUDNN_TENSOR_NCHW : format, diff->type,
        diff->rank, dim);
  }
  *folded_conv = *conv;
  for (int i = 0; i < SPACE; i++) {
    folded_conv->pad[i] = plan->pad[i];
    folded_conv->stride[i] = 1;
  }
  if (!status)
    status = cudnnSetTensor4dDescriptor(
        folded_grad, format, grad->type, grad->dim[0],
        (grad->dim[1] + plan->more_channels) * plan->all_folds, plan->extent[0],
        plan->extent[1]);
  return status;
}

// Whether the unfolded gradient has its channels innermost. One channel or one
// point has the same layout either way; for a few of these NVIDIA's library
// answers the other way.
static bool is_nhwc(const struct cudnnTensorStruct *t) {
  int channel = t->stride[1], row = t->stride[2], column = t->stride[3];
  if (t->dim[1] == 1 && (t->dim[2] > 1 || t->dim[3] > 1))
    return channel <= row && channel <= column;
  return channel < row && channel < column;
}

static cudnnStatus_t set_transform(cudnnTensorTransformDescriptor_t transform,
                                   cudnnTensorFormat_t format,
                                   const int32_t before[4],
                                   const int32_t after[4],
                                   const int fold[SPACE],
                                   cudnnFoldingDirection_t direction) {
  const uint32_t folds[SPACE] = {fold ? (uint32_t)fold[0] : 0,
                                 fold ? (uint32_t)fold[1] : 0};
  return cudnnSetTensorTransformDescriptor(transform, 4, format, before, after,
                                           folds, direction);
}

cudnnStatus_t cudnnGetFoldedConvBackwardDataDescriptors(
    const cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t diff, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t grad, const cudnnTensorFormat_t format,
    cudnnFilterDescriptor_t folded_w, cudnnTensorDescriptor_t padded_diff,
    cudnnConvolutionDescriptor_t folded_conv,
    cudnnTensorDescriptor_t folded_grad,
    cudnnTensorTransformDescriptor_t w_fold,
    cudnnTensorTransformDescriptor_t diff_pad,
    cudnnTensorTransformDescriptor_t grad_fold,
    cudnnTensorTransformDescriptor_t grad_unfold) {
  (void)handle; // NVIDIA's library ignores it, too
  REFUSE_IF(ANY_NULL(w, diff, conv, grad, folded_w, padded_diff, folded_conv,
                     folded_grad, w_fold, diff_pad, grad_fold),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(w->rank != 4 || grad->rank != 4, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range((int)format, CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC),
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(host_type_vector(w->type) > 1 || host_type_vector(diff->type) > 1 ||
                host_type_vector(grad->type) > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  plan_t plan = {0};
  cudnnStatus_t status = make_plan(w, conv, grad, &plan);
  // A copy, because results may be the descriptors that the program passed in.
  const struct cudnnTensorStruct old = *grad;
  if (!status)
    status = folded_shapes(&plan, w, diff, conv, grad, format, folded_w,
                           padded_diff, folded_conv, folded_grad);
  static const int32_t none[4] = {0};
  if (!status)
    status = set_transform(w_fold, format,
                           (int32_t[]){0, 0, plan.before[0], plan.before[1]},
                           (int32_t[]){plan.more_outputs, plan.more_channels,
                                       plan.after[0], plan.after[1]},
                           plan.fold, CUDNN_TRANSFORM_FOLD);
  if (!status)
    status = set_transform(
        diff_pad, format, none,
        (int32_t[]){0, plan.more_outputs, plan.grown[0], plan.grown[1]}, NULL,
        CUDNN_TRANSFORM_FOLD);
  if (!status)
    status =
        set_transform(grad_fold, format, none,
                      (int32_t[]){0, plan.more_channels,
                                  plan.surplus[0] < 0 ? plan.surplus[0] : 0,
                                  plan.surplus[1] < 0 ? plan.surplus[1] : 0},
                      plan.fold, CUDNN_TRANSFORM_FOLD);
  if (status || !grad_unfold)
    return status;
  return set_transform(
      grad_unfold, is_nhwc(&old) ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, none,
      (int32_t[]){0, -plan.more_channels, -plan.surplus[0], -plan.surplus[1]},
      plan.fold, CUDNN_TRANSFORM_UNFOLD);
}
