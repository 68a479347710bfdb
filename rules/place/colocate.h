/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: operands of one call that are cut in different places. One of
 * them leads, which means that it stays; the others are moved to where the op
 * needs them beside it. Inside rules/ only. */
#ifndef SDG_RULES_PLACE_COLOCATE_H
#define SDG_RULES_PLACE_COLOCATE_H

#include "rules/place/op.h"
#include "rules/place/place.h"

/* Where the operands of one call are, and where the op needs them. The op's
 * colocate() is called with each split activation in turn as `lead`, and says
 * by sdg_colocate_follow() where it needs the others; the first lead that all
 * others fit is taken. Depends only on what the ranks agreed on. */
typedef struct sdg_colocation {
  const sdg_call_t *call;
  /* The readings of the ranks' extents, and the index of the one that fits:
   * there the program's tensor is. is[] -1: none fits, the operand stays. */
  sdg_place_t place[SDG_OPERANDS_MAX][SDG_PLACES_MAX];
  int places[SDG_OPERANDS_MAX];
  int is[SDG_OPERANDS_MAX];
  /* Where the op needs the operands, by the section of the lead. */
  sdg_tagging_t tagging;
  bool fits;      /* all operands that were asked for so far fit */
  bool empties;   /* a rank would get no elements, which the vendor refuses */
  bool reads_old; /* set by colocate(): the op reads old values of outputs */
} sdg_colocation_t;

/* Where the op needs an operand, once that is decided. Borrowed. */
const sdg_placement_t *sdg_colocate_at(const sdg_colocation_t *colocation,
                                       int index);
/* Whether an operand has to be moved. */
bool sdg_colocate_moves(const sdg_colocation_t *colocation, int index);

/* For an op's colocate(): the op needs operand `index` at `want`; with
 * `any_parts` other parts of the same dimensions will do. colocation->fits
 * becomes false if no reading of the operand has these extents. An operand
 * without data is ignored. The last call for an operand counts, also for the
 * lead. SDG_E_NO_MEMORY. */
sdg_status_t sdg_colocate_follow(sdg_colocation_t *colocation, int index,
                                 const sdg_placement_t *want,
                                 bool any_parts) SDG_MUST_CHECK;
/* The op needs all other activations cut as `lead` is. A dimension in which one
 * of them has extent 1, because it is broadcast or reduced, is not cut there.
 */
sdg_status_t sdg_colocate_alike(sdg_colocation_t *colocation,
                                int lead) SDG_MUST_CHECK;

/* Whether a call's operands have to be moved. */
typedef enum sdg_colocate_result {
  SDG_COLOCATE_NOTHING, /* no: the call's tagging is right, out is empty */
  SDG_COLOCATE_READ,    /* no, but colocation->tagging is the right tagging */
  SDG_COLOCATE_MOVES,   /* yes */
} sdg_colocate_result_t;

/* Finds the lead among the readings in colocation->place. Fills in fits, is and
 * tagging. */
sdg_status_t sdg_colocate_lead(sdg_colocation_t *colocation,
                               const sdg_rules_t *rules,
                               const sdg_op_t *op) SDG_MUST_CHECK;
/* Whether two placements have the same pieces: they are equal except for axes
 * of one rank, which cut nothing. */
bool sdg_colocate_same_pieces(const sdg_placement_t *a,
                              const sdg_placement_t *b);

/* Judges a call with `tagging`, which is corrected: it says where the program's
 * tensors are, and has the ranks along all axes that split any of them. The
 * caller frees `out` with sdg_colocate_fini. SDG_E_OPERANDS_DIFFER if tags
 * split the activations in different ways and the op cannot move them. */
sdg_status_t
sdg_colocate_find(const sdg_call_t *call, const sdg_rules_t *rules,
                  const sdg_op_t *op, sdg_tagging_t *tagging,
                  sdg_colocation_t *out,
                  sdg_colocate_result_t *out_result) SDG_MUST_CHECK;
void sdg_colocate_fini(sdg_colocation_t *colocation);

/* The op's plan with moves: inputs are moved to where the op needs them before
 * its steps, and outputs back after them. The caller owns the plan. */
sdg_status_t sdg_colocate_plan(const sdg_colocation_t *colocation,
                               const sdg_op_t *op, const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* The op's answer to a query about the moved tensors. *out_vendor: the vendor's
 * status. SDG_E_OPERANDS_DIFFER if the answer needs the data of a tensor that
 * moves. */
sdg_status_t sdg_colocate_answer(const sdg_colocation_t *colocation,
                                 const sdg_op_t *op,
                                 const sdg_tagging_t *tagging,
                                 int *out_vendor) SDG_MUST_CHECK;

#endif
