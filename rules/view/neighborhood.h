/* SPDX-License-Identifier: Apache-2.0 */
/* sundog_neighborhood_*: attention to a window around each query. */
#ifndef SDG_RULES_VIEW_NEIGHBORHOOD_H
#define SDG_RULES_VIEW_NEIGHBORHOOD_H

#include "src/base/status.h"
#include "src/sundog.h"

/* A tensor of the program: this rank's piece in device memory; data NULL if
 * that is empty. */
typedef struct sdg_piece {
  const void *descriptor;
  void *data;
} sdg_piece_t;

enum { SDG_NEIGHBORHOOD_FORWARD = 4, SDG_NEIGHBORHOOD_BACKWARD = 7 };

/* Carries out one call. Forward: the pieces are q, k, v, o; backward: q, k, v,
 * do, dq, dk, dv. Runs on the stream of `handle` (a cudnnHandle_t). Collective
 * if q is split. sundog.h lists the errors. */
sdg_status_t sdg_neighborhood(const void *handle,
                              const sundog_neighborhood_t *how, int pieces,
                              const sdg_piece_t *piece) SDG_MUST_CHECK;

#endif
