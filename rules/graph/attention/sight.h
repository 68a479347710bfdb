/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the queries of attention see, in global coordinates. Pure; the
 * unit is elements along the sequence.
 *
 * Query q sees key k iff
 *   right: q + shift + right_bound >= k
 *   left:  k + left_bound > q + shift
 * as far as the sight has these bounds. Causal: right, right_bound 0. The 512
 * keys before a query and its own: left_bound 513. */
#ifndef SDG_RULES_GRAPH_ATTENTION_SIGHT_H
#define SDG_RULES_GRAPH_ATTENTION_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/box.h"

typedef struct sdg_sight {
  bool right, left;
  int64_t right_bound, left_bound;
  int64_t shift; /* keys - queries of the whole, for bottom right; else 0 */
} sdg_sight_t;

/* The keys among `keys` that some of these queries see; {0,0}: none. */
sdg_range_t sdg_sight_keys(const sdg_sight_t *sight, sdg_range_t queries,
                           sdg_range_t keys);
/* The queries among `queries` that see some of these keys; {0,0}: none. */
sdg_range_t sdg_sight_queries(const sdg_sight_t *sight, sdg_range_t queries,
                              sdg_range_t keys);

/* What is computed of some queries and some keys: only those of which each sees
 * one, and is seen by one. The bounds count rows and columns from the first of
 * these, right_bound >= 0 and left_bound >= 1; a bound that hides nothing is
 * left out. Causal, queries [8,12), keys [4,12): all, right_bound 4. */
typedef struct sdg_sight_block {
  sdg_range_t queries, keys; /* {0,0}: nothing is seen */
  bool right, left;
  int64_t right_bound, left_bound;
} sdg_sight_block_t;
sdg_sight_block_t sdg_sight_block(const sdg_sight_t *sight, sdg_range_t queries,
                                  sdg_range_t keys);

#endif
