/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix engine: weights times tiles of columns of x. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_MATRIX_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_MATRIX_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Float and one group only. host_conv_matrix obeys the law of engine.h.
 * host_wgrad_matrix computes the sums of the weights' gradient, dense K C D H
 * W, not mirrored. False when memory is short. */
bool host_conv_matrix(const host_conv_t *conv);
bool host_wgrad_matrix(const host_conv_t *conv, float *sums);

#endif
