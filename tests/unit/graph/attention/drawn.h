/* SPDX-License-Identifier: Apache-2.0 */
/* Random pieces of attention, and the float64 loops that judge them. */
#ifndef SDG_TESTS_UNIT_GRAPH_ATTENTION_DRAWN_H
#define SDG_TESTS_UNIT_GRAPH_ATTENTION_DRAWN_H

#include "rules/graph/attention/piece.h"

/* What a piece computes with. All arrays are packed as (batch, heads, rows,
 * columns), whatever the layout of the shape's tensors is; owned. Values are
 * those that the tensor's type has. */
typedef struct drawn {
  sdg_attention_shape_t shape;
  double scale;
  /* Added to a row's number before bounds are; of each sequence. */
  int64_t shift[8];
  double *value[SDG_COMPOSITE_ROLES];
} drawn_t;

/* The extents of a role's tensor. */
void drawn_extents(const sdg_attention_shape_t *shape, int role,
                   int64_t out[4]);
int64_t drawn_elements(const sdg_attention_shape_t *shape, int role);

/* Draws a shape and its inputs; backward, O and STATS are those of forward. */
void drawn_create(drawn_t *drawn, bool backward);
void drawn_destroy(drawn_t *drawn);

/* The number that a type has nearest to this one. */
double drawn_round(cudnnDataType_t type, double value);

/* What the piece must compute, into arrays of the roles that it writes. Rows
 * that see no key are NaN: engines differ. */
void drawn_solve(const drawn_t *drawn, double *out[SDG_COMPOSITE_ROLES]);

/* One line about the shape. */
const char *drawn_text(const sdg_attention_shape_t *shape, char text[256]);

#endif
