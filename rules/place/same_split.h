/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the operands of a call are cut in the same places. Inside rules/
 * only. */
#ifndef SDG_RULES_PLACE_SAME_SPLIT_H
#define SDG_RULES_PLACE_SAME_SPLIT_H

#include "rules/place/op.h"

/* SDG_E_OPERANDS_DIFFER unless all activations are cut as operand `like`. */
sdg_status_t sdg_same_split_check(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int like) SDG_MUST_CHECK;

/* A plan for a call that is right as the program makes it: it makes that call.
 */
sdg_status_t sdg_literal_plan(sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* Whole view: a plan for a call that every rank carries out in full. `why`: a
 * string constant that follows "because of", for people; NULL: no op shares it.
 */
sdg_status_t sdg_in_full_plan(const char *why,
                              sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
