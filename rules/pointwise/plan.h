/* SPDX-License-Identifier: Apache-2.0 */
/* Pointwise ops in the whole view: each rank computes its box of the output.
 * Inside rules/ only. */
#ifndef SDG_RULES_POINTWISE_PLAN_H
#define SDG_RULES_POINTWISE_PLAN_H

#include "rules/place/op.h"

/* See share() of sdg_op_t. The output is cut like the first input that is not
 * broadcast. */
sdg_status_t sdg_pointwise_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, bool reads_old,
                                 sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
