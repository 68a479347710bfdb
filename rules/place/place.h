/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tensor is, by the extents that the ranks agreed on and a section that
 * says how these are to be read. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_PLACE_H
#define SDG_RULES_PLACE_PLACE_H

#include "rules/file/file.h"
#include "src/call/call.h"
#include "src/geometry/placement.h"

/* The section's splits by dimension index of a tensor of `dims` dimensions
 * (out has SDG_DIMS_MAX); false if it lacks one of them. */
bool sdg_place_splits(const sdg_section_t *section, sdg_family_t family,
                      int dims, sdg_split_t *out_split);

/* Whether two tensors of `dims` dimensions are split over the same axes. */
bool sdg_place_same(const sdg_split_t *a, const sdg_split_t *b, int dims);

struct sdg_tag_vector;
/* Global extents as member `member` of the group sees them under the splits:
 * summed over the pieces of the dimensions that are split, that rank's own in
 * the others. */
void sdg_place_extents(const struct sdg_tag_vector *vector,
                       const sdg_split_t *split, int member,
                       int64_t *out_extent);

/* Ranks of the group that see a match, and that do not; -1 if there are none.
 */
typedef struct sdg_seen {
  int yes, no;
} sdg_seen_t;
/* Which ranks see a match of this operand with a section, were it split so. */
sdg_seen_t sdg_place_would(const sdg_call_t *call, int index,
                           const sdg_section_t *section,
                           const sdg_split_t *split);
/* The first section that matches this operand on any rank, or what the program
 * says of it; NULL if none does. Which ranks see it tells whether it is a match
 * on all of them. */
const sdg_section_t *sdg_place_section(const sdg_call_t *call, int index,
                                       const sdg_rules_t *rules,
                                       sdg_seen_t *out_seen);

/* Which ranks see that this section matches. */
sdg_seen_t sdg_place_seen(const sdg_call_t *call, int index,
                          const sdg_section_t *section);

/* The placement of these extents under the splits; *out_can, where asked for,
 * is false where they make no tensor, which is SDG_E_EXTENTS otherwise. */
sdg_status_t sdg_place_vector(const sdg_call_t *call,
                              const struct sdg_tag_vector *vector,
                              const sdg_split_t *split, bool *out_can,
                              sdg_placement_t *out) SDG_MUST_CHECK;

/* The operand's placement by its label, of a rank without elements, too, whose
 * split dimensions are 0. SDG_E_EXTENTS. */
sdg_status_t sdg_place_exactly(const sdg_call_t *call, int index,
                               sdg_placement_t *out) SDG_MUST_CHECK;

/* One reading of the ranks' extents of an operand. */
typedef struct sdg_place {
  const sdg_section_t *section; /* NULL: all of it is on every rank */
  sdg_placement_t placement;    /* owned */
} sdg_place_t;
enum { SDG_PLACES_MAX = 3 };
/* The readings that make one tensor, in the order in which they are tried:
 * as its label says, and no other; or as `section`, that of the call; as the
 * section that matches this operand; or all of it on every rank. None where the
 * operand lacks a dimension that the first section splits; SDG_E_EXTENTS where
 * none makes a tensor. What is no activation is read by `section` alone, and
 * there is none, and no error, where that makes no tensor. `out` has room for
 * SDG_PLACES_MAX. */
sdg_status_t sdg_place_list(const sdg_call_t *call, int index,
                            const sdg_section_t *section,
                            const sdg_rules_t *rules, sdg_place_t *out,
                            int *out_count) SDG_MUST_CHECK;
/* SDG_E_EXTENTS unless the operand makes a tensor by this section. */
sdg_status_t sdg_place_check(const sdg_call_t *call, int index,
                             const sdg_section_t *section) SDG_MUST_CHECK;
/* Sets the placements of coordinates, from those of the tensors whose elements
 * they belong to. By operand, SDG_OPERANDS_MAX of them. */
sdg_status_t
sdg_place_coordinates(const sdg_call_t *call, const sdg_mesh_t *mesh,
                      sdg_placement_t *io_placement) SDG_MUST_CHECK;
void sdg_place_free(sdg_place_t *place, int count);

#endif
