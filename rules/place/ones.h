/* SPDX-License-Identifier: Apache-2.0 */
/* What an extent means, in the shard view, that is 1 on every rank in a
 * dimension that a section splits: a row of each, or the same row on all of
 * them. By what is known of the memory (src/geometry/hint.h), as the ranks
 * agreed; else by the op. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_ONES_H
#define SDG_RULES_PLACE_ONES_H

#include "rules/place/op.h"
#include "src/call/tag.h"

/* Looks up what is known of the memory of the call's operands, where that may
 * matter. Returns false if it matters for none: then it matters for no call
 * with the same plan key (rules/step/plan_cache.h). */
bool sdg_ones_look(sdg_call_t *call, const sdg_rules_t *rules);
/* Whether the ranks have not yet told each other what they know of memory that
 * the call reads, where that matters. The same on all of them. */
bool sdg_ones_due(const sdg_call_t *call, const sdg_rules_t *rules);
/* After the agreement: forgets what was looked up where it does not matter. */
void sdg_ones_settle(sdg_call_t *call, const sdg_rules_t *rules);

/* Takes from `split` the dimensions in which every rank has the same element,
 * as far as this section is meant. */
void sdg_ones_unsplit(const sdg_call_t *call, int index,
                      const sdg_section_t *section, sdg_split_t *split);
/* Whether that is known to leave none, of an op that otherwise takes extents of
 * 1 as pieces: every rank has the same tensor. */
bool sdg_ones_are_whole(const sdg_call_t *call, int index,
                        const sdg_section_t *section);
/* Whether it is known which of the two an operand's extents of 1 are, in all
 * dimensions that the section splits. */
bool sdg_ones_are_known(const sdg_call_t *call, int index,
                        const sdg_section_t *section);

/* SDG_E_ONE_EACH where the ranks know different things of memory that the call
 * reads, where the op makes something else of pieces and of a whole, and
 * nothing tells which is meant, or where a descriptor that was agreed on with
 * other memory comes with this one; the last may be this rank's alone, and
 * breaks the job. */
sdg_status_t sdg_ones_check(const sdg_call_t *call, const sdg_op_t *op,
                            const sdg_section_t *section) SDG_MUST_CHECK;

/* What the call's output `index` is known to be after it, where its place is
 * `placement`. 0: nothing. */
sdg_hint_t sdg_ones_written(const sdg_call_t *call, int index,
                            const sdg_section_t *section,
                            const sdg_placement_t *placement);

#endif
