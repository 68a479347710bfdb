/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: decides what an extent of 1 on every rank means in a dimension
 * that a section splits. Either each rank has another row, or all have the same
 * row. The hint of the memory decides (src/geometry/hint.h), as the ranks
 * agreed on it; without a hint the op does. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_ONES_H
#define SDG_RULES_PLACE_ONES_H

#include "rules/place/op.h"
#include "src/call/tag.h"

/* Looks up what is known of the memory of the call's operands, where that may
 * matter. Returns false if it matters for none: then it matters for no call
 * with the same plan key (rules/step/plan_cache.h). */
bool sdg_ones_look(sdg_call_t *call, const sdg_rules_t *rules);
/* Whether the ranks still have to exchange the hints of memory that the call
 * reads. The same on every rank. */
bool sdg_ones_due(const sdg_call_t *call, const sdg_rules_t *rules);
/* After the agreement: drops the hints of operands whose extents of 1 are not 1
 * on every rank. */
void sdg_ones_settle(sdg_call_t *call, const sdg_rules_t *rules);

/* Removes from `split`, which is by this section, the dimensions in which every
 * rank has the same row. */
void sdg_ones_unsplit(const sdg_call_t *call, int index,
                      const sdg_section_t *section, sdg_split_t *split);
/* Whether hints say that every rank has the same tensor, in a call of an op
 * that takes extents of 1 as pieces if there are no hints. */
bool sdg_ones_are_whole(const sdg_call_t *call, int index,
                        const sdg_section_t *section);
/* Whether hints decide on all of the operand's extents of 1 in dimensions that
 * the section splits. */
bool sdg_ones_are_known(const sdg_call_t *call, int index,
                        const sdg_section_t *section);

/* SDG_E_ONE_EACH in three cases: the ranks have different hints of memory that
 * the call reads; or the op's result depends on the meaning of the extent and
 * nothing decides it; or a descriptor that was agreed on with other memory is
 * used with this one. The last case may concern this rank only, and breaks the
 * job. */
sdg_status_t sdg_ones_check(const sdg_call_t *call, const sdg_op_t *op,
                            const sdg_section_t *section) SDG_MUST_CHECK;

/* The hint of the call's output `index` after the call, if it is placed by
 * `placement`. 0: no hint. */
sdg_hint_t sdg_ones_written(const sdg_call_t *call, int index,
                            const sdg_section_t *section,
                            const sdg_placement_t *placement);

#endif
