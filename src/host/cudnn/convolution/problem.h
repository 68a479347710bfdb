/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a convolution from its descriptors and checks it. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_PROBLEM_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_PROBLEM_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Fills shape, strides and type of *out; pointers and scalars stay zero. `old`
 * has y's extents, or is NULL for y itself. BAD_PARAM if the descriptors
 * contradict each other, `mismatch` if only y's shape differs from the output's
 * (the entries differ in that), and NOT_SUPPORTED for problems that no engine
 * computes. */
cudnnStatus_t host_problem_init(const struct cudnnTensorStruct *x,
                                const struct cudnnFilterStruct *w,
                                const struct cudnnConvolutionStruct *conv,
                                const struct cudnnTensorStruct *y,
                                const struct cudnnTensorStruct *old,
                                cudnnStatus_t mismatch, host_conv_t *out);

/* Whether cuDNN has `algo` of the kind for the problem; `like` is the forward
 * algorithm with the same limits. The engines compute all the same way. */
bool host_problem_allows(host_conv_kind_t kind, const host_conv_t *problem,
                         int algo, cudnnConvolutionFwdAlgo_t like);

/* Refuses a call of `function` with an algorithm that is not allowed, or with
 * too small a workspace (bytes). asker: host_model_check_convolution. */
cudnnStatus_t host_problem_refuses(host_conv_kind_t kind, const char *function,
                                   const void *asker,
                                   const host_conv_t *problem, int algo,
                                   cudnnConvolutionFwdAlgo_t like,
                                   size_t workspace);

#endif
