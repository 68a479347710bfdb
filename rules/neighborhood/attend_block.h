/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of queries while the sub-calls of attention are made. Inside
 * rules/attend*.c only. */
#ifndef SDG_RULES_NEIGHBORHOOD_ATTEND_BLOCK_H
#define SDG_RULES_NEIGHBORHOOD_ATTEND_BLOCK_H

#include "rules/neighborhood/attend.h"

/* Dimensions of the arithmetic's tensors; the grid's follow. */
enum { SDG_NEIGHBORHOOD_ATTEND_G, SDG_NEIGHBORHOOD_ATTEND_ALONG };

/* Queries that are computed together, and scratch for them: slabs. */
typedef struct sdg_neighborhood_attend_block {
  sdg_box_t q, o; /* in the operands' coordinates */
  sdg_range_t g;  /* folded */
  bool full;      /* every slot of every query has a key */
  /* G, slot, grid; the same as G, slot, queries, 1; as G, slot, 1, queries. */
  int scores, flat, sums;
  int dscores, dflat, dsums; /* backward */
  /* G, channels, grid, so many times in a row; as G, times, channels,
   * queries. */
  int products, terms;
  int q_own, q_fold; /* packed, and the same memory folded */
  int o_own, o_fold;
  int dq_own, dq_fold;
} sdg_neighborhood_attend_block_t;

/* The queries that have a key at one step, folded, and their keys. */
typedef struct sdg_neighborhood_attend_pair {
  sdg_box_t q, k; /* grid dimensions only */
  int64_t slot;
  bool all; /* queries of the block */
} sdg_neighborhood_attend_pair_t;

typedef struct sdg_neighborhood_attend_maker {
  const sdg_neighborhood_attend_t *a;
  bool backward;
  int64_t slots;                      /* of a query */
  int64_t width;                      /* channels of a head, the most */
  int64_t times;                      /* products that are summed at a time */
  int k, v, dk, dv;                   /* folded slabs */
  int memory;                         /* of the blocks, which take turns */
  int64_t room;                       /* for so many queries times G */
  sdg_neighborhood_attend_block_t at; /* the block at hand */
  /* Each query's own step is the first: it is there for all of the block, and
   * what is added to begins with it. */
  sdg_neighborhood_attend_pair_t *pair;
  int pairs;
  int *pair_all; /* by slot: the pair that has it for all queries; -1 */
} sdg_neighborhood_attend_maker_t;

/* The sub-calls of the block at hand. */
sdg_status_t sdg_neighborhood_attend_block_forward(
    const sdg_neighborhood_attend_maker_t *m) SDG_MUST_CHECK;
sdg_status_t sdg_neighborhood_attend_block_backward(
    const sdg_neighborhood_attend_maker_t *m) SDG_MUST_CHECK;

/* A tensor of the arithmetic: the block's G, `second`, and the grid of `box`.
 */
sdg_subcall_tensor_t
sdg_neighborhood_attend_view(const sdg_neighborhood_attend_maker_t *m, int slab,
                             const sdg_box_t *box, sdg_range_t second);

#endif
