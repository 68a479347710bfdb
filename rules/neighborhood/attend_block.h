/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of queries, while the sub-calls of attention are being made. Only for
 * rules/neighborhood/attend*.c. */
#ifndef SDG_RULES_NEIGHBORHOOD_ATTEND_BLOCK_H
#define SDG_RULES_NEIGHBORHOOD_ATTEND_BLOCK_H

#include "rules/neighborhood/attend.h"

/* The first dimensions of the arithmetic's tensors; the grid's follow. */
enum { SDG_NEIGHBORHOOD_ATTEND_G, SDG_NEIGHBORHOOD_ATTEND_ALONG };

/* A block of queries that are computed together, and its scratch, as slabs. */
typedef struct sdg_neighborhood_attend_block {
  sdg_box_t q, o; /* in the operands' coordinates */
  sdg_range_t g;  /* folded */
  bool full;      /* every slot of every query has a key */
  /* One block of memory in three shapes. scores: G x slots x grid. flat: G x
   * slots x queries x 1. sums: G x slots x 1 x queries. */
  int scores, flat, sums;
  int dscores, dflat, dsums; /* backward */
  /* Products of elements that one reduction sums, `times` slots at a time, in
   * two shapes. products: G x (times width) x grid. terms: G x times x width x
   * queries. */
  int products, terms;
  /* Packed parts of the operands, with their dimensions (_own), and the same
   * memory with N and heads folded to G (_fold). */
  int q_own, q_fold;
  int o_own, o_fold;
  int dq_own, dq_fold;
} sdg_neighborhood_attend_block_t;

/* The queries that have a key at one step, and these keys; both folded. */
typedef struct sdg_neighborhood_attend_pair {
  sdg_box_t q, k; /* grid dimensions only */
  int64_t slot;
  bool all; /* all queries of the block have a key here */
} sdg_neighborhood_attend_pair_t;

typedef struct sdg_neighborhood_attend_maker {
  const sdg_neighborhood_attend_t *a;
  bool backward;
  int64_t slots;                      /* slots of a query */
  int64_t width;                      /* most channels of a head whose products
                                       * are summed */
  int64_t times;                      /* slots whose products one reduction
                                       * sums */
  int k, v, dk, dv;                   /* folded slabs */
  int memory;                         /* slab of the blocks, which use it in
                                       * turn */
  int64_t room;                       /* largest block: its queries times G */
  sdg_neighborhood_attend_block_t at; /* the current block */
  /* The first pair is step 0: every query of the block has it, and the first
   * product is written where later ones are added. */
  sdg_neighborhood_attend_pair_t *pair;
  int pairs;
  int *pair_all; /* by slot: the pair that has a key in this slot for all
                  * queries; -1: none */
} sdg_neighborhood_attend_maker_t;

/* Adds the sub-calls of the current block. */
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
