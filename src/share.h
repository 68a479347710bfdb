/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: how the ranks share one call between them. Part of its plan. */
#ifndef SDG_SRC_SHARE_H
#define SDG_SRC_SHARE_H

#include <stdbool.h>

#include "src/box.h"
#include "src/call.h"
#include "src/placement.h"
#include "src/status.h"

typedef struct sdg_share {
  sdg_placement_t placement; /* of the output */
  int output;                /* operand; the only one that is written */
  int ranks;                 /* of the job */
  bool idle;                 /* some rank has no part of the output */
  /* What rank r reads of operand i: reads[i][r], owned; NULL: all of it, where
   * the operand is an input, and nothing of the output. */
  sdg_box_t *reads[SDG_OPERANDS_MAX];
} sdg_share_t;

/* Takes the placement over, which the caller then no longer frees. NULL without
 * memory. */
sdg_share_t *sdg_share_create(sdg_placement_t *placement, int output,
                              int ranks);
void sdg_share_destroy(sdg_share_t *share);
/* Boxes for operand `index`, one for each rank of the job, to be filled. */
sdg_status_t sdg_share_reads(sdg_share_t *share, int index,
                             sdg_box_t **out_boxes) SDG_MUST_CHECK;

#endif
