// SPDX-License-Identifier: Apache-2.0
// Gradients: sums over all ranks, from which each rank computes its own dx.
//
//   dx = alpha k (dy - dbias / M - (x - mean) inverse dscale / M) + beta dx
//
// with k = scale * inverse. The vendor's gradient uses the sums over the rank's
// own m elements, dbias_r / m and dscale_r / m, instead of the sums over all.
// The error of its dx is a multiple of x plus a constant, for each set of
// values that share a mean. One normalisation of x adds the difference
//
//   alpha k ((dbias_r / m - dbias / M) + (x - mean) inverse
//            (dscale_r / m - dscale / M))
//
// Its rounding error is that of dbias_r / m, which may be M / m times as large
// as the rounding error of the whole on one rank. Therefore a rank with few of
// the elements computes dx by two normalisations, one of x and one of dy. So
// does every rank if dx shares memory with x or has a half type.
#include "rules/norm/plan.h"

#include <cudnn.h>
#include <math.h>
#include <string.h>

#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// A rank corrects the vendor's dx if it has at least 1 / CORRECTED_MOST of all
// ranks' elements.
enum { CORRECTED_MOST = 8 };

// The parameters of the two normalisations whose sum is dx.
typedef struct coefficients {
  sdg_norm_params_t of_x, of_dy;
} coefficients_t;

static sdg_status_t coefficients_add(sdg_norm_maker_t *m,
                                     const sdg_norm_gradient_t *g,
                                     coefficients_t *out) {
  sdg_subcall_tensor_t one, zero, k, slope, offset;
  double share = -1.0 / (double)m->total;
  SDG_TRY(sdg_norm_constant(m, 1, &one));
  SDG_TRY(sdg_norm_constant(m, 0, &zero));
  SDG_TRY(sdg_norm_scratch(m, &k));
  SDG_TRY(sdg_norm_scratch(m, &slope));
  SDG_TRY(sdg_norm_scratch(m, &offset));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 1, &g->inverse, 1,
                         &g->scale, 0, &k));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, share, &k, 1,
                         &g->inverse, 0, &slope));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 1, &slope, 1, &g->dscale,
                         0, &slope));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, share, &k, 1, &g->dbias,
                         0, &offset));
  out->of_x = (sdg_norm_params_t){slope, offset, g->mean, one};
  out->of_dy = (sdg_norm_params_t){k, zero, zero, one};
  return SDG_OK;
}

static bool is_wide(const sdg_norm_maker_t *m) {
  return m->tensor[SDG_NORM_DX].type != m->type ||
         isinf(sdg_norm_number(m->call, m->norm, SDG_NORM_ALPHA));
}

// Computes both parts as floats, adds them, and applies alpha and beta while it
// rounds to the type of dx. An infinite alpha applied to each part would make
// both infinite and their sum NaN.
static sdg_status_t dx_widely(sdg_norm_maker_t *m, const sdg_norm_gradient_t *g,
                              const coefficients_t *by) {
  sdg_subcall_tensor_t x, dy;
  SDG_TRY(sdg_norm_copy(m, SDG_NORM_X, m->type, &x));
  SDG_TRY(sdg_norm_copy(m, SDG_NORM_X, m->type, &dy));
  SDG_TRY(
      sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MAX, 1, &g->x, 1, &g->x, 0, &x));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MAX, 1, &g->dy, 1, &g->dy, 0,
                         &dy));
  SDG_TRY(sdg_norm_subcall_inference(m, m->norm->mode, SDG_NORM_ONE, &x,
                                     &by->of_x, SDG_NORM_ZERO, SDG_NORM_ZERO,
                                     &x));
  SDG_TRY(sdg_norm_subcall_inference(m, m->norm->mode, SDG_NORM_ONE, &dy,
                                     &by->of_dy, SDG_NORM_ZERO, SDG_NORM_ONE,
                                     &x));
  return sdg_norm_subcall_narrow(m, &x, &m->tensor[SDG_NORM_DX]);
}

// Computes dx by two normalisations. A tensor that shares dx's memory is read
// by the first of them.
static sdg_status_t dx_add(sdg_norm_maker_t *m, const sdg_norm_gradient_t *g,
                           const coefficients_t *by) {
  const sdg_subcall_tensor_t *dx = &m->tensor[SDG_NORM_DX];
  bool of_dy = sdg_norm_aliased(m, SDG_NORM_DX, SDG_NORM_DY);
  if (is_wide(m))
    return dx_widely(m, g, by);
  SDG_TRY(sdg_norm_subcall_inference(
      m, m->norm->mode, SDG_NORM_PROGRAM, of_dy ? &g->dy : &g->x,
      of_dy ? &by->of_dy : &by->of_x, SDG_NORM_ZERO, SDG_NORM_PROGRAM, dx));
  return sdg_norm_subcall_inference(
      m, m->norm->mode, SDG_NORM_PROGRAM, of_dy ? &g->x : &g->dy,
      of_dy ? &by->of_x : &by->of_dy, SDG_NORM_ZERO, SDG_NORM_ONE, dx);
}

