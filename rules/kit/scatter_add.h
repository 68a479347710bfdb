/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks computed for elements that others own goes back to these
 * (sdg_scatter_back), and is added. Inside rules/ only. */
#ifndef SDG_RULES_KIT_SCATTER_ADD_H
#define SDG_RULES_KIT_SCATTER_ADD_H

#include "rules/kit/fetch.h"
#include "rules/kit/subcall.h"

/* One tensor on its way. */
typedef struct sdg_scatter_add {
  sdg_fetch_t back;
  int from, to, me;
  bool copies; /* other ranks have the same elements, and get the same bits */
  sdg_box_t own;
} sdg_scatter_add_t;

/* After the step that computes slab `from`, and a join of the communication
 * lane: adds this rank's messages to the plan's next exchange. `from` covers
 * what this rank has addends of, which is its `need`, -1 where that is nothing;
 * it may be `to`, which covers what `placement` gives the rank. Arguments else
 * as of sdg_scatter_back. */
sdg_status_t sdg_scatter_add_open(sdg_plan_t *plan,
                                  const sdg_tagging_t *tagging,
                                  const sdg_placement_t *placement,
                                  const sdg_placement_t *terms,
                                  const sdg_box_t *need, const int64_t *period,
                                  int from, int to,
                                  sdg_scatter_add_t *out) SDG_MUST_CHECK;
/* After the exchange and a join of the main lane: the own part of slab `to`
 * becomes the sum of this rank's addends and, in the order of the ranks, the
 * others'; in float where the type is narrower. Needs sdg_subcalls_open(). */
sdg_status_t sdg_scatter_add_close(sdg_plan_t *plan,
                                   const sdg_scatter_add_t *back,
                                   sdg_type_t type) SDG_MUST_CHECK;
/* The same where this rank's addends for itself are in slab `to` already, but
 * for those of images around the end of a periodic dimension: adds these, which
 * lie in `from`, and what was received. */
sdg_status_t sdg_scatter_add_add(sdg_plan_t *plan,
                                 const sdg_scatter_add_t *back,
                                 sdg_type_t type) SDG_MUST_CHECK;
/* Where the ranks along `axes` all have what `own` covers: in slab `to` that
 * becomes the sum of the ranks' addends on each of them. In place of the above,
 * after the step that computes slab `from`. */
sdg_status_t sdg_scatter_add_sum(sdg_plan_t *plan, sdg_axes_t axes,
                                 const sdg_box_t *own, int from, int to,
                                 sdg_type_t type) SDG_MUST_CHECK;
/* Of an opened one, or of all zeros. */
void sdg_scatter_add_fini(sdg_scatter_add_t *back);

#endif
