/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank does for one tagged call: pure data, made once per set of
 * agreed descriptors, cached, and carried out many times by src/exec.
 *
 * A plan names no op. It moves boxes between slabs (tensors in memory that
 * cover a box of global coordinates), exchanges messages with other ranks, and
 * lets the op that made it call the real function on slabs. */
#ifndef SDG_SRC_PLAN_PLAN_H
#define SDG_SRC_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/geometry/box.h"
#include "src/geometry/mesh.h"
#include "src/geometry/transfer.h"
#include "src/plan/share.h"

enum { SDG_SLAB_SCRATCH = -1, SDG_SLAB_KEPT = -2, SDG_SLAB_HELD = -3 };
enum { SDG_HELD_MAX = 2 };

/* A tensor in memory: the program's operand, or a region of scratch. Its
 * address is that of the element box.dim[*].lo. */
typedef struct sdg_slab {
  /* Index into the call's operands; SDG_SLAB_SCRATCH; SDG_SLAB_KEPT: scratch
   * that the plans between an early exchange and its plan leave alone;
   * SDG_SLAB_HELD - i: the memory of the plan's held[i]. */
  int operand;
  size_t offset_bytes; /* from the operand's data or from the scratch's base */
  int elem_bytes;
  sdg_box_t box;                /* the global coordinates it covers */
  int64_t stride[SDG_DIMS_MAX]; /* elements */
  /* As strides do, how the dimensions nest on every rank: the order of the
   * elements of messages. */
  int64_t nesting[SDG_DIMS_MAX];
} sdg_slab_t;

/* Packed strides for `box`, its dimensions nested in memory in the order that
 * the strides `like` nest them. */
void sdg_slab_pack(const sdg_box_t *box, const int64_t *like,
                   int64_t *out_stride);

/* Why a copy is made; `run -v` shows the bytes of each. */
typedef enum sdg_copy_kind {
  SDG_COPY_HALO,       /* to and from message buffers */
  SDG_COPY_STRIP,      /* into and out of small border strips */
  SDG_COPY_ACTIVATION, /* of the rank's own whole shard */
  SDG_COPY_COUNT,
} sdg_copy_kind_t;
const char *sdg_copy_kind_name(sdg_copy_kind_t kind);

typedef enum sdg_lane {
  SDG_LANE_MAIN, /* the program's stream */
  SDG_LANE_COMM, /* the communication stream */
} sdg_lane_t;

typedef enum sdg_step_kind {
  SDG_STEP_ZERO,     /* a box of a slab becomes zero */
  SDG_STEP_COPY,     /* a box of one slab to another */
  SDG_STEP_EXCHANGE, /* one group of messages with other ranks */
  SDG_STEP_REDUCE,   /* a slab becomes the same on all ranks */
  SDG_STEP_CALL,     /* the op's run(state, index) */
  SDG_STEP_JOIN,     /* the lane waits for all earlier steps of the other */
} sdg_step_kind_t;

/* What the ranks' elements become together. */
typedef enum sdg_combine {
  SDG_COMBINE_SUM,
  SDG_COMBINE_PRODUCT,
  SDG_COMBINE_MAX,
  SDG_COMBINE_MIN,
} sdg_combine_t;

typedef struct sdg_step {
  sdg_step_kind_t kind;
  sdg_lane_t lane;
  int slab;      /* ZERO, REDUCE: which; COPY: from; CALL: the op's index */
  int to;        /* COPY: to */
  sdg_box_t box; /* in the coordinates of `slab` */
  int64_t
      shift[SDG_DIMS_MAX]; /* COPY: box + shift in the coordinates of `to` */
  sdg_copy_kind_t copy;
  int parcel, parcels;   /* EXCHANGE: the first, and how many; may be none */
  sdg_combine_t combine; /* REDUCE */
  sdg_type_t type;       /* REDUCE: of the slab's elements */
  sdg_axes_t axes;       /* EXCHANGE, REDUCE: of its communicator */
} sdg_step_t;

