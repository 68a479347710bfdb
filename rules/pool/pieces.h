/* SPDX-License-Identifier: Apache-2.0 */
/* Global pooling over split dimensions: each rank pools its piece. The pieces'
 * results form a tensor with one element per piece in each merged dimension,
 * and y's coordinates in the others. Pure functions. Inside rules/ only. */
#ifndef SDG_RULES_POOL_PIECES_H
#define SDG_RULES_POOL_PIECES_H

#include "rules/pool/rule.h"

typedef struct sdg_pool_pieces {
  const sdg_tagging_t *tagging;
  const sdg_pool_t *pool;
} sdg_pool_pieces_t;

/* The extent of that tensor in merged dimension `d`. */
int64_t sdg_pool_pieces_elements(const sdg_pool_pieces_t *of, int d);
/* _part: the results that this rank of the job computes. _parts: the results
 * that it gathers. Either may be empty in the whole view. */
sdg_box_t sdg_pool_pieces_part(const sdg_pool_pieces_t *of, int rank);
sdg_box_t sdg_pool_pieces_parts(const sdg_pool_pieces_t *of, int rank);
/* The number of elements of the piece `x` divided by that of the largest piece.
 * It is at most 1, so nothing overflows that would not on a single device.
 * *out_rest is the remaining factor, which turns the mean over pieces into the
 * mean of the whole. Example: 5+3 elements: weights 1 and 3/5, rest 2*5/8. */
double sdg_pool_pieces_weight(const sdg_pool_pieces_t *of, const sdg_box_t *x,
                              double *out_rest);

#endif
