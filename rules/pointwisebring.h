/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise ops in the shard view whose operands are cut in different places.
 * Inside rules/ only. */
#ifndef SDG_RULES_POINTWISEBRING_H
#define SDG_RULES_POINTWISEBRING_H

#include "rules/rule.h"

/* Brings of every input what goes into this rank's piece of the output, and
 * calls the real function there. An operand may be cut in other parts, or be
 * all there on every rank: then its extents are the others' global ones.
 * SDG_E_OPERANDS_DIFFER where the global extents do not fit. */
sdg_status_t sdg_pointwise_bring(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, int output,
                                 sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