static sdg_status_t reduce(sdg_norm_maker_t *m, int slab, sdg_axes_t axes) {
  if (!axes)
    return SDG_OK;
  m->plan->reduce_axes = axes;
  SDG_TRY(sdg_plan_reduce(m->plan, slab, m->type, SDG_COMBINE_SUM));
  return sdg_plan_join(m->plan, SDG_LANE_MAIN);
}

static bool corrects(const sdg_norm_maker_t *m) {
  return !is_wide(m) && !sdg_norm_aliased(m, SDG_NORM_DX, SDG_NORM_X) &&
         m->total <= CORRECTED_MOST * m->count;
}

// Adds the difference of the formula above to dx. `own`: dscale_r / m and
// dbias_r / m.
static sdg_status_t correction_add(sdg_norm_maker_t *m,
                                   const sdg_norm_gradient_t *g,
                                   const sdg_norm_pair_t *own,
                                   const sdg_norm_pair_t *sums) {
  sdg_subcall_tensor_t one, k;
  const sdg_subcall_tensor_t *off = &own->both, *slope = &own->sum[0];
  SDG_TRY(sdg_norm_constant(m, 1, &one));
  SDG_TRY(sdg_norm_scratch(m, &k));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 1, &g->inverse, 1,
                         &g->scale, 0, &k));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, off,
                         -1.0 / (double)m->total, &sums->both, 0, off));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 1, off, 1, &k, 0, off));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 1, slope, 1, &g->inverse,
                         0, slope));
  const sdg_norm_params_t params = {*slope, own->sum[1], g->mean, one};
  return sdg_norm_subcall_inference(m, m->norm->mode, SDG_NORM_PROGRAM, &g->x,
                                    &params, SDG_NORM_ZERO, SDG_NORM_ONE,
                                    &m->tensor[SDG_NORM_DX]);
}

// Writes a gradient of the program's, if it wants it. Samples are summed first,
// and then the ranks' samples.
static sdg_status_t param_write(sdg_norm_maker_t *m,
                                const sdg_subcall_tensor_t *found,
                                sdg_norm_tensor_t which) {
  const sdg_subcall_tensor_t *to = &m->tensor[which];
  sdg_subcall_tensor_t sum = *found;
  if (!sdg_norm_data(m->call, m->norm, which))
    return SDG_OK;
  if (m->per_sample) {
    SDG_TRY(sdg_plan_scratch(m->plan, &to->box, to->slab, &sum.slab));
    sum = sdg_subcall_slab(m->plan, sum.slab, m->type);
    // The vendor's function refuses to reduce nothing.
    SDG_TRY(sdg_box_length(&found->box, 0) > 1
                ? sdg_subcall_reduce(m->plan, CUDNN_REDUCE_TENSOR_ADD, 1, found,
                                     0, &sum)
                : sdg_subcall_transform(m->plan, 1, found, 0, &sum));
    SDG_TRY(reduce(m, sum.slab, m->more));
  }
  return sdg_norm_subcall_param(m, &sum, to);
}

// Sums dscale and dbias over the axes of the program's gradients, writes these
// gradients, and sums over the remaining axes, because dx needs the sums over
// all ranks.
static sdg_status_t sums_add(sdg_norm_maker_t *m, const sdg_norm_gradient_t *g,
                             int slab) {
  SDG_TRY(reduce(m, slab, m->sum));
  SDG_TRY(param_write(m, &g->dscale, SDG_NORM_DSCALE));
  SDG_TRY(param_write(m, &g->dbias, SDG_NORM_DBIAS));
  return reduce(m, slab, m->axes & ~m->sum);
}

// Adds scratch with the strides of dy.
static sdg_status_t like_dy(sdg_norm_maker_t *m, sdg_subcall_tensor_t *out) {
  const sdg_subcall_tensor_t *dy = &m->tensor[SDG_NORM_DY];
  const sdg_slab_t of = m->plan->slab[dy->slab];
  int slab;
  SDG_TRY(sdg_plan_strided(m->plan, &m->own, of.stride, of.nesting,
                           of.elem_bytes, &slab));
  *out = sdg_subcall_slab(m->plan, slab, dy->type);
  return SDG_OK;
}

