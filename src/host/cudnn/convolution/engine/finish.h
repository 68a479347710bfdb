/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a convolution: from sums to y. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_FINISH_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_FINISH_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Writes `count` consecutive elements of one channel: along W from
 * (n, channel, d, h, w). `sums` are dense; channel counts over all groups. */
void host_finish_along_w(const host_conv_t *conv, const void *sums,
                         int64_t count, const int64_t at[5]);

/* The same for `count` consecutive channels of one point. */
void host_finish_along_c(const host_conv_t *conv, const void *sums,
                         int64_t count, const int64_t at[5]);

#endif
