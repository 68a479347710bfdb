/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a call is split in the whole view, and how. Inside rules/ only.
 */
#ifndef SDG_RULES_VIEW_WHOLE_PLACE_H
#define SDG_RULES_VIEW_WHOLE_PLACE_H

#include "rules/place/op.h"
#include "src/geometry/buffer.h"

/* The first section that matches an input or, if the call has no input, the
 * output. NULL if none matches or a [local] one comes first. The same on every
 * rank. */
const sdg_section_t *sdg_whole_section(const sdg_call_t *call,
                                       const sdg_rules_t *rules);
/* The entry of the operand's memory in the table, which owns it; NULL: the
 * operand is not distributed. */
const sdg_buffer_t *sdg_whole_buffer(sdg_buffers_t *table,
                                     const sdg_operand_t *operand);
/* Places the call's inputs. An input that was written in pieces of the
 * dimensions that the section splits keeps these; others get the section's
 * parts. The caller frees the tagging with sdg_tagging_fini. */
sdg_status_t sdg_whole_tagging(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_section_t *section,
                               sdg_buffers_t *table,
                               sdg_tagging_t *out) SDG_MUST_CHECK;

#endif
