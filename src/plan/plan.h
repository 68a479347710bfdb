/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the steps of one rank for one tagged call. It is pure data, made
 * once for each set of agreed descriptors, cached, and carried out many times
 * by src/exchange/exec.h.
 *
 * A plan names no op. It moves boxes between slabs (tensors in memory that
 * cover a box of global coordinates), exchanges messages with other ranks, and
 * has the op that made it call the real function on slabs. */
#ifndef SDG_SRC_PLAN_PLAN_H
#define SDG_SRC_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"
#include "src/geometry/hint.h"
#include "src/geometry/mesh.h"
#include "src/geometry/transfer.h"
#include "src/plan/share.h"

enum { SDG_SLAB_SCRATCH = -1, SDG_SLAB_KEPT = -2, SDG_SLAB_HELD = -3 };
enum { SDG_HELD_MAX = 2 };
enum { SDG_COPIES_MAX = 8 };

/* A tensor in memory: the program's operand, or a region of scratch. Its
 * address is the address of the element at box.dim[*].lo. */
typedef struct sdg_slab {
  /* Index into the call's operands; or SDG_SLAB_SCRATCH; or SDG_SLAB_KEPT:
   * scratch that no plan overwrites between a prefetched exchange and the plan
   * that uses it; or SDG_SLAB_HELD - i: the memory of the plan's held[i]. */
  int operand;
  /* From the operand's data, or from the start of scratch. */
  size_t offset_bytes;
  int elem_bytes;
  sdg_box_t box;                /* the global coordinates it covers */
  int64_t stride[SDG_DIMS_MAX]; /* elements */
  /* Strides that give the order of a message's elements: the dimensions nest
   * in this order on every rank. */
  int64_t nesting[SDG_DIMS_MAX];
} sdg_slab_t;

/* Computes packed strides for `box`. Its dimensions nest in memory in the
 * order of the strides `like`. */
void sdg_slab_pack(const sdg_box_t *box, const int64_t *like,
                   int64_t *out_stride);

/* The purpose of a copy; `run -v` shows the bytes of each kind. */
typedef enum sdg_copy_kind {
  SDG_COPY_HALO,       /* into and out of message buffers */
  SDG_COPY_STRIP,      /* into and out of small border strips */
  SDG_COPY_ACTIVATION, /* the rank's own whole shard */
  SDG_COPY_COUNT,
} sdg_copy_kind_t;
const char *sdg_copy_kind_name(sdg_copy_kind_t kind);

typedef enum sdg_lane {
  SDG_LANE_MAIN, /* the program's stream */
  SDG_LANE_COMM, /* the communication stream */
} sdg_lane_t;

typedef enum sdg_step_kind {
  SDG_STEP_ZERO,     /* set a box of a slab to zero */
  SDG_STEP_COPY,     /* copy a box of one slab to another */
  SDG_STEP_EXCHANGE, /* send and receive one group of messages */
  SDG_STEP_REDUCE,   /* combine a slab over the ranks; all get the result */
  SDG_STEP_CALL,     /* call the op's run(state, index) */
  SDG_STEP_JOIN,     /* this lane waits for all earlier steps of the other */
} sdg_step_kind_t;

/* The operator that combines the ranks' elements. */
typedef enum sdg_combine {
  SDG_COMBINE_SUM,
  SDG_COMBINE_PRODUCT,
  SDG_COMBINE_MAX,
  SDG_COMBINE_MIN,
} sdg_combine_t;

typedef struct sdg_step {
  sdg_step_kind_t kind;
  sdg_lane_t lane;
  int slab; /* ZERO, REDUCE: the slab; COPY: the source; CALL: the op's index */
  int to;   /* COPY: the destination */
  sdg_box_t box; /* in the coordinates of `slab` */
  int64_t
      shift[SDG_DIMS_MAX]; /* COPY: box + shift in the coordinates of `to` */
  sdg_copy_kind_t copy;
  /* COPY: this step and the next copies - 1 are copies of equal boxes between
   * the same memories, and may be carried out in any order, or at once. At most
   * SDG_COPIES_MAX. Set by sdg_plan_finish. */
  int copies;
  /* COPY, ZERO: a stretch of the plan begins here, number stretch - 1; 0: none
   * does (src/exchange/stretch.h). */
  int stretch;
  int parcel, parcels; /* EXCHANGE: the first one, and their number; may be 0 */
  sdg_combine_t combine; /* REDUCE */
  sdg_type_t type;       /* REDUCE: the type of the slab's elements */
  sdg_axes_t axes;       /* EXCHANGE, REDUCE: the axes of the communicator */
} sdg_step_t;

/* One contiguous message. */
typedef struct sdg_parcel {
  bool is_send;
  int peer; /* index in the communicator */
  int slab;
  size_t offset_bytes; /* from the slab's address */
  size_t bytes;
} sdg_parcel_t;

/* Memory that outlives the call: one call fetches data into it from other
 * ranks, and later calls read it. */
