// SPDX-License-Identifier: Apache-2.0
// Plans a call whose operands have to be moved: the op plans the call on moved
// tensors in scratch. One operand may be fetched by the op's own plan instead.
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "rules/kit/fetch.h"
#include "rules/place/colocate.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/sequence.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "src/exchange/exec.h"

enum { LITERAL = -1 }; // the sub-call that is the whole of the program's call

// The tensors that replace those that move.
typedef struct moved {
  bool moves[SDG_OPERANDS_MAX];
  int fetched; // the operand that the op's plan fetches itself; -1: none
  sdg_operand_t operand[SDG_OPERANDS_MAX];
  void *descriptor[SDG_OPERANDS_MAX]; // as the operand's kind says
} moved_t;

// The state of a plan; contains the state of the op's plan.
typedef struct state {
  moved_t moved;
  int room[SDG_OPERANDS_MAX]; // slabs of the moved tensors
  void *inner;
  void (*inner_destroy)(void *inner);
  int (*inner_run)(void *inner, int index, const sdg_call_t *call,
                   const sdg_exec_t *exec);
} state_t;

// ---- tensors that replace the program's -------------------------------------

static bool is_sequence(const sdg_operand_t *operand) {
  return operand->kind == SDG_OPERAND_SEQUENCE;
}

static void moved_fini(moved_t *moved) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  for (int i = 0; i < SDG_OPERANDS_MAX; i++) {
    void *descriptor = moved->descriptor[i];
    if (descriptor && is_sequence(&moved->operand[i]))
      (void)cudnn->cudnnDestroySeqDataDescriptor(descriptor);
    else if (descriptor)
      (void)cudnn->cudnnDestroyTensorDescriptor(descriptor);
  }
}

static sdg_status_t describe(const sdg_cudnn_t *cudnn,
                             const sdg_operand_t *operand, const sdg_box_t *box,
                             void **out) {
  if (is_sequence(operand)) // of full length, as the op's colocate() checks
    return sdg_sequence_create(operand->type, box, operand->stride, NULL,
                               (cudnnSeqDataDescriptor_t *)out);
  if (cudnn->cudnnCreateTensorDescriptor((cudnnTensorDescriptor_t *)out) !=
      CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  return sdg_tensor_set(*out, operand->type, box, operand->stride);
}

static int group_of(const sdg_colocation_t *colocation, const sdg_op_t *op,
                    int index) {
  return op->shard && op->shard->stride_group
             ? op->shard->stride_group(colocation->call, index)
             : -1;
}

// The strides of a moved tensor: those of an operand that stays and must have
// equal ones; else packed, with dimensions nested as in the first operand of
// its group.
static void strides_choose(const sdg_colocation_t *colocation,
                           const sdg_op_t *op, int index, const sdg_box_t *box,
                           int64_t *out) {
  const sdg_call_t *call = colocation->call;
  int group = group_of(colocation, op, index), first = index;
  for (int i = call->operands - 1; group >= 0 && i >= 0; i--) {
    const sdg_operand_t *operand = &call->operand[i];
    if (group_of(colocation, op, i) != group || operand->dims != box->dims)
      continue;
    first = i;
    bool fits = !sdg_colocate_moves(colocation, i);
    for (int d = 0; d < box->dims; d++)
      fits &= operand->extent[d] == box->dim[d].hi - box->dim[d].lo &&
              (operand->extent[d] == 1 || operand->stride[d] > 0);
    if (fits) {
      memcpy(out, operand->stride, sizeof operand->stride);
      return;
    }
  }
  sdg_slab_pack(box, sdg_operand_nesting(&call->operand[first]), out);
}

static sdg_status_t moved_add(const sdg_colocation_t *colocation,
                              const sdg_op_t *op, int index, moved_t *moved) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  sdg_operand_t *operand = &moved->operand[index];
  sdg_box_t box =
      sdg_placement_box(sdg_colocate_at(colocation, index),
                        colocation->tagging.mesh, colocation->tagging.rank);
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  *operand = colocation->call->operand[index];
  for (int d = 0; d < box.dims; d++)
    operand->extent[d] = box.dim[d].hi - box.dim[d].lo;
  strides_choose(colocation, op, index, &box, operand->stride);
  moved->moves[index] = true;
  return describe(cudnn, operand, &box, &moved->descriptor[index]);
}

