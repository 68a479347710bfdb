/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by heads: each rank projects its own rows and receives whole
 * sequences of some heads; the heads' results are sent back. Inside rules/
 * only. */
#ifndef SDG_RULES_ATTENTION_STRATEGY_HEADS_H
#define SDG_RULES_ATTENTION_STRATEGY_HEADS_H

#include "rules/attention/call/maker.h"

/* Why this strategy cannot be used, NULL if it can; the same on every rank. */
const char *sdg_attention_heads_obstacle(const sdg_attention_maker_t *m);

/* The most bytes that a rank receives in a forward call: by heads, and by
 * fetching the keys and values of its windows. Computed only from what is equal
 * on all ranks and in the forward call and its gradients, so that these make
 * the same choice. Therefore it ignores whether keys and values are one
 * tensor. */
int64_t sdg_attention_heads_bytes(const sdg_attention_maker_t *m);
int64_t sdg_attention_halo_bytes(const sdg_attention_maker_t *m);

/* Adds all steps of the call to a plan opened by sdg_subcalls_open(). The
 * program's reserve space is not used: gradients recompute the heads. */
sdg_status_t sdg_attention_heads_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
