/* SPDX-License-Identifier: Apache-2.0 */
/* The strips of "repair": the results that the program's own execution gets
 * wrong. Strips of equal extents are computed by one piece, as images of one
 * tensor. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_STRIPS_H
#define SDG_RULES_GRAPH_STRIPS_H

#include "rules/graph/maker.h"

enum { SDG_GRAPH_STRIPS_MAX = 2 * SDG_DIMS_MAX };

/* An input on one level of a strip, which is assembled in scratch. */
typedef struct sdg_graph_read {
  int operand;
  sdg_graph_level_t level;
  sdg_box_t box;
  int slab;
} sdg_graph_read_t;

typedef struct sdg_graph_strip {
  sdg_graph_boxes_t boxes;
  sdg_graph_read_t read[2 * SDG_OPERANDS_MAX];
  int reads;
  int written[SDG_OPERANDS_MAX]; /* slab of each result */
  int first; /* the first strip of its stack, which one piece computes */
} sdg_graph_strip_t;

/* What a rank of the job reads for these boxes that is not all it has of an
 * operand; that is read where it is. Fills io_strip->read but for slabs. */
void sdg_graph_reads_find(const sdg_graph_maker_t *m, int rank,
                          sdg_graph_strip_t *io_strip);
/* The strips of a rank of the job, SDG_GRAPH_STRIPS_MAX at most, but for slabs.
 * False if the rank's own execution gets nothing right. */
bool sdg_graph_strips_find(const sdg_graph_maker_t *m, int rank,
                           sdg_graph_strip_t *out, int *out_count);
/* How many strips are in the stack that begins with strip `first`; 0: none
 * begins there. */
int sdg_graph_stack_size(const sdg_graph_strip_t *strip, int strips, int first);

/* Adds scratch for m->strip, and plans the pieces m->stack, each at the first
 * strip of its stack. *out_refusal: cuDNN's status if no engine takes one. */
sdg_status_t sdg_graph_strips_open(sdg_graph_maker_t *m,
                                   int *out_refusal) SDG_MUST_CHECK;

#endif
