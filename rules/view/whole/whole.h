/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the whole view: the ranks share the work of calls that an op can
 * split; every rank carries out all other calls in full. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_WHOLE_H
#define SDG_RULES_VIEW_WHOLE_WHOLE_H

#include "rules/place/op.h"

/* Judges a call. *out_done true: the call was carried out, and call->result is
 * the vendor's status. False: the caller passes the program's call to the real
 * function. `op` may be NULL. Collective if the call is tagged or needs data of
 * other ranks. */
sdg_status_t sdg_whole_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_op_t *op, bool *out_done) SDG_MUST_CHECK;

#endif
