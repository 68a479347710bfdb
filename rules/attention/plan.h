/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the plans of attention in both views share with the search for a
 * colocation of its operands. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_PLAN_H
#define SDG_RULES_ATTENTION_PLAN_H

#include "rules/attention/call/maker.h"

/* Fills `band` and `local` from `section`, for sequences that are split in the
 * shard view. SDG_E_ATTENTION_WINDOW if the program's windows are not those of
 * the section; SDG_E_OPERANDS_DIFFER for keys to which they cannot apply. */
sdg_status_t
sdg_attention_maker_windows(sdg_attention_maker_t *m) SDG_MUST_CHECK;
/* Finds the section that defines the windows of these queries: the tagging's
 * section, or, if the program tagged the queries, the first section of the
 * rules that matches them. The program's tag only says how they are cut. */
sdg_status_t sdg_attention_section(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int queries,
                                   const sdg_section_t **out) SDG_MUST_CHECK;

/* Checks that the operands that belong to the queries are colocated with them,
 * and that keys and values, which may be placed anywhere, have the same
 * sequences. SDG_E_OPERANDS_DIFFER; SDG_E_ATTENTION for queries whose vectors
 * are split. */
sdg_status_t sdg_attention_check(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_attention_t *a) SDG_MUST_CHECK;

/* Why attention cannot be split, whatever its windows and lengths are; NULL if
 * it can. */
const char *sdg_attention_obstacle(const sdg_call_t *call,
                                   const sdg_attention_t *a,
                                   bool sequence_is_split);

#endif
