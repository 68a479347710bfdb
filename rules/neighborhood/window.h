/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys a query of neighbourhood attention sees in one dimension of the
 * grid, in global indices. Pure functions.
 *
 * With dilation d a query i sees only keys of its own residue class: i + step*d
 * for integer steps. In the class, u = floor(i/d) is the query's place, and n
 * the number of elements. Its window of k keys covers the places
 *   shifted  [s, s+k), s = clamp(u - floor(k/2), 0, n-k)
 *   cut      [u - floor(k/2), u - floor(k/2) + k), cut at [0, n)
 *   causal   [u - k + 1, u + 1), cut at 0
 * N=10, d=2, k=3, i=8 (u=4, n=5): shifted places [2,5), keys 4, 6, 8; cut
 * [3,5), keys 6, 8; causal [2,5), keys 4, 6, 8.
 *
 * The queries that have a key at a given step form one range. The k keys of a
 * shifted window lie at k consecutive steps. A slot is a step modulo k, so a
 * query fills each slot at most once. */
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

/* The steps at which some query may have a key. Example for k=4: cut [-2,2),
 * causal [-3,1), shifted [-3,4). */
sdg_range_t sdg_neighborhood_window_steps(const sdg_neighborhood_window_t *dim);

/* The queries that have a key at `step`, which is one of
 * sdg_neighborhood_window_steps: their key is i + step*d. {0,0} if there are
 * none. N=10, k=3, d=1, shifted: step 1 [0,9), step 2 [0,1), step -2 [9,10). */
sdg_range_t
sdg_neighborhood_window_queries(const sdg_neighborhood_window_t *dim,
                                int64_t step);

/* The slot, 0 .. k-1, of the key at this step. */
int64_t sdg_neighborhood_window_slot(const sdg_neighborhood_window_t *dim,
                                     int64_t step);

/* The range from the first to the last key that the queries see; {0,0} for no
 * queries. N=10, k=3, d=1, shifted, queries [0,1): [0,3). */
sdg_range_t sdg_neighborhood_window_need(const sdg_neighborhood_window_t *dim,
                                         sdg_range_t queries);

#endif
