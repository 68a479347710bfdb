/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: how the ranks divide one call between them. Belongs to the
 * call's plan. */
#ifndef SDG_SRC_PLAN_SHARE_H
#define SDG_SRC_PLAN_SHARE_H

#include <stdbool.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"
#include "src/geometry/placement.h"

typedef struct sdg_share {
  int ranks; /* ranks of the job */
  bool idle; /* at least one rank has no part of any output */
  /* Windows read rows across the ends of a periodic dimension; the program's
   * own call would not read them. */
  bool around;
  /* Outputs may be in memory that the program can read without a call (managed,
   * pinned): these are brought up to date on every rank at once. Otherwise such
   * a call is refused. */
  bool completes;
  /* The operands that are written, and the placement of each. A placement that
   * splits nothing means that every rank has the whole output. */
  int outputs;
  struct {
    int operand;
    sdg_placement_t placement;
  } output[SDG_OPERANDS_MAX];
  /* reads[i][r] is the box of operand i that rank r reads; owned. NULL: rank r
   * reads the whole operand if it is an input, and nothing if it is an output.
   * A box may cross the end of a periodic dimension (src/geometry/ring.h):
   * rows at both ends form one box. */
  sdg_box_t *reads[SDG_OPERANDS_MAX];
} sdg_share_t;

/* SDG_E_NO_MEMORY is the only error. */
sdg_status_t sdg_share_create(int ranks, sdg_share_t **out) SDG_MUST_CHECK;
void sdg_share_destroy(sdg_share_t *share);
/* Adds an output, with a copy of its placement. */
sdg_status_t sdg_share_output(sdg_share_t *share, int operand,
                              const sdg_placement_t *placement) SDG_MUST_CHECK;
/* Returns NULL if the operand is not an output. */
const sdg_placement_t *sdg_share_placement(const sdg_share_t *share,
                                           int operand);
/* Creates the boxes of operand `index`, one for each rank of the job; the
 * caller fills them in. */
sdg_status_t sdg_share_reads(sdg_share_t *share, int index,
                             sdg_box_t **out_boxes) SDG_MUST_CHECK;
/* Each rank reads its own box of `placement`. */
sdg_status_t sdg_share_reads_own(sdg_share_t *share, int index,
                                 const sdg_placement_t *placement,
                                 const sdg_mesh_t *mesh) SDG_MUST_CHECK;

#endif
