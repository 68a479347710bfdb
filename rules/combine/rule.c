// SPDX-License-Identifier: Apache-2.0
// sundog_combine as an op: one reduction over the axes of the operand's label,
// in place.
#include <stdio.h>

#include "rules/combine/combine.h"
#include "rules/memory/memory.h"
#include "rules/place/label.h"
#include "rules/place/op.h"
#include "rules/place/tagging.h"

static sdg_combine_t combine_of(const sdg_call_t *call) {
  return *(const sdg_combine_t *)call->args;
}

static sdg_status_t combine_describe(const sdg_call_t *call, char *out,
                                     size_t out_bytes) {
  static const char *const names[] = {
      [SDG_COMBINE_SUM] = "sum",
      [SDG_COMBINE_PRODUCT] = "product",
      [SDG_COMBINE_MAX] = "max",
      [SDG_COMBINE_MIN] = "min",
  };
  snprintf(out, out_bytes, "%s over %s", names[combine_of(call)],
           call->operand[0].label->text + sizeof SDG_COMBINE_LABEL - 1);
  return SDG_OK;
}

// The operand's descriptor stands for the operator, too.
static int combine_key(const sdg_call_t *call, uint64_t *out) {
  (void)call, (void)out;
  return 0;
}

static sdg_status_t steps_make(sdg_plan_t *plan, const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  sdg_box_t own = sdg_tagging_own(tagging, &tagging->placement[0]);
  int slab;
  SDG_TRY(sdg_plan_operand(plan, call, 0, &own, &slab));
  if (tagging->ranks > 1)
    plan->reduce_axes = sdg_label_section(&call->operand[0])->pending;
  return sdg_plan_reduce(plan, slab, call->operand[0].type, combine_of(call));
}

static sdg_status_t combine_plan(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) {
  sdg_plan_t *plan;
  SDG_TRY(sdg_memory_sendable(call, 0));
  SDG_TRY(sdg_plan_create("reduce", &plan));
  plan->why = "the program asks for it";
  return sdg_plan_finish(plan, steps_make(plan, call, tagging), out_plan);
}

const sdg_op_t sdg_op_combine = {
    .family = SDG_FAMILY_COMBINE,
    .describe = combine_describe,
    .key = combine_key,
    .plan = combine_plan,
};
