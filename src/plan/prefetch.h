/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges that are carried out before the call whose plan they are of. Pure.
 */
#ifndef SDG_SRC_PLAN_PREFETCH_H
#define SDG_SRC_PLAN_PREFETCH_H

#include "src/plan/plan.h"

/* A plan whose exchange goes along with an earlier call (src/exchange/exec.h).
 */
typedef struct sdg_prefetch {
  const sdg_plan_t *plan;
  const sdg_call_t *call; /* what the exchange reads is there */
} sdg_prefetch_t;

/* The scratch of messages becomes SDG_SLAB_KEPT: that of the communication
 * lane's steps, and where messages arrive, unless other slabs lie in the same
 * memory. The plan is complete. */
void sdg_plan_keep(sdg_plan_t *plan);
/* Whether the plan's exchange can be carried out before its call, when of the
 * call's operands only `operand` is as it will be: there is one, it reads
 * nothing else, comes before all steps of the main lane, which might write what
 * it reads, and all of its memory is kept. */
bool sdg_plan_is_early(const sdg_plan_t *plan, int operand);

#endif
