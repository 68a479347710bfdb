/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-head attention on split sequences: its plans and answers. Inside rules/
 * only. */
#ifndef SDG_RULES_ATTENTION_RULE_H
#define SDG_RULES_ATTENTION_RULE_H

#include "rules/place/op.h"

struct sdg_colocation;
/* See colocate() of sdg_op_t. */
sdg_status_t sdg_attention_colocate(const sdg_call_t *call,
                                    struct sdg_colocation *colocation,
                                    int lead) SDG_MUST_CHECK;
/* See answer(), plan() and share() of sdg_op_t. */
sdg_op_answer_t sdg_attention_answer SDG_MUST_CHECK;
sdg_op_plan_t sdg_attention_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_attention_share SDG_MUST_CHECK;
/* See note() of sdg_op_reuse_t. */
sdg_status_t sdg_attention_note(const sdg_call_t *call,
                                const sdg_plan_t *plan) SDG_MUST_CHECK;

#endif
