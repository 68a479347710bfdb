/* SPDX-License-Identifier: Apache-2.0 */
/* Factors that the ranks gathered for one product and that a later product
 * reuses. Inside rules/ only.
 *
 * Shard view: nothing shows whether the program's kernels write a factor in
 * between, so the section must promise that they do not (`keep`). A factor is
 * gathered if it is cut in a dimension in which the product is not cut. That is
 * K (a sum product: it sums over what is gathered, as a gradient of weights
 * sums over tokens) or another dimension (forward, data gradient). `keep = x`:
 * a later sum product reuses what another kind of product gathered.
 * `keep = dy`: a later product of another kind reuses what a sum product
 * gathered. The reverse is never done: the next step would reuse what the step
 * before left in the same memory. The order of two products in a step is the
 * order in which they occurred for the first time.
 *
 * In the agreement that each product makes anyway, the ranks tell each other
 * what is left at their addresses. It is reused if all ranks have the same.
 * What sundog sees written is dropped.
 * Whole view: the buffer table tracks this. */
#ifndef SDG_RULES_PRODUCT_KEPT_H
#define SDG_RULES_PRODUCT_KEPT_H

#include "rules/product/rule.h"

enum { SDG_PRODUCT_KEPTS = 2 }; /* one for each factor */

/* This rank's part of an agreement: a number for what is left at each factor's
 * address. */
void sdg_product_kept_look(const sdg_product_t *product, int64_t *out);
/* After the agreement: a number for what all ranks have of each factor, for a
 * plan's key; 0: the ranks differ. */
void sdg_product_kept_found(const sdg_call_t *call, uint64_t *out);

typedef struct sdg_product_keep {
  bool leaves, takes;
  uint64_t token, order; /* order: of products that may keep, by their first
                          * occurrence, from 1 */
} sdg_product_keep_t;
/* Decides whether a gathered factor is kept or reused; need[i] is the need of
 * the tagging's i-th rank. Depends only on what the ranks agreed on, so all
 * ranks decide alike. */
sdg_product_keep_t sdg_product_keep(const sdg_product_parts_t *m, int factor,
                                    const sdg_box_t *need);

#endif
