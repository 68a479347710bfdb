// SPDX-License-Identifier: Apache-2.0
// Plans the steps of a data gradient: messages, the call in place, strips that
// overwrite.
#include <math.h>
#include <stdlib.h>

#include "rules/conv/adjoint.h"
#include "rules/conv/gradient.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/window/plan.h"

// One sub-call of a strip: one image of it.
typedef struct part {
  int image, strip;
  sdg_window_piece_t piece;
  int y; // slab of the assembled dy
  int x; // slab of rows that are added to the strip; -1: computes the strip
         // itself
} part_t;

typedef struct strip {
  sdg_box_t want;
  int x;      // slab that the sub-calls write
  bool apart; // x is a copy that overwrites
  int sum;    // slab where all images are added up; -1: x
} strip_t;

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_conv_data_t *dgrad;
  sdg_plan_t *plan;
  bool reads_old;
  bool late;  // images are added before alpha, which is infinite:
              // infinities may add up to NaN
  bool apart; // messages do not arrive in assembled slabs
  sdg_conv_way_t way;
  sdg_copy_kind_t copy; // of assembled slabs
  int x, y;             // slabs of the program's tensors
  strip_t strip[2 * SDG_DIMS_MAX];
  int strips;
  // If strips are single sub-calls: of each, the first one of its stack, which
  // one sub-call computes on the slabs `all`.
  bool stacks;
  int lead[2 * SDG_DIMS_MAX];
  sdg_window_slabs_t all[2 * SDG_DIMS_MAX];
  part_t *part; // in the order of strips, then of images
  int parts;
  int **message; // per image, the slab of each received message; -1: in place
  int refusal;   // the vendor's status for a piece
} maker_t;

// The call in place, on the program's own tensors or a packed copy of dy.
static sdg_status_t piece_call(maker_t *m, const sdg_window_piece_t *piece) {
  sdg_conv_gradient_slabs_t slabs = {.x = m->x, .y = m->y};
  if (m->way == SDG_CONV_PACKED) {
    SDG_TRY(sdg_plan_scratch(m->plan, &piece->y, m->y, &slabs.y));
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->y, slabs.y, NULL, NULL,
                          SDG_COPY_ACTIVATION));
  }
  return sdg_conv_gradient_add(&m->dgrad->conv, m->call, m->plan, piece, &slabs,
                               SDG_CONV_GRADIENT_BETA, &m->refusal);
}

static sdg_status_t strip_open(maker_t *m, int s) {
  strip_t *strip = &m->strip[s];
  bool sums;
  sdg_box_t made = sdg_conv_data_made(m->dgrad, &strip->want, &sums);
  if (m->late) {
    sums = true;
    made = strip->want;
  }
  strip->apart = sdg_conv_data_is_apart(m->dgrad, &made, &strip->want);
  strip->x = m->x;
  if (strip->apart)
    SDG_TRY(sdg_plan_scratch(m->plan, &made, m->x, &strip->x));
  strip->sum = -1;
  if (sums)
    SDG_TRY(sdg_plan_scratch(m->plan, &made, m->x, &strip->sum));
  for (int i = 0; i < m->dgrad->images; i++) {
    part_t *part = &m->part[m->parts];
    *part = (part_t){.image = i, .strip = s};
    if (!sdg_conv_data_piece(m->dgrad, &strip->want, i, &part->piece))
      continue;
    m->parts++;
    part->x = -1;
    SDG_TRY(sdg_plan_scratch(m->plan, &part->piece.y, m->y, &part->y));
    if (sums || !sdg_box_equal(&part->piece.x, &made))
      SDG_TRY(sdg_plan_scratch(m->plan, &part->piece.x, m->x, &part->x));
  }
  return SDG_OK;
}

