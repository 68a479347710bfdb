// SPDX-License-Identifier: Apache-2.0
// Shard view: the steps of a graph with a norm.
#include <stdlib.h>

#include "rules/graph/norm/norm.h"
#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"

// ---- gradients of scale and bias -------------------------------------------

static bool is_gradient(const sdg_graph_maker_t *m, int index) {
  sdg_role_t role = m->call->operand[index].role;
  return role == SDG_ROLE_DSCALE || role == SDG_ROLE_DSHIFT;
}

// The axes along which the ranks add them.
static sdg_axes_t sum_axes(const sdg_graph_maker_t *m) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < m->main.pattern->operands; i++)
    if (is_gradient(m, i))
      axes = sdg_graph_norm_part_axes(m->norm) & m->tagging->sum_axes;
  return axes;
}

// Every rank's part is in the program's memory. They are added in float.
static sdg_status_t gradient_add(sdg_graph_maker_t *m, int index) {
  const sdg_operand_t *operand = &m->call->operand[index];
  int slab = m->operand_slab[index];
  sdg_subcall_tensor_t part = sdg_subcall_slab(m->plan, slab, operand->type),
                       total = part;
  sdg_type_t type = sdg_merge_type(operand->type);
  bool apart = operand->type != type || !sdg_plan_is_packed(m->plan, slab);
  if (type < 0)
    return sdg_fail(SDG_E_TENSOR_TYPE, "%s of %s", sdg_role_name(operand->role),
                    m->call->entry_name);
  if (apart) {
    total.type = type;
    SDG_TRY(sdg_plan_scratch_of(m->plan, &part.box, sdg_merge_bytes(type), slab,
                                &total.slab));
    SDG_TRY(sdg_subcall_transform(m->plan, 1, &part, 0, &total));
  }
  m->plan->reduce_axes = sum_axes(m);
  SDG_TRY(sdg_plan_reduce(m->plan, total.slab, type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  return apart ? sdg_subcall_transform(m->plan, 1, &total, 0, &part) : SDG_OK;
}

// ---- norms of what a rank has ----------------------------------------------

sdg_status_t sdg_graph_norm_slabs(sdg_graph_maker_t *m) {
  for (int i = 0; i < m->main.pattern->operands; i++) {
    sdg_box_t own = sdg_tagging_own(m->tagging, &m->tagging->placement[i]);
    SDG_TRY(sdg_plan_operand(m->plan, m->call, i, &own, &m->operand_slab[i]));
    m->apart[i] = -1;
  }
  return SDG_OK;
}

static sdg_status_t parts_make(sdg_graph_maker_t *m, bool *out_literal) {
  sdg_axes_t axes = sum_axes(m);
  SDG_TRY(sdg_plan_create("part", &m->plan));
  m->plan->why =
      "each rank normalises its own elements, and has a part of what "
      "is summed over all of them";
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_graph_norm_slabs(m));
  m->own_parts = true;
  SDG_TRY(sdg_graph_sums_open(m));
  if (axes)
    SDG_TRY(sdg_tagging_sure(m->call, m->tagging));
  *out_literal = !axes && !sdg_graph_sums_any(m);
  SDG_TRY(sdg_graph_own_open(m));
  SDG_TRY(sdg_graph_refusals_compare(m->call, 0));
  if (*out_literal)
    return SDG_OK;
  SDG_TRY(sdg_plan_call(m->plan, m->call_index));
  for (int i = 0; axes && i < m->main.pattern->operands; i++)
    if (is_gradient(m, i))
      SDG_TRY(gradient_add(m, i));
  return sdg_graph_sums_close(m);
}

// ---- the plan --------------------------------------------------------------

static sdg_status_t steps_make(sdg_graph_maker_t *m, bool *out_literal) {
  return m->norm->merges ? sdg_graph_norm_merge(m) : parts_make(m, out_literal);
}

sdg_status_t sdg_graph_norm_result(sdg_graph_maker_t *m) {
  const sdg_placement_t *x = m->norm->x;
  int64_t extent[SDG_DIMS_MAX];
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < x->dims; d++) {
    extent[d] = sdg_placement_extent(x, d);
    from[d] = d;
  }
  m->main.op.dims = x->dims;
  SDG_TRY(sdg_placement_like(x->dims, extent, m->tagging->mesh, x, from,
                             &m->main.op.y_placement));
  m->boxes.level[SDG_GRAPH_LEVEL_X] = m->boxes.level[SDG_GRAPH_LEVEL_Y] =
      sdg_tagging_own(m->tagging, x);
  return SDG_OK;
}

sdg_status_t sdg_graph_norm_plan(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) {
  struct {
    sdg_graph_maker_t maker;
    sdg_graph_norm_t norm;
  } * all;
  bool literal = false;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_graph_maker_t *m = &all->maker;
  m->call = call;
  m->tagging = tagging;
  m->norm = &all->norm;
  m->main.pattern = sdg_graph_call_execution(call)->pattern;
  sdg_status_t status = sdg_graph_norm_init(call, tagging, m->norm);
  if (status == SDG_OK)
    status = sdg_graph_norm_result(m);
  if (status == SDG_OK) {
    status = steps_make(m, &literal);
    sdg_placement_fini(&m->main.op.y_placement);
    status = sdg_graph_plan_finish(m, status, literal, out_plan);
  }
  free(m->extents);
  free(all);
  return status;
}

// Which tensors share memory decides in which order a norm that merges reads
// and writes them.
int sdg_graph_norm_key(const sdg_call_t *call, uint64_t *out) {
  int bit = 0;
  out[0] = sdg_graph_call_execution(call)->plan_generation;
  out[1] = out[2] = 0;
  for (int i = 0; i < call->operands; i++)
    for (int k = 0; k < i; k++, bit++)
      out[1 + bit / 64] |=
          (uint64_t)(call->operand[i].data == call->operand[k].data)
          << bit % 64;
  return 3;
}
