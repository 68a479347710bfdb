/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the rule for normalisations share. Inside
 * rules/ only. */
#ifndef SDG_RULES_NORM_RULE_H
#define SDG_RULES_NORM_RULE_H

#include "rules/norm/call.h"

/* See plan(), share() and answer() of sdg_op_t. */
sdg_op_plan_t sdg_norm_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_norm_share SDG_MUST_CHECK;
sdg_op_answer_t sdg_norm_answer SDG_MUST_CHECK;

/* Whether the vendor's library accepts this part of the call's tensors in
 * place: false only if it rejects that and accepts a packed copy. */
bool sdg_norm_accepted_in_place(const sdg_call_t *call, const sdg_norm_t *norm,
                                const sdg_box_t *part);

/* Local response normalisation. _is: whether the call is one. See plan() and
 * share() of sdg_op_t. */
bool sdg_lrn_is(const sdg_call_t *call);
sdg_op_plan_t sdg_lrn_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_lrn_share SDG_MUST_CHECK;

#endif
