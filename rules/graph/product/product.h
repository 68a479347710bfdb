/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with a product of matrices, C = A B: A [.., M, K], B [.., K, N],
 * C [.., M, N]. The first dimension of three or more is BATCH; those between
 * have no name, and are not split. Inside rules/graph only.
 *
 * With M, N and BATCH in pieces every rank computes its own part of C, and
 * nothing moves. With K in pieces each rank has terms of all sums: it
 * multiplies, the ranks add, and what stands behind the product follows on the
 * sums (shard view). */
#ifndef SDG_RULES_GRAPH_PRODUCT_PRODUCT_H
#define SDG_RULES_GRAPH_PRODUCT_PRODUCT_H

#include "rules/graph/maker.h"
#include "rules/vendor/product.h"

/* What the plan of such a graph has besides the maker. */
typedef struct sdg_graph_product {
  sdg_axes_t
      sum_axes;    /* over which the ranks add their terms; 0: they do not */
  sdg_type_t type; /* of the terms */
  /* Slab of this rank's terms, and then of the sums: C's own, or scratch; -1:
   * the ranks do not add. */
  int terms;
  int epilogue; /* the sub-call behind the sums; -1: there is none */
} sdg_graph_product_t;

/* ---- place.c: who has what ---- */

/* The dimension of the product (SDG_M ...) that dimension d of a tensor on a
 * level is; -1: it has no name. And its name, for people. */
int sdg_graph_product_dim(const sdg_graph_pattern_t *pattern,
                          sdg_graph_level_t level, int d);
const char *sdg_graph_product_name(const sdg_graph_pattern_t *pattern,
                                   sdg_graph_level_t level, int d);
/* Where the product is among the call's operands. */
static inline int sdg_graph_product_index(const sdg_graph_pattern_t *pattern) {
  return pattern->operands;
}
/* See place() of sdg_op_shard_t: places the tensors by their extents beside
 * those of the product. SDG_E_OPERANDS_DIFFER if the extents of a tensor are
 * neither pieces nor 1 on all ranks; SDG_E_NO_RULE if the section says that a
 * matrix is cut otherwise than the product. */
sdg_status_t sdg_graph_product_place(const sdg_call_t *call,
                                     sdg_tagging_t *tagging) SDG_MUST_CHECK;
/* See common() of sdg_op_shard_t. */
sdg_common_t sdg_graph_product_common(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging, int index);
/* The placement of C, which may have no memory. The caller frees it. */
sdg_status_t sdg_graph_product_result(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_placement_t *out) SDG_MUST_CHECK;
/* Whole view: whether the ranks can share the product; the boxes of a rank. */
bool sdg_graph_product_can(const sdg_call_t *call,
                           const sdg_tagging_t *tagging);
sdg_graph_boxes_t sdg_graph_product_boxes(const sdg_graph_pattern_t *pattern,
                                          const sdg_tagging_t *tagging,
                                          int rank);

/* ---- extents.c: what the piece's tensors are ---- */

/* As sdg_graph_extents_fill and sdg_graph_slot_find. */
sdg_status_t
sdg_graph_product_extents_fill(sdg_graph_maker_t *m) SDG_MUST_CHECK;
int sdg_graph_product_slot_find(const sdg_graph_maker_t *m, int tensor,
                                sdg_graph_level_t level, sdg_box_t *out_box);

/* ---- plan.c, share.c ---- */

/* See plan() and share() of sdg_op_t. */
sdg_op_plan_t sdg_graph_product_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_graph_product_share SDG_MUST_CHECK;

#endif
