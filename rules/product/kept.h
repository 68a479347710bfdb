/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of products that were brought together for one product, and are read
 * by a later one. Inside rules/ only.
 *
 * Shard view: nothing shows whether the program's kernels write a factor in
 * between, so that the section has to promise it (`keep`). Of a factor that is
 * brought, some dimension is cut that the product is not cut in: K (its product
 * is a sum over what is brought, as a gradient of weights is one over tokens),
 * or another one (forward, the gradient of the data). `keep = x`: what came for
 * the other kind, a later sum takes. `keep = dy`: what came for a sum, one of
 * the other kind takes. Never the other way round, where the next step would
 * take what the step before has left in the same memory: which of two products
 * comes first in a step, tells the one that was the first to come at all.
 *
 * The ranks tell each other, in the agreement that each product has anyway,
 * what is left at their addresses; it is taken where all have the same. What
 * sundog sees written is forgotten.
 * Whole view: the buffer table knows. */
#ifndef SDG_RULES_PRODUCT_KEPT_H
#define SDG_RULES_PRODUCT_KEPT_H

#include "rules/product/rule.h"

enum { SDG_PRODUCT_KEPTS = 2 }; /* one for each factor */

/* This rank's part of an agreement: what is left at each factor's address. */
void sdg_product_kept_look(const sdg_product_t *product, int64_t *out);
/* After it: numbers for what all ranks have of each factor, for a plan's key;
 * 0: not the same. */
void sdg_product_kept_found(const sdg_call_t *call, uint64_t *out);

typedef struct sdg_product_keep {
  bool leaves, takes;
  uint64_t token, order; /* order: of products that may keep, by the first time
                            that they came, from 1 */
} sdg_product_keep_t;
/* What becomes of a factor that is brought; need[i]: of the i-th rank of the
 * tagging. By what the ranks agreed on: the same on all of them. */
sdg_product_keep_t sdg_product_keep(const sdg_product_parts_t *m, int factor,
                                    const sdg_box_t *need);

#endif
