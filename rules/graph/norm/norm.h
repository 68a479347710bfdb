/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with a normalisation, or its gradient. Inside rules/graph only.
 *
 * Shard view:
 * Where x is not normalised over a split dimension, every rank executes its own
 * graph on its pieces; gradients of scale and bias, of which each rank has a
 * part, are summed. Batch and instance norms over split dimensions take
 * statistics of all ranks' elements: rules/norm computes these, as for the
 * legacy API, and what stands around the norm is a graph of its own. */
#ifndef SDG_RULES_GRAPH_NORM_NORM_H
#define SDG_RULES_GRAPH_NORM_NORM_H

#include "rules/graph/chain/norm.h"
#include "rules/graph/maker.h"

/* What a norm over split dimensions reads and writes, each of which ops around
 * it may compute, or read. */
typedef enum sdg_graph_norm_inner {
  SDG_GRAPH_NORM_OF_X,
  SDG_GRAPH_NORM_OF_DY,
  SDG_GRAPH_NORM_RESULT, /* y, dx */
  SDG_GRAPH_NORM_INNERS,
} sdg_graph_norm_inner_t;

/* A norm on split tensors. */
typedef struct sdg_graph_norm {
  const sdg_graph_node_t *node;
  sdg_graph_norm_kind_t kind;
  const sdg_placement_t *x; /* of the operand that leads */
  /* Of each dimension in which x is in pieces: */
  bool cut[SDG_DIMS_MAX];    /* it is */
  bool shared[SDG_DIMS_MAX]; /* elements along it share a mean */
  bool scaled[SDG_DIMS_MAX]; /* each has a scale of its own */
  bool merges;               /* ranks have elements that share a mean */
  /* If it merges: tensor of the graph (-1: none), and the slab that has it, an
   * operand's or scratch. */
  int tensor[SDG_GRAPH_NORM_INNERS], slab[SDG_GRAPH_NORM_INNERS];
} sdg_graph_norm_t;

/* ---- place.c ---- */

/* SDG_E_OPERANDS_DIFFER if a tensor is not in pieces as x is, SDG_E_ONE_EACH if
 * nothing tells which dimensions x is normalised over, SDG_E_SPLIT_DIMENSION
 * for a layer or RMS norm over a dimension that is split. */
sdg_status_t sdg_graph_norm_init(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_graph_norm_t *out) SDG_MUST_CHECK;
/* See common() of sdg_op_shard_t. */
sdg_common_t sdg_graph_norm_common(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int index);
/* The same without a check: by the placement of x, and by the mode. */
void sdg_graph_norm_open(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         sdg_graph_norm_t *out);
/* Whether x is normalised over dimension d, which is cut. */
bool sdg_graph_norm_over(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         const sdg_graph_norm_t *norm, int d);
/* The axes along which ranks have parts of a gradient of scale or bias. */
sdg_axes_t sdg_graph_norm_part_axes(const sdg_graph_norm_t *norm);

/* ---- extents.c: pieces of what stands around a norm that merges ---- */

/* As sdg_graph_extents_fill and sdg_graph_slot_find. */
sdg_status_t sdg_graph_norm_extents_fill(sdg_graph_maker_t *m) SDG_MUST_CHECK;
int sdg_graph_norm_slot_find(const sdg_graph_maker_t *m, int tensor,
                             sdg_graph_level_t level, sdg_box_t *out_box);

/* ---- merge.c, steps.c ---- */

/* Makes m->plan of a norm that merges. SDG_E_NO_RULE for types or layouts that
 * the vendor's normalisations do not take. */
sdg_status_t sdg_graph_norm_merge(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* SDG_E_NO_RULE: see above. */
sdg_status_t
sdg_graph_norm_steps_check(const sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Adds the steps of the norm itself, on norm->slab. */
sdg_status_t sdg_graph_norm_steps(sdg_graph_maker_t *m) SDG_MUST_CHECK;

/* ---- plan.c ---- */

/* See key() of sdg_op_t. */
int sdg_graph_norm_key(const sdg_call_t *call, uint64_t *out);
/* Adds slabs of the operands. */
sdg_status_t sdg_graph_norm_slabs(sdg_graph_maker_t *m) SDG_MUST_CHECK;

/* Places the result as x, and finds this rank's boxes. The caller frees
 * m->main.op.y_placement. */
sdg_status_t sdg_graph_norm_result(sdg_graph_maker_t *m) SDG_MUST_CHECK;

/* See plan() of sdg_op_t. */
sdg_op_plan_t sdg_graph_norm_plan SDG_MUST_CHECK;

/* ---- share.c: the whole view ---- */

/* The boxes of a rank, which are that of x on all levels. */
sdg_graph_boxes_t sdg_graph_norm_boxes(const sdg_tagging_t *tagging, int rank);
/* Whether result `index` of a norm is a sum of all ranks' parts, which every
 * rank gets in full. */
bool sdg_graph_norm_sums(const sdg_graph_maker_t *m, int index);
/* See share() of sdg_op_t: each rank computes its rows of x. What x is
 * normalised over is not shared out. */
sdg_op_plan_t sdg_graph_norm_share SDG_MUST_CHECK;

#endif