// Opens the strips of the stack that begins with strip `first`.
static sdg_status_t stack_open(maker_t *m, const sdg_window_piece_t *piece,
                               int first) {
  const sdg_window_slabs_t like = {.x = m->x, .y = m->y, .z = -1};
  int size = sdg_window_stack_size(m->lead, m->strips, first);
  sdg_window_slabs_t *all = &m->all[first], slabs;
  SDG_TRY(sdg_window_stack_open(m->plan, &piece[first], size, &like, all));
  for (int s = first, at = 0; s < m->strips; s++) {
    if (m->lead[s] != first)
      continue;
    SDG_TRY(
        sdg_window_stack_strip(m->plan, all, at++, &piece[s], &like, &slabs));
    m->strip[s].x = slabs.x;
    m->strip[s].apart = true;
    m->strip[s].sum = -1;
    m->part[s] = (part_t){.strip = s, .piece = piece[s], .y = slabs.y, .x = -1};
  }
  return SDG_OK;
}

static sdg_status_t strips_open(maker_t *m) {
  sdg_box_t want[2 * SDG_DIMS_MAX];
  sdg_window_piece_t piece[2 * SDG_DIMS_MAX];
  for (int s = 0; s < m->strips; s++)
    want[s] = m->strip[s].want;
  m->stacks = sdg_conv_data_stacks(m->dgrad, want, m->strips,
                                   m->plan->slab[m->x].nesting,
                                   m->plan->slab[m->y].nesting, piece, m->lead);
  for (int s = 0; s < m->strips && !m->stacks; s++)
    SDG_TRY(strip_open(m, s));
  for (int s = 0; s < m->strips && m->stacks; s++)
    if (m->lead[s] == s)
      SDG_TRY(stack_open(m, piece, s));
  if (m->stacks)
    m->parts = m->strips;
  return SDG_OK;
}

// An image's messages are received into the strips that the image is added to.
static sdg_status_t messages_add(maker_t *m, int image) {
  int into[2 * SDG_DIMS_MAX], intos = 0;
  for (int i = 0; !m->apart && i < m->parts; i++)
    if (m->part[i].image == image)
      into[intos++] = m->part[i].y;
  return sdg_plan_messages(m->plan, &m->dgrad->image[image].transfer, m->y,
                           into, intos, m->message[image]);
}

// Saves old values of rows that the call in place will overwrite.
static sdg_status_t strip_save(maker_t *m, const strip_t *strip) {
  if (!strip->apart || !m->reads_old)
    return SDG_OK;
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->x, strip->x, NULL, NULL,
                       SDG_COPY_STRIP);
}

// Assembles the rows of dy that this rank has, with zeros outside the domain.
static sdg_status_t part_own(maker_t *m, const part_t *part) {
  const sdg_window_op_t *op = &m->dgrad->conv.op;
  const sdg_transfer_t *transfer = &m->dgrad->image[part->image].transfer;
  sdg_box_t domain = part->piece.y;
  for (int d = 0; d < op->dims; d++)
    if (d != 1)
      domain.dim[d] = (sdg_range_t){0, op->dim[d].y_extent};
  return sdg_window_assemble_own(m->plan, transfer, &domain, m->y, part->y,
                                 m->copy);
}

// Rows of a further image, in slabs of their own: engines may reject a range of
// a tensor.
static sdg_status_t part_add(maker_t *m, const part_t *part) {
  const strip_t *of = &m->strip[part->strip];
  int strip = of->sum >= 0 ? of->sum : of->x;
  sdg_type_t type = m->call->operand[m->dgrad->conv.x].type;
  sdg_box_t common =
      sdg_box_intersect(&part->piece.x, &m->plan->slab[strip].box);
  if (sdg_box_empty(&common))
    return SDG_OK;
  sdg_subcall_tensor_t from = {.slab = part->x, .box = common, .type = type};
  sdg_subcall_tensor_t to = {.slab = strip, .box = common, .type = type};
  return sdg_subcall_transform(m->plan, 1, &from, 1, &to);
}

static sdg_status_t part_finish(maker_t *m, const part_t *part) {
  const sdg_transfer_t *transfer = &m->dgrad->image[part->image].transfer;
  bool own = part->x >= 0;
  SDG_TRY(sdg_window_assemble_received(m->plan, transfer,
                                       m->message[part->image], part->y));
  const sdg_conv_gradient_slabs_t slabs = {.x = own ? part->x
                                                    : m->strip[part->strip].x,
                                           .y = part->y,
                                           .unscaled = m->late};
  SDG_TRY(sdg_conv_gradient_add(&m->dgrad->conv, m->call, m->plan, &part->piece,
                                &slabs,
                                own                ? SDG_CONV_GRADIENT_CLEAR
                                : part->image == 0 ? SDG_CONV_GRADIENT_BETA
                                                   : SDG_CONV_GRADIENT_ADD,
                                &m->refusal));
  return own ? part_add(m, part) : SDG_OK;
}

