/* SPDX-License-Identifier: Apache-2.0 */
/* sundog_halo: how much around a piece is wanted, and what lies where. Inside
 * rules/ only. */
#ifndef SDG_RULES_HALO_HALO_H
#define SDG_RULES_HALO_HALO_H

#include <cuda_runtime_api.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"

/* The operands of a call: the program's piece, and its memory for the piece
 * with the elements around it. */
enum { SDG_HALO_X, SDG_HALO_OUT, SDG_HALO_OPERANDS };

/* call->args. Indexed by the operands' dimensions. */
typedef struct sdg_halo {
  int64_t before[SDG_DIMS_MAX], after[SDG_DIMS_MAX]; /* elements, >= 0 */
  int border[SDG_DIMS_MAX]; /* sundog_border_t: beyond the ends of the whole */
} sdg_halo_t;

/* The box that `out` covers on a rank that owns `own`, in global coordinates.
 * Empty if own is empty. Example: rows [4, 9) with 1 before and 2 after: [3,
 * 11). */
sdg_box_t sdg_halo_box(const sdg_halo_t *halo, const sdg_box_t *own);

/* The part of it that gets elements of the whole, whose extents are `whole`: in
 * dimensions that do not wrap, it ends where the whole ends. */
sdg_box_t sdg_halo_need(const sdg_halo_t *halo, const sdg_box_t *own,
                        const int64_t *whole);

/* The periods of sdg_transfer_plan: the extents of dimensions that wrap, 0 for
 * the others. `period` has SDG_DIMS_MAX. */
void sdg_halo_periods(const sdg_halo_t *halo, int dims, const int64_t *whole,
                      int64_t *out_period);

/* The boxes of `out` that become zero; they may overlap each other, and hold no
 * element of the whole. Returns their number, at most 2 for each dimension. */
int sdg_halo_zeros(const sdg_halo_t *halo, const sdg_box_t *own,
                   const int64_t *whole, sdg_box_t *out_boxes);

/* Enqueues the call on one rank that has the whole tensor. */
sdg_status_t sdg_halo_alone(const sdg_call_t *call,
                            cudaStream_t stream) SDG_MUST_CHECK;

#endif
