/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling over all of what is split: each rank pools its piece, and results of
 * pieces lie in a tensor with an element per piece in each merged dimension, in
 * y's coordinates in the others. Pure. Inside rules/ only. */
#ifndef SDG_RULES_POOL_PIECES_H
#define SDG_RULES_POOL_PIECES_H

#include "rules/pool/rule.h"

typedef struct sdg_pool_pieces {
  const sdg_tagging_t *tagging;
  const sdg_pool_t *pool;
  /* Means of half types take two elements along the first merged dimension,
   * which this is, or 0: what is stored, and what the storing left out. */
  int twice;
} sdg_pool_pieces_t;

/* Of that tensor, along merged dimension `d`. */
int64_t sdg_pool_pieces_elements(const sdg_pool_pieces_t *of, int d);
/* What is the result of this rank of the job, and what it gathers; in the whole
 * view some may be empty. */
sdg_box_t sdg_pool_pieces_part(const sdg_pool_pieces_t *of, int rank);
sdg_box_t sdg_pool_pieces_parts(const sdg_pool_pieces_t *of, int rank);
/* Elements of the piece `x` over those of the largest: at most 1, so that
 * nothing overflows that does not on one device. *out_rest makes the mean over
 * pieces that of the whole: 5+3 elements: 1 and 3/5, and 2*5/8. */
double sdg_pool_pieces_weight(const sdg_pool_pieces_t *of, const sdg_box_t *x,
                              double *out_rest);

#endif
