// SPDX-License-Identifier: Apache-2.0
// Combines the ranks' results of a reduced dimension.
#include "rules/kit/merge.h"

#include <cudnn.h>
#include <string.h>

void sdg_merge_init(const sdg_tagging_t *tagging,
                    const sdg_placement_t *placement, const bool *reduced,
                    sdg_merge_t *out) {
  memset(out, 0, sizeof *out);
  for (int d = 0; d < placement->dims; d++)
    for (int a = 0; reduced[d] && a < placement->split[d].axes; a++)
      out->axes |= 1u << placement->split[d].axis[a];
  out->ranks =
      sdg_mesh_group(tagging->mesh, tagging->rank, out->axes, out->rank);
  if (out->ranks < 2)
    out->axes = 0;
  while (out->rank[out->me] != tagging->rank)
    out->me++;
}

sdg_box_t sdg_merge_field(const sdg_box_t *box, const bool *reduced) {
  sdg_box_t field = *box;
  for (int d = 0; d < box->dims; d++)
    if (reduced[d])
      field.dim[d] = (sdg_range_t){0, 1};
  return field;
}

sdg_type_t sdg_merge_type(sdg_type_t type) {
  switch (type) {
  case CUDNN_DATA_DOUBLE:
    return CUDNN_DATA_DOUBLE;
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return CUDNN_DATA_FLOAT;
  default:
    return -1;
  }
}

int sdg_merge_bytes(sdg_type_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : 4;
}

sdg_status_t sdg_merge_reducible(sdg_plan_t *plan, sdg_subcall_tensor_t *io) {
  if (io->type != CUDNN_DATA_BFLOAT16)
    return SDG_OK;
  sdg_subcall_tensor_t wide = {.box = io->box, .type = CUDNN_DATA_FLOAT};
  SDG_TRY(sdg_plan_scratch_of(plan, &wide.box, sdg_merge_bytes(wide.type),
                              io->slab, &wide.slab));
  SDG_TRY(sdg_subcall_transform(plan, 1, io, 0, &wide));
  *io = wide;
  return SDG_OK;
}

sdg_status_t sdg_merge_scratch(sdg_plan_t *plan, const sdg_box_t *field,
                               int like, sdg_type_t type,
                               sdg_subcall_tensor_t *out) {
  int64_t nested[SDG_DIMS_MAX]; // a copy: a new slab may move plan->slab
  int slab;
  memcpy(nested, plan->slab[like].nesting, sizeof nested);
  SDG_TRY(sdg_plan_packed(plan, field, nested, sdg_merge_bytes(type), &slab));
  *out = sdg_subcall_slab(plan, slab, type);
  return SDG_OK;
}

sdg_status_t sdg_merge_fields(sdg_plan_t *plan, const sdg_box_t *field, int dim,
                              int count, int like, sdg_type_t type,
                              sdg_subcall_tensor_t *out) {
  int64_t nested[SDG_DIMS_MAX];
  sdg_box_t all = *field;
  int slab;
  memcpy(nested, plan->slab[like].nesting, sizeof nested);
  nested[dim] = INT64_MAX; // outermost
  all.dim[dim] = (sdg_range_t){0, count};
  SDG_TRY(sdg_plan_packed(plan, &all, nested, sdg_merge_bytes(type), &slab));
  *out = sdg_subcall_slab(plan, slab, type);
  return SDG_OK;
}

sdg_subcall_tensor_t sdg_merge_slot(const sdg_subcall_tensor_t *fields, int dim,
                                    int first, int count) {
  sdg_subcall_tensor_t slot = *fields;
  slot.box.dim[dim] = (sdg_range_t){first, first + count};
  return slot;
}

sdg_status_t sdg_merge_operand(sdg_plan_t *plan, const sdg_call_t *call,
                               int index, const sdg_box_t *own, int *out_slab) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_box_t all = sdg_operand_box(operand);
  return sdg_plan_operand(plan, call, index, plan->share ? &all : own,
                          out_slab);
}

sdg_status_t sdg_merge_open(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_merge_t *merge, const char *strategy,
                            const char *why, int output,
                            const sdg_placement_t *placement,
                            sdg_plan_t **out_plan) {
  sdg_plan_t *plan;
  sdg_status_t status;
  SDG_TRY(sdg_plan_create(strategy, &plan));
  plan->why = why;
  plan->reduce_axes = merge->axes;
  SDG_TRY_GOTO(sdg_subcalls_open(plan, call), fail);
  if (output >= 0) {
    SDG_TRY_GOTO(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &plan->share),
                 fail);
    status = sdg_share_output(plan->share, output, placement);
  }
fail:
  return sdg_plan_finish(plan, status, out_plan);
}
