// SPDX-License-Identifier: Apache-2.0
// Plans the steps of a data gradient by scatter-add: rows of other ranks are
// computed first and sent; meanwhile own rows are computed; received rows are
// added.
#include <stdlib.h>

#include "rules/conv/adjoint.h"
#include "rules/kit/scatter_add.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/plan.h"

enum { EDGES = 2 * SDG_DIMS_MAX, TARGETS = SDG_CONV_ADJOINT_SIDES + EDGES };

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  const sdg_conv_data_t *dgrad;
  sdg_plan_t *plan;
  int x, y, w; // slabs of the program's tensors
  // Slabs where parts are assembled: rows of other ranks, and own rows around
  // the inner ones. -1: none.
  int target[TARGETS];
  sdg_conv_adjoint_part_t part[SDG_CONV_ADJOINT_PARTS];
  int parts;
  bool has_inner; // the first part
  sdg_scatter_add_t back[SDG_CONV_ADJOINT_SIDES];
  int refusal; // the vendor's status for a piece
} maker_t;

static int sides_of(const maker_t *m) {
  return 2 * m->dgrad->conv.op.dims;
}

static const sdg_operand_t *dx_of(const maker_t *m) {
  return &m->call->operand[m->dgrad->conv.x];
}

// ---- beta ------------------------------------------------------------------

static cudnnStatus_t scale_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnScaleTensor(
      run->handle, run->descriptor[0], run->data[0],
      sdg_call_scalar_at(run->call, SDG_BETA));
}

static sdg_subcall_tensor_t tensor_of(const maker_t *m, int slab,
                                      const sdg_box_t *box) {
  return (sdg_subcall_tensor_t){
      .slab = slab, .box = *box, .type = dx_of(m)->type};
}

// Adds beta times the old values; own rows are computed in a slab of their own.
static sdg_status_t edge_begin(maker_t *m, int slab, const sdg_box_t *box) {
  if (sdg_call_scalar(m->call, SDG_BETA) == 0)
    return sdg_plan_zero(m->plan, SDG_LANE_MAIN, slab, box);
  SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->x, slab, NULL, NULL,
                        SDG_COPY_STRIP));
  sdg_subcall_t sub = {
      .fn = scale_run, .tensors = 1, .tensor = {tensor_of(m, slab, box)}};
  return sdg_subcall_add(m->plan, &sub);
}

// ---- the steps -------------------------------------------------------------

// Rows that are computed separately, in slabs of their own.
static sdg_status_t part_make(maker_t *m, const sdg_conv_adjoint_part_t *part,
                              sdg_copy_kind_t kind, int *out_slab) {
  const sdg_window_piece_t *piece = &part->piece;
  sdg_conv_gradient_slabs_t slabs = {.w = m->w};
  SDG_TRY(sdg_plan_scratch(m->plan, &piece->y, m->y, &slabs.y));
  SDG_TRY(sdg_plan_scratch(m->plan, &piece->x, m->x, &slabs.x));
  SDG_TRY(
      sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->y, slabs.y, NULL, NULL, kind));
  *out_slab = slabs.x;
  return part->all ? sdg_conv_gradient_add(&m->dgrad->conv, m->call, m->plan,
                                           piece, &slabs,
                                           SDG_CONV_GRADIENT_CLEAR, &m->refusal)
                   : sdg_conv_gradient_add_through(&m->dgrad->conv, m->call,
                                                   m->plan, piece, part->taps,
                                                   &slabs, &m->refusal);
}

static sdg_status_t targets_open(maker_t *m) {
  sdg_box_t own = sdg_conv_data_owned(m->dgrad), edge[EDGES];
  sdg_box_t inner = sdg_conv_adjoint_inner(m->dgrad);
  for (int i = 0; i < TARGETS; i++)
    m->target[i] = -1;
  for (int i = 0; i < sides_of(m); i++) {
    sdg_box_t box =
        sdg_conv_adjoint_side(m->dgrad, m->tagging, m->tagging->rank, i);
    if (sdg_box_empty(&box))
      continue;
    SDG_TRY(sdg_plan_scratch(m->plan, &box, m->x, &m->target[i]));
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, m->target[i], &box));
  }
  int edges = sdg_box_subtract(&own, &inner, edge);
  for (int i = 0; i < edges; i++) {
    int *target = &m->target[SDG_CONV_ADJOINT_SIDES + i];
    SDG_TRY(sdg_plan_scratch(m->plan, &edge[i], m->x, target));
    SDG_TRY(edge_begin(m, *target, &edge[i]));
  }
  return SDG_OK;
}

// Each part lies in exactly one target.
static sdg_status_t part_put(maker_t *m, const sdg_conv_adjoint_part_t *part,
                             int slab) {
  const sdg_box_t *rows = &part->piece.keep;
  for (int i = 0; i < TARGETS; i++) {
    int target = m->target[i];
    if (target < 0 || !sdg_box_contains(&m->plan->slab[target].box, rows))
      continue;
    sdg_subcall_tensor_t from = tensor_of(m, slab, rows);
    sdg_subcall_tensor_t to = tensor_of(m, target, rows);
    return sdg_subcall_transform(m->plan, 1, &from, 1, &to);
  }
  return sdg_fail(SDG_E_INTERNAL, "%s: rows that no rank owns",
                  m->call->entry_name);
}

static sdg_status_t parts_make(maker_t *m) {
  for (int i = m->has_inner; i < m->parts; i++) {
    int slab;
    SDG_TRY(part_make(m, &m->part[i], SDG_COPY_STRIP, &slab));
    SDG_TRY(part_put(m, &m->part[i], slab));
  }
  return SDG_OK;
}

