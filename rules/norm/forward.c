// SPDX-License-Identifier: Apache-2.0
// Training: statistics of all ranks, then each rank normalises its own
// elements.
#include "rules/norm/plan.h"

// Writes the statistics that the program receives, except for the saved mean,
// which is there already. The running variance is the unbiased one.
static sdg_status_t statistics_write(sdg_norm_maker_t *m,
                                     const sdg_subcall_tensor_t *mean,
                                     const sdg_subcall_tensor_t *variance) {
  double total = (double)m->total;
  if (sdg_norm_data(m->call, m->norm, SDG_NORM_MEAN)) {
    SDG_TRY(sdg_norm_subcall_running(m, 1, mean, &m->tensor[SDG_NORM_MEAN]));
    SDG_TRY(sdg_norm_subcall_running(m, m->total > 1 ? total / (total - 1) : 1,
                                     variance, &m->tensor[SDG_NORM_VARIANCE]));
  }
  if (!sdg_norm_data(m->call, m->norm, SDG_NORM_SAVED_MEAN))
    return SDG_OK;
  return sdg_norm_inverse(m, variance, &m->tensor[SDG_NORM_SAVED_INVERSE]);
}

static sdg_norm_params_t params_of(const sdg_norm_maker_t *m,
                                   const sdg_subcall_tensor_t *mean,
                                   const sdg_subcall_tensor_t *variance) {
  return (sdg_norm_params_t){.scale = m->tensor[SDG_NORM_SCALE],
                             .bias = m->tensor[SDG_NORM_BIAS],
                             .mean = *mean,
                             .variance = *variance};
}

// y = activation(normalised x + z), rounded once: y contains z before the
// normalised x is added to it.
static sdg_status_t fused_add(sdg_norm_maker_t *m,
                              const sdg_norm_params_t *params) {
  const sdg_subcall_tensor_t *x = &m->tensor[SDG_NORM_X];
  const sdg_subcall_tensor_t *y = &m->tensor[SDG_NORM_Y];
  bool adds = m->norm->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
  sdg_subcall_tensor_t sum = *y;
  if (adds && sdg_norm_aliased(m, SDG_NORM_Y, SDG_NORM_X))
    SDG_TRY(sdg_norm_copy(m, SDG_NORM_Y, y->type, &sum));
  if (adds && !sdg_norm_aliased(m, SDG_NORM_Y, SDG_NORM_Z))
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->tensor[SDG_NORM_Z].slab,
                          sum.slab, NULL, &m->own, SDG_COPY_ACTIVATION));
  SDG_TRY(sdg_norm_subcall_inference(
      m, m->norm->mode, SDG_NORM_ONE, x, params, SDG_NORM_PROGRAM,
      adds ? SDG_NORM_ONE : SDG_NORM_ZERO, &sum));
  return sdg_norm_subcall_activate(m->plan, &sum, y);
}

sdg_status_t sdg_norm_forward(sdg_norm_maker_t *m) {
  static const sdg_norm_tensor_t later[] = {SDG_NORM_X, SDG_NORM_Z,
                                            SDG_NORM_TENSORS};
  sdg_subcall_tensor_t mean = m->tensor[SDG_NORM_MEAN];
  sdg_subcall_tensor_t variance = m->tensor[SDG_NORM_VARIANCE];
  if (m->norm->kind == SDG_NORM_TRAINING) {
    sdg_subcall_tensor_t waste;
    if (m->count > 0)
      SDG_TRY(sdg_norm_overwritable(m, SDG_NORM_Y, later, &waste));
    if (sdg_norm_data(m->call, m->norm, SDG_NORM_SAVED_MEAN))
      mean = m->tensor[SDG_NORM_SAVED_MEAN];
    else
      SDG_TRY(sdg_norm_scratch(m, &mean));
    SDG_TRY(sdg_norm_statistics(m, &waste, &mean, &variance));
    SDG_TRY(statistics_write(m, &mean, &variance));
  }
  if (m->count == 0)
    return SDG_OK;
  const sdg_norm_params_t params = params_of(m, &mean, &variance);
  if (m->norm->ops != CUDNN_BATCHNORM_OPS_BN)
    return fused_add(m, &params);
  return sdg_norm_subcall_inference(
      m, m->norm->mode, SDG_NORM_PROGRAM, &m->tensor[SDG_NORM_X], &params,
      SDG_NORM_PROGRAM, SDG_NORM_PROGRAM, &m->tensor[SDG_NORM_Y]);
}
