// SPDX-License-Identifier: Apache-2.0
// Plans of ReduceTensor, where dimensions that are reduced are split.
//
// Each rank reduces its own elements to a field. The ranks along the split
// dimensions then combine their fields. They add the fields of sums and
// multiply those of products. For extremes and norms they gather all fields and
// reduce these with the vendor's function, which knows how to treat NaN and
// overflow. alpha and beta of the program are applied once, at the end. Fields
// do not tell which element was chosen, so calls that return indices need all
// inputs on one rank (rules/reduce/rule.c).
#include <math.h>
#include <string.h>

#include "rules/kit/merge.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"
#include "rules/reduce/rule.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  sdg_reduce_t reduce;
  bool reduced[SDG_DIMS_MAX];
  int along; // a dimension that is reduced and split; -1: none
  sdg_merge_t merge;
  sdg_plan_t *plan;
  sdg_type_t type; // type of fields
  bool adds;       // beta is not 0
  sdg_box_t own, field;
  sdg_subcall_tensor_t a, c; // this rank's boxes
} maker_t;

// ---- how ranks' fields are combined ----------------------------------------

typedef struct how {
  bool gathers; // `again` reduces all ranks' fields once more
  cudnnReduceTensorOp_t again;
  sdg_combine_t combine; // used otherwise
  double nothing;        // the field's value on a rank without elements
} how_t;

static how_t how_of(const sdg_reduce_t *reduce) {
  // If numbers win against NaN, NaN can represent a rank without elements.
  bool numbers = reduce->nan == CUDNN_NOT_PROPAGATE_NAN;
  switch (reduce->op) {
  case CUDNN_REDUCE_TENSOR_MIN:
    return (how_t){true, reduce->op, 0, numbers ? NAN : INFINITY};
  case CUDNN_REDUCE_TENSOR_MAX:
    return (how_t){true, reduce->op, 0, numbers ? NAN : -INFINITY};
  case CUDNN_REDUCE_TENSOR_AMAX:
    return (how_t){true, reduce->op, 0, numbers ? NAN : 0};
  case CUDNN_REDUCE_TENSOR_NORM2:
    return (how_t){true, reduce->op, 0, 0};
  case CUDNN_REDUCE_TENSOR_MUL:
  case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
    return (how_t){false, reduce->op, SDG_COMBINE_PRODUCT, 1};
  default:
    return (how_t){false, reduce->op, SDG_COMBINE_SUM, 0};
  }
}

// The weight of this rank's field: for a mean, its share of all elements.
static double weight_of(const maker_t *m) {
  const sdg_placement_t *placement = &m->tagging->placement[m->reduce.a];
  double weight = 1;
  if (m->reduce.op != CUDNN_REDUCE_TENSOR_AVG)
    return weight;
  for (int d = 0; d < m->own.dims; d++)
    if (m->reduced[d])
      weight *= (double)(m->own.dim[d].hi - m->own.dim[d].lo) /
                (double)sdg_placement_extent(placement, d);
  return weight;
}

// Whether this rank has more than one element to reduce.
static bool several(const maker_t *m) {
  for (int d = 0; d < m->own.dims; d++)
    if (m->reduced[d] && m->own.dim[d].hi - m->own.dim[d].lo > 1)
      return true;
  return false;
}

// cudnnReduceTensor refuses to reduce a single element. For most ops the result
// is the element. For the others the plan reduces the element and a zero, which
// does not change their results.
static sdg_status_t single_fill(maker_t *m, const sdg_subcall_tensor_t *out) {
  sdg_subcall_tensor_t pair, own = m->a;
  switch (m->reduce.op) {
  case CUDNN_REDUCE_TENSOR_AMAX:
  case CUDNN_REDUCE_TENSOR_NORM1:
  case CUDNN_REDUCE_TENSOR_NORM2:
  case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
    break;
  default:
    return sdg_subcall_transform(m->plan, weight_of(m), &own, 0, out);
  }
  SDG_TRY(sdg_merge_fields(m->plan, &m->field, m->along, 2, m->a.slab, m->type,
                           &pair));
  SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, pair.slab, &pair.box));
  sdg_subcall_tensor_t first = sdg_merge_slot(&pair, m->along, 0, 1);
  SDG_TRY(sdg_subcall_transform(m->plan, 1, &own, 0, &first));
  // Here NaN must win over that zero, because it is the only element.
  return sdg_subcall_reduce_extreme(m->plan, m->reduce.op, false, 1, &pair,
                                    out);
}

static sdg_status_t own_fill(maker_t *m, const how_t *how,
                             const sdg_subcall_tensor_t *out) {
  if (sdg_box_empty(&m->field))
    return SDG_OK;
  if (sdg_box_empty(&m->own))
    return sdg_subcall_set(m->plan, how->nothing, out);
  return several(m) ? sdg_subcall_reduce_extreme(m->plan, m->reduce.op,
                                                 m->reduce.nan ==
                                                     CUDNN_NOT_PROPAGATE_NAN,
                                                 weight_of(m), &m->a, out)
                    : single_fill(m, out);
}

// ---- plans -----------------------------------------------------------------

