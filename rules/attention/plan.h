/* SPDX-License-Identifier: Apache-2.0 */
/* What plans of attention in both views, and the search for where its operands
 * lie together, have in common. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_PLAN_H
#define SDG_RULES_ATTENTION_PLAN_H

#include "rules/attention/call/maker.h"

/* Fills `band` and `local` by what `section` says, of sequences in pieces in
 * the shard view. SDG_E_ATTENTION_WINDOW unless the program's windows are
 * those; SDG_E_OPERANDS_DIFFER for keys that they cannot be about. */
sdg_status_t
sdg_attention_maker_windows(sdg_attention_maker_t *m) SDG_MUST_CHECK;
/* The section that says what is meant by windows of these queries: that of the
 * rules which is about them, where the program's tag says how they are cut. */
sdg_status_t sdg_attention_section(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int queries,
                                   const sdg_section_t **out) SDG_MUST_CHECK;

/* Whether what lies beside the queries is where these are, and keys and values,
 * which may be anywhere, are of the same sequences. SDG_E_OPERANDS_DIFFER;
 * SDG_E_ATTENTION for queries in pieces of their vectors. */
sdg_status_t sdg_attention_check(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_attention_t *a) SDG_MUST_CHECK;

/* Why attention cannot be split, whatever is said of its windows and lengths:
 * NULL if it can. */
const char *sdg_attention_obstacle(const sdg_call_t *call,
                                   const sdg_attention_t *a,
                                   bool sequence_is_split);

#endif
