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

/* Whether cuDNN has `algo` for the problem. The engines compute all the same
 * way. */
bool host_problem_allows(const host_conv_t *problem,
                         cudnnConvolutionFwdAlgo_t algo);

#endif
