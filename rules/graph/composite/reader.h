/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of attention share: nodes that are taken because their
 * meaning is known, and tensors whose role is known. After the first thing that
 * is not understood, `lacks` says it, and nothing more is read. Inside
 * rules/graph/composite only. */
#ifndef SDG_RULES_GRAPH_COMPOSITE_READER_H
#define SDG_RULES_GRAPH_COMPOSITE_READER_H

#include "rules/graph/composite/composite.h"

enum { SDG_READER_TENSORS = 128, SDG_READER_NODES = 64 };

/* What a bound counts from: the top left, or the bottom right as numbers or as
 * lengths tell it. */
typedef enum sdg_reader_alignment {
  SDG_READER_TOP_LEFT,
  SDG_READER_BY_SIZES,
  SDG_READER_BY_LENGTHS,
} sdg_reader_alignment_t;

typedef struct sdg_reader {
  const sdg_graph_t *graph;
  sdg_composite_t *out;
  const char *lacks;
  int writer[SDG_READER_TENSORS]; /* node; -1: none */
  bool known[SDG_READER_TENSORS]; /* what this tensor in memory is */
  bool taken[SDG_READER_NODES];   /* what this node computes */
  int64_t scores[4], rows[4];     /* extents of a score each, and a row each */
  sdg_reader_alignment_t right_alignment, left_alignment;
} sdg_reader_t;

/* What a pointwise op computes in, and what it computes. */
typedef enum sdg_reader_value {
  SDG_READER_SCORE, /* f32 in f32 */
  SDG_READER_ANY,   /* any type in f32 */
  SDG_READER_INDEX, /* i32 or f32 */
  SDG_READER_TRUTH,
} sdg_reader_value_t;

/* NULL-safe: a node's operand, -1 if it has none. */
int sdg_reader_operand(const sdg_graph_node_t *node,
                       cudnnBackendAttributeName_t name);
#define SDG_OPERAND(node, name)                                                \
  sdg_reader_operand(node, CUDNN_ATTR_OPERATION_##name)

/* The node that writes the tensor if it is that op with plain parameters, and
 * nothing else was ever not understood; then it is taken. Else NULL. */
const sdg_graph_node_t *sdg_reader_pointwise(sdg_reader_t *reader, int tensor,
                                             cudnnPointwiseMode_t mode,
                                             sdg_reader_value_t value);
const sdg_graph_node_t *sdg_reader_reduction(sdg_reader_t *reader, int tensor,
                                             cudnnReduceTensorOp_t op);
const sdg_graph_node_t *sdg_reader_matmul(sdg_reader_t *reader, int tensor);
/* A RESHAPE that exchanges the last two dimensions. */
const sdg_graph_node_t *sdg_reader_turn(sdg_reader_t *reader, int tensor);

/* The node's other operand of X and B; -1 if `tensor` is neither. */
int sdg_reader_other(const sdg_graph_node_t *node, int tensor);

bool sdg_reader_has_mode(const sdg_graph_node_t *node,
                         cudnnPointwiseMode_t mode);
bool sdg_reader_is_score(const sdg_reader_t *reader, int tensor);
bool sdg_reader_is_row(const sdg_reader_t *reader, int tensor);
/* One number of the host. */
bool sdg_reader_is_number(const sdg_reader_t *reader, int tensor);
/* One that lies in memory, and that no node computes. */
bool sdg_reader_is_input(const sdg_reader_t *reader, int tensor);

/* The first text stays. Returns false. */
bool sdg_reader_lacks(sdg_reader_t *reader, const char *text);
/* The tensor is this role's; `turned`: with its last two dimensions exchanged.
 * False if the role has another tensor, or if it cannot be this one. */
bool sdg_reader_role(sdg_reader_t *reader, sdg_composite_role_t role,
                     int tensor, bool turned);
/* Adds a number to a list without repeating it. */
bool sdg_reader_number(sdg_reader_t *reader, int tensor, int *count, int *list);

/* What a product's override tensors must be: roles, or -1 for none. */
bool sdg_reader_overrides(sdg_reader_t *reader, const sdg_graph_node_t *product,
                          int m, int n, int k);

/* The mask that a select takes; it is written to reader->out. */
bool sdg_reader_mask(sdg_reader_t *reader, int mask);
/* After all masks: do they go together? */
bool sdg_reader_masks_close(sdg_reader_t *reader);
/* From scores as the softmax sees them back to the product of Q and K, which is
 * returned. `stats`: a subtraction of STATS is on the way. */
const sdg_graph_node_t *sdg_reader_scores(sdg_reader_t *reader, int scores,
                                          bool stats);

/* The number that scores are multiplied by. */
bool sdg_reader_scale(sdg_reader_t *reader, int number);

bool sdg_reader_forward(sdg_reader_t *reader);
bool sdg_reader_backward(sdg_reader_t *reader);
bool sdg_reader_unified(sdg_reader_t *reader);

#endif
