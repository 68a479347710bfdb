/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the shard view: every rank's program has its piece, and what the
 * pieces are of is agreed on. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_SHARD_SHARD_H
#define SDG_RULES_VIEW_SHARD_SHARD_H

#include "rules/place/op.h"

/* Judges a call. *out_done: it was carried out or answered, call->result is the
 * vendor's status; otherwise the program's call is to be made as it is. `op`
 * may be NULL. Collective where the call may be tagged. */
sdg_status_t sdg_shard_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_op_t *op, bool *out_done) SDG_MUST_CHECK;

#endif
