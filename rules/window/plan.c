// SPDX-License-Identifier: Apache-2.0
// Plans the steps of a windowed op: messages, the call in place, strips.
#include "rules/window/plan.h"

#include <stdlib.h>

// ---- tensors in scratch ----------------------------------------------------

sdg_status_t sdg_window_assemble_own(sdg_plan_t *plan,
                                     const sdg_transfer_t *transfer,
                                     const sdg_box_t *domain, int from, int to,
                                     sdg_copy_kind_t kind) {
  sdg_box_t outside[2 * SDG_DIMS_MAX];
  int count = sdg_box_subtract(&plan->slab[to].box, domain, outside);
  for (int i = 0; i < count; i++)
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, to, &outside[i]));
  for (int i = 0; i < transfer->locals; i++) {
    const sdg_message_t *local = &transfer->local[i];
    sdg_box_t box = sdg_box_shift(&local->box, local->shift);
    SDG_TRY(
        sdg_plan_copy(plan, SDG_LANE_MAIN, from, to, local->shift, &box, kind));
  }
  return SDG_OK;
}

sdg_status_t sdg_window_assemble_received(sdg_plan_t *plan,
                                          const sdg_transfer_t *transfer,
                                          const int *message, int to) {
  for (int i = 0; i < transfer->recvs; i++)
    if (message[i] >= 0)
      SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, message[i], to, NULL, NULL,
                            SDG_COPY_HALO));
  return SDG_OK;
}

// ---- the steps --------------------------------------------------------------

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_window_op_t *op;
  const sdg_window_client_t *client;
  sdg_plan_t *plan;
  int x, y, z;          // slabs of the program's tensors; z -1: no z
  sdg_copy_kind_t copy; // of assembled tensors
  int *message;         // slab of each received message, -1: in place
  int calls;            // sub-calls so far
  int refusal;          // the vendor's status for a piece
} maker_t;

static sdg_status_t maker_open(maker_t *m, sdg_axes_t axes, bool extend) {
  const sdg_window_op_t *op = m->op;
  const char *in_place = op->whole ? "window" : "repair";
  SDG_TRY(sdg_plan_create(extend ? "extend" : in_place, &m->plan));
  m->plan->axes = axes;
  m->plan->price = op->price;
  SDG_TRY(SDG_ALLOCATE(m->message, op->transfer.recvs + 1, "a plan"));
  m->z = -1;
  SDG_TRY(op->remote ? sdg_plan_tensor(m->plan, op->remote->tensor,
                                       m->client->x, &op->remote->box, &m->x)
                     : sdg_plan_operand(m->plan, m->call, m->client->x,
                                        &op->x_box, &m->x));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, m->client->y, &op->y_box, &m->y));
  if (m->client->z >= 0)
    SDG_TRY(
        sdg_plan_operand(m->plan, m->call, m->client->z, &op->y_box, &m->z));
  return m->client->open(m->client->user, m->plan);
}

static sdg_status_t sub_add(maker_t *m, const sdg_window_piece_t *piece,
                            const sdg_window_slabs_t *slabs) {
  m->calls++;
  SDG_TRY(m->client->add(m->client->user, m->plan, piece, slabs, &m->refusal));
  return m->refusal ? SDG_E_VENDOR_CALL : SDG_OK;
}

static bool is_program(const sdg_window_op_t *op,
                       const sdg_window_piece_t *piece) {
  for (int d = 2; d < op->dims; d++)
    if (piece->pad[d] != op->dim[d].window.pad)
      return false;
  return sdg_box_equal(&piece->x, &op->x_box) &&
         sdg_box_equal(&piece->y, &op->y_box);
}

// Adds the piece that the real function computes on the program's own tensors.
static sdg_status_t view_open(maker_t *m, const sdg_window_piece_t *piece) {
  sdg_window_slabs_t slabs = {
      .x = m->x,
      .y = m->y,
      .z = m->z,
      .program = is_program(m->op, piece),
  };
  return sub_add(m, piece, &slabs);
}

