/* SPDX-License-Identifier: Apache-2.0 */
/* Results of attention to some keys, merged with those of attention to others.
 * Inside rules/graph only.
 *
 * Of a query, o are its results and l its statistics, log sum exp of scores.
 * With o_t and l_t of the keys that are added:
 *   m = max(l, l_t),  e = exp(l - m),  e_t = exp(l_t - m),
 *   o' = (e o + e_t o_t) / (e + e_t),  l' = m + log(e + e_t). */
#ifndef SDG_RULES_GRAPH_ATTENTION_MERGE_H
#define SDG_RULES_GRAPH_ATTENTION_MERGE_H

#include "rules/graph/attention/rows.h"

/* Slabs of (batch, heads, sequence, vector) in which the sequence is outermost,
 * so that some queries are one run of memory. */
typedef struct sdg_graph_merge {
  const sdg_call_t *call;
  sdg_type_t type;
  int part;  /* results of a step, in `type`, for the piece to write */
  int sum;   /* all results so far, in float */
  int total; /* statistics so far, in float: one number for each query */
  /* Statistics of a step; weights of what is there, and of what is added. */
  int step, kept, added;
} sdg_graph_merge_t;

/* Adds the memory for the queries of `box`, whose vectors are the results', and
 * the steps that begin with nothing. */
sdg_status_t sdg_graph_merge_open(sdg_plan_t *plan, const sdg_call_t *call,
                                  const sdg_box_t *box, sdg_type_t type,
                                  sdg_graph_merge_t *out) SDG_MUST_CHECK;
/* Merges the results of the queries of `box` in merge->part, whose statistics
 * are in slab `statistics`. *io_refusal: as of sdg_rows_add. */
sdg_status_t sdg_graph_merge_add(sdg_plan_t *plan,
                                 const sdg_graph_merge_t *merge,
                                 const sdg_box_t *box, int statistics,
                                 int *io_refusal) SDG_MUST_CHECK;

/* Merges the results of the ranks along plan->reduce_axes: after it each has
 * those of all. `box`: as opened; alike on these ranks. */
sdg_status_t sdg_graph_merge_ranks(sdg_plan_t *plan,
                                   const sdg_graph_merge_t *merge,
                                   const sdg_box_t *box,
                                   int *io_refusal) SDG_MUST_CHECK;

#endif