/* One contiguous message. */
typedef struct sdg_parcel {
  bool is_send;
  int peer; /* index in the communicator */
  int slab;
  size_t offset_bytes; /* from the slab's address */
  size_t bytes;
} sdg_parcel_t;

/* Memory that lives on between calls, of what was brought together for one and
 * is read by a later one. */
typedef struct sdg_held {
  int own; /* slab of this rank's part, of an operand */
  size_t bytes;
  uint64_t token; /* what it is that is brought, the same on every rank */
  uint64_t order; /* the op's */
  bool taken;     /* an earlier plan has filled the memory */
} sdg_held_t;

struct sdg_exec;

typedef struct sdg_plan {
  const char *strategy; /* "literal", "repair", "extend": a string constant */
  const char *why;      /* likewise; NULL: as the op has several */
  bool literal;         /* the program's own call is right as it is; no steps */
  /* Not 0: no steps, and this vendor's status for the program: what the call
   * gets on one device. The same on all ranks. */
  int refusal;
  /* The communicator of the messages that are added next, 0 if no rank
   * exchanges any. The same on all ranks, also on one that neither sends nor
   * receives: making it is collective. A plan may have several exchanges, over
   * several sets of axes. */
  sdg_axes_t axes;
  /* That of the reductions that are added next, likewise: a plan may reduce
   * over several sets of axes. */
  sdg_axes_t reduce_axes;
  sdg_slab_t *slab;
  int slabs;
  sdg_step_t *step;
  int steps;
  sdg_parcel_t *parcel; /* of all EXCHANGE steps, one after the other */
  int parcels;
  size_t scratch_bytes, kept_bytes;
  sdg_held_t held[SDG_HELD_MAX];
  int helds;
  sdg_share_t *share; /* whole view only; owned */
  /* Per execution, for reports. */
  int64_t received_bytes;
  int64_t axis_bytes[SDG_AXES_MAX], sum_bytes; /* src/plan/traffic.h */
  int64_t sum_axis_bytes[SDG_AXES_MAX];        /* of sums alone */
  int64_t copied_bytes[SDG_COPY_COUNT];
  /* The op's part. run() returns the vendor's status of sub-call `index`,
   * enqueued on `stream` (a cudaStream_t). */
  void *state;
  void (*state_destroy)(void *state);
  int (*run)(void *state, int index, const sdg_call_t *call,
             const struct sdg_exec *exec);
} sdg_plan_t;

/* The bytes that so many of scratch take. */
size_t sdg_plan_aligned(size_t bytes);

/* Builders. All return SDG_E_NO_MEMORY at worst; slabs are named by index. */
sdg_plan_t *sdg_plan_create(const char *strategy);
void sdg_plan_destroy(sdg_plan_t *plan);
/* The program's operand `index` of `call`, covering `box` (its local extents).
 */
sdg_status_t sdg_plan_operand(sdg_plan_t *plan, const sdg_call_t *call,
                              int index, const sdg_box_t *box,
                              int *out_slab) SDG_MUST_CHECK;
/* The same, of a tensor that is operand `index` of the call that the plan is
 * carried out for. */
sdg_status_t sdg_plan_tensor(sdg_plan_t *plan, const sdg_operand_t *operand,
                             int index, const sdg_box_t *box,
                             int *out_slab) SDG_MUST_CHECK;
/* Packed scratch that covers `box`, its dimensions nested in memory as in slab
 * `like`. */
sdg_status_t sdg_plan_scratch(sdg_plan_t *plan, const sdg_box_t *box, int like,
                              int *out_slab) SDG_MUST_CHECK;
/* The same in memory that is held, of which `held` says token, order and
 * whether it is taken; otherwise a later plan finds what the plan's steps write
 * there. At most SDG_HELD_MAX. */
sdg_status_t sdg_plan_hold(sdg_plan_t *plan, const sdg_box_t *box, int like,
                           const sdg_held_t *held,
                           int *out_slab) SDG_MUST_CHECK;