static void periods_fill(const sdg_window_op_t *op, int64_t *out) {
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    out[d] = d < op->dims && op->dim[d].wrap ? op->dim[d].x_extent : 0;
}

// Adds the messages of one side of every rank; `need` has room for one box per
// rank.
static sdg_status_t side_send(maker_t *m, int side, sdg_box_t *need) {
  const sdg_window_op_t *op = &m->dgrad->conv.op;
  int64_t period[SDG_DIMS_MAX];
  periods_fill(op, period);
  for (int r = 0; r < m->tagging->ranks; r++)
    need[r] = sdg_conv_adjoint_side(m->dgrad, m->tagging,
                                    m->tagging->rank_list[r], side);
  return sdg_scatter_add_open(
      m->plan, m->tagging, &m->tagging->placement[m->dgrad->conv.x],
      &op->y_placement, need, period, m->target[side], m->x, &m->back[side]);
}

static sdg_status_t sides_send(maker_t *m) {
  size_t ranks = (size_t)m->tagging->ranks;
  sdg_box_t *need;
  SDG_TRY(SDG_ALLOCATE(need, ranks, "boxes of %zu ranks", ranks));
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < sides_of(m) && status == SDG_OK; i++)
    status = side_send(m, i, need);
  free(need);
  return status;
}

static sdg_status_t inner_apart(maker_t *m) {
  int slab;
  if (!m->has_inner)
    return SDG_OK;
  SDG_TRY(part_make(m, &m->part[0], SDG_COPY_ACTIVATION, &slab));
  const sdg_box_t *rows = &m->part[0].piece.keep;
  sdg_subcall_tensor_t from = tensor_of(m, slab, rows);
  sdg_subcall_tensor_t to = tensor_of(m, m->x, rows);
  return sdg_subcall_store(m->plan, false, &from, &to);
}

static sdg_status_t own_make(maker_t *m, bool in_place) {
  sdg_window_piece_t piece;
  const sdg_conv_gradient_slabs_t slabs = {.x = m->x, .y = m->y};
  SDG_TRY(
      in_place && m->has_inner && sdg_conv_adjoint_in_place(m->dgrad, &piece)
          ? sdg_conv_gradient_add(&m->dgrad->conv, m->call, m->plan, &piece,
                                  &slabs, SDG_CONV_GRADIENT_BETA, &m->refusal)
          : inner_apart(m));
  for (int i = SDG_CONV_ADJOINT_SIDES; i < TARGETS; i++)
    if (m->target[i] >= 0)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->target[i], m->x, NULL,
                            NULL, SDG_COPY_STRIP));
  return SDG_OK;
}

static sdg_status_t steps_make(maker_t *m, bool in_place) {
  const sdg_conv_t *conv = &m->dgrad->conv;
  const sdg_box_t w = sdg_operand_box(&m->call->operand[conv->w]);
  sdg_box_t inner = sdg_conv_adjoint_inner(m->dgrad);
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, conv->x, &conv->op.x_box, &m->x));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, conv->y, &conv->op.y_box, &m->y));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, conv->w, &w, &m->w));
  m->parts = sdg_conv_adjoint_parts(m->dgrad, m->part);
  m->has_inner = !sdg_box_empty(&inner);
  SDG_TRY(targets_open(m));
  SDG_TRY(parts_make(m));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
  SDG_TRY(sides_send(m));
  SDG_TRY(sdg_plan_exchange(m->plan));
  SDG_TRY(own_make(m, in_place));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < sides_of(m); i++)
    SDG_TRY(sdg_scatter_add_add(m->plan, &m->back[i], dx_of(m)->type));
  return SDG_OK;
}

// *out_refusal: the vendor's status if its library rejects the piece; no other
// failure goes unreported.
static sdg_status_t plan_make(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              const sdg_conv_data_t *dgrad, bool in_place,
                              sdg_plan_t **out_plan, int *out_refusal) {
  maker_t *m = calloc(1, sizeof *m);
  *out_refusal = 0;
  if (!m)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  m->call = call;
  m->tagging = tagging;
  m->dgrad = dgrad;
  sdg_status_t status = sdg_plan_create("adjoint", &m->plan);
  if (status == SDG_OK) {
    m->plan->axes = tagging->axes;
    status = steps_make(m, in_place);
  }
  for (int i = 0; i < sides_of(m); i++)
    sdg_scatter_add_fini(&m->back[i]);
  *out_refusal = m->refusal;
  status = sdg_plan_finish(m->plan, status, out_plan);
  free(m);
  return status;
}

// Whether the own rows are computed in place: not with `auto`, if the vendor's
// library is slow on them there.
static bool starts_in_place(const sdg_call_t *call,
                            const sdg_conv_data_t *dgrad,
                            sdg_strategy_t strategy) {
  sdg_conv_t conv = dgrad->conv;
  sdg_window_piece_t piece;
  if (strategy != SDG_STRATEGY_AUTO ||
      !sdg_conv_adjoint_in_place(dgrad, &piece))
    return true;
  sdg_conv_view_judge(call, &conv, &piece);
  return !conv.op.slow_in_place;
}

sdg_status_t sdg_conv_adjoint_plan(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   const sdg_conv_data_t *dgrad,
                                   const char *why, sdg_plan_t **out_plan) {
  // Each rank decides this for itself: messages are the same.
  bool in_place = starts_in_place(call, dgrad, tagging->section->strategy);
  int refusal;
  sdg_status_t status =
      plan_make(call, tagging, dgrad, in_place, out_plan, &refusal);
  if (refusal && in_place)
    status = plan_make(call, tagging, dgrad, false, out_plan, &refusal);
  if (refusal)
    return sdg_window_plan_refused(call, refusal);
  if (status == SDG_OK)
    (*out_plan)->why = why;
  return status;
}