// strip = sum of images + beta strip.
static sdg_status_t strip_store(maker_t *m, const strip_t *strip) {
  sdg_type_t type = m->call->operand[m->dgrad->conv.x].type;
  sdg_subcall_tensor_t sum = {
      .slab = strip->sum, .box = strip->want, .type = type};
  sdg_subcall_tensor_t to = {
      .slab = strip->x, .box = strip->want, .type = type};
  return sdg_subcall_store(m->plan, m->late, &sum, &to);
}

static sdg_status_t strip_finish(maker_t *m, int s) {
  const strip_t *strip = &m->strip[s];
  if (strip->sum >= 0)
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, strip->sum, &strip->want));
  for (int i = 0; i < m->parts; i++)
    if (m->part[i].strip == s)
      SDG_TRY(part_finish(m, &m->part[i]));
  if (strip->sum >= 0)
    SDG_TRY(strip_store(m, strip));
  if (!strip->apart)
    return SDG_OK;
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, strip->x, m->x, NULL,
                       &strip->want, SDG_COPY_STRIP);
}

static sdg_status_t stack_finish(maker_t *m, int first) {
  const sdg_transfer_t *transfer = &m->dgrad->image[0].transfer;
  const sdg_conv_gradient_slabs_t slabs = {.x = m->all[first].x,
                                           .y = m->all[first].y};
  int size = sdg_window_stack_size(m->lead, m->strips, first);
  if (size == 0)
    return SDG_OK;
  for (int s = first; s < m->strips; s++)
    if (m->lead[s] == first)
      SDG_TRY(sdg_window_assemble_received(m->plan, transfer, m->message[0],
                                           m->part[s].y));
  sdg_window_piece_t piece =
      sdg_window_stack_piece(&m->part[first].piece, size);
  SDG_TRY(sdg_conv_gradient_add(&m->dgrad->conv, m->call, m->plan, &piece,
                                &slabs, SDG_CONV_GRADIENT_BETA, &m->refusal));
  for (int s = first; s < m->strips; s++)
    if (m->lead[s] == first)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->strip[s].x, m->x, NULL,
                            &m->strip[s].want, SDG_COPY_STRIP));
  return SDG_OK;
}

// The steps in their order: send messages; meanwhile compute in place what is
// possible; assemble strips from own rows, then from messages; compute the
// strips, whose rows overwrite.
static sdg_status_t steps_make(maker_t *m) {
  bool extend = m->way >= SDG_CONV_EXTENDED;
  sdg_box_t want[2 * SDG_DIMS_MAX];
  m->strips = sdg_conv_data_strips(m->dgrad, extend, want);
  for (int s = 0; s < m->strips; s++)
    m->strip[s].want = want[s];
  SDG_TRY(strips_open(m));
  for (int i = 0; i < m->dgrad->images; i++)
    SDG_TRY(messages_add(m, i));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int s = 0; s < m->strips; s++)
    SDG_TRY(strip_save(m, &m->strip[s]));
  if (!extend) {
    sdg_window_piece_t view = sdg_conv_data_view(m->dgrad);
    SDG_TRY(piece_call(m, &view));
  }
  for (int i = 0; i < m->parts; i++)
    SDG_TRY(part_own(m, &m->part[i]));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int s = 0; s < m->strips; s++)
    SDG_TRY(m->stacks ? stack_finish(m, s) : strip_finish(m, s));
  return SDG_OK;
}

