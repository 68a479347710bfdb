// SPDX-License-Identifier: Apache-2.0
// Plans the steps of a filter gradient: messages, the call in place, strips
// that add, the sum over the ranks.
#include <stdlib.h>
#include <string.h>

#include "rules/conv/filter.h"
#include "rules/kit/gradient_sum.h"
#include "rules/place/tagging.h"
#include "rules/window/plan.h"

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_conv_t *conv;
  const sdg_window_piece_t *view; // NULL: everything is assembled
  sdg_plan_t *plan;
  sdg_copy_kind_t copy; // of assembled slabs
  int x, y;             // slabs of the program's tensors
  sdg_conv_filter_strip_t *strip;
  sdg_window_slabs_t *slabs; // slabs of each strip
  sdg_window_slabs_t *stack; // of a first strip: of all strips of its stack
  int strips;
  sdg_gradient_sum_t sum;
  bool apart; // messages do not arrive in assembled slabs
  sdg_conv_way_t way;
  bool any;     // a sub-call was added
  int *message; // slab of each received message, -1: in place
  int refusal;  // the vendor's status for a piece
} maker_t;

// `taps`: the part of the filter; NULL: all of it.
static sdg_status_t piece_add(maker_t *m, const sdg_window_piece_t *piece,
                              const sdg_range_t *taps, int x, int y) {
  const sdg_conv_gradient_slabs_t slabs = {
      .x = x, .y = y, .w = m->sum.part, .unscaled = m->sum.scales};
  if (taps && !m->any)
    SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &m->sum));
  sdg_conv_gradient_old_t old = m->any || taps      ? SDG_CONV_GRADIENT_ADD
                                : m->sum.takes_beta ? SDG_CONV_GRADIENT_BETA
                                                    : SDG_CONV_GRADIENT_CLEAR;
  m->any = true;
  return taps ? sdg_conv_gradient_add_taps(m->conv, m->call, m->plan, piece,
                                           taps, &slabs, &m->refusal)
              : sdg_conv_gradient_add(m->conv, m->call, m->plan, piece, &slabs,
                                      old, &m->refusal);
}

// Opens the strips of the stack that begins with strip `first`.
static sdg_status_t stack_open(maker_t *m, int first) {
  const sdg_conv_filter_strip_t *strip = m->strip;
  const sdg_window_piece_t *piece = &strip[first].piece;
  int size = strip[first].size;
  bool own = size == 1 && m->way != SDG_CONV_APART &&
             sdg_box_equal(&piece->y, &m->conv->op.y_box);
  const sdg_window_slabs_t like = {.x = m->x, .y = own ? -1 : m->y, .z = -1};
  sdg_window_slabs_t *all = &m->stack[first];
  all->y = m->y;
  SDG_TRY(sdg_window_stack_open(m->plan, piece, size, &like, all));
  for (int i = first, at = 0; i < m->strips; i++) {
    if (strip[i].lead != first)
      continue;
    m->slabs[i].y = m->y;
    SDG_TRY(sdg_window_stack_strip(m->plan, all, at++, &strip[i].piece, &like,
                                   &m->slabs[i]));
  }
  return SDG_OK;
}

// Strips' copies of one tensor are neighbours: one copy may do them all.
static sdg_status_t strips_own(maker_t *m) {
  const sdg_window_op_t *op = &m->conv->op;
  for (int s = 0; s < m->strips; s++)
    if (m->slabs[s].y != m->y)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->y, m->slabs[s].y, NULL,
                            NULL, SDG_COPY_STRIP));
  for (int s = 0; s < m->strips; s++) {
    sdg_box_t domain = sdg_window_op_domain(op, &m->strip[s].piece.x);
    SDG_TRY(sdg_window_assemble_own(m->plan, &op->transfer, &domain, m->x,
                                    m->slabs[s].x, m->copy));
  }
  return SDG_OK;
}

// Computes the strips of the stack that begins with strip `first`.
static sdg_status_t stack_finish(maker_t *m, int first) {
  const sdg_conv_filter_strip_t *strip = &m->strip[first];
  for (int i = first; i < m->strips; i++)
    if (m->strip[i].lead == first)
      SDG_TRY(sdg_window_assemble_received(m->plan, &m->conv->op.transfer,
                                           m->message, m->slabs[i].x));
  sdg_window_piece_t piece = sdg_window_stack_piece(&strip->piece, strip->size);
  return piece_add(m, &piece, strip->all ? NULL : strip->taps,
                   m->stack[first].x, m->stack[first].y);
}