static sdg_status_t moved_init(const sdg_colocation_t *colocation,
                               const sdg_op_t *op, moved_t *moved) {
  for (int i = 0; i < colocation->call->operands; i++)
    if (sdg_colocate_moves(colocation, i))
      SDG_TRY(moved_add(colocation, op, i, moved));
  return SDG_OK;
}

// The program's call with other tensors in place of those that move. Do not
// copy it: it contains pointers into itself.
typedef struct rebound {
  sdg_call_t call;
  sdg_rebind_t rebind;
} rebound_t;

static void rebound_init(const sdg_call_t *call, rebound_t *out) {
  out->call = *call;
  sdg_rebind_init(call, &out->rebind);
  if (call->entry >= 0) // sundog's own: its arguments have no tensors
    out->call.args = &out->rebind.args;
}

static void rebound_put(const moved_t *moved, int index, void *data,
                        rebound_t *rebound) {
  sdg_operand_t *operand = &rebound->call.operand[index];
  memcpy(operand->extent, moved->operand[index].extent, sizeof operand->extent);
  memcpy(operand->stride, moved->operand[index].stride, sizeof operand->stride);
  operand->is_colocated = true;
  if (is_sequence(operand)) // lengths are read from it
    operand->descriptor = moved->descriptor[index];
  operand->data = data;
  sdg_rebind_put(&rebound->rebind, index, moved->descriptor[index], data);
}

// The call as the op sees it. The addresses are not known yet; each operand
// gets a different one, because each has memory of its own.
static void rebound_make(const sdg_colocation_t *colocation,
                         const moved_t *moved, rebound_t *out) {
  rebound_init(colocation->call, out);
  for (int i = 0; i < colocation->call->operands; i++)
    if (moved->moves[i]) {
      bool data = colocation->call->operand[i].data;
      rebound_put(moved, i, data ? (void *)(uintptr_t)&moved->operand[i] : NULL,
                  out);
    }
}

// ---- the plan --------------------------------------------------------------

static void state_destroy(void *user) {
  state_t *state = user;
  if (state->inner_destroy)
    state->inner_destroy(state->inner);
  moved_fini(&state->moved);
  free(state);
}

static int run(void *user, int index, const sdg_call_t *call,
               const sdg_exec_t *exec) {
  const state_t *state = user;
  rebound_t rebound;
  sdg_exec_t inner = *exec;
  rebound_init(call, &rebound);
  for (int i = 0; i < call->operands; i++)
    if (state->moved.moves[i])
      rebound_put(&state->moved, i,
                  i == state->moved.fetched
                      ? call->operand[i].data
                      : sdg_exec_address(exec, state->room[i]),
                  &rebound);
  inner.call = &rebound.call;
  return index == LITERAL
             ? sdg_rebind_invoke(&rebound.rebind)
             : state->inner_run(state->inner, index, &rebound.call, &inner);
}

// A plan being made.
typedef struct maker {
  const sdg_colocation_t *colocation;
  const sdg_tagging_t *tagging; // with the ranks of all operands
  sdg_plan_t *plan;
  state_t *state;
  sdg_box_t *need; // of one operand at a time, by rank of the group
  int own[SDG_OPERANDS_MAX];
  sdg_fetch_t fetch[SDG_OPERANDS_MAX];
} maker_t;

static sdg_box_t own_box(const maker_t *m, const sdg_placement_t *placement) {
  return sdg_tagging_own(m->tagging, placement);
}

// Adds a slab for the moved tensor, which the op's steps use in place of the
// program's, and a slab for the program's.
static sdg_status_t room_make(maker_t *m, int index) {
  const sdg_operand_t *operand = &m->colocation->call->operand[index];
  sdg_box_t is = own_box(m, &m->tagging->placement[index]);
  sdg_box_t at = own_box(m, sdg_colocate_at(m->colocation, index));
  SDG_TRY(sdg_plan_strided(m->plan, &at, m->state->moved.operand[index].stride,
                           sdg_operand_nesting(operand), operand->elem_bytes,
                           &m->state->room[index]));
  sdg_plan_rehome(m->plan, index, m->state->room[index]);
  return sdg_plan_operand(m->plan, m->colocation->call, index, &is,
                          &m->own[index]);
}

