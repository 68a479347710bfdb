/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: how the ranks share one call between them. Part of its plan. */
#ifndef SDG_SRC_PLAN_SHARE_H
#define SDG_SRC_PLAN_SHARE_H

#include <stdbool.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"
#include "src/geometry/placement.h"

typedef struct sdg_share {
  int ranks; /* of the job */
  bool idle; /* some rank has no part of an output */
  /* Windows see rows around a periodic dimension, which the program's own call
   * would not see. */
  bool around;
  /* The operands that are written, and where each rank's part of them is: all
   * of it on every rank where the placement splits nothing. */
  int outputs;
  struct {
    int operand;
    sdg_placement_t placement;
  } output[SDG_OPERANDS_MAX];
  /* What rank r reads of operand i: reads[i][r], owned; NULL: all of it, where
   * the operand is an input, and nothing of the output. May go around the end
   * of a dimension (src/geometry/ring.h): rows at both ends are one box. */
  sdg_box_t *reads[SDG_OPERANDS_MAX];
} sdg_share_t;

/* NULL without memory. */
sdg_share_t *sdg_share_create(int ranks);
void sdg_share_destroy(sdg_share_t *share);
/* One more output, with a copy of its placement. */
sdg_status_t sdg_share_output(sdg_share_t *share, int operand,
                              const sdg_placement_t *placement) SDG_MUST_CHECK;
/* NULL if the operand is no output. */
const sdg_placement_t *sdg_share_placement(const sdg_share_t *share,
                                           int operand);
/* Boxes for operand `index`, one for each rank of the job, to be filled. */
sdg_status_t sdg_share_reads(sdg_share_t *share, int index,
                             sdg_box_t **out_boxes) SDG_MUST_CHECK;

#endif
