/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbourhood attention, as the program asks for it. */
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

/* Forward: pieces q, k, v, o; backward q, k, v, do, dq, dk, dv. On the stream
 * of `handle`, a cudnnHandle_t; collective where q is split (sundog.h, which
 * has the errors, too). */
sdg_status_t sdg_neighborhood(const void *handle,
                              const sundog_neighborhood_t *how, int pieces,
                              const sdg_piece_t *piece) SDG_MUST_CHECK;

#endif