// A piece that has slabs of its own: an assembled x, and copies of parts of y
// and z. A piece that computes all of y writes the program's y.
typedef struct strip {
  const sdg_window_piece_t *piece;
  sdg_window_slabs_t slabs;
  bool apart; // y is a copy, whose kept rows then overwrite the program's
  int call;   // of a stack's first strip: the sub-call for all of them
} strip_t;

static void stacks_find(const maker_t *m, const sdg_window_piece_t *piece,
                        int strips, int *out_lead) {
  const int64_t *like[3] = {m->plan->slab[m->x].nesting,
                            m->plan->slab[m->y].nesting};
  if (m->z >= 0)
    like[2] = m->plan->slab[m->z].nesting;
  sdg_window_stacks_find(piece, strips, like, m->z >= 0 ? 3 : 2, out_lead);
}

// Opens the stack that begins with strip `first`, and adds its sub-call.
static sdg_status_t stack_open(maker_t *m, const sdg_window_piece_t *piece,
                               int strips, const int *lead, int first,
                               strip_t *strip) {
  int size = sdg_window_stack_size(lead, strips, first);
  bool apart = sdg_window_op_is_apart(m->op, &piece[first]);
  const sdg_window_slabs_t like = {
      .x = m->x, .y = apart ? m->y : -1, .z = apart ? m->z : -1};
  sdg_window_slabs_t all = {.y = m->y, .z = m->z};
  SDG_TRY(sdg_window_stack_open(m->plan, &piece[first], size, &like, &all));
  for (int i = first, at = 0; i < strips; i++) {
    if (lead[i] != first)
      continue;
    strip[i] = (strip_t){.piece = &piece[i], .slabs = all, .apart = apart};
    SDG_TRY(sdg_window_stack_strip(m->plan, &all, at++, &piece[i], &like,
                                   &strip[i].slabs));
  }
  strip[first].call = m->calls;
  sdg_window_piece_t stack = sdg_window_stack_piece(&piece[first], size);
  return sub_add(m, &stack, &all);
}

// Saves old values of rows that the call in place will overwrite; z may be y.
static sdg_status_t strip_save(maker_t *m, const strip_t *strip) {
  if (!strip->apart || !m->client->reads_old)
    return SDG_OK;
  bool z = m->z >= 0;
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, z ? m->z : m->y,
                       z ? strip->slabs.z : strip->slabs.y, NULL,
                       &strip->piece->keep, SDG_COPY_STRIP);
}

// Assembles the rows of x that this rank has: zeros outside the domain, own
// rows, own rows wrapped around. Rows that no kept output sees are not set.
static sdg_status_t strip_own(maker_t *m, const strip_t *strip) {
  sdg_box_t domain = sdg_window_op_domain(m->op, &strip->piece->x);
  return sdg_window_assemble_own(m->plan, &m->op->transfer, &domain, m->x,
                                 strip->slabs.x, m->copy);
}

static sdg_status_t strip_store(maker_t *m, const strip_t *strip) {
  if (!strip->apart)
    return SDG_OK;
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, strip->slabs.y, m->y, NULL,
                       &strip->piece->keep, SDG_COPY_STRIP);
}

static sdg_status_t stack_finish(maker_t *m, const strip_t *strip, int strips,
                                 const int *lead, int first) {
  for (int i = first; i < strips; i++)
    if (lead[i] == first)
      SDG_TRY(sdg_window_assemble_received(m->plan, &m->op->transfer,
                                           m->message, strip[i].slabs.x));
  SDG_TRY(sdg_plan_call(m->plan, strip[first].call));
  for (int i = first; i < strips; i++)
    if (lead[i] == first)
      SDG_TRY(strip_store(m, &strip[i]));
  return SDG_OK;
}

