/* SPDX-License-Identifier: Apache-2.0 */
/* What is split of a call in the whole view, and how. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_PLACE_H
#define SDG_RULES_VIEW_WHOLE_PLACE_H

#include "rules/place/op.h"
#include "src/geometry/buffer.h"

/* The first section that matches an input, or, where there is none, the output;
 * NULL if none does or a [local] one comes first. Every rank sees the same. */
const sdg_section_t *sdg_whole_section(const sdg_call_t *call,
                                       const sdg_rules_t *rules);
/* What is known of an operand's memory; NULL: nothing. */
const sdg_buffer_t *sdg_whole_buffer(sdg_buffers_t *table,
                                     const sdg_operand_t *operand);
/* Places the call's inputs: as they were written, if that is what the section
 * splits, otherwise in its parts. The caller frees the tagging. */
sdg_status_t sdg_whole_tagging(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_section_t *section,
                               sdg_buffers_t *table,
                               sdg_tagging_t *out) SDG_MUST_CHECK;

#endif
