/* SPDX-License-Identifier: Apache-2.0 */
/* What the sizes of a product's call say in the shard view: this rank's piece
 * or the whole, as `sizes =` of its section states. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_PRODUCT_SIZES_H
#define SDG_RULES_PLACE_PRODUCT_SIZES_H

#include "rules/file/file.h"
#include "src/call/call.h"
#include "src/geometry/placement.h"

/* Over which axes the section cuts this dimension of a product, by `split` or,
 * where that does not, by a matrix (`out_by_matrix`); 0: it is cut nowhere. */
sdg_axes_t sdg_sizes_cut(const sdg_section_t *section, int dim,
                         bool *out_by_matrix);

/* The splits by which a call's extents add up to the product's (out has
 * SDG_DIMS_MAX): those of dimensions that are stated as pieces, or, where the
 * section says nothing, if `unsaid` is that. */
void sdg_sizes_added(const sdg_section_t *section, int dims, sdg_sizes_t unsaid,
                     sdg_split_t *out_split);

/* Of a dimension that is stated as a piece: the ranks' pieces. SDG_E_EXTENTS
 * where ranks that should have the same one differ. */
sdg_status_t sdg_sizes_part(const sdg_call_t *call, int dim, sdg_axes_t axes,
                            sdg_part_t *out_part) SDG_MUST_CHECK;

/* SDG_E_PRODUCT_SIZES unless the section says what the call's sizes are. */
sdg_status_t sdg_sizes_said(const sdg_call_t *call,
                            const sdg_section_t *section) SDG_MUST_CHECK;
/* The same of a call that no section matches, if one would, were its sizes
 * what that section does not say they are. */
sdg_status_t sdg_sizes_missed(const sdg_call_t *call,
                              const sdg_rules_t *rules) SDG_MUST_CHECK;

/* SDG_E_PRODUCT_TWICE if the call, which this section of the rules is the first
 * to match, fits a later one, too, and would be another product by that: it has
 * other sizes then, of which that section's pattern says something. */
sdg_status_t sdg_sizes_once(const sdg_call_t *call, const sdg_rules_t *rules,
                            const sdg_section_t *section) SDG_MUST_CHECK;

/* Where the product is: M, N, K, BATCH of the whole, split as the section says.
 * SDG_E_EXTENTS. */
sdg_status_t sdg_sizes_place(const sdg_call_t *call,
                             const sdg_section_t *section,
                             sdg_placement_t *out) SDG_MUST_CHECK;

/* The axes as a split, in the mesh's order; and its pieces. */
sdg_split_t sdg_sizes_split(sdg_axes_t axes);
int sdg_sizes_pieces(sdg_axes_t axes);

#endif
