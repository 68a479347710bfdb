/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys a query of neighbourhood attention sees: of one dimension of the
 * grid, in global indices. Pure.
 *
 * With dilation d a query i sees keys of its own residue class only, i + step*d
 * for whole steps. Of the class, u = floor(i/d) is the query's place and n the
 * number of elements. Its window of k keys is, by places,
 *   shifted  [s, s+k), s = clamp(u - floor(k/2), 0, n-k)
 *   cut      [u - floor(k/2), u - floor(k/2) + k), cut at [0, n)
 *   causal   [u - k + 1, u + 1), cut at 0
 * N=10, d=2, k=3, i=8 (u=4, n=5): shifted places [2,5), keys 4, 6, 8; cut
 * [3,5), keys 6, 8; causal [2,5), keys 4, 6, 8.
 *
 * Seen from a step, the queries that have a key there are one range, and the k
 * keys of a shifted window lie at k steps in a row: steps modulo k are slots,
 * of which a query fills each at most once. */
#ifndef SDG_RULES_NEIGHBORHOOD_WINDOW_H
#define SDG_RULES_NEIGHBORHOOD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/box.h"

typedef struct sdg_neighborhood_window {
  int64_t extent;           /* of the grid */
  int64_t kernel, dilation; /* k, d >= 1; k*d <= extent in shifted windows */
  bool causal, cut;
} sdg_neighborhood_window_t;

/* The steps at which some query may have a key.
 * k=4: cut [-2,2), causal [-3,1), shifted [-3,4). */
sdg_range_t sdg_neighborhood_window_steps(const sdg_neighborhood_window_t *dim);

/* The queries that have a key `step` steps away, one of
 * sdg_neighborhood_window_steps: key i + step*d. Empty as {0,0}. N=10, k=3,
 * d=1, shifted: step 1 [0,9), step 2 [0,1), step -2 [9,10). */
sdg_range_t
sdg_neighborhood_window_queries(const sdg_neighborhood_window_t *dim,
                                int64_t step);

/* 0 .. k-1: where a query keeps what belongs to the key at this step. */
int64_t sdg_neighborhood_window_slot(const sdg_neighborhood_window_t *dim,
                                     int64_t step);

/* The first to the last key of the queries; {0,0} for none.
 * N=10, k=3, d=1, shifted, queries [0,1): [0,3). */
sdg_range_t sdg_neighborhood_window_need(const sdg_neighborhood_window_t *dim,
                                         sdg_range_t queries);

#endif