typedef struct sdg_held {
  int own; /* the slab of this rank's part; it belongs to an operand */
  size_t bytes;
  uint64_t token; /* identifies the fetched data; the same on every rank */
  uint64_t order; /* set by the op */
  bool taken;     /* an earlier plan has already filled the memory */
} sdg_held_t;

/* What two strategies cost the slowest rank, in microseconds, where they were
 * compared; otherwise both are 0. */
typedef struct sdg_price {
  double repair_us, extend_us;
} sdg_price_t;

struct sdg_exec;
struct sdg_stretches;

typedef struct sdg_plan {
  const char *strategy; /* string constant: "literal", "repair" or "extend" */
  const char *why;      /* string constant; NULL: the op has several reasons */
  bool literal; /* the program's own call is correct as it is; no steps */
  /* If not 0: the plan has no steps, and the program gets this vendor's
   * status, as it would on one device. The same on all ranks. */
  int refusal;
  /* The axes of the communicator for the messages that are added next; 0 if no
   * rank exchanges any. The same on all ranks, also on a rank that neither
   * sends nor receives, because creating a communicator is collective. A plan
   * may have several exchanges, each over its own axes. */
  sdg_axes_t axes;
  /* The axes of the communicator for the reductions that are added next, under
   * the same rules. A plan may reduce over several sets of axes. */
  sdg_axes_t reduce_axes;
  /* Messages that are added next are packed even if they are contiguous: once a
   * lane has joined the communication lane, it may write what they were. */
  bool packs;
  sdg_slab_t *slab;
  int slabs;
  sdg_step_t *step;
  int steps;
  /* The messages of all EXCHANGE steps, in the order of the steps. */
  sdg_parcel_t *parcel;
  int parcels;
  size_t scratch_bytes, kept_bytes;
  bool on_host; /* scratch is managed memory: sub-calls use it on the host */
  /* The same at a call one of whose operands is in managed or pinned memory. */
  bool on_host_as_operands;
  sdg_held_t held[SDG_HELD_MAX];
  int helds;
  sdg_share_t *share; /* whole view only; owned */
  /* Shard view: of results that are sums over ranks (src/geometry/hint.h). */
  sdg_counts_t counts[SDG_OPERANDS_MAX];
  sdg_price_t price; /* for reports */
  /* For reports: bytes per execution. */
  int64_t received_bytes;
  int64_t axis_bytes[SDG_AXES_MAX], sum_bytes; /* src/plan/steps.h */
  /* The part of axis_bytes that reductions cause. */
  int64_t sum_axis_bytes[SDG_AXES_MAX];
  int64_t copied_bytes[SDG_COPY_COUNT];
  /* Set by the op. run() enqueues sub-call `index` on exec->stream and returns
   * the vendor's status. */
  void *state;
  void (*state_destroy)(void *state);
  int (*run)(void *state, int index, const sdg_call_t *call,
             const struct sdg_exec *exec);
  /* src/exchange/stretch.h; owned; NULL: none. */
  struct sdg_stretches *stretches;
  void (*stretches_destroy)(struct sdg_stretches *stretches);
} sdg_plan_t;

/* Rounds `bytes` up to the alignment of scratch. */
size_t sdg_plan_aligned(size_t bytes);

/* Functions that build a plan. SDG_E_NO_MEMORY is their only error unless
 * stated otherwise; they name slabs by index. */
