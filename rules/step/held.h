/* SPDX-License-Identifier: Apache-2.0 */
/* Runs plans that hold memory: one call fetches rows of other ranks into it,
 * and a later call reads them there (sdg_plan_hold). Inside rules/ only. */
#ifndef SDG_RULES_STEP_HELD_H
#define SDG_RULES_STEP_HELD_H

#include <cuda_runtime_api.h>

#include "rules/step/plan_cache.h"

/* Carries out such a plan and counts it. For memory that the plan takes from an
 * earlier call, sdg_kept_slot_look must have found the slot of the operand.
 * With SUNDOG_CHECK=1: SDG_E_KEPT if this rank's part of the operand has
 * changed since it was fetched. */
sdg_status_t sdg_held_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) SDG_MUST_CHECK;

#endif
