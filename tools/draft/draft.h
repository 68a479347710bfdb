/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a rules file from a program's recorded calls, with the reasons as
 * comments.
 * */
#ifndef SDG_TOOLS_DRAFT_DRAFT_H
#define SDG_TOOLS_DRAFT_DRAFT_H

#include "tools/draft/candidate.h"

/* Returns the candidate to propose; NULL if none is possible. It splits `dim`
 * alone unless that is SDG_DIM_COUNT, and has `view` unless that is
 * SDG_VIEW_UNSAID. Then it prefers, in this order: all axes of the mesh are
 * used; no faults; axes have the names of their dimensions; more dimensions are
 * split; they are spatial; the shard view, because each rank's memory shrinks;
 * the outermost dimension, unless an inner one has less than half its halo
 * bytes. */
const candidate_t *draft_choose(const candidate_t *candidates, int count,
                                sdg_dim_t dim, sdg_view_t view);

/* Returns whether the candidate splits `dim` alone; always true for
 * SDG_DIM_COUNT. */
bool draft_is_of(const candidate_t *candidate, sdg_dim_t dim);

/* Returns "shard" or "whole". */
const char *view_name(sdg_view_t view);

/* Writes the rules file for `chosen`, with sections for functions. `words`: the
 * program's command line. `mesh`: NULL for one axis with all ranks.
 * SDG_E_FILE_IO. */
sdg_status_t draft_write(const char *path, const candidate_t *candidates,
                         int count, const candidate_t *chosen,
                         const sdg_mesh_t *mesh, const calls_t *calls,
                         char *const *words) SDG_MUST_CHECK;
/* The same for a program whose functions alone are split, along `dim`. */
sdg_status_t draft_write_functions(const char *path, const calls_t *calls,
                                   sdg_dim_t dim, sdg_view_t view,
                                   char *const *words) SDG_MUST_CHECK;

#endif
