/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans that hold memory, of what is brought together for one call and
 * read by a later one (sdg_plan_hold). Inside rules/ only. */
#ifndef SDG_RULES_STEP_HELD_H
#define SDG_RULES_STEP_HELD_H

#include <cuda_runtime_api.h>

#include "rules/step/plan_cache.h"

/* Carries out such a plan, and counts it. What it takes sdg_kept_slot_look has
 * seen, by operand. SDG_E_KEPT where a checked run sees the promise broken. */
sdg_status_t sdg_held_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) SDG_MUST_CHECK;

#endif
