/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as its descriptors state it, checked. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_PROBLEM_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_PROBLEM_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Fills shape, strides and type of *out; pointers and scalars stay zero. `old`
 * has y's extents, or is NULL for y itself.
 * BAD_PARAM where the descriptors contradict each other, `mismatch` where only
 * y has another shape than the output (the entries differ in that), and
 * NOT_SUPPORTED for what no engine computes. */
cudnnStatus_t host_problem_init(const struct cudnnTensorStruct *x,
                                const struct cudnnFilterStruct *w,
                                const struct cudnnConvolutionStruct *conv,
                                const struct cudnnTensorStruct *y,
                                const struct cudnnTensorStruct *old,
                                cudnnStatus_t mismatch, host_conv_t *out);

/* Whether cuDNN has `algo` for the problem; the engines compute all alike. */
bool host_problem_allows(const host_conv_t *problem,
                         cudnnConvolutionFwdAlgo_t algo);

#endif
