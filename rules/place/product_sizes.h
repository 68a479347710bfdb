/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: whether the sizes in a product's call are those of this rank's
 * piece or of the whole, as `sizes =` of its section says. Inside rules/ only.
 */
#ifndef SDG_RULES_PLACE_PRODUCT_SIZES_H
#define SDG_RULES_PLACE_PRODUCT_SIZES_H

#include "rules/place/place.h"
#include "src/call/call.h"
#include "src/geometry/placement.h"

/* The axes over which the section cuts this dimension of a product: by `split`,
 * else by a matrix (*out_by_matrix is true); 0: it is not cut. */
sdg_axes_t sdg_sizes_cut(const sdg_section_t *section, int dim,
                         bool *out_by_matrix);

/* The splits of the dimensions whose extents in the call are pieces and have to
 * be added up to the product's (out has SDG_DIMS_MAX elements). `unsaid`: what
 * the sizes are if the section does not say it. */
void sdg_sizes_added(const sdg_section_t *section, int dims, sdg_sizes_t unsaid,
                     sdg_split_t *out_split);

/* For a dimension that is stated as a piece: the part that the ranks' pieces
 * make. The caller frees it. SDG_E_EXTENTS if ranks that must have the same
 * piece differ. */
sdg_status_t sdg_sizes_part(const sdg_call_t *call, int dim, sdg_axes_t axes,
                            sdg_part_t *out_part) SDG_MUST_CHECK;

/* SDG_E_PRODUCT_SIZES unless the section says what the call's sizes are. */
sdg_status_t sdg_sizes_said(const sdg_call_t *call,
                            const sdg_section_t *section) SDG_MUST_CHECK;
/* For a call that no section matches: SDG_E_PRODUCT_SIZES if a [shard] section
 * would match if its `sizes =` were different. */
sdg_status_t sdg_sizes_missed(const sdg_call_t *call,
                              const sdg_rules_t *rules) SDG_MUST_CHECK;

/* `io_section` is the first one that matches on some rank. If it does not on
 * others (which then state different sizes of a dimension that it does not
 * split), a later section that matches on all ranks takes its place. */
sdg_status_t sdg_sizes_everywhere(const sdg_call_t *call,
                                  const sdg_rules_t *rules,
                                  const sdg_section_t **io_section,
                                  sdg_seen_t *io_seen) SDG_MUST_CHECK;

/* `section` is the first one that matches the call. SDG_E_PRODUCT_TWICE if a
 * later section also matches, and the call would be a product of other sizes by
 * that one, in a dimension that its pattern names; of graphs, only if the
 * ranks' results are added by one of the two. */
sdg_status_t sdg_sizes_once(const sdg_call_t *call, const sdg_rules_t *rules,
                            const sdg_section_t *section) SDG_MUST_CHECK;

/* The placement of the product: M, N, K, BATCH of the whole, split as the
 * section says. The caller frees it. SDG_E_EXTENTS. */
sdg_status_t sdg_sizes_place(const sdg_call_t *call,
                             const sdg_section_t *section,
                             sdg_placement_t *out) SDG_MUST_CHECK;

/* The axes as a split, in the mesh's order; and its number of pieces. */
sdg_split_t sdg_sizes_split(sdg_axes_t axes);
int sdg_sizes_pieces(sdg_axes_t axes);

#endif
