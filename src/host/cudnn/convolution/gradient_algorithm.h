/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms for the gradients of a convolution. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_GRADIENT_ALGORITHM_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_GRADIENT_ALGORITHM_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Refuses a call of `function`: BAD_PARAM if `algo` does not exist or the
 * workspace (bytes) is too small, NOT_SUPPORTED if cuDNN has the algorithm only
 * for other problems. */
cudnnStatus_t host_gradient_check(host_conv_kind_t kind, const char *function,
                                  const host_conv_t *problem, int algo,
                                  size_t workspace);

#endif
