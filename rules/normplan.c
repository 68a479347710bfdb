// SPDX-License-Identifier: Apache-2.0
// Mean and variance of values that several ranks hold.
//
// Two passes over x, a sum over the ranks after each. First the ranks' means,
// weighted by their counts, give a pivot that is the same on all of them: near
// the mean, and no more exact than one float. Then each rank has its mean's
// distance d_r from the pivot and its variance v_r, from the vendor's own
// training: as a running mean that begins at minus the pivot and moves half the
// way, so that the distance is not lost in the rounding of a mean that is much
// larger. With weights w_r = m_r / M:
//
//   mean = pivot + sum w_r d_r
//   variance = sum ((m_r - 1) / M v_r + w_r d_r^2) - (sum w_r d_r)^2
//
// The last term is as small as the pivot is near: nothing cancels.
#include "rules/normplan.h"

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

// Each begins where an allocation might: the vendor's functions say nothing of
// the alignment that they need.
sdg_status_t sdg_norm_pair(sdg_norm_maker_t *m, sdg_norm_pair_t *out) {
  enum { ALIGN = 64 }; // elements
  int like = m->tensor[SDG_NORM_SCALE].slab;
  int64_t room = (sdg_box_count(&m->params) + ALIGN - 1) / ALIGN * ALIGN;
  sdg_box_t line = {.dims = 1, .dim = {{0, 2 * room}}};
  SDG_TRY(sdg_plan_scratch(m->plan, &line, like, &out->slab));
  for (int i = 0; i < 2; i++) {
    int slab;
    SDG_TRY(sdg_plan_within(m->plan, out->slab,
                            (size_t)(i * room * m->plan->slab[like].elem_bytes),
                            &m->params, like, &slab));
    out->sum[i] = sdg_subcall_slab(m->plan, slab, m->type);
  }
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

sdg_status_t sdg_norm_waste(sdg_norm_maker_t *m, sdg_norm_tensor_t y,
                            const sdg_norm_tensor_t *later,
                            sdg_subcall_tensor_t *out) {
  bool wanted = sdg_rule_scalar(m->call, m->norm->beta) != 0;
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

// The ranks' means, weighted; equal on all of them afterwards.
static sdg_status_t pivot_add(sdg_norm_maker_t *m,
                              sdg_subcall_tensor_t *out_pivot) {
  const sdg_subcall_tensor_t *x = &m->tensor[SDG_NORM_X];
  double weight = (double)m->count / (double)m->total;
  if (m->count == 0) {
    SDG_TRY(sdg_norm_constant(m, 0, out_pivot));
  } else {
    SDG_TRY(sdg_norm_scratch(m, out_pivot));
    // Nothing to reduce is no reduction; the greater of x and x is x.
    if (m->count == 1)
      SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MAX, weight, x, weight, x,
                             0, out_pivot));
    else
      SDG_TRY(sdg_subcall_reduce(m->plan, CUDNN_REDUCE_TENSOR_AVG, weight, x, 0,
                                 out_pivot));
  }
  return reduce(m, out_pivot->slab);
}

// Of this rank's values: w d and (m - 1) / M v + w d^2.
static sdg_status_t moments_add(sdg_norm_maker_t *m,
                                const sdg_subcall_tensor_t *pivot,
                                const sdg_subcall_tensor_t *waste,
                                const sdg_subcall_tensor_t *distance,
                                const sdg_subcall_tensor_t *square) {
  const sdg_norm_params_t params = {.scale = m->tensor[SDG_NORM_SCALE],
                                    .bias = *pivot,
                                    .mean = *distance,
                                    .variance = *square};
  double weight = (double)m->count / (double)m->total;
  double rest = (double)(m->count - 1) / (double)m->total;
  SDG_TRY(sdg_subcall_transform(m->plan, -1, pivot, 0, distance));
  SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, square->slab, &square->box));
  SDG_TRY(sdg_normsub_statistics(m->plan, m->norm->mode, &m->tensor[SDG_NORM_X],
                                 &params, waste));
  // Of one value there is no unbiased variance.
  if (m->count == 1)
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, square->slab, &square->box));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 4 * weight, distance, 1,
                         distance, 2 * rest, square));
  return sdg_subcall_scale(m->plan, 2 * weight, distance);
}

sdg_status_t sdg_norm_statistics(sdg_norm_maker_t *m,
                                 const sdg_subcall_tensor_t *waste,
                                 sdg_subcall_tensor_t *out_mean,
                                 sdg_subcall_tensor_t *out_variance) {
  sdg_norm_pair_t pair;
  const sdg_subcall_tensor_t *distance = &pair.sum[0], *square = &pair.sum[1];
  SDG_TRY(pivot_add(m, out_mean));
  SDG_TRY(sdg_norm_pair(m, &pair));
  if (m->count > 0)
    SDG_TRY(moments_add(m, out_mean, waste, distance, square));
  else
    SDG_TRY(sdg_norm_pair_zero(m, &pair));
  SDG_TRY(reduce(m, pair.slab));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, out_mean, 1, distance,
                         0, out_mean));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, -1, distance, 1,
                         distance, 1, square));
  // Of equal values it may be a rounding below zero.
  sdg_subcall_tensor_t zero;
  SDG_TRY(sdg_norm_constant(m, 0, &zero));
  *out_variance = *square;
  return sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MAX, 1, square, 1, &zero, 0,
                        square);
}

sdg_status_t sdg_norm_inverse(sdg_norm_maker_t *m,
                              const sdg_subcall_tensor_t *variance,
                              const sdg_subcall_tensor_t *inverse) {
  sdg_subcall_tensor_t one, zero;
  SDG_TRY(sdg_norm_constant(m, 1, &one));
  SDG_TRY(sdg_norm_constant(m, 0, &zero));
  const sdg_norm_params_t params = {one, zero, zero, *variance};
  return sdg_normsub_inference(m->plan, m->norm->mode, SDG_NORM_ONE, &one,
                               &params, SDG_NORM_PROGRAM, SDG_NORM_ZERO,
                               inverse);
}
