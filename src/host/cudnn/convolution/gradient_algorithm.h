/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms for the gradients of a convolution. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_GRADIENT_ALGORITHM_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_GRADIENT_ALGORITHM_H

#include "src/host/cudnn/convolution/engine/engine.h"

typedef enum { HOST_GRADIENT_DATA, HOST_GRADIENT_FILTER } host_gradient_t;

/* BAD_PARAM if `algo` does not exist, NOT_SUPPORTED if cuDNN has it only for
 * other problems. */
cudnnStatus_t host_gradient_check(host_gradient_t kind,
                                  const host_conv_t *problem, int algo);

#endif