static sdg_status_t messages_add(maker_t *m) {
  int *into;
  SDG_TRY(SDG_ALLOCATE(into, m->strips + 1, "a plan"));
  for (int i = 0; i < m->strips; i++)
    into[i] = m->slabs[i].x;
  sdg_status_t status =
      sdg_plan_messages(m->plan, &m->conv->op.transfer, m->x, into,
                        m->apart ? 0 : m->strips, m->message);
  free(into);
  return status;
}

// The call in place, on the program's own tensors or a packed copy of x.
static sdg_status_t view_add(maker_t *m) {
  int x = m->x;
  if (m->way == SDG_CONV_PACKED) {
    SDG_TRY(sdg_plan_scratch(m->plan, &m->view->x, m->x, &x));
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->x, x, NULL, NULL,
                          SDG_COPY_ACTIVATION));
  }
  return piece_add(m, m->view, NULL, x, m->y);
}

// The steps in their order: send messages; meanwhile compute in place what is
// possible; assemble strips from own rows, then from messages; compute the
// strips, which add; sum over the ranks.
static sdg_status_t steps_make(maker_t *m) {
  for (int i = 0; i < m->strips; i++)
    if (m->strip[i].size > 0)
      SDG_TRY(stack_open(m, i));
  SDG_TRY(messages_add(m));
  SDG_TRY(sdg_plan_exchange(m->plan));
  if (m->view)
    SDG_TRY(view_add(m));
  SDG_TRY(strips_own(m));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < m->strips; i++)
    if (m->strip[i].size > 0)
      SDG_TRY(stack_finish(m, i));
  if (!m->any)
    SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &m->sum));
  return sdg_gradient_sum_close(m->plan, m->call, &m->sum);
}

// What a plan depends on besides the call.
typedef struct order {
  const char *strategy;      // of the plan if it has a view
  sdg_axes_t axes, sum_axes; // axes of messages, and of sums
  bool keeps_x;              // messages are kept
} order_t;

static sdg_status_t maker_open(maker_t *m, const order_t *order) {
  const sdg_window_op_t *op = &m->conv->op;
  SDG_TRY(sdg_plan_create(m->view ? order->strategy : "extend", &m->plan));
  SDG_TRY(SDG_ALLOCATE(m->message, op->transfer.recvs + 1, "a plan"));
  m->plan->axes = order->axes;
  m->plan->price = op->price;
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, m->conv->x, &op->x_box, &m->x));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, m->conv->y, &op->y_box, &m->y));
  const int64_t *like[] = {m->plan->slab[m->x].nesting,
                           m->plan->slab[m->y].nesting};
  SDG_TRY(sdg_conv_filter_strips(op, m->view, like, &m->strip, &m->strips));
  SDG_TRY(SDG_ALLOCATE(m->slabs, m->strips + 1, "a plan"));
  SDG_TRY(SDG_ALLOCATE(m->stack, m->strips + 1, "a plan"));
  SDG_TRY(sdg_gradient_sum_open(m->plan, m->call, m->conv->w, order->sum_axes,
                                sdg_conv_gradient_beta, &m->sum));
  return sdg_gradient_sum_scale_last(m->plan, m->call, &m->sum);
}

// *out_refusal: the vendor's status if its library rejects the piece; no other
// failure goes unreported.
static sdg_status_t plan_make(const sdg_call_t *call, const sdg_conv_t *conv,
                              const order_t *order,
                              const sdg_window_piece_t *view,
                              sdg_conv_way_t way, sdg_plan_t **out_plan,
                              int *out_refusal) {
  if (way >= SDG_CONV_EXTENDED)
    view = NULL;
  maker_t maker = {
      .call = call,
      .conv = conv,
      .view = view,
      .copy = view ? SDG_COPY_STRIP : SDG_COPY_ACTIVATION,
      .apart = order->keeps_x,
      .way = way,
  };
  sdg_status_t status = maker_open(&maker, order);
  if (status == SDG_OK)
    status = steps_make(&maker);
  free(maker.message);
  free(maker.slabs);
  free(maker.stack);
  free(maker.strip);
  *out_refusal = maker.refusal;
  return sdg_plan_finish(maker.plan, status, out_plan);
}

