/* SPDX-License-Identifier: Apache-2.0 */
/* Keys or values that come piece by piece, and the terms of their gradients
 * that go back. Inside rules/graph only.
 *
 * The ranks along the axes that cut the sequence count their pieces in a ring.
 * In step t a rank attends to the piece t places further than its own, which
 * comes from its owner while step t - 1 is computed. */
#ifndef SDG_RULES_GRAPH_ATTENTION_SIDE_H
#define SDG_RULES_GRAPH_ATTENTION_SIDE_H

#include "rules/graph/attention/attention.h"

/* Steps whose pieces are in memory at a time. */
enum { SDG_RESIDENT = 2 };

typedef struct sdg_graph_side {
  sdg_graph_attention_t *a;
  int side;       /* SDG_KEYS, SDG_VALUES */
  int role, back; /* SDG_COMPOSITE_K ...; of the gradients */
  int elem_bytes;
  sdg_box_t own;
  sdg_box_t *need;        /* of each rank of the tagging, in a step; owned */
  int room[SDG_RESIDENT]; /* scratch for a piece */
  /* Backward: */
  int like;               /* a slab whose order all terms
                             have */
  int part[SDG_RESIDENT]; /* scratch for a step's terms */
  sdg_graph_attention_view_t terms[SDG_RESIDENT]; /* slab -1: none */
  int landing;             /* scratch for another rank's terms */
  int sum;                 /* of all terms, in float */
  sdg_transfer_t transfer; /* of terms on their way */
  int *landed;             /* slab of each message; owned */
} sdg_graph_side_t;

int sdg_graph_ring_steps(const sdg_graph_attention_t *a);
/* The keys that `rank` attends to in a step. */
sdg_range_t sdg_graph_ring_keys(const sdg_graph_attention_t *a, int rank,
                                int step);

/* After the program's tensors have their slabs: adds the memory. */
sdg_status_t sdg_graph_side_open(sdg_graph_attention_t *a, int side,
                                 sdg_graph_side_t *out) SDG_MUST_CHECK;
void sdg_graph_side_fini(sdg_graph_side_t *side);

/* Where the piece of a step is, or will be. Adds the messages that bring it to
 * the plan's next exchange. */
sdg_status_t
sdg_graph_side_fetch(sdg_graph_side_t *side, int step,
                     sdg_graph_attention_view_t *out) SDG_MUST_CHECK;
/* Where a step writes its terms of the gradients of these keys. */
sdg_status_t
sdg_graph_side_terms(sdg_graph_side_t *side, int step,
                     const sdg_graph_attention_view_t *keys) SDG_MUST_CHECK;
/* Adds the messages with the terms of a step to the plan's next exchange; after
 * it, adds what came, and the rank's own terms, to side->sum. */
sdg_status_t sdg_graph_side_send(sdg_graph_side_t *side,
                                 int step) SDG_MUST_CHECK;
sdg_status_t sdg_graph_side_add(sdg_graph_side_t *side,
                                int step) SDG_MUST_CHECK;

#endif
