/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation on host memory, in doubles, channel by channel. */
#ifndef SDG_SRC_HOST_CUDNN_NORMALIZATION_BATCHNORM_H
#define SDG_SRC_HOST_CUDNN_NORMALIZATION_BATCHNORM_H

#include "src/host/cudnn/base/view.h"

typedef enum {
  HOST_BN_INFERENCE,
  HOST_BN_TRAINING,
  HOST_BN_BACKWARD
} host_bn_kind_t;

/* Parameters (of `scale`'s shape) have one value per channel, or one per
 * channel and point if `per_activation`. Tensors without data (running and
 * saved values, z, y of a backward call without activation) are left out. */
typedef struct {
  host_bn_kind_t kind;
  bool per_activation, relu, swish; /* swish: forward only */
  host_view_t x, y, z, dy, dx, dz;
  host_view_t scale, bias, mean, variance; /* running mean; running variance */
  host_view_t saved_mean, saved_invstd;
  host_view_t dscale, dbias;
  double alpha, beta, alpha_param, beta_param;
  double epsilon, factor, swish_beta;
} host_bn_t;

/* False when memory is short. */
bool host_bn_run(const host_bn_t *bn);

#endif