static sdg_status_t ways_try(const sdg_call_t *call, const sdg_conv_t *conv,
                             const order_t *order, sdg_strategy_t strategy,
                             sdg_plan_t **out_plan) {
  sdg_window_piece_t view;
  sdg_conv_way_t way;
  int refusal;
  SDG_TRY(sdg_conv_filter_first(call, conv, strategy, &view, &way));
  for (;;) {
    sdg_status_t status =
        plan_make(call, conv, order, &view, way, out_plan, &refusal);
    if (!refusal)
      return status;
    SDG_TRY(sdg_conv_filter_next(call, conv, strategy, &way));
    if (way == SDG_CONV_WAYS)
      return sdg_window_plan_refused(call, refusal);
  }
}

// Whether the program's own call, unchanged, gives the right result.
static bool is_literal(const sdg_window_op_t *op) {
  sdg_window_piece_t view;
  if (op->transfer.sends || op->transfer.recvs ||
      !sdg_conv_filter_view(op, &op->x_box, &view))
    return false;
  for (int d = 2; d < op->dims; d++)
    if (view.pad[d] != op->dim[d].window.pad)
      return false;
  return sdg_box_equal(&view.x, &op->x_box) &&
         sdg_box_equal(&view.y, &op->y_box);
}

static sdg_status_t shard_plan(const sdg_call_t *call, const sdg_conv_t *conv,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  sdg_strategy_t strategy = tagging->section->strategy;
  const order_t order = {"repair", conv->op.communicates ? tagging->axes : 0,
                         tagging->sum_axes, tagging->section->keeps_x};
  int refusal =
      sdg_conv_refusal(call, conv, tagging, sdg_call_int(call, SDG_ALGO));
  if (refusal)
    return sdg_plan_create_refused(refusal, out_plan);
  if (!tagging->sum_axes && strategy != SDG_STRATEGY_EXTEND &&
      is_literal(&conv->op) && !sdg_conv_refused_own(call))
    return sdg_window_plan_literal(order.axes, out_plan);
  return ways_try(call, conv, &order, strategy, out_plan);
}

sdg_status_t sdg_conv_filter_plan(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  SDG_TRY(sdg_tagging_sure(call, tagging));
  SDG_TRY(sdg_conv_init(call, tagging, &conv));
  sdg_conv_filter_settle(call, &conv);
  sdg_status_t status = sdg_conv_filter_weigh(call, tagging, &conv);
  if (status == SDG_OK)
    status = shard_plan(call, &conv, tagging, out_plan);
  sdg_conv_fini(&conv);
  return status;
}

// ---- the whole view --------------------------------------------------------

// What each rank of the job reads: its rows of dy, its need of x and, if old
// values count, all of them.
static sdg_status_t share_fill(sdg_share_t *share, const sdg_call_t *call,
                               const sdg_conv_t *conv,
                               const sdg_tagging_t *tagging) {
  sdg_box_t *need;
  share->around = sdg_window_op_wraps(&conv->op);
  SDG_TRY(sdg_gradient_sum_share(share, call, conv->w,
                                 sdg_conv_gradient_beta(call)));
  SDG_TRY(sdg_share_reads(share, conv->x, &need));
  for (int r = 0; r < share->ranks; r++)
    need[r] = sdg_window_op_need(&conv->op, tagging, &conv->spec, r);
  return sdg_share_reads_own(share, conv->y, &conv->op.y_placement,
                             tagging->mesh);
}

static sdg_status_t share_make(const sdg_call_t *call, const sdg_conv_t *conv,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  // After a refusal another strategy may be tried. Each rank decides this for
  // itself.
  sdg_strategy_t strategy = tagging->section->strategy == SDG_STRATEGY_EXTEND
                                ? SDG_STRATEGY_EXTEND
                                : SDG_STRATEGY_AUTO;
  const order_t order = {"window", 0, tagging->sum_axes, false};
  sdg_share_t *share;
  sdg_status_t status;
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &share));
  SDG_TRY_GOTO(share_fill(share, call, conv, tagging), fail);
  SDG_TRY_GOTO(ways_try(call, conv, &order, strategy, out_plan), fail);
fail:
  return sdg_plan_finish_share(share, status, out_plan);
}

sdg_status_t sdg_conv_filter_share(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  bool can;
  *out_plan = NULL;
  if (sdg_conv_refused_own(call))
    return SDG_OK;
  SDG_TRY(sdg_conv_init_whole(call, tagging, &conv, &can));
  if (!can)
    return SDG_OK;
  sdg_window_piece_t view;
  if (sdg_conv_filter_view(&conv.op, &conv.op.x_box, &view))
    sdg_conv_view_judge(call, &conv, &view);
  sdg_status_t status = share_make(call, &conv, tagging, out_plan);
  sdg_conv_fini(&conv);
  return status;
}