static sdg_status_t merge_make(maker_t *m) {
  how_t how = how_of(&m->reduce);
  int ranks = m->merge.ranks;
  sdg_subcall_tensor_t fields, own, all;
  SDG_TRY(sdg_merge_fields(m->plan, &m->field, m->along,
                           how.gathers ? ranks + 1 : 1, m->a.slab, m->type,
                           &fields));
  own = all = sdg_merge_slot(&fields, m->along, 0, 1);
  if (how.gathers) {
    // Zeros where other ranks fill in their values, so that a sum gathers.
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, fields.slab, &fields.box));
    own = sdg_merge_slot(&fields, m->along, m->merge.me, 1);
  }
  SDG_TRY(own_fill(m, &how, &own));
  SDG_TRY(sdg_plan_reduce(m->plan, fields.slab, m->type,
                          how.gathers ? SDG_COMBINE_SUM : how.combine));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  if (sdg_box_empty(&m->field))
    return SDG_OK;
  if (how.gathers) {
    own = sdg_merge_slot(&fields, m->along, 0, ranks);
    all = sdg_merge_slot(&fields, m->along, ranks, 1);
    SDG_TRY(sdg_subcall_reduce_extreme(m->plan, how.again,
                                       m->reduce.nan == CUDNN_NOT_PROPAGATE_NAN,
                                       1, &own, &all));
  }
  return sdg_subcall_store(m->plan, true, &all, &m->c);
}

static cudnnStatus_t real_run(const sdg_subcall_run_t *run) {
  sdg_rebind_t own;
  sdg_rebind_init(run->call, &own);
  sdg_rebind_pointer(&own, SDG_WORKSPACE, run->workspace);
  sdg_rebind_size(&own, SDG_WORKSPACE_BYTES, run->workspace_bytes);
  sdg_rebind_tensor(&own, SDG_ROLE_X, run->descriptor[0], run->data[0]);
  sdg_rebind_tensor(&own, SDG_ROLE_Y, run->descriptor[1], run->data[1]);
  return (cudnnStatus_t)sdg_rebind_invoke(&own);
}

// Adds the program's call, on `a` in place of its own input.
static sdg_status_t real_make(maker_t *m, const sdg_subcall_tensor_t *a) {
  sdg_subcall_t real = {.fn = real_run, .tensors = 2, .tensor = {*a, m->c}};
  SDG_TRY(sdg_subcall_reduction_workspace(m->plan,
                                          sdg_call_pointer(m->call, SDG_OP), a,
                                          &m->c, &real.workspace_bytes));
  return sdg_subcall_add(m->plan, &real);
}

static sdg_status_t operands_make(maker_t *m) {
  int a, c;
  SDG_TRY(sdg_merge_operand(m->plan, m->call, m->reduce.a, &m->own, &a));
  SDG_TRY(sdg_merge_operand(m->plan, m->call, m->reduce.c, &m->field, &c));
  m->a = sdg_subcall_slab(m->plan, a, m->call->operand[m->reduce.a].type);
  m->c = sdg_subcall_slab(m->plan, c, m->call->operand[m->reduce.c].type);
  m->a.box = m->own;
  m->c.box = m->field;
  return SDG_OK;
}

static sdg_status_t maker_init(const sdg_call_t *call,
                               const sdg_tagging_t *tagging, maker_t *m) {
  const sdg_placement_t *placement = &tagging->placement[m->reduce.a];
  m->call = call;
  m->tagging = tagging;
  m->along = -1;
  for (int d = 0; d < placement->dims; d++)
    if (m->reduced[d] && placement->split[d].axes)
      m->along = d;
  sdg_merge_init(tagging, placement, m->reduced, &m->merge);
  m->adds = sdg_call_scalar(call, SDG_BETA) != 0;
  m->type = sdg_merge_type(call->operand[m->reduce.a].type);
  m->own = sdg_tagging_own(tagging, placement);
  m->field = sdg_merge_field(&m->own, m->reduced);
  if (m->merge.axes && m->own.dims < 3)
    return sdg_fail(SDG_E_SPLIT_DIMENSION,
                    "%s reduces a split dimension of a tensor of %d "
                    "dimensions, which needs at least 3",
                    call->entry_name, m->own.dims);
  // All inputs of an element of c must be on one rank (rules/reduce/rule.c).
  if (m->merge.axes && sdg_reduce_points(&m->reduce))
    return sdg_tagging_differ(call, tagging, m->reduce.a, m->reduce.c);
  if (m->merge.axes &&
      (m->type < 0 || sdg_merge_type(call->operand[m->reduce.c].type) < 0))
    return sdg_fail(SDG_E_TENSOR_TYPE, "%s of cudnnDataType_t %d and %d",
                    call->entry_name, call->operand[m->reduce.a].type,
                    call->operand[m->reduce.c].type);
  return SDG_OK;
}

static const char merge_why[] =
    "the op has only this strategy: a reduced dimension is split";

