/* SPDX-License-Identifier: Apache-2.0 */
/* Which attention can be planned: the section that defines the windows, and the
 * checks of windows and operands. Inside rules/ only. */
#ifndef SDG_RULES_ATTENTION_PLAN_H
#define SDG_RULES_ATTENTION_PLAN_H

#include "rules/attention/call/maker.h"

/* Shard view, split sequences: fills `band` and `local` from `section`.
 * SDG_E_ATTENTION_WINDOW if the section has no window, or another one than the
 * program states; SDG_E_OPERANDS_DIFFER if the window does not fit to the
 * placements of queries and keys. */
sdg_status_t
sdg_attention_maker_windows(sdg_attention_maker_t *m) SDG_MUST_CHECK;
/* Finds the section that defines the windows of operand `queries`: the
 * tagging's section, or, if the program has tagged the queries, the first
 * section of the rules that matches them, because the program's tag says only
 * how they are cut. `out` is borrowed. */
sdg_status_t sdg_attention_section(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int queries,
                                   const sdg_section_t **out) SDG_MUST_CHECK;

/* Checks that output, residual and gradients of queries are cut like the
 * queries, and that keys and values, which may be cut elsewhere, have the same
 * sequences. Otherwise SDG_E_OPERANDS_DIFFER; SDG_E_ATTENTION if beams or
 * vectors of the queries are split. */
sdg_status_t sdg_attention_check(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_attention_t *a) SDG_MUST_CHECK;

/* Why attention cannot be split, whatever its windows and lengths are; NULL if
 * it can. */
const char *sdg_attention_obstacle(const sdg_call_t *call,
                                   const sdg_attention_t *a,
                                   bool sequence_is_split);

#endif
