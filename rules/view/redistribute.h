/* SPDX-License-Identifier: Apache-2.0 */
/* sundog_redistribute: moves a tensor from one placement to another. */
#ifndef SDG_RULES_VIEW_REDISTRIBUTE_H
#define SDG_RULES_VIEW_REDISTRIBUTE_H

#include "src/base/status.h"

/* One side: a tensor descriptor, how the tensor is placed (sundog.h), and this
 * rank's piece of it in device memory; data NULL if that is empty. */
typedef struct sdg_side {
  const void *descriptor;
  const char *placement;
  void *data;
} sdg_side_t;

/* Writes tensor x to y, on the stream of `handle` (a cudnnHandle_t). Collective
 * over the agreement's group. If nothing is split, y is a copy of x. SDG_E_TAG,
 * SDG_E_DESCRIPTOR, SDG_E_OPERANDS_DIFFER, SDG_E_EXTENTS, and those of rules,
 * agreements and plans. */
sdg_status_t sdg_redistribute(const void *handle, const sdg_side_t *x,
                              const sdg_side_t *y) SDG_MUST_CHECK;

#endif