// A move of one operand to where the op needs it, or back.
typedef struct way {
  const sdg_placement_t *from;
  int source, target; // slabs
} way_t;

// Also fills m->need.
static way_t way_of(maker_t *m, int index, bool back) {
  const sdg_placement_t *is = &m->tagging->placement[index];
  const sdg_placement_t *at = sdg_colocate_at(m->colocation, index);
  int own = m->own[index], room = m->state->room[index];
  for (int r = 0; r < m->tagging->ranks; r++)
    m->need[r] = sdg_placement_box(back ? is : at, m->tagging->mesh,
                                   m->tagging->rank_list[r]);
  return back ? (way_t){at, room, own} : (way_t){is, own, room};
}

// Moves all operands of one direction in one exchange. Results go back to the
// program's memory after a sub-call, which the vendor may have refused.
static sdg_status_t ways_make(maker_t *m, const bool *goes, bool back) {
  int operands = m->colocation->call->operands;
  m->plan->axes = 0;
  for (int i = 0; i < operands; i++) {
    if (goes[i] &&
        sdg_fetch_communicates(m->tagging, way_of(m, i, back).from, m->need))
      m->plan->axes = m->tagging->axes;
  }
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
  for (int i = 0; i < operands; i++) {
    if (!goes[i])
      continue;
    way_t way = way_of(m, i, back);
    SDG_TRY(sdg_fetch_open(m->plan, m->tagging, way.from, m->need, way.source,
                           back ? SDG_SLAB_SCRATCH : way.target, &m->fetch[i]));
    m->fetch[i].into = way.target;
  }
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < operands; i++)
    if (goes[i])
      SDG_TRY(sdg_fetch_own(m->plan, &m->fetch[i]));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < operands; i++) {
    if (!goes[i])
      continue;
    SDG_TRY(sdg_fetch_land(m->plan, &m->fetch[i]));
    sdg_fetch_fini(&m->fetch[i]);
    m->fetch[i] = (sdg_fetch_t){.landed = NULL};
  }
  return back ? SDG_OK : sdg_plan_join(m->plan, SDG_LANE_COMM);
}

// Puts the moves of inputs before the op's steps, and those of outputs after
// them.
static sdg_status_t steps_make(maker_t *m) {
  const sdg_call_t *call = m->colocation->call;
  bool in[SDG_OPERANDS_MAX] = {false}, out[SDG_OPERANDS_MAX] = {false};
  bool any_in = false, any_out = false;
  int first = m->plan->steps;
  for (int i = 0; i < call->operands; i++) {
    if (!m->state->moved.moves[i] || i == m->state->moved.fetched)
      continue;
    out[i] = call->operand[i].is_output;
    in[i] = !out[i] || m->colocation->reads_old;
    any_out |= out[i];
    any_in |= in[i];
    SDG_TRY(room_make(m, i));
  }
  if (any_in)
    SDG_TRY(ways_make(m, in, false));
  SDG_TRY(sdg_plan_advance(m->plan, first));
  if (m->plan->literal)
    SDG_TRY(sdg_plan_call(m->plan, LITERAL));
  return any_out ? ways_make(m, out, true) : SDG_OK;
}

// Wraps the state of the op's plan, which the plan then owns.
static sdg_status_t state_wrap(sdg_plan_t *plan, const moved_t *moved,
                               state_t **out) {
  state_t *state;
  SDG_TRY(SDG_ALLOCATE(state, 1, "a plan"));
  *state = (state_t){.moved = *moved,
                     .inner = plan->state,
                     .inner_destroy = plan->state_destroy,
                     .inner_run = plan->run};
  plan->state = state;
  plan->state_destroy = state_destroy;
  plan->run = run;
  *out = state;
  return SDG_OK;
}

static const char bring_why[] =
    "the operands were cut in different places; sundog moves them to the "
    "places of one of them, where the program's own call is right";

