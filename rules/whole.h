/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the whole view: the ranks share what a rule can split, and carry out
 * everything else in full on each. Inside rules/ only. */
#ifndef SDG_RULES_WHOLE_H
#define SDG_RULES_WHOLE_H

#include <cuda_runtime_api.h>

#include "rules/plancache.h"
#include "rules/rule.h"

/* Judges a call. *out_done: it was carried out, call->result is the vendor's
 * status; otherwise the program's call is to be made as it is. `rule` may be
 * NULL. Collective where the call is tagged or needs what other ranks have. */
sdg_status_t sdg_whole_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_rule_t *rule,
                             bool *out_done) SDG_MUST_CHECK;

/* What the registry lends to it: joins the job and counts the call; the stream
 * of the call's handle, which must not be capturing; runs a plan. */
sdg_status_t sdg_registry_enter(const sdg_call_t *call,
                                const sdg_rules_t *rules) SDG_MUST_CHECK;
sdg_status_t sdg_registry_stream(const sdg_call_t *call,
                                 cudaStream_t *out_stream) SDG_MUST_CHECK;
sdg_status_t sdg_registry_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                              cudaStream_t stream) SDG_MUST_CHECK;

#endif
