/* SPDX-License-Identifier: Apache-2.0 */
/* What a family of ops provides to become distributed: one sdg_op_t per family,
 * which only rules/ calls. */
#ifndef SDG_RULES_PLACE_OP_H
#define SDG_RULES_PLACE_OP_H

#include <stdbool.h>
#include <stddef.h>

#include "rules/file/file.h"
#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/placement.h"
#include "src/plan/plan.h"

/* The verdict on one tagged call: which section applies, and where each
 * activation is. In the shard view scales are placed, too: dimensions other
 * than 1 are cut as in the activation. An operand that no section places has a
 * placement with dims 0. The same on every rank, except `rank` and `me`. */
typedef struct sdg_tagging {
  const sdg_section_t *section;
  const sdg_mesh_t *mesh;
  int rank;                     /* of the job */
  sdg_axes_t axes;              /* over which the section splits */
  sdg_axes_t sum_axes;          /* over which parameters' gradients are summed;
                                   0 if that is one rank */
  int ranks;                    /* number along `axes`: the communicator's */
  int me;                       /* index of this rank among them */
  int rank_list[SDG_RANKS_MAX]; /* ranks of the job, in the communicator's
                                   order */
  sdg_placement_t placement[SDG_OPERANDS_MAX];
  /* Whole view, bits of operands: each rank has only its own piece up to date.
   */
  unsigned pieces;
  /* Shard view: an operand that is not where `placement` says; NULL: none. */
  const struct sdg_remote *remote;
} sdg_tagging_t;

/* The box that this rank has of a tensor at `placement`. */
static inline sdg_box_t sdg_tagging_own(const sdg_tagging_t *tagging,
                                        const sdg_placement_t *placement) {
  return sdg_placement_box(placement, tagging->mesh, tagging->rank);
}

/* An operand that is elsewhere: the op's plan fetches what it needs from
 * there. */
typedef struct sdg_remote {
  int operand;
  const sdg_placement_t *from;
  sdg_box_t box;                    /* this rank's piece */
  const struct sdg_operand *tensor; /* the program's tensor with that piece */
} sdg_remote_t;

/* The elements of an operand that are equal on all ranks along `axes`: a box of
 * `extent` elements from the operand's address. axes 0: each rank has its own
 * elements. `whole`: the extents of the global tensor, the same on every rank.
 */
typedef struct sdg_common {
  sdg_axes_t axes;
  int64_t extent[SDG_DIMS_MAX], whole[SDG_DIMS_MAX];
} sdg_common_t;

/* Numbers of calls, beside extents, for comparison between ranks. */
typedef struct sdg_op_numbers {
  /* Numbers of the op that may differ from rank to rank as extents do, agreed
   * on and kept with the op's descriptor (sdg_tag_vector). At most
   * SDG_AGREE_SIZES. Returns how many. NULL: there are none. */
  int (*sizes)(const sdg_call_t *call, int64_t *out);
  /* Shard view: numbers of an operand beside its extents that may differ from
   * rank to rank, agreed on and kept with its descriptor (sdg_tag_vector_t).
   * *out_number is of malloc, NULL where there are none. NULL: there never are.
   */
  sdg_status_t (*details)(const sdg_call_t *call, int index, int *out_count,
                          int **out_number);
  /* Numbers that must be equal on all ranks, in place of the scalars that
   * entries.def names (sdg_call_scalars). At most SDG_CALL_SCALARS. Returns how
   * many. NULL: those. */
  int (*scalars)(const sdg_call_t *call, double *out);
  /* A hash of numbers that do not decide the plan, may change from call to
   * call, and must be equal on all ranks. NULL: there are none. */
  uint32_t (*changing)(const sdg_call_t *call);
} sdg_op_numbers_t;