// The steps in their order: send messages; meanwhile compute in place what is
// possible; assemble strips from own rows, then from messages; compute the
// strips, whose outputs overwrite.
static sdg_status_t steps_make(maker_t *m, bool extend) {
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  strip_t strip[SDG_PIECES_MAX];
  int lead[SDG_PIECES_MAX], into[SDG_PIECES_MAX];
  bool view;
  int pieces = sdg_window_op_pieces(m->op, extend, &view, piece);
  int strips = pieces - view;
  if (view)
    SDG_TRY(view_open(m, &piece[0]));
  stacks_find(m, piece + view, strips, lead);
  for (int i = 0; i < strips; i++)
    if (lead[i] == i)
      SDG_TRY(stack_open(m, piece + view, strips, lead, i, strip));
  for (int i = 0; i < strips; i++)
    into[i] = strip[i].slabs.x;
  // With keeps_x messages arrive in slabs of their own, which may be kept.
  SDG_TRY(sdg_plan_messages(m->plan, &m->op->transfer, m->x, into,
                            m->client->keeps_x ? 0 : strips, m->message));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < strips; i++)
    SDG_TRY(strip_save(m, &strip[i]));
  if (view)
    SDG_TRY(sdg_plan_call(m->plan, 0));
  for (int i = 0; i < strips; i++)
    SDG_TRY(strip_own(m, &strip[i]));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < strips; i++)
    if (lead[i] == i)
      SDG_TRY(stack_finish(m, strip, strips, lead, i));
  return m->client->close(m->client->user, m->plan);
}

// *out_refusal: the vendor's status if its library rejects the piece; no other
// failure goes unreported.
static sdg_status_t plan_make(const sdg_call_t *call, const sdg_window_op_t *op,
                              const sdg_window_client_t *client,
                              sdg_axes_t axes, bool extend,
                              sdg_plan_t **out_plan, int *out_refusal) {
  maker_t maker = {
      .call = call,
      .op = op,
      .client = client,
      .copy = extend ? SDG_COPY_ACTIVATION : SDG_COPY_STRIP,
  };
  sdg_status_t status = maker_open(&maker, axes, extend);
  if (status == SDG_OK)
    status = steps_make(&maker, extend);
  free(maker.message);
  *out_refusal = maker.refusal;
  return sdg_plan_finish(maker.plan, status, out_plan);
}

sdg_status_t sdg_window_plan_literal(sdg_axes_t axes, sdg_plan_t **out_plan) {
  SDG_TRY(sdg_plan_create("literal", out_plan));
  (*out_plan)->literal = true;
  (*out_plan)->axes = axes;
  return sdg_plan_exchange(*out_plan);
}

sdg_status_t sdg_window_plan_refused(const sdg_call_t *call, int refusal) {
  return sdg_fail(
      SDG_E_VENDOR_CALL,
      "%s: the vendor's library has no algorithm for a piece of it: status %d",
      call->entry_name, refusal);
}

// In place, or, if the vendor's library rejects that, on assembled tensors.
// Each rank may decide this alone, because it sends, reads and writes the same
// elements either way.
static sdg_status_t strategies_try(const sdg_call_t *call,
                                   const sdg_window_op_t *op,
                                   const sdg_window_client_t *client,
                                   sdg_axes_t axes, sdg_strategy_t strategy,
                                   sdg_plan_t **out_plan) {
  bool extend = sdg_window_op_extends(op, strategy);
  int refusal;
  sdg_status_t status =
      plan_make(call, op, client, axes, extend, out_plan, &refusal);
  if (refusal && !extend)
    status = plan_make(call, op, client, axes, true, out_plan, &refusal);
  return refusal ? sdg_window_plan_refused(call, refusal) : status;
}

sdg_status_t sdg_window_plan(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_window_op_t *op,
                             const sdg_window_client_t *client,
                             sdg_plan_t **out_plan) {
  sdg_axes_t axes = op->communicates ? tagging->axes : 0;
  sdg_strategy_t strategy = tagging->section->strategy;
  if (strategy != SDG_STRATEGY_EXTEND && sdg_window_op_is_literal(op) &&
      !client->refuses_own)
    return sdg_window_plan_literal(axes, out_plan);
  return strategies_try(call, op, client, axes, strategy, out_plan);
}

sdg_status_t sdg_window_plan_whole(const sdg_call_t *call,
                                   const sdg_window_op_t *op,
                                   const sdg_window_client_t *client,
                                   sdg_strategy_t strategy,
                                   sdg_plan_t **out_plan) {
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  bool in_place;
  if (sdg_window_op_pieces(op, true, &in_place, piece) == 0)
    return sdg_plan_create("window", out_plan); // nothing to do here
  return strategies_try(call, op, client, 0, strategy, out_plan);
}
