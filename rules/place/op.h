/* SPDX-License-Identifier: Apache-2.0 */
/* What a family of ops must say to become distributed. One per family;
 * the registry finds it, the agreement and the executor know nothing of it. */
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
 * activation of the call is; in the shard view scales too, which are cut as the
 * activation is where they are not 1. Placements of operands that no section
 * places have dims 0. The same on every rank but for `me`. */
typedef struct sdg_tagging {
  const sdg_section_t *section;
  const sdg_mesh_t *mesh;
  int rank;                     /* of the job */
  sdg_axes_t axes;              /* that the section splits over */
  sdg_axes_t sum_axes;          /* that parameters' gradients are summed over;
                                   0 also where that is one rank */
  int ranks;                    /* along these axes: the communicator's */
  int me;                       /* index of this rank among them */
  int rank_list[SDG_RANKS_MAX]; /* ranks of the job, in the communicator's
                                   order */
  sdg_placement_t placement[SDG_OPERANDS_MAX];
  /* Whole view, bits of operands: no rank has right more than its own part. */
  unsigned pieces;
  /* Shard view: an operand that is elsewhere; NULL: all are where this says. */
  const struct sdg_remote *remote;
} sdg_tagging_t;

/* An operand that is elsewhere: the op's plan brings what it needs of it from
 * there. */
typedef struct sdg_remote {
  int operand;
  const sdg_placement_t *from;
  sdg_box_t box;                    /* this rank's */
  const struct sdg_operand *tensor; /* the program's, which covers that */
} sdg_remote_t;

/* What ranks along `axes` have alike of an operand: its elements of `extent`
 * from the address that the call has. axes 0: it is every rank's own. `whole`:
 * the extents of the global tensor, which all ranks know alike. */
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
} sdg_op_numbers_t;

/* Shard view: what is different with this op. NULL: as with others. */
typedef struct sdg_op_shard {
  /* The operand that plan() can fetch (sdg_tagging_t), if all others are beside
   * it; -1: none. NULL: it never can. */
  int (*fetches)(const sdg_call_t *call, const sdg_tagging_t *tagging);
  /* Whether a result of the call takes all of its input's elements along
   * dimension `dim`, so that one element of each rank and the same one of all
   * give different results. NULL: it never does. */
  bool (*sums)(const sdg_call_t *call, int dim);
  /* Corrects where the section says that the call's tensors are. NULL: there is
   * nothing to correct. */
  sdg_status_t (*place)(const sdg_call_t *call, sdg_tagging_t *tagging);
  /* What every rank has alike of an operand that the call reads. NULL: as its
   * role and its place tell (rules/step/compare.h). */
  sdg_common_t (*common)(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         int index);
  /* A call that this rank makes by itself, of tensors that are its own by a
   * [local] section or a tag: SDG_E_ARGUMENT where its parameters have other
   * sizes, as those of a piece would have. NULL: the vendor's library tells. */
  sdg_status_t (*own)(const sdg_call_t *call);
} sdg_op_shard_t;

/* What a call leaves to, or brings for, a later one (rules/reuse). */
typedef struct sdg_op_reuse {
  /* Of two calls, the second of which needs more of a tensor than the first
   * (rules/reuse/prefetch.h): that tensor, and which one this is; -1: of none.
   * The first one reads no more of it than its rows. NULL: there are none. */
  int (*prefetch)(const sdg_call_t *call, bool *out_first);
  /* Of two calls, the second of which gets the same messages of a tensor as the
   * first (rules/reuse/kept.h): that tensor, and which one this is; -1: of
   * none. io_hash (may be NULL): mixed with what decides the messages beside
   * types and placements. NULL: there are none. */
  int (*leaves)(const sdg_call_t *call, bool *out_first, uint64_t *io_hash);
  /* Whole view: a call has been carried out, by a plan with plan->share, or in
   * full on every rank (NULL). On every rank alike. NULL: nothing is noted. */
  sdg_status_t (*note)(const sdg_call_t *call, const sdg_plan_t *plan);
} sdg_op_reuse_t;

struct sdg_colocation;
typedef struct sdg_op {
  sdg_family_t family;
  /* True if the op carries out or answers this entry. */
  bool (*knows)(const sdg_call_t *call);
  /* The op's parameters as text, compared literally between ranks. */
  sdg_status_t (*describe)(const sdg_call_t *call, char *out, size_t out_bytes);
  /* Shard view: where the op has the call's activations
   * (rules/place/colocate.h) beside operand `lead`, which is in place. NULL:
   * all are where they are. */
  sdg_status_t (*colocate)(const sdg_call_t *call,
                           struct sdg_colocation *colocation, int lead);
  /* Numbers that, with entry and generations, decide the plan: algorithm,
   * workspace size, which scalars are zero. At most SDG_OP_KEYS. Returns how
   * many. */
  int (*key)(const sdg_call_t *call, uint64_t *out);
  /* Makes this rank's plan of a call that is carried out. */
  sdg_status_t (*plan)(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       sdg_plan_t **out_plan);
  /* Whole view: this rank's plan of a call that the ranks share, with
   * plan->share. Placements of the tagging are those of the inputs. *out_plan
   * is NULL where the call cannot be shared: then every rank carries out all of
   * it. */
  sdg_status_t (*share)(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        sdg_plan_t **out_plan);
  /* Answers a query through the call's arguments; *out_vendor is the status
   * for the program if the vendor's library was asked and refused. */
  sdg_status_t (*answer)(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         int *out_vendor);
  /* For ops that need them; NULL: this one does not. */
  const sdg_op_numbers_t *numbers;
  const sdg_op_shard_t *shard;
  const sdg_op_reuse_t *reuse;
} sdg_op_t;

enum { SDG_OP_KEYS = 4 };

#define SDG_FAMILY(name, op, word, dims, flags)                                \
  extern const sdg_op_t sdg_op_##op;
#include "src/call/families.def"

#endif
