/* SPDX-License-Identifier: Apache-2.0 */
/* What a call needs from other ranks by the formula of its window, computed
 * from its recorded extents alone. */
#ifndef SDG_TOOLS_RECORD_FORMULA_H
#define SDG_TOOLS_RECORD_FORMULA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/box.h"

/* What a rank of a windowed call reads, in global coordinates. */
typedef struct formula_need {
  const json_t *operand; /* the tensor that has a halo; borrowed */
  sdg_box_t own, need;   /* need is cut at the domain */
} formula_need_t;

/* Returns false if the plan's call has no window, or its strategy does not
 * bring a halo of one tensor: pooling backward, periodic dimensions, split
 * channels, gradients sent to their owners. A 3x3 convolution of stride 1 and
 * padding 1 whose rank owns rows 30 ... 70 of 91 needs rows 29 ... 71. */
bool formula_need(const json_t *plan, formula_need_t *out);

/* Returns the bytes of the need that the rank does not own; -1 without a
 * formula. */
int64_t formula_halo_bytes(const json_t *plan);

/* Returns the bytes that all ranks would receive for one call like the plan's,
 * if only dimension `dim` were split, evenly over `ranks`; -1 if that is not
 * known: windows with strides, or that change the extents, may have other
 * parts. 91 x 120 floats and a 5x5 window, H over 3 ranks: 2 borders, 2 rows on
 * both sides of each, 3840 bytes. */
int64_t formula_predict(const json_t *plan, int dim, int ranks);

#endif