/* The same with elements of another size than those of `like`. */
sdg_status_t sdg_plan_scratch_of(sdg_plan_t *plan, const sdg_box_t *box,
                                 int elem_bytes, int like,
                                 int *out_slab) SDG_MUST_CHECK;
/* The same nested as the strides `like` are. */
sdg_status_t sdg_plan_packed(sdg_plan_t *plan, const sdg_box_t *box,
                             const int64_t *like, int elem_bytes,
                             int *out_slab) SDG_MUST_CHECK;
/* What lies in the memory of scratch slab `within`, from `offset_bytes` on:
 * packed as by sdg_plan_scratch. Several can be reduced as the one that they
 * are in. */
sdg_status_t sdg_plan_within(sdg_plan_t *plan, int within, size_t offset_bytes,
                             const sdg_box_t *box, int like,
                             int *out_slab) SDG_MUST_CHECK;
/* Scratch of `bytes` bytes without a shape, for a workspace. */
sdg_status_t sdg_plan_workspace(sdg_plan_t *plan, size_t bytes,
                                int *out_slab) SDG_MUST_CHECK;
sdg_status_t sdg_plan_zero(sdg_plan_t *plan, sdg_lane_t lane, int slab,
                           const sdg_box_t *box) SDG_MUST_CHECK;
/* Copies what `from` and `to` have in common after moving `from` by `shift`
 * (NULL: none), restricted to `box` (coordinates of `to`; NULL: all of it).
 * Nothing in common is no step. */
sdg_status_t sdg_plan_copy(sdg_plan_t *plan, sdg_lane_t lane, int from, int to,
                           const int64_t *shift, const sdg_box_t *box,
                           sdg_copy_kind_t kind) SDG_MUST_CHECK;
sdg_status_t sdg_plan_call(sdg_plan_t *plan, int index) SDG_MUST_CHECK;
/* The steps of `lane` that are added next wait for all earlier steps of the
 * other lane. */
sdg_status_t sdg_plan_join(sdg_plan_t *plan, sdg_lane_t lane) SDG_MUST_CHECK;

/* What the plan has of the program's operand so far is in the memory of scratch
 * slab `into` instead, which covers all of it with the same strides. */
void sdg_plan_rehome(sdg_plan_t *plan, int operand, int into);
/* Has the steps from `first` on come before all others. */
sdg_status_t sdg_plan_advance(sdg_plan_t *plan, int first) SDG_MUST_CHECK;

/* The messages of `transfer` out of slab `from`, packed on the communication
 * lane where they are not one run of memory. Received ones arrive in place
 * where they are contiguous in slab `into` (SDG_SLAB_SCRATCH: nowhere in
 * place), otherwise in slabs of their own that cover their box in the
 * receiver's coordinates. Elements of a message follow each other as the slab's
 * dimensions nest on every rank. out_slabs has transfer->recvs entries:
 * the slab of each received message, or -1 where it arrived in place. */
sdg_status_t sdg_plan_messages(sdg_plan_t *plan, const sdg_transfer_t *transfer,
                               int from, const int *into, int intos,
                               int *out_slabs) SDG_MUST_CHECK;
/* Sends and receives all messages added since the last exchange as one group.
 * Where the plan has axes the step is there on every rank, also on one without
 * messages, so that all count alike. */
sdg_status_t sdg_plan_exchange(sdg_plan_t *plan) SDG_MUST_CHECK;

/* Whether a slab is one run of memory. */
bool sdg_plan_is_packed(const sdg_plan_t *plan, int slab);

/* Combines a packed slab of `type` with those of the other ranks along
 * plan->reduce_axes, in place, on the main lane, which can do nothing meanwhile
 * anyway: after all earlier steps of both lanes, before all later ones. All
 * ranks add the same reductions over the same axes in the same order. No step
 * where there are no such axes.
 * SDG_E_TENSOR_TYPE for a type that cannot be combined. */
sdg_status_t sdg_plan_reduce(sdg_plan_t *plan, int slab, sdg_type_t type,
                             sdg_combine_t combine) SDG_MUST_CHECK;

#endif