static sdg_status_t plan_extend(const sdg_colocation_t *colocation,
                                const sdg_tagging_t *tagging, state_t *state,
                                sdg_plan_t *plan) {
  maker_t m = {
      .colocation = colocation,
      .tagging = tagging,
      .plan = plan,
      .state = state,
      .need = calloc((size_t)tagging->ranks, sizeof *m.need),
  };
  sdg_status_t status =
      m.need ? steps_make(&m) : sdg_fail(SDG_E_NO_MEMORY, "a plan");
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    sdg_fetch_fini(&m.fetch[i]);
  free(m.need);
  if (plan->literal) {
    plan->strategy = "bring";
    plan->why = bring_why;
  }
  plan->literal = false;
  return status;
}

// Finds the operand that the op's plan can fetch itself, together with what it
// fetches anyway. Only if no other operand has to be moved before the op's
// steps; this saves an exchange.
static void fetch_find(const sdg_colocation_t *colocation, const sdg_op_t *op,
                       const sdg_call_t *call, const sdg_tagging_t *tagging,
                       moved_t *moved, sdg_remote_t *out) {
  int operand = op->shard && op->shard->fetches
                    ? op->shard->fetches(call, &colocation->tagging)
                    : -1;
  moved->fetched = -1;
  if (operand < 0 || !moved->moves[operand])
    return;
  for (int i = 0; i < colocation->call->operands; i++)
    if (i != operand && moved->moves[i] &&
        (!colocation->call->operand[i].is_output || colocation->reads_old))
      return;
  moved->fetched = operand;
  const sdg_placement_t *from = &tagging->placement[operand];
  *out = (sdg_remote_t){
      .operand = operand,
      .from = from,
      .box = sdg_tagging_own(tagging, from),
      .tensor = &colocation->call->operand[operand],
  };
}

// The op's plan; among all ranks if it fetches an operand from them.
static sdg_status_t rule_plan(const sdg_colocation_t *colocation,
                              const sdg_op_t *op, const sdg_tagging_t *tagging,
                              const sdg_remote_t *remote,
                              const sdg_call_t *call, sdg_plan_t **out_plan) {
  sdg_tagging_t *own;
  SDG_TRY(SDG_ALLOCATE(own, 1, "a tagging"));
  *own = colocation->tagging;
  if (remote) {
    own->remote = remote;
    sdg_tagging_span(own, tagging->axes);
  }
  sdg_status_t status = op->plan(call, own, out_plan);
  free(own);
  return status;
}

sdg_status_t sdg_colocate_plan(const sdg_colocation_t *colocation,
                               const sdg_op_t *op, const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  moved_t moved = {.moves = {false}};
  rebound_t rebound;
  sdg_remote_t remote;
  sdg_plan_t *plan = NULL;
  state_t *state = NULL;
  sdg_status_t status;
  SDG_TRY_GOTO(moved_init(colocation, op, &moved), fail);
  rebound_make(colocation, &moved, &rebound);
  fetch_find(colocation, op, &rebound.call, tagging, &moved, &remote);
  SDG_TRY_GOTO(rule_plan(colocation, op, tagging,
                         moved.fetched < 0 ? NULL : &remote, &rebound.call,
                         &plan),
               fail);
  SDG_TRY_GOTO(state_wrap(plan, &moved, &state), fail);
  if (state && !plan->refusal)
    status = plan_extend(colocation, tagging, state, plan);
  return sdg_plan_finish(plan, status, out_plan);
fail:
  moved_fini(&moved);
  sdg_plan_destroy(plan);
  return status;
}

sdg_status_t sdg_colocate_answer(const sdg_colocation_t *colocation,
                                 const sdg_op_t *op,
                                 const sdg_tagging_t *tagging,
                                 int *out_vendor) {
  moved_t moved = {.moves = {false}};
  rebound_t rebound;
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < colocation->call->operands; i++)
    if (sdg_colocate_moves(colocation, i) && colocation->call->operand[i].data)
      return sdg_tagging_differ(colocation->call, tagging, i, i == 0);
  SDG_TRY_GOTO(moved_init(colocation, op, &moved), out);
  rebound_make(colocation, &moved, &rebound);
  status = op->answer(&rebound.call, &colocation->tagging, out_vendor);
out:
  moved_fini(&moved);
  return status;
}
