/* SPDX-License-Identifier: Apache-2.0 */
/* Split products of matrices: which part each rank multiplies, where its
 * matrices are, and the vendor's calls of a plan. Inside rules/ only. */
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
  sdg_axes_t sum_axes; /* axes along which ranks have different terms of the
                        * sums and reduce them; 0: none */
  sdg_placement_t matrix[SDG_PRODUCT_MATRICES]; /* placement before the call;
                                                 * for the result after it */
  /* Which rank computes which sums of the result. Equal to the result's
   * placement if no sums are split over ranks. */
  sdg_placement_t pieces;
  bool stays; /* the sums remain in pieces */
} sdg_product_parts_t;

/* Reads the product and derives all placements. The caller calls
 * sdg_product_fini after a success; `out` borrows call and tagging.
 * SDG_E_SPLIT_DIMENSION if `sum` names only some of the axes that split K, or
 * if a matrix is split in a dimension that it does not have. */
sdg_status_t sdg_product_open(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_product_parts_t *out) SDG_MUST_CHECK;
void sdg_product_fini(sdg_product_parts_t *m);

/* The part of the product that a rank of the job multiplies: indices M N K
 * BATCH. */
sdg_box_t sdg_product_own_box(const sdg_product_parts_t *m, int rank);
/* The part of a matrix that the rank needs for its part of the product; for
 * SDG_RESULT, the part of the result for which it has terms. */
sdg_box_t sdg_product_need(const sdg_product_parts_t *m, int matrix, int rank);
/* _piece: the sums that a rank computes, as a part of the result. _old: the
 * part whose old values it reads. */
sdg_box_t sdg_product_piece(const sdg_product_parts_t *m, int rank);
sdg_box_t sdg_product_old(const sdg_product_parts_t *m, int rank);
/* Whether two ranks have terms of the same sums. */
bool sdg_product_partners(const sdg_product_parts_t *m, int a, int b);

/* ---- rules/product/terms.c: shard view, a cut in K instead ---- */

/* An alternative for a product that is cut in M or N while both factors are cut
 * alike in K: each rank multiplies its terms of all sums and the ranks reduce
 * the sums, instead of gathering the factors. Factors that are `taken` need no
 * gathering. *out_sums is true if this moves fewer bytes; `m` then describes
 * the alternative. `tagging` is the caller's and must live as long as m.
 * Depends only on what the ranks agreed on, so all ranks decide alike. */
sdg_status_t sdg_product_prefer_sums(sdg_product_parts_t *m, const bool *taken,
                                     sdg_tagging_t *tagging,
                                     bool *out_sums) SDG_MUST_CHECK;
/* Whether every rank with a piece of the sums can compute the epilogue that
 * follows them. */
bool sdg_product_can_follow(const sdg_product_parts_t *m,
                            const sdg_part_t *terms);

/* ---- rules/product/check.c: shard view, whether memory agrees ---- */

/* Fills an op's `sizes`: for each matrix, how many elements fit in memory from
 * its address on, and its strides; for each factor, what is kept there
 * (rules/product/kept.h). */
int sdg_product_rooms(const sdg_call_t *call, int64_t *out);
/* SDG_E_PRODUCT_MATRIX if a factor may be placed otherwise than the section
 * implies, if it does not fit its memory, or if the result is larger than its
 * call states. SDG_E_PRODUCT_PARTS if parts are assumed and memory does not
 * confirm them. Depends only on what the ranks agreed on, so all ranks decide
 * alike. */
sdg_status_t sdg_product_check(const sdg_product_parts_t *m) SDG_MUST_CHECK;

/* ---- rules/product/run.c: the vendor's calls ---- */

typedef enum sdg_beta {
  SDG_BETA_PROGRAM,
  SDG_BETA_ZERO,
  SDG_BETA_ONE,
} sdg_beta_t;

typedef struct sdg_product_multiply_args {
  sdg_box_t box;              /* of the product */
  int factor[2];              /* slabs */
  int source, result, addend; /* slabs; -1: none */
  bool widened;    /* the result has the type of sums, sdg_product_sum_type() */
  sdg_beta_t beta; /* of the source */
  bool follows;    /* applies the program's epilogue */
} sdg_product_multiply_args_t;

/* Slab `to` = slab `from` (sums) + beta * slab `source`, in the part of the
 * result that belongs to a box of the product. `source` may be `to`. */
typedef struct sdg_product_addition {
  sdg_box_t box;
  int from, source, to;
  bool source_widened, to_widened;
  sdg_beta_t beta;
} sdg_product_addition_t;

/* The cudaDataType_t that ranks use to add their terms. */
int sdg_product_sum_type(const sdg_product_t *product);

/* Sets the state of an empty plan. The functions below then add sub-calls in
 * the order in which they run. */
sdg_status_t
sdg_product_calls_open(sdg_plan_t *plan,
                       const sdg_product_t *product) SDG_MUST_CHECK;
sdg_status_t sdg_product_multiply(sdg_plan_t *plan,
                                  const sdg_product_multiply_args_t *multiply)
    SDG_MUST_CHECK;
sdg_status_t sdg_product_add(sdg_plan_t *plan,
                             const sdg_product_addition_t *add) SDG_MUST_CHECK;

/* ---- plans ---- */

/* Adds the calls and messages for a product whose K is split over ranks.
 * slab[SDG_RESULT] then has this rank's piece of the result if m->stays is
 * true, otherwise all pieces. slab: the matrices' slabs, -1: no such matrix. */
sdg_status_t
sdg_product_sums(sdg_plan_t *plan, const sdg_product_parts_t *m,
                 const int slab[SDG_PRODUCT_MATRICES]) SDG_MUST_CHECK;

/* See plan() of sdg_op_t. */
sdg_op_plan_t sdg_product_plan SDG_MUST_CHECK;
/* Shard view: fills in the placements of the matrices. */
sdg_status_t sdg_product_place(const sdg_call_t *call,
                               sdg_tagging_t *tagging) SDG_MUST_CHECK;
/* See share() of sdg_op_t. */
sdg_op_plan_t sdg_product_share SDG_MUST_CHECK;

#endif
