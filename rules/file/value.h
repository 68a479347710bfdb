/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a section's keys, from text to data. Inside rules/ only. */
#ifndef SDG_RULES_FILE_VALUE_H
#define SDG_RULES_FILE_VALUE_H

#include "rules/file/extents.h"
#include "rules/file/file.h"
#include "rules/file/word.h"

/* The dimension that the word names. */
sdg_status_t sdg_dim_parse(const sdg_location_t *location, sdg_word_t word,
                           sdg_dim_t *out_dim) SDG_MUST_CHECK;

/* Each fills its members of the section. `split` needs the mesh; `parts` needs
 * the split and the matrices. `extents`: names that a pattern may use. */
sdg_status_t sdg_match_parse(const sdg_location_t *location, const char *text,
                             const sdg_extents_t *extents,
                             sdg_section_t *section) SDG_MUST_CHECK;
/* `is_function`: whether the rules declare a function that the word matches. */
sdg_status_t
sdg_op_parse(const sdg_location_t *location, const char *text,
             bool (*is_function)(const void *user, const char *glob),
             const void *user, sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_split_parse(const sdg_location_t *location, const char *text,
                             const sdg_mesh_t *mesh,
                             sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_parts_parse(const sdg_location_t *location, const char *text,
                             sdg_section_t *section) SDG_MUST_CHECK;
/* "yes", "no", or axes of the section's splits, which must be parsed before. */
sdg_status_t sdg_sum_parse(const sdg_location_t *location, const char *text,
                           const sdg_mesh_t *mesh,
                           sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_wrap_parse(const sdg_location_t *location, const char *text,
                            sdg_section_t *section) SDG_MUST_CHECK;
/* Where matrix SDG_MATRIX_... of a product is; after the split. */
sdg_status_t sdg_matrix_parse(const sdg_location_t *location, const char *text,
                              const sdg_mesh_t *mesh, int matrix,
                              sdg_section_t *section) SDG_MUST_CHECK;
/* What a product's sizes say; after the split and the matrices. */
sdg_status_t sdg_sizes_parse(const sdg_location_t *location, const char *text,
                             sdg_section_t *section) SDG_MUST_CHECK;
/* "error", "local", "global". */
sdg_status_t sdg_lengths_parse(const sdg_location_t *location, const char *text,
                               sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_piece_values_parse(const sdg_location_t *location,
                                    const char *text,
                                    sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_window_parse(const sdg_location_t *location, const char *text,
                              sdg_section_t *section) SDG_MUST_CHECK;

/* A split, which may have items with axes over which values are pending. */
sdg_status_t sdg_label_parse(const sdg_location_t *location, const char *text,
                             const sdg_mesh_t *mesh,
                             sdg_section_t *section) SDG_MUST_CHECK;

/* Calls `each` for every axis that a `split` text names; sdg_split_parse
 * reports syntax faults. */
void sdg_split_axes(const char *text, void (*each)(void *user, sdg_word_t axis),
                    void *user);

/* The axes whose ranks compute the same: "model, pipe". They may not be in
 * `split`, the axes that sections split over. */
sdg_status_t sdg_same_parse(const sdg_location_t *location, const char *text,
                            const sdg_mesh_t *mesh, sdg_axes_t split,
                            sdg_axes_t *out) SDG_MUST_CHECK;

#endif
