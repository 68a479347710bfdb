/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of attention (rules/graph/composite): what one call is, where its
 * tensors are, and which keys its queries see. Inside rules/graph only.
 *
 * Tensors are (batch, heads, sequence, vector). Queries, outputs, statistics
 * and their gradients are cut alike, and stay; keys and values may be cut
 * otherwise, and travel. */
#ifndef SDG_RULES_GRAPH_ATTENTION_H
#define SDG_RULES_GRAPH_ATTENTION_H

#include "rules/graph/attention/piece.h"
#include "rules/graph/attention/sight.h"
#include "rules/place/op.h"

enum {
  SDG_HEADED_BATCH,
  SDG_HEADED_HEADS,
  SDG_HEADED_SEQ,
  SDG_HEADED_VECTOR,
  SDG_HEADED_DIMS
};

/* Keys and values. */
enum { SDG_KEYS, SDG_VALUES, SDG_SIDES };

typedef struct sdg_graph_attention {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  const sdg_graph_t *graph;
  const sdg_composite_t *composite;
  sdg_composite_band_t band; /* as this rank's program states it */
  sdg_sight_t sight;         /* of the whole */
  /* The call's operand of each role; -1: none. */
  int operand[SDG_COMPOSITE_DELTA];
  const sdg_placement_t *queries, *side[SDG_SIDES];
  bool sequences; /* the sequence of queries or of keys is in pieces */
  bool whole;     /* view: every rank has memory for all of every tensor, and
                     what its piece reads is there */
  /* Every rank attends to its own keys, and the ranks' results are merged. */
  bool merges;
  /* Where queries are computed: where they are, or, in "heads", each rank has
   * whole sequences of some heads, by `by_heads`. */
  const sdg_placement_t *work;
  sdg_placement_t by_heads; /* owned */
  sdg_plan_t *plan;
  int slab[SDG_COMPOSITE_DELTA]; /* of the program's tensors; -1: none */
  int lengths[2]; /* slabs: of the whole sequences of queries and keys */
  int refusal;    /* cuDNN's status if it has no engine for a part; 0 */
} sdg_graph_attention_t;

/* ---- check.c: what the call is, and whether it can be split ---- */

/* Says which operands there are, and where; the placements are those of the
 * tagging, which has to outlive `out`. */
void sdg_graph_attention_init(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_graph_attention_t *out);
/* Reads which keys the queries see. NULL, or why its numbers are not
 * understood, for people. */
const char *sdg_graph_attention_band(sdg_graph_attention_t *a);
/* Why no piece can begin at the first query that sees a key, and at the first
 * key that is seen; NULL: it can. */
const char *
sdg_graph_attention_beginnings_obstacle(const sdg_graph_attention_t *a);
/* Shard view: all but the plan. SDG_E_ATTENTION, SDG_E_ATTENTION_WINDOW,
 * SDG_E_OPERANDS_DIFFER, SDG_E_ONE_EACH, the same on all ranks. */
sdg_status_t
sdg_graph_attention_open(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         sdg_graph_attention_t *out) SDG_MUST_CHECK;
void sdg_graph_attention_fini(sdg_graph_attention_t *a);

/* ---- place.c: where its tensors are, and what its queries see ---- */

/* The call's operand of a role (SDG_COMPOSITE_Q ...); -1: none. */
int sdg_graph_attention_operand(const sdg_call_t *call, int role);
/* The role whose placement another has: queries, keys or values. */
int sdg_graph_attention_like_of(int role);
/* Whether it is a sequence of vectors, which a section matches. */
bool sdg_graph_attention_is_sequence(int role);
/* The box of queries that a rank computes, and of the keys or values that these
 * see, out of the keys in `among`. Heads: those of the queries' groups. */
sdg_box_t sdg_graph_attention_rows(const sdg_graph_attention_t *a, int rank);
sdg_box_t sdg_graph_attention_need(const sdg_graph_attention_t *a, int side,
                                   int rank, sdg_range_t among);
/* What it is about keys that are seen out of `among`: bounds and ranges. */
sdg_sight_block_t sdg_graph_attention_block(const sdg_graph_attention_t *a,
                                            int rank, sdg_range_t among);

/* A placement of vectors of this length, otherwise cut as `like`. */
sdg_status_t sdg_graph_attention_like(const sdg_mesh_t *mesh,
                                      const sdg_placement_t *like,
                                      int64_t vector,
                                      sdg_placement_t *out) SDG_MUST_CHECK;

/* The extent that the program's operand has on the group's r-th rank. */
int64_t sdg_graph_attention_extent(const sdg_operand_t *operand, int r, int d);

/* See place(), colocate() and common() of sdg_op_t. */
sdg_status_t sdg_graph_attention_place(const sdg_call_t *call,
                                       sdg_tagging_t *tagging) SDG_MUST_CHECK;