/* Shard view: functions of ops that need them. NULL: this op does not. */
typedef struct sdg_op_shard {
  /* The operand that plan() can fetch itself (sdg_tagging_t.remote), if all
   * others are where the op needs them; -1: none. NULL: always -1. */
  int (*fetches)(const sdg_call_t *call, const sdg_tagging_t *tagging);
  /* Whether a result of the call combines all of its input's elements along
   * dimension `dim`. Then it matters whether an extent of 1 is another element
   * on each rank or the same on all. NULL: always false. */
  bool (*sums)(const sdg_call_t *call, int dim);
  /* Corrects where the section says that the call's tensors are. NULL: there is
   * nothing to correct. */
  sdg_status_t (*place)(const sdg_call_t *call, sdg_tagging_t *tagging);
  /* The elements of an operand that several ranks have in common. NULL: by its
   * role and placement (rules/step/compare.h). */
  sdg_common_t (*common)(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         int index);
  /* For a call that this rank makes alone, on tensors that are its own by a
   * [local] section or a tag: SDG_E_ARGUMENT if its parameters have sizes that
   * do not fit, as those of a piece. NULL: the vendor's library checks that. */
  sdg_status_t (*own)(const sdg_call_t *call);
  /* The vendor's library wants equal strides for operands of one group. Returns
   * the group of operand `index`, -1: none. NULL: always -1. */
  int (*stride_group)(const sdg_call_t *call, int index);
} sdg_op_shard_t;

/* Data that one call fetches or keeps for a later one (rules/reuse). */
typedef struct sdg_op_reuse {
  /* For two calls on one tensor (rules/reuse/prefetch.h): the first needs only
   * the rank's own rows, the second also rows of other ranks. Returns that
   * operand, or -1 if this call is neither; *out_first tells which one it is.
   * NULL: always -1. */
  int (*prefetch)(const sdg_call_t *call, bool *out_first);
  /* For two calls that need the same messages of one tensor
   * (rules/reuse/kept.h): returns that operand, or -1 if this call is neither;
   * *out_first tells which one it is. What decides the messages, beside types
   * and placements, is mixed into *io_hash (may be NULL). NULL: always -1. */
  int (*leaves)(const sdg_call_t *call, bool *out_first, uint64_t *io_hash);
  /* Whole view: called after a call was carried out by a plan with plan->share,
   * or in full on every rank (`plan` NULL). NULL: nothing is noted. */
  sdg_status_t (*note)(const sdg_call_t *call, const sdg_plan_t *plan);
} sdg_op_reuse_t;

/* Functions of sdg_op_t that several files of a family provide. */
typedef sdg_status_t sdg_op_plan_t(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t **out_plan);
typedef sdg_status_t sdg_op_answer_t(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     int *out_vendor);

struct sdg_colocation;
typedef struct sdg_op {
  sdg_family_t family;
  /* True if the op carries out or answers this entry. NULL: it does so for each
   * entry of its family in entries.def. */
  bool (*knows)(const sdg_call_t *call);
  /* The op's parameters as text, compared literally between ranks. */
  sdg_status_t (*describe)(const sdg_call_t *call, char *out, size_t out_bytes);
  /* Shard view: says where the op needs the call's activations beside operand
   * `lead` (rules/place/colocate.h). NULL: the op moves nothing. */
  sdg_status_t (*colocate)(const sdg_call_t *call,
                           struct sdg_colocation *colocation, int lead);
  /* Numbers that, with entry and generations, decide the plan: algorithm,
   * workspace size, which scalars are zero. At most SDG_OP_KEYS. Returns how
   * many. */
  int (*key)(const sdg_call_t *call, uint64_t *out);
  /* Makes this rank's plan of a call. The caller owns it. */
  sdg_op_plan_t *plan;
  /* Whole view: makes this rank's plan, with plan->share, of a call that the
   * ranks share. The tagging has the placements of the inputs. *out_plan stays
   * NULL if the call cannot be shared, or says why (sdg_in_full_plan): every
   * rank carries out all of it. */
  sdg_op_plan_t *share;
  /* Answers a query through the call's arguments; *out_vendor is the status
   * for the program if the vendor's library was asked and refused. */
  sdg_op_answer_t *answer;
  /* For ops that need them; NULL: this one does not. */
  const sdg_op_numbers_t *numbers;
  const sdg_op_shard_t *shard;
  const sdg_op_reuse_t *reuse;
} sdg_op_t;

enum { SDG_OP_KEYS = 4 };

/* True if `op` (NULL: none) carries out or answers this call. */
static inline bool sdg_op_knows(const sdg_op_t *op, const sdg_call_t *call) {
  return op && (!op->knows || op->knows(call));
}

#define SDG_FAMILY(name, op, word, dims, flags)                                \
  extern const sdg_op_t sdg_op_##op;
#include "src/call/families.def"

#endif
