// SPDX-License-Identifier: Apache-2.0
// Whether a call lacks memory, and what becomes of it.
#include "rules/step/null_operand.h"

#include "rules/vendor/rebind.h"
#include "src/exchange/exec.h"

// A z that is multiplied with 0 may be anything.
static bool is_needed(const sdg_call_t *call, const sdg_operand_t *operand) {
  return operand->data_at != SDG_NOWHERE &&
         (operand->role != SDG_ROLE_Z ||
          sdg_call_scalar(call, SDG_ALPHA2) != 0);
}

bool sdg_null_operand(const sdg_call_t *call, const sdg_op_t *op) {
  if (!op || call->is_query ||
      !sdg_family_is(call->family, SDG_FAMILY_NULL_OPERANDS))
    return false;
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].data && is_needed(call, &call->operand[i]))
      return true;
  return false;
}

static int run(void *user, int index, const sdg_call_t *call,
               const sdg_exec_t *exec) {
  sdg_rebind_t own;
  (void)user, (void)index, (void)exec;
  sdg_rebind_init(call, &own);
  int status = sdg_rebind_invoke(&own);
  // What was computed is of this rank's piece alone.
  return status == CUDNN_STATUS_SUCCESS ? CUDNN_STATUS_BAD_PARAM : status;
}

sdg_status_t sdg_null_operand_plan(sdg_plan_t **out_plan) {
  sdg_plan_t *plan = sdg_plan_create("refused");
  if (!plan)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  plan->run = run;
  sdg_status_t status = sdg_plan_call(plan, 0);
  if (status == SDG_OK)
    *out_plan = plan;
  else
    sdg_plan_destroy(plan);
  return status;
}
