// SPDX-License-Identifier: Apache-2.0
// sundog_redistribute as an op. Ranks with pending values first add them, or
// take their maximum. Then each rank gets its new piece from the ranks that
// have it.
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules/kit/fetch.h"
#include "rules/place/label.h"
#include "rules/place/op.h"
#include "rules/place/tagging.h"
#include "src/call/tag.h"
#include "src/job/job.h"

enum { X, Y };

static sdg_status_t redistribute_describe(const sdg_call_t *call, char *out,
                                          size_t out_bytes) {
  snprintf(out, out_bytes, "from '%s' to '%s'", call->operand[X].label->text,
           call->operand[Y].label->text);
  return SDG_OK;
}

// Equal texts have the same label.
static int redistribute_key(const sdg_call_t *call, uint64_t *out) {
  out[0] = (uintptr_t)call->operand[X].label;
  out[1] = (uintptr_t)call->operand[Y].label;
  return 2;
}

static sdg_status_t sides_check(const sdg_call_t *call,
                                const sdg_tagging_t *tagging) {
  const sdg_operand_t *x = &call->operand[X], *y = &call->operand[Y];
  const sdg_placement_t *from = &tagging->placement[X];
  const sdg_placement_t *to = &tagging->placement[Y];
  bool equal = from->dims == to->dims;
  for (int d = 0; equal && d < from->dims; d++)
    equal = sdg_placement_extent(from, d) == sdg_placement_extent(to, d);
  if (equal && x->type == y->type)
    return SDG_OK;
  char text[2][256];
  for (int i = X; i <= Y; i++)
    sdg_tagging_format(call->family, tagging->mesh, &tagging->placement[i],
                       text[i], sizeof text[i]);
  return sdg_fail(SDG_E_OPERANDS_DIFFER,
                  "%s: x of %d dimensions and type %d is %s, y of %d and type "
                  "%d is %s",
                  call->entry_name, x->dims, x->type, text[X], y->dims, y->type,
                  text[Y]);
}

// The box that each rank of the group gets. If the values of y are to be
// pending along some axes, only the first rank along these gets values, the
// others get zeros. The caller frees the array; NULL if memory runs out.
static sdg_box_t *needs_make(const sdg_call_t *call,
                             const sdg_tagging_t *tagging) {
  sdg_axes_t pending = sdg_label_section(&call->operand[Y])->pending;
  sdg_box_t *need = calloc((size_t)tagging->ranks, sizeof *need);
  for (int r = 0; need && r < tagging->ranks; r++) {
    int coord[SDG_AXES_MAX];
    bool first = true;
    sdg_mesh_coords(tagging->mesh, tagging->rank_list[r], coord);
    for (int a = 0; a < tagging->mesh->axes; a++)
      first &= !(pending >> a & 1) || coord[a] == 0;
    need[r].dims = tagging->placement[Y].dims;
    if (first)
      need[r] = sdg_placement_box(&tagging->placement[Y], tagging->mesh,
                                  tagging->rank_list[r]);
  }
  return need;
}

// Adds the slab from which messages are sent: x, or scratch with the combined
// values of all ranks' x.
static sdg_status_t source_make(sdg_plan_t *plan, const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int *out_slab) {
  const sdg_section_t *section = sdg_label_section(&call->operand[X]);
  sdg_box_t own = sdg_tagging_own(tagging, &tagging->placement[X]);
  int x;
  SDG_TRY(sdg_plan_operand(plan, call, X, &own, &x));
  *out_slab = x;
  if (!section->pending)
    return SDG_OK;
  plan->reduce_axes = section->pending;
  SDG_TRY(sdg_plan_scratch(plan, &own, x, out_slab));
  SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, x, *out_slab, NULL, NULL,
                        SDG_COPY_ACTIVATION));
  SDG_TRY(sdg_plan_reduce(plan, *out_slab, call->operand[X].type,
                          section->pending_max ? SDG_COMBINE_MAX
                                               : SDG_COMBINE_SUM));
  return sdg_plan_join(plan, SDG_LANE_MAIN);
}

static sdg_status_t steps_make(sdg_plan_t *plan, const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               const sdg_box_t *need, sdg_fetch_t *fetch) {
  sdg_box_t whole = sdg_tagging_own(tagging, &tagging->placement[Y]);
  int from, y;
  if (sdg_fetch_communicates(tagging, &tagging->placement[X], need))
    plan->axes = tagging->axes;
  SDG_TRY(source_make(plan, call, tagging, &from));
  SDG_TRY(sdg_plan_operand(plan, call, Y, &whole, &y));
  SDG_TRY(sdg_fetch_open(plan, tagging, &tagging->placement[X], need, from, y,
                         fetch));
  if (sdg_box_empty(&need[tagging->me]) && !sdg_box_empty(&whole))
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, y, &whole));
  SDG_TRY(sdg_plan_exchange(plan));
  SDG_TRY(sdg_fetch_own(plan, fetch));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  return sdg_fetch_land(plan, fetch);
}

static sdg_status_t redistribute_plan(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_plan_t **out_plan) {
  if (sdg_label_section(&call->operand[Y])->pending_max)
    return sdg_fail(SDG_E_TAG, "a maximum cannot be left pending");
  SDG_TRY(sides_check(call, tagging));
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("redistribute", &plan));
  sdg_box_t *need = needs_make(call, tagging);
  sdg_fetch_t fetch = {.landed = NULL};
  sdg_status_t status = need ? steps_make(plan, call, tagging, need, &fetch)
                             : sdg_fail(SDG_E_NO_MEMORY, "a plan");
  free(need);
  sdg_fetch_fini(&fetch);
  return sdg_plan_finish(plan, status, out_plan);
}

const sdg_op_t sdg_op_redistribute = {
    .family = SDG_FAMILY_REDISTRIBUTE,
    .describe = redistribute_describe,
    .key = redistribute_key,
    .plan = redistribute_plan,
};
