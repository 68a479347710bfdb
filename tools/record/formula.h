/* SPDX-License-Identifier: Apache-2.0 */
/* What a call needs from other ranks by the formula of its window, computed
 * from its recorded extents alone. */
#ifndef SDG_TOOLS_RECORD_FORMULA_H
#define SDG_TOOLS_RECORD_FORMULA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/window/window.h"
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

/* The extents of a windowed call in one dimension: of the window's input and
 * output. */
typedef struct formula_ends {
  int64_t x, y;
  sdg_window_t window;
  bool adjoint; /* it computes x from y */
} formula_ends_t;

/* Returns false where formula_need() does, or if the window does not move in
 * the dimension of that name. */
bool formula_ends(const json_t *plan, const char *dim, formula_ends_t *out);

/* What all ranks would receive for one call like the plan's. */
typedef struct formula_then {
  int64_t bytes;
  bool low, high;         /* some rank needs elements before, after its own */
  bool all_low, all_high; /* all ranks but those at the ends do */
} formula_then_t;

/* Finds it if only dimension `dim` were split: x, as the window sees it, and y
 * by these parts. Returns false where formula_ends() does. 91 x 120 floats and
 * a 5x5 window, H over 3 ranks: 2 borders, 2 rows on both sides of each, 3840
 * bytes. */
bool formula_predict(const json_t *plan, const char *dim, const sdg_part_t *x,
                     const sdg_part_t *y, formula_then_t *out);

#endif
