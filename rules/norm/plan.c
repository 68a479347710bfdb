// SPDX-License-Identifier: Apache-2.0
// Mean and variance of values that several ranks hold.
//
// The vendor's training function gives each rank, in one pass over x, the mean
// a_r and the unbiased variance v_r of its m_r values. Then two sums over the
// ranks, with weights w_r = m_r / M:
//
//   mean = sum w_r a_r
//   variance = sum ((m_r - 1) / M v_r + w_r (a_r - mean)^2)
//
// The second sum subtracts nothing: no digits are lost, however large the mean
// is beside the deviation. Example: [1, 3] and [6] have a = 2, 6 and v = 2 and
// none; the mean is 10/3, the variance 2/3 + 2/3 (4/3)^2 + 1/3 (8/3)^2.
#include "rules/norm/plan.h"
#include "rules/vendor/argument.h"

sdg_status_t sdg_norm_scratch(sdg_norm_maker_t *m, sdg_subcall_tensor_t *out) {
  int slab;
  SDG_TRY(sdg_plan_scratch(m->plan, &m->params, m->tensor[SDG_NORM_SCALE].slab,
                           &slab));
  *out = sdg_subcall_slab(m->plan, slab, m->type);
  return SDG_OK;
}

sdg_status_t sdg_norm_constant(sdg_norm_maker_t *m, int value,
                               sdg_subcall_tensor_t *out) {
  SDG_TRY(sdg_norm_scratch(m, out));
  return value ? sdg_subcall_set(m->plan, value, out)
               : sdg_plan_zero(m->plan, SDG_LANE_MAIN, out->slab, &out->box);
}

sdg_status_t sdg_norm_copy(sdg_norm_maker_t *m, sdg_norm_tensor_t like,
                           sdg_type_t type, sdg_subcall_tensor_t *out) {
  const sdg_subcall_tensor_t *of =
      &m->tensor[type == m->tensor[like].type ? like : SDG_NORM_SCALE];
  int slab;
  SDG_TRY(sdg_plan_scratch_of(m->plan, &m->own,
                              m->plan->slab[of->slab].elem_bytes,
                              m->tensor[like].slab, &slab));
  *out = sdg_subcall_slab(m->plan, slab, type);
  return SDG_OK;
}

// Each of the two sums begins at a multiple of ALIGN elements, because the
// vendor's functions do not state which alignment they need.
sdg_status_t sdg_norm_pair(sdg_norm_maker_t *m, sdg_norm_pair_t *out) {
  enum { ALIGN = 64 }; // elements
  int like = m->tensor[SDG_NORM_SCALE].slab;
  int64_t room = (sdg_box_count(&m->params) + ALIGN - 1) / ALIGN * ALIGN;
  sdg_box_t line = {.dims = 1, .dim = {{0, 2 * room}}};
  SDG_TRY(sdg_plan_scratch(m->plan, &line, like, &out->slab));
  int slab;
  for (int i = 0; i < 2; i++) {
    SDG_TRY(sdg_plan_within(m->plan, out->slab,
                            (size_t)(i * room * m->plan->slab[like].elem_bytes),
                            &m->params, like, &slab));
    out->sum[i] = sdg_subcall_slab(m->plan, slab, m->type);
  }
  sdg_box_t two = m->params;
  two.dim[0].hi = two.dim[0].lo + 2;
  SDG_TRY(sdg_plan_within(m->plan, out->slab, 0, &two, like, &slab));
  m->plan->slab[slab].stride[0] = room;
  out->both = sdg_subcall_slab(m->plan, slab, m->type);
  return SDG_OK;
}

sdg_status_t sdg_norm_pair_zero(sdg_norm_maker_t *m,
                                const sdg_norm_pair_t *pair) {
  return sdg_plan_zero(m->plan, SDG_LANE_MAIN, pair->slab,
                       &m->plan->slab[pair->slab].box);
}

bool sdg_norm_aliased(const sdg_norm_maker_t *m, sdg_norm_tensor_t a,
                      sdg_norm_tensor_t b) {
  const void *data = sdg_norm_data(m->call, m->norm, a);
  return !m->packs && data && data == sdg_norm_data(m->call, m->norm, b);
}

