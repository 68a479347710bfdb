/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch memory that a plan with strategy repair may use, besides its
 * results and workspaces. */
#ifndef SDG_TESTS_UNIT_REPAIR_MEMORY_H
#define SDG_TESTS_UNIT_REPAIR_MEMORY_H

#include <string.h>

#include "rules/window/window.h"
#include "src/plan/plan.h"
#include "tests/unit/harness.h"

enum { EXTRA_SLABS = 256 };

/* Returns which scratch holds sent, received or assembled elements of
 * `operand`. */
static inline void extra_find(const sdg_plan_t *plan, int operand, bool *out) {
  REQUIRE(plan->slabs <= EXTRA_SLABS);
  memset(out, 0, (size_t)plan->slabs * sizeof *out);
  for (int i = 0; i < plan->parcels; i++)
    out[plan->parcel[i].slab] = true;
  for (int i = 0; i < plan->steps; i++) {
    const sdg_step_t *step = &plan->step[i];
    if (step->kind == SDG_STEP_COPY)
      out[step->to] |=
          out[step->slab] || plan->slab[step->slab].operand == operand;
  }
  for (int i = 0; i < plan->slabs; i++)
    out[i] &= plan->slab[i].operand == SDG_SLAB_SCRATCH;
}

/* Checks that there are at most 4 (d(k-1) + p + s) rows of `operand` for each
 * side with a neighbour. Only dimension 2 may be split. */
static inline void extra_check(const sdg_plan_t *plan, int operand,
                               const sdg_window_t *window, int sides) {
  bool counts[EXTRA_SLABS];
  int64_t bytes = 0, row_bytes = 0;
  if (strcmp(plan->strategy, "repair") != 0)
    return;
  extra_find(plan, operand, counts);
  for (int i = 0; i < plan->slabs; i++) {
    const sdg_slab_t *slab = &plan->slab[i];
    int64_t all = sdg_box_count(&slab->box) * slab->elem_bytes;
    if (slab->operand == operand)
      row_bytes = all / (slab->box.dim[2].hi - slab->box.dim[2].lo);
    if (counts[i])
      bytes += all;
  }
  int64_t rows =
      4 * (sdg_window_span(window) - 1 + window->pad + window->stride) * sides;
  REQUIRE_MSG(bytes <= rows * row_bytes,
              "%lld bytes of rows, more than %lld rows of %lld",
              (long long)bytes, (long long)rows, (long long)row_bytes);
}

#endif
