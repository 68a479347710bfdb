/* SPDX-License-Identifier: Apache-2.0 */
/* Factors that the ranks gathered for one product and that a later product
 * reuses. Inside rules/ only.
 *
 * Shard view: sundog cannot see whether the program's kernels write a factor
 * between two products, so the section must promise that they do not (`keep`).
 * A factor is gathered if it is cut in a dimension in which the product is not
 * cut. If that dimension is K, this file calls the product a sum product: it
 * sums over the gathered elements, as a gradient of weights sums over tokens.
 * Other products are forward products and data gradients. `keep = x`: a later
 * sum product reuses a factor that another product gathered. `keep = dy`: a
 * later product of another kind reuses a factor that a sum product gathered.
 * A product never reuses what a later one of the same step gathered, because
 * that would be a factor of the step before. The order of products in a step is
 * the order in which they occurred for the first time.
 *
 * In the agreement that each product makes anyway, the ranks tell each other
 * which factor is kept at each address. They reuse it if all have the same one.
 * A kept factor is dropped when sundog sees a write to its memory.
 *
 * Whole view: src/geometry/buffer.h records which elements are right where, so
 * nothing is kept here. */
#ifndef SDG_RULES_PRODUCT_KEPT_H
#define SDG_RULES_PRODUCT_KEPT_H

#include "rules/product/rule.h"

enum { SDG_PRODUCT_KEPTS = 2 }; /* one for each factor */

/* This rank's part of an agreement: for each factor the number of what is kept
 * at its address, 0 if nothing is. */
void sdg_product_kept_look(const sdg_product_t *product, int64_t *out);
/* After the agreement: for each factor a number, for a plan's key, of what all
 * ranks have kept; 0 if they have different ones or none. */
void sdg_product_kept_found(const sdg_call_t *call, uint64_t *out);

typedef struct sdg_product_keep {
  bool leaves;    /* the plan leaves the gathered factor for a later product */
  bool takes;     /* the plan uses what an earlier product has left */
  uint64_t token; /* hash of the factor, its placement and its need */
  uint64_t order; /* the kind of product, numbered from 1 as they occur */
} sdg_product_keep_t;
/* Decides whether a gathered factor is kept or reused; need[i] is the need of
 * the tagging's i-th rank. Depends only on what the ranks agreed on, so all
 * ranks decide alike. */
sdg_product_keep_t sdg_product_keep(const sdg_product_parts_t *m, int factor,
                                    const sdg_box_t *need);

#endif