// Replaces dy by the gradient of the activation's input, which is also the
// gradient of z. The vendor's function wants equal strides for y, dy and its
// result.
static sdg_status_t fused_add(sdg_norm_maker_t *m,
                              sdg_subcall_tensor_t *io_dy) {
  bool adds = m->norm->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
  const sdg_subcall_tensor_t *dz = adds ? &m->tensor[SDG_NORM_DZ] : NULL;
  sdg_subcall_tensor_t y = m->tensor[SDG_NORM_Y], through;
  if (!sdg_subcall_strides_equal(m->plan, &y, io_dy)) {
    SDG_TRY(like_dy(m, &y));
    SDG_TRY(sdg_subcall_transform(m->plan, 1, &m->tensor[SDG_NORM_Y], 0, &y));
  }
  if (dz && sdg_subcall_strides_equal(m->plan, dz, io_dy))
    through = *dz;
  else
    SDG_TRY(like_dy(m, &through));
  SDG_TRY(sdg_norm_subcall_deactivate(m->plan, &y, io_dy, &through));
  *io_dy = through;
  return dz && through.slab != dz->slab
             ? sdg_subcall_transform(m->plan, 1, &through, 0, dz)
             : SDG_OK;
}

// Computes this rank's sums. The same call writes dx from these sums, if it is
// corrected later, otherwise numbers that nobody uses.
static sdg_status_t own_add(sdg_norm_maker_t *m, sdg_norm_gradient_t *g,
                            const sdg_norm_pair_t *sums,
                            const sdg_norm_pair_t *own) {
  bool corrected = corrects(m);
  if (corrected)
    g->dx = m->tensor[SDG_NORM_DX];
  SDG_TRY(sdg_norm_subcall_gradient(
      m, m->norm->mode, corrected ? SDG_NORM_PROGRAM : SDG_NORM_ONE, g,
      corrected ? SDG_NORM_PROGRAM : SDG_NORM_ZERO));
  return corrected ? sdg_subcall_transform(m->plan, 1.0 / (double)m->count,
                                           &sums->both, 0, &own->both)
                   : SDG_OK;
}

// Computes mean and deviation if the call has not saved them. `waste` as for
// sdg_norm_statistics().
static sdg_status_t statistics_add(sdg_norm_maker_t *m,
                                   const sdg_subcall_tensor_t *waste,
                                   sdg_norm_gradient_t *g) {
  sdg_subcall_tensor_t variance;
  SDG_TRY(sdg_norm_scratch(m, &g->mean));
  SDG_TRY(sdg_norm_statistics(m, waste, &g->mean, &variance));
  SDG_TRY(sdg_norm_scratch(m, &g->inverse));
  return sdg_norm_inverse(m, &variance, &g->inverse);
}

sdg_status_t sdg_norm_backward(sdg_norm_maker_t *m) {
  static const sdg_norm_tensor_t later[] = {SDG_NORM_X, SDG_NORM_DY,
                                            SDG_NORM_DZ, SDG_NORM_TENSORS};
  bool saved = sdg_norm_data(m->call, m->norm, SDG_NORM_SAVED_MEAN);
  sdg_norm_pair_t sums, own;
  sdg_norm_gradient_t g = {.x = m->tensor[SDG_NORM_X],
                           .dy = m->tensor[SDG_NORM_DY],
                           .scale = m->tensor[SDG_NORM_SCALE],
                           .mean = m->tensor[SDG_NORM_SAVED_MEAN],
                           .inverse = m->tensor[SDG_NORM_SAVED_INVERSE]};
  if (m->count > 0 && m->norm->ops != CUDNN_BATCHNORM_OPS_BN)
    SDG_TRY(fused_add(m, &g.dy));
  if (m->count > 0 && (!saved || !corrects(m)))
    SDG_TRY(sdg_norm_overwritable(m, SDG_NORM_DX, later, &g.dx));
  if (!saved)
    SDG_TRY(statistics_add(m, &g.dx, &g));
  SDG_TRY(sdg_norm_pair(m, &sums));
  SDG_TRY(sdg_norm_pair(m, &own));
  g.dscale = sums.sum[0];
  g.dbias = sums.sum[1];
  if (m->count > 0)
    SDG_TRY(own_add(m, &g, &sums, &own));
  else
    SDG_TRY(sdg_norm_pair_zero(m, &sums));
  SDG_TRY(sums_add(m, &g, sums.slab));
  if (m->count == 0)
    return SDG_OK;
  if (corrects(m))
    return correction_add(m, &g, &own, &sums);
  coefficients_t by;
  SDG_TRY(coefficients_add(m, &g, &by));
  return dx_add(m, &g, &by);
}
