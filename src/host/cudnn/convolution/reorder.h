/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which NVIDIA's kernels want filters and biases of INT8x32. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_REORDER_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_REORDER_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Restores a dense w of K C D H W, and a bias if not NULL, from the reordered
 * order in memory. K and C are multiples of 32. */
void host_reorder_undo(const host_conv_t *conv, double *w, double *bias);

#endif
