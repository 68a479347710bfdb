/* SPDX-License-Identifier: Apache-2.0 */
/* What the program itself says of its tensors (sundog_tag): a section of rules
 * for one descriptor, which comes before those of the user. */
#ifndef SDG_RULES_PLACE_LABEL_H
#define SDG_RULES_PLACE_LABEL_H

#include "rules/file/file.h"
#include "src/call/call.h"
#include "src/call/tag.h"

/* Tags the descriptor, at a new generation: `text` as the value of `split` in a
 * rules file, or "local". NULL takes the tag off. SDG_E_TAG, SDG_E_DESCRIPTOR
 * and the faults of rules. */
sdg_status_t sdg_label_set(const void *descriptor,
                           const char *text) SDG_MUST_CHECK;

/* The label of a placement for sdg_redistribute: of a split, or "replicated",
 * or with pending values. Lives as long as the process. SDG_E_TAG and the
 * faults of rules. */
sdg_status_t
sdg_label_placement(const char *text,
                    const sdg_tag_label_t **out_label) SDG_MUST_CHECK;

/* Tags memory, as sdg_range_set: `text` as sdg_rules_product reads it, NULL
 * takes the tag off. SDG_E_TAG and the faults of rules. */
sdg_status_t sdg_label_set_range(const void *at, size_t bytes,
                                 const char *text) SDG_MUST_CHECK;

/* The section that an operand's label stands for; NULL without one. */
const sdg_section_t *sdg_label_section(const sdg_operand_t *operand);

/* SDG_E_TAG if the operand is no activation, or lacks a dimension that its
 * label splits. */
sdg_status_t sdg_label_check(const sdg_call_t *call,
                             const sdg_operand_t *operand) SDG_MUST_CHECK;

/* The activation whose label decides on the call, the first that splits it, or
 * says that it is local; -1 if none has one. Labels of one call may say
 * different things, but are about activations that have the dimensions: else
 * SDG_E_TAG, on every rank alike once the call is agreed. */
sdg_status_t sdg_label_find(const sdg_call_t *call,
                            int *out_index) SDG_MUST_CHECK;

/* True once a label splits anything: what hides its tensors may hide one of
 * these. */
bool sdg_label_splits(void);

#endif