sdg_status_t sdg_norm_overwritable(sdg_norm_maker_t *m, sdg_norm_tensor_t y,
                                   const sdg_norm_tensor_t *later,
                                   sdg_subcall_tensor_t *out) {
  bool wanted = sdg_call_scalar(m->call, SDG_BETA) != 0;
  for (; *later != SDG_NORM_TENSORS; later++)
    wanted |= sdg_norm_aliased(m, y, *later);
  if (wanted)
    return sdg_norm_copy(m, y, m->tensor[y].type, out);
  *out = m->tensor[y];
  return SDG_OK;
}

static sdg_status_t reduce(sdg_norm_maker_t *m, int slab) {
  m->plan->reduce_axes = m->axes;
  SDG_TRY(sdg_plan_reduce(m->plan, slab, m->type, SDG_COMBINE_SUM));
  return sdg_plan_join(m->plan, SDG_LANE_MAIN);
}

// Computes this rank's own mean and variance, and its term w_r a_r of the mean.
static sdg_status_t own_add(sdg_norm_maker_t *m,
                            const sdg_subcall_tensor_t *waste,
                            const sdg_norm_pair_t *own,
                            const sdg_subcall_tensor_t *mean) {
  const sdg_norm_params_t params = {.scale = m->tensor[SDG_NORM_SCALE],
                                    .bias = m->tensor[SDG_NORM_SCALE],
                                    .mean = own->sum[0],
                                    .variance = own->sum[1]};
  SDG_TRY(sdg_norm_pair_zero(m, own));
  SDG_TRY(sdg_norm_subcall_statistics(m->plan, m->norm->mode,
                                      &m->tensor[SDG_NORM_X], &params, waste));
  // One value has no unbiased variance.
  if (m->count == 1)
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, own->sum[1].slab,
                          &own->sum[1].box));
  return sdg_subcall_transform(m->plan, (double)m->count / (double)m->total,
                               &own->sum[0], 0, mean);
}

// Computes this rank's term of the variance, in place of its own variance.
static sdg_status_t spread_add(sdg_norm_maker_t *m, const sdg_norm_pair_t *own,
                               const sdg_subcall_tensor_t *mean) {
  const sdg_subcall_tensor_t *distance = &own->sum[0];
  double weight = (double)m->count / (double)m->total;
  double rest = (double)(m->count - 1) / (double)m->total;
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, distance, -1, mean, 0,
                         distance));
  return sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, weight, distance, 1,
                        distance, rest, &own->sum[1]);
}

sdg_status_t sdg_norm_statistics(sdg_norm_maker_t *m,
                                 const sdg_subcall_tensor_t *waste,
                                 const sdg_subcall_tensor_t *mean,
                                 sdg_subcall_tensor_t *out_variance) {
  sdg_norm_pair_t own;
  SDG_TRY(sdg_norm_pair(m, &own));
  *out_variance = own.sum[1];
  if (m->count > 0)
    SDG_TRY(own_add(m, waste, &own, mean));
  else
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, mean->slab, &mean->box));
  SDG_TRY(reduce(m, mean->slab));
  if (m->count > 0)
    SDG_TRY(spread_add(m, &own, mean));
  else
    SDG_TRY(sdg_norm_pair_zero(m, &own));
  return reduce(m, out_variance->slab);
}

sdg_status_t sdg_norm_inverse(sdg_norm_maker_t *m,
                              const sdg_subcall_tensor_t *variance,
                              const sdg_subcall_tensor_t *inverse) {
  sdg_subcall_tensor_t one, zero;
  SDG_TRY(sdg_norm_constant(m, 1, &one));
  SDG_TRY(sdg_norm_constant(m, 0, &zero));
  const sdg_norm_params_t params = {one, zero, zero, *variance};
  return sdg_norm_subcall_inference(m->plan, m->norm->mode, SDG_NORM_ONE, &one,
                                    &params, SDG_NORM_PROGRAM, SDG_NORM_ZERO,
                                    inverse);
}