sdg_status_t sdg_plan_create(const char *strategy,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* A plan with an empty share of so many ranks, for the whole view. */
sdg_status_t sdg_plan_create_shared(const char *strategy, int ranks,
                                    sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* A plan for a call that the vendor's library would reject: the program gets
 * that library's status. */
sdg_status_t sdg_plan_create_refused(int refusal,
                                     sdg_plan_t **out_plan) SDG_MUST_CHECK;
void sdg_plan_destroy(sdg_plan_t *plan);
/* Ends the making of a plan: hands it out if `status` is SDG_OK, else destroys
 * it. Returns `status`. Steps may be added later, before the plan runs. */
sdg_status_t sdg_plan_finish(sdg_plan_t *plan, sdg_status_t status,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* The same for the share of a plan that *out_plan has if `status` is SDG_OK. */
sdg_status_t sdg_plan_finish_share(sdg_share_t *share, sdg_status_t status,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* Adds a slab for the program's operand `index` of `call`, covering `box` (its
 * local extents). */
sdg_status_t sdg_plan_operand(sdg_plan_t *plan, const sdg_call_t *call,
                              int index, const sdg_box_t *box,
                              int *out_slab) SDG_MUST_CHECK;
/* Like sdg_plan_operand, for a tensor that is operand `index` of the call that
 * executes the plan. */
sdg_status_t sdg_plan_tensor(sdg_plan_t *plan, const sdg_operand_t *operand,
                             int index, const sdg_box_t *box,
                             int *out_slab) SDG_MUST_CHECK;
/* Adds packed scratch that covers `box`. Its dimensions nest in memory as
 * those of slab `like` do. */
sdg_status_t sdg_plan_scratch(sdg_plan_t *plan, const sdg_box_t *box, int like,
                              int *out_slab) SDG_MUST_CHECK;
/* Like sdg_plan_scratch, but in held memory. The caller sets token, order and
 * taken in `held`. If taken is false, the plan's steps fill the memory, and a
 * later plan reads it. At most SDG_HELD_MAX per plan. */
sdg_status_t sdg_plan_hold(sdg_plan_t *plan, const sdg_box_t *box, int like,
                           const sdg_held_t *held,
                           int *out_slab) SDG_MUST_CHECK;
/* Like sdg_plan_scratch, with elements of elem_bytes bytes, whatever the
 * element size of `like`. */
sdg_status_t sdg_plan_scratch_of(sdg_plan_t *plan, const sdg_box_t *box,
                                 int elem_bytes, int like,
                                 int *out_slab) SDG_MUST_CHECK;
/* Scratch with these strides (elements, positive), which may leave gaps;
 * `nesting` is that of messages. */
sdg_status_t sdg_plan_strided(sdg_plan_t *plan, const sdg_box_t *box,
                              const int64_t *stride, const int64_t *nesting,
                              int elem_bytes, int *out_slab) SDG_MUST_CHECK;
/* Like sdg_plan_scratch_of, but the dimensions nest in the order of the
 * SDG_DIMS_MAX strides `like`. */
sdg_status_t sdg_plan_packed(sdg_plan_t *plan, const sdg_box_t *box,
                             const int64_t *like, int elem_bytes,
                             int *out_slab) SDG_MUST_CHECK;
/* Adds a slab inside the memory of scratch slab `within`, starting at
 * `offset_bytes`, packed as by sdg_plan_scratch. One reduction of `within`
 * reduces all slabs inside it. */
sdg_status_t sdg_plan_within(sdg_plan_t *plan, int within, size_t offset_bytes,
                             const sdg_box_t *box, int like,
                             int *out_slab) SDG_MUST_CHECK;
/* Adds `bytes` bytes of scratch without a shape, for a workspace. */
sdg_status_t sdg_plan_workspace(sdg_plan_t *plan, size_t bytes,
                                int *out_slab) SDG_MUST_CHECK;
sdg_status_t sdg_plan_zero(sdg_plan_t *plan, sdg_lane_t lane, int slab,
                           const sdg_box_t *box) SDG_MUST_CHECK;
/* Copies the intersection of `from` and `to` after moving `from` by `shift`
 * (NULL: 0), restricted to `box` (coordinates of `to`; NULL: all of it). Adds
 * no step if the intersection is empty. */
sdg_status_t sdg_plan_copy(sdg_plan_t *plan, sdg_lane_t lane, int from, int to,
                           const int64_t *shift, const sdg_box_t *box,
                           sdg_copy_kind_t kind) SDG_MUST_CHECK;
sdg_status_t sdg_plan_call(sdg_plan_t *plan, int index) SDG_MUST_CHECK;
/* The steps that are added to `lane` next wait for all earlier steps of the
 * other lane. */
sdg_status_t sdg_plan_join(sdg_plan_t *plan, sdg_lane_t lane) SDG_MUST_CHECK;

/* Redirects every slab of the program's operand that the plan has so far to
 * the memory of scratch slab `into`, which covers the whole operand with the
 * same strides. */
void sdg_plan_rehome(sdg_plan_t *plan, int operand, int into);
/* Moves the steps from index `first` on to the front of the plan. */
sdg_status_t sdg_plan_advance(sdg_plan_t *plan, int first) SDG_MUST_CHECK;

/* Adds the messages of `transfer`, sent from slab `from`. A message that is
 * not contiguous in memory is packed on the communication lane first. A
 * received message is written in place if it is contiguous in a slab of `into`
 * (`intos` slabs; SDG_SLAB_SCRATCH: never in place); otherwise it gets a slab
 * of its own that covers its box in the receiver's coordinates. The elements
 * of a message are in the order of the slab's nesting on every rank. out_slabs
 * has transfer->recvs entries: the slab of each received message, or -1 if it
 * is received in place. */
sdg_status_t sdg_plan_messages(sdg_plan_t *plan, const sdg_transfer_t *transfer,
                               int from, const int *into, int intos,
                               int *out_slabs) SDG_MUST_CHECK;
/* Sends and receives all messages added since the last exchange as one group.
 * If the plan has axes, every rank gets the step, even without messages, so
 * that all ranks count the same number of exchanges. */
sdg_status_t sdg_plan_exchange(sdg_plan_t *plan) SDG_MUST_CHECK;

/* Returns true if the slab is one contiguous run of memory. */
bool sdg_plan_is_packed(const sdg_plan_t *plan, int slab);

/* Combines a packed slab of `type` with the same slab of the other ranks along
 * plan->reduce_axes, in place. The step is carried out after all earlier steps
 * of both lanes and before all later ones, without joins of the plan's own: no
 * other step could overlap with it. All ranks add the same reductions over the
 * same axes in the same order. Adds no step if reduce_axes is 0.
 * SDG_E_TENSOR_TYPE for a type that NCCL cannot reduce. */
sdg_status_t sdg_plan_reduce(sdg_plan_t *plan, int slab, sdg_type_t type,
                             sdg_combine_t combine) SDG_MUST_CHECK;

#endif
