/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by heads: each rank projects its own rows and receives whole
 * sequences of some heads; the heads' results are sent back. Inside rules/
 * only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_HEADS_H
#define SDG_RULES_ATTENTION_STRATEGY_HEADS_H

#include "rules/attention/call/maker.h"

/* Why this strategy cannot be used, NULL if it can; the same on every rank. */
const char *sdg_attention_heads_obstacle(const sdg_attention_maker_t *m);

/* How many bytes the rank that receives most receives in a forward call.
 * _heads_bytes: with this strategy. _halo_bytes: if each rank fetches the keys
 * and values of its windows. Both use only facts that are equal on all ranks,
 * and in the forward call and its gradients, so that all make the same choice.
 * Therefore they ignore whether keys and values are one tensor. */
int64_t sdg_attention_heads_bytes(const sdg_attention_maker_t *m);
int64_t sdg_attention_halo_bytes(const sdg_attention_maker_t *m);

/* Adds all steps of the call to a plan opened by sdg_subcalls_open(). The
 * program's reserve space is not used: gradients recompute the heads. */
sdg_status_t sdg_attention_heads_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
