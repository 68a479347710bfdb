/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of one call that are cut in different places, in the shard view: one
 * leads, the others come to where the op has them beside it. Inside rules/
 * only. */
#ifndef SDG_RULES_PLACE_COLOCATE_H
#define SDG_RULES_PLACE_COLOCATE_H

#include "rules/place/op.h"
#include "rules/place/place.h"

/* Of one call. An op's colocate() is called with one after the other of the
 * activations that are split as `lead`, which is in its place, and says by
 * sdg_colocate_follow() where the op has the others; the first one that all of
 * them fit decides. Pure in what the ranks agreed on. */
typedef struct sdg_colocation {
  const sdg_call_t *call;
  /* How the ranks' extents can be read, and which reading fits; the program's
   * tensor is there. -1: none does, the operand stays as it is. */
  sdg_place_t place[SDG_OPERANDS_MAX][SDG_PLACES_MAX];
  int places[SDG_OPERANDS_MAX];
  int is[SDG_OPERANDS_MAX];
  /* The op's: by the section of the operand that leads. */
  sdg_tagging_t tagging;
  bool fits;      /* as far as is known */
  bool empties;   /* a rank would get nothing: the vendor has no such tensor */
  bool reads_old; /* outputs; for colocate() to say */
} sdg_colocation_t;

/* Where the op has an operand that has met already. */
const sdg_placement_t *sdg_colocate_at(const sdg_colocation_t *colocation,
                                       int index);
/* Whether an operand has to be moved. */
bool sdg_colocate_moves(const sdg_colocation_t *colocation, int index);

/* The op has `index` at `want`; where `any_parts`, in other parts of the same
 * dimensions, too. meet->fits becomes false where no reading of the operand has
 * these extents. An operand without data is left alone. What is said last
 * counts, also of the one that leads. */
sdg_status_t sdg_colocate_follow(sdg_colocation_t *colocation, int index,
                                 const sdg_placement_t *want,
                                 bool any_parts) SDG_MUST_CHECK;
/* The op has all other activations as `lead` is; where one of two has an extent
 * of 1, which stands for all elements or came of them, that dimension is not
 * cut. */
sdg_status_t sdg_colocate_alike(sdg_colocation_t *colocation,
                                int lead) SDG_MUST_CHECK;

/* What has been found of a call. */
typedef enum sdg_colocate_result {
  SDG_COLOCATE_NOTHING, /* the tagging says it all; the meeting is empty */
  SDG_COLOCATE_READ,    /* the op's tagging is another; all is in its place */
  SDG_COLOCATE_MOVES,   /* operands have to be moved */
} sdg_colocate_result_t;

/* Finds who leads, among the readings in colocation->place: colocation->fits,
 * colocation->is, and where the op has the operands. */
sdg_status_t sdg_colocate_lead(sdg_colocation_t *colocation,
                               const sdg_rules_t *rules,
                               const sdg_op_t *op) SDG_MUST_CHECK;
/* Alike but for axes of one rank, which cut nothing. */
bool sdg_colocate_same_pieces(const sdg_placement_t *a,
                              const sdg_placement_t *b);

/* Whether every rank can make the call by itself, with tensors that are all its
 * own: the op takes them as they are, on every rank. True, too, where the op
 * cannot tell. `section`: one that some of them would be split by. */
sdg_status_t sdg_colocate_alone(const sdg_call_t *call, const sdg_op_t *op,
                                const sdg_section_t *section,
                                bool *out_can) SDG_MUST_CHECK;

/* Checks such a call, of which a section splits operand `index`:
 * SDG_E_OWN_OR_PIECES if the sizes are also those of a call on pieces, whose
 * results differ. `by_input`: a section splits an input, so that the call is
 * one on pieces, and a [local] output of the same size in both is whole. */
sdg_status_t sdg_colocate_own_check(const sdg_call_t *call,
                                    const sdg_rules_t *rules,
                                    const sdg_op_t *op, int index,
                                    bool by_input) SDG_MUST_CHECK;

/* Judges a call with `tagging`, which then says where the program's tensors
 * are, and is of the ranks along all axes that any of them is split over.
 * `out` is the caller's to free. SDG_E_OPERANDS_DIFFER for tags that split one
 * call's activations otherwise, of a call that cannot have it. */
sdg_status_t
sdg_colocate_find(const sdg_call_t *call, const sdg_rules_t *rules,
                  const sdg_op_t *op, sdg_tagging_t *tagging,
                  sdg_colocation_t *out,
                  sdg_colocate_result_t *out_result) SDG_MUST_CHECK;
void sdg_colocate_fini(sdg_colocation_t *colocation);

/* The op's plan, before which inputs are brought to where the op has them and
 * after which outputs are brought back. */
sdg_status_t sdg_colocate_plan(const sdg_colocation_t *colocation,
                               const sdg_op_t *op, const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* The op's answer to a question about tensors where the op has them.
 * SDG_E_OPERANDS_DIFFER where it would need the data of one that is moved. */
sdg_status_t sdg_colocate_answer(const sdg_colocation_t *colocation,
                                 const sdg_op_t *op,
                                 const sdg_tagging_t *tagging,
                                 int *out_vendor) SDG_MUST_CHECK;

#endif