static sdg_status_t maker_open(maker_t *m, sdg_axes_t axes) {
  const sdg_conv_data_t *g = m->dgrad;
  bool extend = m->way >= SDG_CONV_EXTENDED;
  const char *in_place = g->conv.op.whole ? "window" : "repair";
  SDG_TRY(sdg_plan_create(extend ? "extend" : in_place, &m->plan));
  m->plan->axes = axes;
  m->plan->price = g->conv.op.price;
  SDG_TRY(SDG_ALLOCATE(m->part, g->images * 2 * SDG_DIMS_MAX + 1, "a plan"));
  SDG_TRY(SDG_ALLOCATE(m->message, g->images, "a plan"));
  for (int i = 0; i < g->images; i++)
    SDG_TRY(
        SDG_ALLOCATE(m->message[i], g->image[i].transfer.recvs + 1, "a plan"));
  SDG_TRY(
      sdg_plan_operand(m->plan, m->call, g->conv.x, &g->conv.op.x_box, &m->x));
  SDG_TRY(
      sdg_plan_operand(m->plan, m->call, g->conv.y, &g->conv.op.y_box, &m->y));
  return sdg_subcalls_open(m->plan, m->call);
}

// *out_refusal: the vendor's status if its library rejects the piece; no other
// failure goes unreported.
static sdg_status_t plan_make(const sdg_call_t *call,
                              const sdg_conv_data_t *dgrad,
                              const sdg_section_t *section, sdg_axes_t axes,
                              sdg_conv_way_t way, sdg_plan_t **out_plan,
                              int *out_refusal) {
  bool extend = way >= SDG_CONV_EXTENDED;
  maker_t maker = {
      .call = call,
      .dgrad = dgrad,
      .reads_old = sdg_call_scalar(call, SDG_BETA) != 0,
      .late = dgrad->images > 1 && isinf(sdg_call_scalar(call, SDG_ALPHA)),
      // Slabs of messages that arrive before the call (prefetch) are kept.
      .apart = extend && section->keeps_dy,
      .way = way,
      .copy = extend ? SDG_COPY_ACTIVATION : SDG_COPY_STRIP,
  };
  sdg_status_t status = maker_open(&maker, axes);
  if (status == SDG_OK)
    status = steps_make(&maker);
  for (int i = 0; maker.message && i < dgrad->images; i++)
    free(maker.message[i]);
  free(maker.message);
  free(maker.part);
  *out_refusal = maker.refusal;
  return sdg_plan_finish(maker.plan, status, out_plan);
}

// Assembles more and more until the vendor's library accepts all pieces.
static sdg_status_t ways_try(const sdg_call_t *call, sdg_conv_data_t *dgrad,
                             const sdg_section_t *section, sdg_axes_t axes,
                             sdg_plan_t **out_plan) {
  sdg_conv_way_t way = sdg_conv_data_first(dgrad, section->strategy);
  int refusal;
  for (;;) {
    dgrad->apart = way == SDG_CONV_APART;
    sdg_status_t status =
        plan_make(call, dgrad, section, axes, way, out_plan, &refusal);
    if (!refusal)
      return status;
    SDG_TRY(sdg_conv_data_next(call, dgrad, section->strategy, &way));
    if (way == SDG_CONV_WAYS)
      return sdg_window_plan_refused(call, refusal);
  }
}

static sdg_status_t strategies_try(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_conv_data_t *dgrad,
                                   sdg_plan_t **out_plan) {
  const sdg_section_t *section = tagging->section;
  sdg_axes_t axes = dgrad->communicates ? tagging->axes : 0;
  sdg_strategy_t strategy = section->strategy;
  const char *why;
  if (sdg_conv_adjoint_chosen(call, tagging, dgrad, &why))
    return sdg_conv_adjoint_plan(call, tagging, dgrad, why, out_plan);
  if (strategy != SDG_STRATEGY_EXTEND && sdg_conv_data_is_literal(dgrad) &&
      !sdg_conv_refused_own(call))
    return sdg_window_plan_literal(axes, out_plan);
  return ways_try(call, dgrad, section, axes, out_plan);
}

sdg_status_t sdg_conv_data_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  sdg_conv_data_t dgrad;
  SDG_TRY(sdg_conv_data_init(call, tagging, &dgrad));
  sdg_conv_data_settle(call, &dgrad);
  int refusal = sdg_conv_refusal(call, &dgrad.conv, tagging,
                                 sdg_call_int(call, SDG_ALGO));
  sdg_status_t status = sdg_conv_looks_around(&dgrad.conv)
                            ? sdg_tagging_sure(call, tagging)
                            : SDG_OK;
  if (status == SDG_OK)
    status = refusal ? sdg_plan_create_refused(refusal, out_plan)
                     : strategies_try(call, tagging, &dgrad, out_plan);
  sdg_conv_data_fini(&dgrad);
  return status;
}