struct sdg_colocation;
sdg_status_t sdg_graph_attention_colocate(const sdg_call_t *call,
                                          struct sdg_colocation *colocation,
                                          int lead) SDG_MUST_CHECK;
sdg_common_t sdg_graph_attention_common(const sdg_call_t *call,
                                        const sdg_tagging_t *tagging,
                                        int index);

/* ---- beside/bias.c: what is added to scores ---- */

/* Finds its placement from its extents on all ranks: in each dimension those of
 * the rank's scores, those of all scores, or 1. SDG_E_OPERANDS_DIFFER. */
sdg_status_t sdg_graph_bias_place(const sdg_call_t *call,
                                  sdg_tagging_t *tagging) SDG_MUST_CHECK;
/* Whether it has nothing but what the program's own execution reads, on every
 * rank. */
bool sdg_graph_bias_is_own(const sdg_call_t *call);
/* Why it does not say what is added to the scores of all queries and keys;
 * NULL: it does, or nothing is added. */
const char *sdg_graph_bias_obstacle(const sdg_graph_attention_t *a);
/* The box that a rank's queries need for the keys that they see out of
 * `among`. */
sdg_box_t sdg_graph_bias_need(const sdg_graph_attention_t *a, int rank,
                              sdg_range_t among);

/* ---- beside/lengths.c: lengths of sequences in device memory ---- */

bool sdg_graph_lengths_there(const sdg_graph_attention_t *a);
/* Why those of sequences in pieces are not understood; NULL: they are, or there
 * are none. */
const char *sdg_graph_lengths_obstacle(const sdg_graph_attention_t *a);
/* The axes along which they may differ between ranks, but for the batch. */
sdg_axes_t sdg_graph_lengths_differ(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging);
/* After the program's tensors have their slabs: adds the steps that find the
 * lengths of whole sequences, a->lengths. */
sdg_status_t sdg_graph_lengths_open(sdg_graph_attention_t *a) SDG_MUST_CHECK;

/* ---- compute.c: the sub-call of one piece ---- */

/* Where a piece's tensor is: a box of a slab; slab -1: the piece has none. */
typedef struct sdg_graph_attention_view {
  int slab;
  sdg_box_t box;
  cudnnDataType_t type;
} sdg_graph_attention_view_t;

/* Adds the slabs of the program's tensors, a->slab; out[role]: all that the
 * rank has of each. */
sdg_status_t
sdg_graph_attention_operands(sdg_graph_attention_t *a,
                             sdg_graph_attention_view_t *out) SDG_MUST_CHECK;
/* Adds a piece on these tensors, and the step that runs it; a->refusal if no
 * engine takes it. The views of all roles but those of Q, O, DO, DQ and STATS
 * are in global coordinates of keys. */
sdg_status_t
sdg_graph_attention_add(sdg_graph_attention_t *a,
                        const sdg_sight_block_t *block,
                        const sdg_graph_attention_view_t *view) SDG_MUST_CHECK;

/* Adds the steps that find a block's lengths, and says where they are. */
sdg_status_t
sdg_graph_lengths_block(sdg_graph_attention_t *a,
                        const sdg_sight_block_t *block,
                        sdg_graph_attention_view_t *io_view) SDG_MUST_CHECK;

/* ---- heads.c, fetch.c, ring.c: the strategies ---- */

/* Why ranks cannot compute whole sequences of some heads; NULL: they can. */
const char *sdg_graph_attention_heads_obstacle(const sdg_graph_attention_t *a);
/* Makes a->by_heads the place of the work. Every rank has heads that are next
 * to each other: whole groups that share keys and values, or some of one. */
sdg_status_t
sdg_graph_attention_by_heads(sdg_graph_attention_t *a) SDG_MUST_CHECK;
/* Even sizes of `pieces` pieces of heads, in whole groups or parts of one. */
void sdg_graph_attention_heads_sizes(int64_t heads, int64_t groups, int pieces,
                                     int64_t *out);
/* All that a rank's piece reads is fetched at once. */
sdg_status_t sdg_graph_attention_fetch(sdg_graph_attention_t *a) SDG_MUST_CHECK;
/* Keys and values come piece by piece, and the results of the pieces are
 * merged. Queries and keys are cut over the same axes. */
sdg_status_t sdg_graph_attention_ring(sdg_graph_attention_t *a) SDG_MUST_CHECK;
/* The same in one step, for queries that are whole on every rank: each attends
 * to its own keys, and the ranks' results are merged. */
sdg_status_t sdg_graph_attention_merge(sdg_graph_attention_t *a) SDG_MUST_CHECK;

/* ---- plan.c, share.c ---- */

/* See plan() and share() of sdg_op_t. */
sdg_op_plan_t sdg_graph_attention_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_graph_attention_share SDG_MUST_CHECK;

#endif