// Reads the call. False if the real function rejects it on every rank.
static bool complete(const sdg_call_t *call, sdg_reduce_t *out) {
  if (!sdg_reduce_read(call, out) || !sdg_call_scalar_at(call, SDG_ALPHA) ||
      !sdg_call_scalar_at(call, SDG_BETA))
    return false;
  const sdg_operand_t *a = &call->operand[out->a], *c = &call->operand[out->c];
  return a->data && c->data && a->dims == c->dims;
}

sdg_status_t sdg_reduce_dims(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_reduce_t *reduce, bool *out) {
  const sdg_placement_t *a = &tagging->placement[reduce->a];
  const sdg_placement_t *c = &tagging->placement[reduce->c];
  for (int d = 0; d < a->dims; d++) {
    bool one = c->dims == a->dims && c->split[d].axes == 0 &&
               sdg_placement_extent(c, d) == 1;
    out[d] = one && sdg_placement_extent(a, d) > 1;
    if (c->dims != a->dims ||
        (!out[d] && !sdg_part_equal(&a->part[d], &c->part[d])))
      return sdg_tagging_differ(call, tagging, reduce->c, reduce->a);
  }
  return SDG_OK;
}

sdg_status_t sdg_reduce_plan(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) {
  maker_t m = {.plan = NULL};
  if (!complete(call, &m.reduce))
    return sdg_literal_plan(out_plan);
  SDG_TRY(sdg_reduce_dims(call, tagging, &m.reduce, m.reduced));
  SDG_TRY(maker_init(call, tagging, &m));
  if (!m.merge.axes)
    return sdg_literal_plan(out_plan);
  int refusal = sdg_reduce_refusal(call, tagging, &m.reduce);
  if (refusal)
    return sdg_plan_create_refused(refusal, out_plan);
  SDG_TRY(sdg_merge_open(call, tagging, &m.merge, "merge", merge_why, -1, NULL,
                         &m.plan));
  sdg_status_t status = operands_make(&m);
  if (status == SDG_OK)
    status = merge_make(&m);
  return sdg_plan_finish(m.plan, status, out_plan);
}

// ---- whole view ------------------------------------------------------------

// c is cut like a in dimensions that are not reduced. The caller owns *out.
static sdg_status_t result_place(const maker_t *m, sdg_placement_t *out) {
  const sdg_placement_t *a = &m->tagging->placement[m->reduce.a];
  const sdg_operand_t *c = &m->call->operand[m->reduce.c];
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < c->dims; d++)
    from[d] = m->reduced[d] ? -1 : d;
  return sdg_placement_like(c->dims, c->extent, m->tagging->mesh, a, from, out);
}

static sdg_status_t reads_fill(const maker_t *m) {
  sdg_share_t *share = m->plan->share;
  sdg_box_t *a, *c = NULL;
  SDG_TRY(sdg_share_reads(share, m->reduce.a, &a));
  if (m->adds)
    SDG_TRY(sdg_share_reads(share, m->reduce.c, &c));
  for (int r = 0; r < share->ranks; r++) {
    a[r] = sdg_placement_box(&m->tagging->placement[m->reduce.a],
                             m->tagging->mesh, r);
    if (c)
      c[r] = sdg_merge_field(&a[r], m->reduced);
  }
  return SDG_OK;
}

static sdg_status_t share_make(maker_t *m, sdg_plan_t **out_plan) {
  sdg_placement_t placement;
  SDG_TRY(result_place(m, &placement));
  sdg_status_t status = sdg_merge_open(
      m->call, m->tagging, &m->merge, m->merge.axes ? "merge" : "window",
      m->merge.axes ? merge_why : NULL, m->reduce.c, &placement, &m->plan);
  sdg_placement_fini(&placement);
  SDG_TRY(status);
  SDG_TRY_GOTO(reads_fill(m), fail);
  SDG_TRY_GOTO(operands_make(m), fail);
  if (m->merge.axes)
    status = merge_make(m);
  else if (!sdg_box_empty(&m->field))
    status = real_make(m, &m->a);
fail:
  return sdg_plan_finish(m->plan, status, out_plan);
}

sdg_status_t sdg_reduce_share(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  maker_t m = {.plan = NULL};
  *out_plan = NULL;
  if (!complete(call, &m.reduce) || sdg_reduce_points(&m.reduce) ||
      !sdg_placement_axes(&tagging->placement[m.reduce.a]))
    return SDG_OK;
  const sdg_operand_t *a = &call->operand[m.reduce.a];
  const sdg_operand_t *c = &call->operand[m.reduce.c];
  bool any = false;
  for (int d = 0; d < a->dims; d++) {
    m.reduced[d] = c->extent[d] == 1 && a->extent[d] > 1;
    any |= m.reduced[d];
    if (!m.reduced[d] && c->extent[d] != a->extent[d])
      return SDG_OK;
  }
  // The real function reports a call that a single device rejects.
  bool mixed = (a->type == CUDNN_DATA_DOUBLE) != (c->type == CUDNN_DATA_DOUBLE);
  if (!any || mixed || a->dims < 3 || sdg_merge_type(a->type) < 0 ||
      sdg_merge_type(c->type) < 0)
    return SDG_OK;
  SDG_TRY(maker_init(call, tagging, &m));
  return share_make(&m, out_plan);
}
