/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the shard view: the program on each rank has one piece of a tensor,
 * and the ranks agree on the whole. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_SHARD_SHARD_H
#define SDG_RULES_VIEW_SHARD_SHARD_H

#include "rules/place/op.h"

/* Judges a call. *out_done true: the call was carried out or answered, and
 * call->result is the vendor's status. False: the caller passes the program's
 * call to the real function. `op` may be NULL. Collective if the call may be
 * tagged. */
sdg_status_t sdg_shard_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_op_t *op, bool *out_done) SDG_MUST_CHECK;

#endif
