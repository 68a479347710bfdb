/* SPDX-License-Identifier: Apache-2.0 */
/* A graph's plan while it is made, and the parts of making it: inputs, sums,
 * and the extents of the piece. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_MAKER_H
#define SDG_RULES_GRAPH_MAKER_H

#include "rules/graph/boxes.h"
#include "rules/graph/piece.h"
#include "rules/kit/gradient_sum.h"
#include "rules/kit/merge.h"

/* One operand on a level that may need rows of other ranks. Shard view only. */
typedef struct sdg_graph_input {
  int operand;
  sdg_graph_level_t level;
  int own, assembled; /* slabs; assembled -1: the program's memory is right */
  sdg_transfer_t transfer;
  int *message; /* slab of each received message, -1: in place; owned */
  bool communicates;
} sdg_graph_input_t;

/* A result of which each rank has a part only. */
typedef struct sdg_graph_sum {
  int operand;
  int part;         /* slab that the piece writes: the operand's, or scratch */
  sdg_box_t box;    /* of the piece's result, in the coordinates of `part` */
  bool is_gradient; /* of a filter; else a reduction or a statistic */
  sdg_gradient_sum_t gradient;
  /* Of reductions: */
  cudnnReduceTensorOp_t op;
  sdg_merge_t merge; /* axes 0: the part is the result */
  int along;         /* a dimension that is reduced and split */
  sdg_box_t field;   /* of the result, in global coordinates */
} sdg_graph_sum_t;

typedef struct sdg_graph_maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  bool whole; /* view: every rank has all of every tensor */
  bool idle;  /* whole view: this rank computes nothing */
  sdg_graph_main_t main;
  sdg_graph_boxes_t boxes; /* this rank's */
  sdg_plan_t *plan;
  int operand_slab[SDG_OPERANDS_MAX];
  /* Where the piece writes a result: -1: the operand's slab. Scratch if the
   * piece computes rows of other ranks, too (whole_windows). */
  int apart[SDG_OPERANDS_MAX];
  sdg_graph_input_t input[2 * SDG_OPERANDS_MAX];
  int inputs;
  sdg_graph_sum_t sum[SDG_OPERANDS_MAX];
  int sums;
  sdg_graph_extents_t *extents; /* owned */
  int call_index; /* of the piece, or of the program's own execution */
  /* "repair" (rules/graph/strips.h): the strips, and the makers of pieces that
   * compute stacks of them and share the plan; owned. */
  bool repairs;
  struct sdg_graph_strip *strip;
  struct sdg_graph_maker *stack; /* each at its first strip */
  int strips;
  int images; /* of such a piece: as many strips, one behind the other along N;
               * 0: it is none */
  sdg_price_t price;
  const char *why; /* the rank does not repair, for reports; NULL: no reason */
  /* Where the ops in front of the main op are a piece of their own, whose
   * result is in memory, in the type of x: */
  int prologue_slab;   /* with rows of zeros; -1: they are not */
  int prologue_result; /* where the piece writes it */
  int prologue_index;
  /* rules/graph/product; NULL: the graph has no product of matrices. */
  struct sdg_graph_product *product;
  /* rules/graph/norm: */
  struct sdg_graph_norm *norm; /* NULL: it has no norm */
  bool
      own_parts; /* the program's own execution writes parts of sums in place */
} sdg_graph_maker_t;

/* ---- inputs ---- */

/* What `rank` of the job has of an operand; in the whole view, all. */
sdg_box_t sdg_graph_own_box(const sdg_graph_maker_t *m, int index, int rank);

/* Adds the operands' slabs, and decides what is assembled. */
sdg_status_t sdg_graph_inputs_open(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Adds the exchange, and the steps that assemble. */
sdg_status_t sdg_graph_inputs_assemble(sdg_graph_maker_t *m) SDG_MUST_CHECK;
void sdg_graph_inputs_fini(sdg_graph_maker_t *m);

/* ---- sums ---- */

/* Says where the piece writes results that are combined over ranks, or not.
 * SDG_E_TENSOR_TYPE, SDG_E_ONE_EACH. */
sdg_status_t sdg_graph_sums_open(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Whether some result is combined over ranks. */
bool sdg_graph_sums_any(const sdg_graph_maker_t *m);
/* Whole view: whether every rank can have these results in full. */
bool sdg_graph_sums_everyones(const sdg_graph_maker_t *m);
/* After the piece: combines. */
sdg_status_t sdg_graph_sums_close(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* A beta of 0. */
const void *sdg_graph_no_beta(const sdg_call_t *call);

/* ---- the piece ---- */

/* Global extents of all tensors of the graph; `extent` has one element for
 * each.
 */
void sdg_graph_extents_find(const sdg_graph_maker_t *m,
                            int64_t (*extent)[SDG_DIMS_MAX]);
/* Makes m->extents. */
sdg_status_t sdg_graph_extents_fill(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Plans the piece. *out_refusal: cuDNN's status if no engine takes it. */
sdg_status_t sdg_graph_piece_open(sdg_graph_maker_t *m,
                                  int *out_refusal) SDG_MUST_CHECK;
/* Plans a part of the piece as a sub-call of its own. */
sdg_status_t sdg_graph_part_open(sdg_graph_maker_t *m, sdg_graph_part_t part,
                                 int *out_index,
                                 int *out_refusal) SDG_MUST_CHECK;
/* Stores the program's own execution as a sub-call. */
sdg_status_t sdg_graph_own_open(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Adds the steps that compute it. */
sdg_status_t sdg_graph_piece_compute(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Of the ranks of the agreement's group, the first one's status that has no
 * engine for its piece, and that rank; 0: all have one. Without this, others
 * would wait for messages that do not come. */
sdg_status_t sdg_graph_refusals_gather(const sdg_call_t *call, int mine,
                                       int *out_refusal,
                                       int *out_rank) SDG_MUST_CHECK;
/* Shard view: SDG_E_GRAPH_ENGINE, on all ranks, if one has no engine. */
sdg_status_t sdg_graph_refusals_compare(const sdg_call_t *call,
                                        int mine) SDG_MUST_CHECK;
/* Copies the rank's own part of results that were written apart. */
sdg_status_t sdg_graph_results_close(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* Ends the making of the plan with the status that its steps had: as
 * sdg_plan_finish, or if `literal` with a plan for the program's own call. */
sdg_status_t sdg_graph_plan_finish(sdg_graph_maker_t *m, sdg_status_t status,
                                   bool literal,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* Where a tensor is on a level: a slab, and a box of it; -1: it has no memory.
 */
int sdg_graph_slot_find(const sdg_graph_maker_t *m, int tensor,
                        sdg_graph_level_t level, sdg_box_t *out_box);

#endif
