/* SPDX-License-Identifier: Apache-2.0 */
/* Tags by the program (sundog_tag): a section of rules for one descriptor,
 * which precedes the user's sections. */
#ifndef SDG_RULES_PLACE_LABEL_H
#define SDG_RULES_PLACE_LABEL_H

#include <stdatomic.h>

#include "rules/file/file.h"
#include "src/call/call.h"
#include "src/call/tag.h"

/* Tags the descriptor, with a new generation: `text` is a value of `split` in a
 * rules file, or "local". NULL removes the tag. SDG_E_TAG, SDG_E_DESCRIPTOR and
 * the faults of rules. */
sdg_status_t sdg_label_set(const void *descriptor,
                           const char *text) SDG_MUST_CHECK;

/* The label of a placement for sdg_redistribute: a split, or "replicated", or
 * one with pending values. Lives as long as the process. SDG_E_TAG and the
 * faults of rules. */
sdg_status_t
sdg_label_placement(const char *text,
                    const sdg_tag_label_t **out_label) SDG_MUST_CHECK;

/* Whether a placement has values that are still to be combined. */
bool sdg_label_pends(const sdg_tag_label_t *label);

/* Tags memory, as sdg_range_set. `text` is read by sdg_rules_product if it may
 * be about a product (it has a semicolon, or splits none of C, D, H and W), by
 * sdg_rules_label otherwise; NULL removes the tag. SDG_E_TAG and the faults of
 * rules. */
sdg_status_t sdg_label_set_range(const void *at, size_t bytes,
                                 const char *text) SDG_MUST_CHECK;

/* The label of a graph's tensor that lies there: a tag of memory that is about
 * a tensor's dimensions, or "local"; NULL: none. Lives as long as the process.
 */
const sdg_tag_label_t *sdg_label_at(const void *at);
/* True once memory has such a tag. Takes no lock. */
extern atomic_bool sdg_label_memory;
static inline bool sdg_label_any_at(void) {
  return atomic_load_explicit(&sdg_label_memory, memory_order_relaxed);
}

/* The section of an operand's label; NULL without a label. */
const sdg_section_t *sdg_label_section(const sdg_operand_t *operand);

/* SDG_E_TAG if the operand is not an activation, or lacks a dimension that its
 * label splits. */
sdg_status_t sdg_label_check(const sdg_call_t *call,
                             const sdg_operand_t *operand) SDG_MUST_CHECK;

/* The activation whose label decides on the call: the first label that splits
 * it or says that it is local; -1 if none has one. Labels of one call may
 * differ, but must be on activations that have the dimensions; otherwise
 * SDG_E_TAG, equally on every rank once the call is agreed. */
sdg_status_t sdg_label_find(const sdg_call_t *call,
                            int *out_index) SDG_MUST_CHECK;

/* True once a label splits anything: an op that hides its tensors may then hide
 * one of these. */
bool sdg_label_splits(void);

#endif