// ---- the whole view --------------------------------------------------------

static sdg_status_t whole_plan(const sdg_call_t *call, sdg_conv_data_t *dgrad,
                               const sdg_section_t *section,
                               sdg_plan_t **out_plan) {
  sdg_box_t owned = sdg_conv_data_owned(dgrad);
  if (sdg_box_empty(&owned)) // this rank has nothing to compute
    return sdg_plan_create("window", out_plan);
  sdg_window_piece_t view = sdg_conv_data_view(dgrad);
  sdg_conv_view_judge(call, &dgrad->conv, &view);
  return ways_try(call, dgrad, section, 0, out_plan);
}

// What each rank of the job reads: its need of dy, or only its own rows of dy
// if rows of dx are scattered; and, if old values count, those of its own rows.
static sdg_status_t share_fill(sdg_share_t *share, const sdg_call_t *call,
                               const sdg_conv_data_t *dgrad,
                               const sdg_tagging_t *tagging, bool adjoint) {
  const sdg_conv_t *conv = &dgrad->conv;
  const sdg_placement_t *x = &tagging->placement[conv->x];
  sdg_box_t *need;
  share->around = sdg_window_op_wraps(&conv->op);
  SDG_TRY(sdg_share_output(share, conv->x, x));
  SDG_TRY(sdg_share_reads(share, conv->y, &need));
  for (int r = 0; r < share->ranks; r++)
    need[r] = adjoint
                  ? sdg_placement_box(&conv->op.y_placement, tagging->mesh, r)
                  : sdg_conv_data_need(dgrad, tagging, r);
  if (sdg_call_scalar(call, SDG_BETA) == 0)
    return SDG_OK;
  return sdg_share_reads_own(share, conv->x, x, tagging->mesh);
}

// `tagging` also places dx.
static sdg_status_t placed_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) {
  sdg_conv_data_t dgrad;
  bool can;
  SDG_TRY(sdg_conv_data_init_whole(call, tagging, &dgrad, &can));
  if (!can)
    return SDG_OK;
  sdg_status_t status;
  const char *why;
  bool adjoint = sdg_conv_adjoint_chosen(call, tagging, &dgrad, &why);
  sdg_share_t *share;
  SDG_TRY_GOTO(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &share), done);
  SDG_TRY_GOTO(share_fill(share, call, &dgrad, tagging, adjoint), fail);
  SDG_TRY_GOTO(adjoint
                   ? sdg_conv_adjoint_plan(call, tagging, &dgrad, why, out_plan)
                   : whole_plan(call, &dgrad, tagging->section, out_plan),
               fail);
fail:
  status = sdg_plan_finish_share(share, status, out_plan);
done:
  sdg_conv_data_fini(&dgrad);
  return status;
}

sdg_status_t sdg_conv_data_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) {
  sdg_conv_t conv;
  *out_plan = NULL;
  if (sdg_conv_refused_own(call))
    return SDG_OK;
  SDG_TRY(sdg_conv_read(call, &conv));
  const sdg_placement_t *y = &tagging->placement[conv.y];
  if (y->dims != call->operand[conv.x].dims || y->split[1].axes)
    return sdg_window_op_alone(call, tagging, &conv.spec);
  sdg_tagging_t *placed;
  SDG_TRY(SDG_ALLOCATE(placed, 1, "a tagging"));
  *placed = *tagging;
  // dx is placed by dy: with the owner of each window's centre.
  sdg_status_t status = sdg_window_op_beside(
      &conv.spec, y, false, tagging->mesh, call->operand[conv.x].extent,
      &placed->placement[conv.x]);
  if (status == SDG_OK) {
    status = placed_share(call, placed, out_plan);
    sdg_placement_fini(&placed->placement[conv.x]);
  }
  free(placed);
  return status;
}
