/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetched exchanges: they are carried out during an earlier call than the
 * one that needs their data. Pure. */
#ifndef SDG_SRC_PLAN_PREFETCH_H
#define SDG_SRC_PLAN_PREFETCH_H

#include "src/plan/plan.h"

/* A plan whose exchange is carried out together with an earlier call's
 * (src/exchange/exec.h). */
typedef struct sdg_prefetch {
  const sdg_plan_t *plan;
  const sdg_call_t *call; /* has the operands that the exchange reads */
} sdg_prefetch_t;

/* Changes scratch to SDG_SLAB_KEPT for the steps of the communication lane and
 * for received messages, unless other slabs use the same memory. The plan must
 * be complete. */
void sdg_plan_keep(sdg_plan_t *plan);
/* Returns true if the plan's exchange can be prefetched when only `operand`
 * already has its final contents: the plan has an exchange, the exchange reads
 * no other operand, it precedes all steps of the main lane (which might write
 * what it reads), and all its memory is kept. */
bool sdg_plan_is_early(const sdg_plan_t *plan, int operand);

#endif
