/* SPDX-License-Identifier: Apache-2.0 */
/* From agreed extents to a verdict: the section, and where each activation is.
 * Depends only on what the ranks agreed on; makes no exchange. */
#ifndef SDG_RULES_PLACE_TAGGING_H
#define SDG_RULES_PLACE_TAGGING_H

#include "rules/place/op.h"

/* Decides on a call whose descriptors are all agreed. The section is the
 * program's tag of an operand (rules/place/label.h), or else the first that
 * matches an input activation. Each activation is placed by the first reading
 * of its extents (rules/place/place.h) that makes a tensor; the section's
 * reading comes first. *out_section is NULL if none matches or a [local] one
 * comes first; *out_local is then that one. On a match fills `out`, which the
 * caller frees with sdg_tagging_fini. Errors: SDG_E_EXTENTS,
 * SDG_E_ASSERTED_PARTS, SDG_E_TENSOR_TYPE, SDG_E_TAG. */
sdg_status_t sdg_tagging_derive(const sdg_call_t *call,
                                const sdg_rules_t *rules,
                                const sdg_section_t **out_section,
                                bool *out_local,
                                sdg_tagging_t *out) SDG_MUST_CHECK;
/* For a call that a [local] section or tag decides: the section that splits the
 * first of its split activations, *out_index; NULL if none is split. */
const sdg_section_t *sdg_tagging_beside(const sdg_call_t *call,
                                        const sdg_rules_t *rules,
                                        int *out_index);
/* Fills `out` by the section that splits that activation. The caller frees it.
 */
sdg_status_t sdg_tagging_by(const sdg_call_t *call, const sdg_rules_t *rules,
                            int index, sdg_tagging_t *out) SDG_MUST_CHECK;
void sdg_tagging_fini(sdg_tagging_t *tagging);
/* Stores where the call's tensors are, for sundog_placement(). */
void sdg_tagging_note(const sdg_call_t *call, const sdg_tagging_t *tagging);

/* Prints once, on rank 0, how the first tagged call is split. */
void sdg_tagging_say(const sdg_call_t *call, const sdg_tagging_t *tagging);

/* An empty tagging of this section, with the ranks along its axes. */
void sdg_tagging_group(const sdg_section_t *section, sdg_tagging_t *out);

/* Sets the ranks to those along these axes. */
void sdg_tagging_span(sdg_tagging_t *tagging, sdg_axes_t axes);

/* Removes the axes along which every rank has the same data, because operand
 * `index` leads, from those that gradients are summed over. */
void sdg_tagging_narrow(sdg_tagging_t *tagging, int index);

/* True if no section can ever match this operand's descriptor in a call of this
 * family, so that the descriptor may be marked as passing. */
bool sdg_tagging_passes(const sdg_call_t *call, int operand,
                        const sdg_rules_t *rules);

/* SDG_E_OPERANDS_DIFFER, with how operands a and b are split. */
sdg_status_t sdg_tagging_differ(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int a,
                                int b) SDG_MUST_CHECK;

/* For ops whose result depends on it: SDG_E_ONE_EACH if the activations have
 * one element in D, H and W on every rank, and one of these dimensions is
 * split. They may be pieces, or the same tensor on every rank; a tag or listed
 * parts say which. */
sdg_status_t sdg_tagging_sure(const sdg_call_t *call,
                              const sdg_tagging_t *tagging) SDG_MUST_CHECK;

/* For messages: the name of dimension `d` of a tensor of `dims`; all names, out
 * has SDG_DIMS_MAX; a placement with them. */
const char *sdg_tagging_name(sdg_family_t family, int dims, int d);
void sdg_tagging_names(sdg_family_t family, int dims, const char **out);
void sdg_tagging_format(sdg_family_t family, const sdg_mesh_t *mesh,
                        const sdg_placement_t *placement, char *out,
                        int out_bytes);

#endif
