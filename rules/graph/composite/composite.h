/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in an operation graph: as the op SDPA_FWD, or as the products,
 * pointwise ops and reductions that cudnn-frontend states it by. Found by what
 * the nodes mean, whatever their order is. Pure functions of the graph. */
#ifndef SDG_RULES_GRAPH_COMPOSITE_H
#define SDG_RULES_GRAPH_COMPOSITE_H

#include "src/graph/graph.h"

/* Tensors with device memory, as (batch, heads, rows, columns). */
typedef enum sdg_composite_role {
  SDG_COMPOSITE_Q,
  SDG_COMPOSITE_K,
  SDG_COMPOSITE_V,
  SDG_COMPOSITE_O,
  SDG_COMPOSITE_STATS,    /* (b, h, s_q, 1), f32: maximum + log of the sum */
  SDG_COMPOSITE_BIAS,     /* added to the scaled scores; extents of these, 1, or
                           * more: then the first ones count */
  SDG_COMPOSITE_LENGTH_Q, /* (b, 1, 1, 1), i32; rows from there on are not */
  SDG_COMPOSITE_LENGTH_KV, /* seen, and neither are columns */
  SDG_COMPOSITE_DO,
  SDG_COMPOSITE_DQ,
  SDG_COMPOSITE_DK,
  SDG_COMPOSITE_DV,
  /* What the program gives memory to, without a meaning to it after the
   * execution; all f32 but the last two. */
  SDG_COMPOSITE_DELTA,   /* sums of O * DO */
  SDG_COMPOSITE_DQ_SUM,  /* where DQ is added up; zeros before the execution */
  SDG_COMPOSITE_DK_FULL, /* DK and DV of all heads, in front of their sums over
                          * groups, in memory; */
  SDG_COMPOSITE_DV_FULL, /* -1 if that is virtual, or if there are no groups */
  SDG_COMPOSITE_ROLES,
} sdg_composite_role_t;

/* By-value tensors whose numbers attention fixes. */
enum { SDG_COMPOSITE_NUMBERS_MAX = 4 };

/* A query sees a key iff row + right bound >= column, and column + left bound >
 * row. `bottom_right`: row + keys - queries stands for row. */
typedef struct sdg_composite {
  bool backward;
  bool unified;                    /* the op SDPA_FWD */
  int tensor[SDG_COMPOSITE_ROLES]; /* of the graph; -1: none */
  /* The graph has its last two dimensions exchanged: K as (b, h, d, s). */
  bool turned[SDG_COMPOSITE_ROLES];
  int scale; /* by-value tensor that scores are multiplied by; -1: none, 1.0 */
  bool right, left, bottom_right;
  /* `bottom_right` is about the numbers of each sequence, which are in
   * LENGTH_KV and LENGTH_Q. */
  bool by_lengths;
  /* The graph's left bound counts from the top left, although its right bound
   * counts from the bottom right: cudnn-frontend states keys and queries in one
   * mask and subtracts them from the other one's bound. */
  bool left_folded;
  int right_bound, left_bound; /* by-value tensors; -1: 0 */
  /* By-value tensors of `bottom_right` without `by_lengths`, else -1; as often
   * as the masks have them. */
  int sizes, size_q[SDG_COMPOSITE_NUMBERS_MAX],
      size_kv[SDG_COMPOSITE_NUMBERS_MAX];
  /* By-value tensors that scores which are not seen become: -inf, or the lowest
   * number; and those that must be 1. */
  int fills, fill[SDG_COMPOSITE_NUMBERS_MAX];
  int ones, one[SDG_COMPOSITE_NUMBERS_MAX];
} sdg_composite_t;

/* NULL, and *out is filled; or what the graph has that is not understood, for
 * people: "dropout". *out_is: whether the graph is attention at all; if it is
 * none, the result is not NULL either. */
const char *sdg_composite_read(const sdg_graph_t *graph, bool *out_is,
                               sdg_composite_t *out);

/* Extents, in elements: those of the graph's tensors. */
typedef struct sdg_composite_extents {
  int64_t batch, heads, k_heads, v_heads, queries, keys, depth, v_depth;
} sdg_composite_extents_t;
sdg_composite_extents_t sdg_composite_extents(const sdg_composite_t *composite,
                                              const sdg_graph_t *graph);

/* The numbers of one execution. */
typedef struct sdg_composite_band {
  bool right, left;
  /* Of rows that are shifted if `bottom_right`; never those of the graph if it
   * is left_folded. A left bound alone is top left, whatever the program meant:
   * then it may be below 1. */
  int64_t right_bound, left_bound;
  bool bottom_right, by_lengths;
  /* Of the graph: rows of Q and of K. */
  int64_t size_q, size_kv;
  double scale; /* 1 without one */
  /* What scores that are not seen become; -inf without a mask. */
  float fill;
} sdg_composite_band_t;

/* pointer[t]: host memory of by-value tensor t of the graph, of any type. False
 * if a number is missing, or is not what attention has: then the execution is
 * none of attention. */
bool sdg_composite_numbers(const sdg_composite_t *composite,
                           const sdg_graph_t *graph, void *const *pointer,
                           sdg_composite_band_t *out);

#endif
