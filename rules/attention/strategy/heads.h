/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by heads: each rank projects its own rows, every one gets whole
 * sequences of some heads, and the heads' results go back. Inside rules/ only.
 */
#ifndef SDG_RULES_ATTENTION_STRATEGY_HEADS_H
#define SDG_RULES_ATTENTION_STRATEGY_HEADS_H

#include "rules/attention/call/maker.h"

/* Why it cannot be done, NULL if it can; the same on every rank. */
const char *sdg_attention_heads_obstacle(const sdg_attention_maker_t *m);

/* Bytes that a rank receives forward, at most: by heads, and by the windows'
 * keys and values. By what all ranks have alike, so that the forward call and
 * its gradients choose alike, too: whether keys and values are one tensor is
 * not looked at. */
int64_t sdg_attention_heads_bytes(const sdg_attention_maker_t *m);
int64_t sdg_attention_halo_bytes(const sdg_attention_maker_t *m);

/* All steps of the call, on a plan of sdg_subcalls_open(). The program's
 * reserve space is not used: gradients compute the heads anew. */
sdg_status_t sdg_attention_heads_steps(sdg_attention_maker_t *m) SDG_MUST_CHECK;

#endif
