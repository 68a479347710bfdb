/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters and adds: sends what ranks computed for elements of other ranks to
 * their owners (sdg_scatter_back), which add it. Inside rules/ only. */
#ifndef SDG_RULES_KIT_SCATTER_ADD_H
#define SDG_RULES_KIT_SCATTER_ADD_H

#include "rules/kit/fetch.h"
#include "rules/kit/subcall.h"

/* One tensor that is being scattered. */
typedef struct sdg_scatter_add {
  sdg_fetch_t back;
  int from, to, me;
  bool copies; /* other ranks have the same elements, and must get the same
                * bits */
  sdg_box_t own;
} sdg_scatter_add_t;

/* Adds this rank's messages to the plan's next exchange. Call it after the step
 * that computes slab `from`, and after a join of the communication lane. `from`
 * covers the elements that this rank has addends for, which is its `need`; pass
 * -1 if it has none. `from` may be `to`, which covers the rank's box of
 * `placement`. The other arguments are those of sdg_scatter_back. */
sdg_status_t sdg_scatter_add_open(sdg_plan_t *plan,
                                  const sdg_tagging_t *tagging,
                                  const sdg_placement_t *placement,
                                  const sdg_placement_t *terms,
                                  const sdg_box_t *need, const int64_t *period,
                                  int from, int to,
                                  sdg_scatter_add_t *out) SDG_MUST_CHECK;
/* Call it after the exchange and a join of the main lane. The rank's own part
 * of slab `to` becomes the sum of this rank's addends and the received ones,
 * added in the order of the ranks, in float if the type is narrower. Needs
 * sdg_subcalls_open(). */
sdg_status_t sdg_scatter_add_close(sdg_plan_t *plan,
                                   const sdg_scatter_add_t *back,
                                   sdg_type_t type) SDG_MUST_CHECK;
/* Use it in place of sdg_scatter_add_close if slab `to` already contains this
 * rank's addends for its own elements, except those for images beyond the end
 * of a periodic dimension. Adds these, which are in slab `from`, and the
 * received addends. */
sdg_status_t sdg_scatter_add_add(sdg_plan_t *plan,
                                 const sdg_scatter_add_t *back,
                                 sdg_type_t type) SDG_MUST_CHECK;
/* Replaces the functions above if all ranks along `axes` have the elements of
 * `own`: slab `to` becomes the sum of all these ranks' addends, on each of
 * them. Call it after the step that computes slab `from`, and on all ranks of
 * the job, also with an empty `own`: they make the communicator together. */
sdg_status_t sdg_scatter_add_sum(sdg_plan_t *plan, sdg_axes_t axes,
                                 const sdg_box_t *own, int from, int to,
                                 sdg_type_t type) SDG_MUST_CHECK;
/* Accepts an opened one, or one that is all zeros. */
void sdg_scatter_add_fini(sdg_scatter_add_t *back);

#endif
