/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the whole view: the ranks share what an op can split, and carry out
 * everything else in full on each. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_WHOLE_H
#define SDG_RULES_VIEW_WHOLE_WHOLE_H

#include "rules/place/op.h"

/* Judges a call. *out_done: it was carried out, call->result is the vendor's
 * status; otherwise the program's call is to be made as it is. `op` may be
 * NULL. Collective where the call is tagged or needs what other ranks have. */
sdg_status_t sdg_whole_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_op_t *op, bool *out_done) SDG_MUST_CHECK;

#endif
