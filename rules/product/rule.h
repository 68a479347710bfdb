/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, split: which part of one each rank multiplies, where
 * its matrices are, and the vendor's calls of a plan. Inside rules/ only. */
#ifndef SDG_RULES_PRODUCT_RULE_H
#define SDG_RULES_PRODUCT_RULE_H

#include "rules/place/op.h"
#include "rules/vendor/product.h"

/* ---- rules/product/place.c: who has what ---- */

/* A product with the placements that follow from a tagging. */
typedef struct sdg_product_parts {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  sdg_product_t product;
  sdg_axes_t sum_axes; /* over which terms of the sums are spread and brought
                          together; 0: none */
  sdg_placement_t matrix[SDG_PRODUCT_MATRICES]; /* before the call; of the
                                                   result after it */
  /* Of the result: who makes which sums. The same as the result's where there
   * are none to make. */
  sdg_placement_t pieces;
  bool stays; /* sums stay in these */
} sdg_product_parts_t;

sdg_status_t sdg_product_open(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_product_parts_t *out) SDG_MUST_CHECK;
void sdg_product_fini(sdg_product_parts_t *m);

/* What a rank of the job multiplies: indices M N K BATCH. */
sdg_box_t sdg_product_own_box(const sdg_product_parts_t *m, int rank);
/* The part of a matrix that this takes. */
sdg_box_t sdg_product_need(const sdg_product_parts_t *m, int matrix, int rank);
/* Which sums a rank makes, as a part of the result; and of what old values are
 * read from. */
sdg_box_t sdg_product_piece(const sdg_product_parts_t *m, int rank);
sdg_box_t sdg_product_old(const sdg_product_parts_t *m, int rank);
/* Whether two ranks have terms of the same sums. */
bool sdg_product_partners(const sdg_product_parts_t *m, int a, int b);

/* ---- rules/product/terms.c: shard view, the same by the terms ---- */

/* Where a product is cut in M or N, and both factors in K alike, each rank can
 * multiply its terms of all sums, and the ranks bring these together, rather
 * than the factors, of which those that are `taken` are there already:
 * *out_turned says that this moves fewer bytes, and then `m` is that. `tagging`
 * is the caller's, for as long as m. By what the ranks agreed on: the same on
 * all of them. */
sdg_status_t sdg_product_turn(sdg_product_parts_t *m, const bool *taken,
                              sdg_tagging_t *tagging,
                              bool *out_turned) SDG_MUST_CHECK;
/* Whether every rank with a piece of the sums can make what follows them. */
bool sdg_product_can_follow(const sdg_product_parts_t *m,
                            const sdg_part_t *terms);

/* ---- rules/product/check.c: shard view, what memory says of that ---- */

/* An op's `sizes`: of each matrix, how much room there is in memory from its
 * address on, and how its elements lie there; of each factor what is left there
 * (rules/product/kept.h). */
int sdg_product_rooms(const sdg_call_t *call, int64_t *out);
/* SDG_E_PRODUCT_MATRIX where a factor may lie otherwise than the section
 * implies, does not fit its memory, or the result is larger than its call
 * states; SDG_E_PRODUCT_PARTS where parts are assumed and memory does not show
 * them. By what the ranks agreed on: the same on all of them. */
sdg_status_t sdg_product_check(const sdg_product_parts_t *m) SDG_MUST_CHECK;

/* ---- rules/product/run.c: the vendor's calls ---- */

typedef enum sdg_beta {
  SDG_BETA_PROGRAM,
  SDG_BETA_ZERO,
  SDG_BETA_ONE,
} sdg_beta_t;

typedef struct sdg_multiply {
  sdg_box_t box;              /* of the product */
  int factor[2];              /* slabs */
  int source, result, addend; /* slabs; -1: none */
  bool widened; /* the result is in the type of sums, sdg_product_sum_type() */
  sdg_beta_t beta; /* of the source */
  bool follows;    /* with the program's epilogue */
} sdg_multiply_t;

/* Slab `to` = slab `from`, of sums, + beta times slab `source`, in the part of
 * the result that belongs to a box of the product. Source may be `to`. */
typedef struct sdg_addition {
  sdg_box_t box;
  int from, source, to;
  bool source_widened, to_widened;
  sdg_beta_t beta;
} sdg_addition_t;

/* The cudaDataType_t in which the ranks' terms are added. */
int sdg_product_sum_type(const sdg_product_t *product);

/* Gives an empty plan its state; then sub-calls in their order. */
sdg_status_t
sdg_product_calls_open(sdg_plan_t *plan,
                       const sdg_product_t *product) SDG_MUST_CHECK;
sdg_status_t
sdg_product_multiply(sdg_plan_t *plan,
                     const sdg_multiply_t *multiply) SDG_MUST_CHECK;
sdg_status_t sdg_product_add(sdg_plan_t *plan,
                             const sdg_addition_t *add) SDG_MUST_CHECK;

/* ---- plans ---- */

/* Adds the calls and messages of sums that are spread over ranks, which leave
 * the pieces in slab `result`, and unless they stay in pieces all of them. */
sdg_status_t
sdg_product_sums(sdg_plan_t *plan, const sdg_product_parts_t *m,
                 const int slab[SDG_PRODUCT_MATRICES]) SDG_MUST_CHECK;

sdg_status_t sdg_product_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* Shard view: fills in where the matrices are. */
sdg_status_t sdg_product_place(const sdg_call_t *call,
                               sdg_tagging_t *tagging) SDG_MUST_CHECK;
sdg_status_t sdg_product_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
