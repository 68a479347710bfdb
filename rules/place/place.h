/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tensor is, from the extents that the ranks agreed on and a section
 * that says how to read them. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_PLACE_H
#define SDG_RULES_PLACE_PLACE_H

#include "rules/file/file.h"
#include "src/call/call.h"
#include "src/geometry/placement.h"

/* The section's splits by dimension index of a tensor of `dims` dimensions (out
 * has SDG_DIMS_MAX); false if the tensor lacks one of them. */
bool sdg_place_splits(const sdg_section_t *section, sdg_family_t family,
                      int dims, sdg_split_t *out_split);

/* Whether two tensors of `dims` dimensions are split over the same axes. */
bool sdg_place_same(const sdg_split_t *a, const sdg_split_t *b, int dims);

struct sdg_tag_vector;
/* Global extents as member `member` of the group sees them with these splits:
 * sums over the pieces in split dimensions, that rank's own extents in the
 * others. */
void sdg_place_extents(const struct sdg_tag_vector *vector,
                       const sdg_split_t *split, int member,
                       int64_t *out_extent);

/* A rank of the group that sees a match, and one that does not; -1 if none. */
typedef struct sdg_seen {
  int yes, no;
} sdg_seen_t;
/* Which ranks would see a match of this operand with a section, if it were
 * split this way. */
sdg_seen_t sdg_place_would(const sdg_call_t *call, int index,
                           const sdg_section_t *section,
                           const sdg_split_t *split);
/* The first section that matches this operand on any rank, or its tag's
 * section; NULL if none does. sdg_place_seen tells whether it matches on all
 * ranks. */
const sdg_section_t *sdg_place_section(const sdg_call_t *call, int index,
                                       const sdg_rules_t *rules,
                                       sdg_seen_t *out_seen);

/* Which ranks see that this section matches. */
sdg_seen_t sdg_place_seen(const sdg_call_t *call, int index,
                          const sdg_section_t *section);

/* The placement of these extents with the splits. If the extents make no
 * tensor: *out_can is false if out_can is given, otherwise SDG_E_EXTENTS. */
sdg_status_t sdg_place_vector(const sdg_call_t *call,
                              const struct sdg_tag_vector *vector,
                              const sdg_split_t *split, bool *out_can,
                              sdg_placement_t *out) SDG_MUST_CHECK;

/* The operand's placement by this section, if its extents are pieces.
 * SDG_E_EXTENTS. */
sdg_status_t sdg_place_pieces(const sdg_call_t *call, int index,
                              const sdg_section_t *section,
                              sdg_placement_t *out) SDG_MUST_CHECK;
/* The operand's placement by its label. Also for a rank without elements, whose
 * split dimensions are 0. SDG_E_EXTENTS. */
sdg_status_t sdg_place_exactly(const sdg_call_t *call, int index,
                               sdg_placement_t *out) SDG_MUST_CHECK;

/* One reading of the ranks' extents of an operand. */
typedef struct sdg_place {
  const sdg_section_t *section; /* NULL: every rank has the whole tensor */
  sdg_placement_t placement;    /* owned */
} sdg_place_t;
enum { SDG_PLACES_MAX = 3 };
/* The readings that make one tensor, in the order in which they are tried: the
 * label's, and then no other; or `section`, which is the call's; then the
 * section that matches this operand; then the whole tensor on every rank. None
 * if the operand lacks a dimension that the first section splits; SDG_E_EXTENTS
 * if none makes a tensor. An operand that is not an activation is read by
 * `section` only; if that makes no tensor it has no reading, which is no error.
 * `out` has room for SDG_PLACES_MAX. */
sdg_status_t sdg_place_list(const sdg_call_t *call, int index,
                            const sdg_section_t *section,
                            const sdg_rules_t *rules, sdg_place_t *out,
                            int *out_count) SDG_MUST_CHECK;
/* SDG_E_EXTENTS unless the operand makes a tensor by this section. */
sdg_status_t sdg_place_check(const sdg_call_t *call, int index,
                             const sdg_section_t *section) SDG_MUST_CHECK;
/* Sets the placements of coordinates from those of the tensors whose elements
 * they locate. Indexed by operand, SDG_OPERANDS_MAX of them. */
sdg_status_t
sdg_place_coordinates(const sdg_call_t *call, const sdg_mesh_t *mesh,
                      sdg_placement_t *io_placement) SDG_MUST_CHECK;
void sdg_place_free(sdg_place_t *place, int count);

#endif
