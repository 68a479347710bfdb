/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation of floats whose channels are contiguous. */
#ifndef SDG_SRC_HOST_CUDNN_NORMALIZATION_CHANNELS_LAST_H
#define SDG_SRC_HOST_CUDNN_NORMALIZATION_CHANNELS_LAST_H

#include "src/host/cudnn/normalization/batchnorm.h"

/* Whether all tensors of the job have contiguous channels. */
bool host_bn_last_is(const host_bn_t *bn);

/* Runs the job by `run` on tensors with rows. False when memory is short. */
bool host_bn_last_run(const host_bn_t *bn, bool (*run)(const host_bn_t *bn));

#endif
