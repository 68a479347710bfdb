/* SPDX-License-Identifier: Apache-2.0 */
/* A rules file with the reasons as comments, from what was seen of a program.
 */
#ifndef SDG_TOOLS_DRAFT_DRAFT_H
#define SDG_TOOLS_DRAFT_DRAFT_H

#include "tools/draft/candidate.h"

/* Of `count` candidates the one to propose: of dimension `dim` alone, if that
 * is not SDG_DIM_COUNT, and in `view`, if that is said; with all axes of a
 * mesh, without faults, with axes that are named like what they divide, of most
 * dimensions, spatial, in the shard view, in which memory scales, the outermost
 * unless an inner one has less than half its halo bytes; NULL if none is
 * possible. */
const candidate_t *draft_choose(const candidate_t *candidates, int count,
                                sdg_dim_t dim, sdg_view_t view);

/* Whether it splits `dim` alone; any does for SDG_DIM_COUNT. */
bool draft_is_of(const candidate_t *candidate, sdg_dim_t dim);

/* "shard", "whole". */
const char *view_name(sdg_view_t view);

/* Writes the file for `chosen`; `words` are the program's, `mesh` is NULL for
 * one axis with all ranks. SDG_E_FILE_IO. */
sdg_status_t draft_write(const char *path, const candidate_t *candidates,
                         int count, const candidate_t *chosen,
                         const sdg_mesh_t *mesh,
                         char *const *words) SDG_MUST_CHECK;

#endif
