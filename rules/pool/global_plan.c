// SPDX-License-Identifier: Apache-2.0
// Plans of global pooling over split dimensions: the real function pools each
// piece, and then the pieces' results.
#include <stdlib.h>
#include <string.h>

#include "rules/kit/merge.h"
#include "rules/pool/backward.h"
#include "rules/pool/pieces.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  sdg_pool_pieces_t of;
  sdg_plan_t *plan;
  // This rank's piece of x, and of y; the result of its piece; the results that
  // it gathers. In the whole view some may be empty.
  sdg_box_t x, y, part, parts;
  int x_slab, y_slab, part_slab, parts_slab;
  sdg_type_t type, part_type; // of the program's tensors; of pieces' results
} maker_t;

static bool is_mean(const sdg_pool_t *pool) {
  return pool->parameters.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ||
         pool->parameters.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

// ---- sub-calls -------------------------------------------------------------

enum { ALPHA, BETA };               // scalars
enum { Y, DY, X, DX, TENSORS = 4 }; // slabs of the gradient

// The program's alpha, times `by`.
static sdg_scalar_t times(const sdg_call_t *call, const sdg_scalar_t *by) {
  bool twice = call->operand[0].type == CUDNN_DATA_DOUBLE;
  double factor = twice ? by->twice : (double)by->single;
  return sdg_scalar(call->operand[0].type,
                    factor * sdg_call_scalar(call, SDG_ALPHA));
}

// Pools with the planned scalars.
static cudnnStatus_t forward_planned(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnPoolingForward(
      run->handle, run->op, &run->scalar[ALPHA], run->descriptor[0],
      run->data[0], &run->scalar[BETA], run->descriptor[1], run->data[1]);
}

// Pools all pieces, with the program's scalars.
static cudnnStatus_t forward_all(const sdg_subcall_run_t *run) {
  sdg_scalar_t alpha = times(run->call, &run->scalar[ALPHA]);
  return sdg_cudnn_get()->cudnnPoolingForward(
      run->handle, run->op, &alpha, run->descriptor[0], run->data[0],
      sdg_call_scalar_at(run->call, SDG_BETA), run->descriptor[1],
      run->data[1]);
}

static cudnnStatus_t backward(const sdg_subcall_run_t *run, const void *alpha,
                              const void *beta) {
  return sdg_cudnn_get()->cudnnPoolingBackward(
      run->handle, run->op, alpha, run->descriptor[Y], run->data[Y],
      run->descriptor[DY], run->data[DY], run->descriptor[X], run->data[X],
      beta, run->descriptor[DX], run->data[DX]);
}

static cudnnStatus_t backward_all(const sdg_subcall_run_t *run) {
  return backward(run, &run->scalar[ALPHA], &run->scalar[BETA]);
}

static cudnnStatus_t backward_piece(const sdg_subcall_run_t *run) {
  sdg_scalar_t alpha = times(run->call, &run->scalar[ALPHA]);
  return backward(run, &alpha, sdg_call_scalar_at(run->call, SDG_BETA));
}

// What the windows of a sub-call cover in the merged dimensions.
typedef enum over {
  OVER_PIECE,   // this rank's elements
  OVER_COLUMNS, // one element, because an earlier step has reduced them
  OVER_PIECES,  // the results of all pieces; one element in other dimensions
} over_t;

// Adds a sub-call on tensors of `type`. BETA is set, or 0.
static sdg_status_t sub_add(maker_t *m, sdg_subcall_t *sub, over_t over,
                            sdg_type_t type, double alpha) {
  sdg_pool_parameters_t p = m->of.pool->parameters;
  cudnnPoolingDescriptor_t descriptor;
  for (int i = 0; i < p.spatial; i++) {
    bool merged = m->of.pool->spec.everyones[i + 2];
    if (over == OVER_PIECES) {
      p.window[i] = merged ? (int)sdg_pool_pieces_elements(&m->of, i + 2) : 1;
      p.pad[i] = 0;
      p.stride[i] = 1;
    } else if (merged) {
      p.window[i] = over == OVER_PIECE ? m->of.pool->local[i] : 1;
    }
  }
  SDG_TRY(sdg_pool_descriptor(&p, p.pad, &descriptor));
  sub->scalar[ALPHA] = sdg_scalar(type, alpha);
  sub->op = descriptor;
  sub->op_destroy = sdg_pool_descriptor_destroy;
  for (int i = 0; i < sub->tensors; i++)
    sub->tensor[i].type = type;
  return sdg_subcall_add(m->plan, sub);
}

// ---- steps -----------------------------------------------------------------

static sdg_status_t transfer_make(const maker_t *m, sdg_transfer_t *out) {
  size_t ranks = (size_t)m->of.tagging->ranks;
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks",
                       m->of.tagging->ranks));
  for (size_t r = 0; r < ranks; r++) {
    owned[r] = sdg_pool_pieces_part(&m->of, m->of.tagging->rank_list[r]);
    owned[ranks + r] =
        sdg_pool_pieces_parts(&m->of, m->of.tagging->rank_list[r]);
  }
  sdg_status_t status = sdg_transfer_plan(
      owned, owned + ranks, m->of.tagging->ranks, m->of.tagging->me, NULL, out);
  free(owned);
  return status;
}

static sdg_status_t gather_steps(maker_t *m, const sdg_transfer_t *transfer,
                                 int *landed) {
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
  if (transfer->sends + transfer->recvs > 0)
    SDG_TRY(sdg_plan_messages(
        m->plan, transfer,
        sdg_box_empty(&m->part) ? m->parts_slab : m->part_slab, &m->parts_slab,
        !sdg_box_empty(&m->parts), landed));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < transfer->locals; i++)
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->part_slab, m->parts_slab,
                          NULL, &transfer->local[i].box, SDG_COPY_HALO));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < transfer->recvs; i++)
    if (landed[i] >= 0)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, landed[i], m->parts_slab,
                            NULL, NULL, SDG_COPY_HALO));
  return SDG_OK;
}

// Whether pieces' results have more digits than the program's tensors.
static bool is_wide(const maker_t *m) {
  return m->part_type != m->type;
}

// Adds scratch for results of pieces, in their type.
static sdg_status_t scratch(maker_t *m, const sdg_box_t *box, int *out_slab) {
  return is_wide(m)
             ? sdg_plan_scratch_of(m->plan, box, sdg_merge_bytes(m->part_type),
                                   m->y_slab, out_slab)
             : sdg_plan_scratch(m->plan, box, m->y_slab, out_slab);
}

// Computes part = weight * the result of pooling this rank's piece.
static sdg_status_t piece_make(maker_t *m, double weight) {
  sdg_subcall_t sub = {.fn = forward_planned,
                       .tensors = 2,
                       .tensor = {{.slab = m->x_slab, .box = m->x},
                                  {.slab = m->part_slab, .box = m->part}}};
  return sub_add(m, &sub, OVER_PIECE, m->type, weight);
}

// Computes the part in float for means of a half type. The means of other
// pieces may cancel this one, so that only digits remain that the half type
// does not have. The vendor's pooling has one type, so this reduces instead.
static sdg_status_t piece_widen(maker_t *m, double weight) {
  sdg_subcall_tensor_t x = {.slab = m->x_slab, .box = m->x, .type = m->type};
  sdg_subcall_tensor_t columns = {.box = m->x, .type = m->part_type};
  bool several = false;
  SDG_TRY(sdg_merge_reducible(m->plan, &x));
  for (int d = 2; d < m->x.dims; d++)
    if (m->of.pool->spec.everyones[d]) {
      several |= m->x.dim[d].hi - m->x.dim[d].lo > 1;
      columns.box.dim[d] = (sdg_range_t){0, 1};
    }
  SDG_TRY(sdg_plan_scratch_of(m->plan, &columns.box,
                              sdg_merge_bytes(columns.type), m->x_slab,
                              &columns.slab));
  SDG_TRY(several ? sdg_subcall_reduce(m->plan, CUDNN_REDUCE_TENSOR_AVG, weight,
                                       &x, 0, &columns)
                  : sdg_subcall_transform(m->plan, weight, &x, 0, &columns));
  sdg_subcall_t sub = {
      .fn = forward_planned,
      .tensors = 2,
      .tensor = {columns, {.slab = m->part_slab, .box = m->part}}};
  return sub_add(m, &sub, OVER_COLUMNS, m->part_type, 1);
}

// Computes the result of this rank's piece, and gathers those of all pieces.
static sdg_status_t parts_make(maker_t *m, double weight) {
  if (!sdg_box_empty(&m->parts))
    SDG_TRY(scratch(m, &m->parts, &m->parts_slab));
  if (!sdg_box_empty(&m->part)) {
    SDG_TRY(scratch(m, &m->part, &m->part_slab));
    SDG_TRY(is_wide(m) ? piece_widen(m, weight) : piece_make(m, weight));
  }
  sdg_transfer_t transfer;
  SDG_TRY(transfer_make(m, &transfer));
  int *landed = calloc((size_t)transfer.recvs + 1, sizeof *landed);
  sdg_status_t status = landed ? gather_steps(m, &transfer, landed)
                               : sdg_fail(SDG_E_NO_MEMORY, "a plan");
  free(landed);
  sdg_transfer_fini(&transfer);
  return status;
}

static sdg_status_t forward_make(maker_t *m) {
  double rest = 1, weight = is_mean(m->of.pool)
                                ? sdg_pool_pieces_weight(&m->of, &m->x, &rest)
                                : 1;
  SDG_TRY(parts_make(m, weight));
  if (sdg_box_empty(&m->parts))
    return SDG_OK;
  sdg_subcall_t sub = {.fn = forward_all,
                       .tensors = 2,
                       .tensor = {{.slab = m->parts_slab, .box = m->parts},
                                  {.slab = m->y_slab, .box = m->y}}};
  if (!is_wide(m))
    return sub_add(m, &sub, OVER_PIECES, m->type, rest);
  sdg_subcall_tensor_t y = {.slab = m->y_slab, .box = m->y, .type = m->type};
  sdg_subcall_tensor_t mean = {.box = m->y, .type = m->part_type};
  SDG_TRY(scratch(m, &m->y, &mean.slab));
  sub.fn = forward_planned;
  sub.tensor[1] = mean;
  SDG_TRY(sub_add(m, &sub, OVER_PIECES, m->part_type, rest));
  return sdg_subcall_store(m->plan, true, &mean, &y);
}

// Adds a backward sub-call: `y` and `dy` have the box `outer`, `x` and `dx` the
// box `inner`.
static sdg_status_t gradient_add(maker_t *m,
                                 cudnnStatus_t (*fn)(const sdg_subcall_run_t *),
                                 const int slab[TENSORS],
                                 const sdg_box_t *outer, const sdg_box_t *inner,
                                 over_t over, double share) {
  sdg_subcall_t sub = {.fn = fn, .tensors = TENSORS};
  for (int i = 0; i < TENSORS; i++)
    sub.tensor[i] = (sdg_subcall_tensor_t){
        .slab = slab[i], .box = i == Y || i == DY ? *outer : *inner};
  return sub_add(m, &sub, over, m->type, share);
}

// dx of a mean. The real function divides dy by the number of elements of the
// piece; `share` makes that the number of elements of the whole.
static sdg_status_t mean_make(maker_t *m, int dy, int dx) {
  double share = 1;
  if (sdg_box_empty(&m->x))
    return SDG_OK;
  for (int d = 2; d < m->x.dims; d++)
    if (m->of.pool->spec.everyones[d])
      share *= (double)(m->x.dim[d].hi - m->x.dim[d].lo) /
               (double)sdg_part_extent(
                   &m->of.tagging->placement[m->of.pool->x].part[d]);
  const int slab[] = {[Y] = m->y_slab, [DY] = dy, [X] = m->x_slab, [DX] = dx};
  return gradient_add(m, backward_piece, slab, &m->y, &m->x, OVER_PIECE, share);
}

// dx of a maximum. The first sub-call gives dy to the piece that has the
// maximum, the second one gives it to the maximum inside the piece.
static sdg_status_t maximum_make(maker_t *m, int dy, int dx) {
  SDG_TRY(parts_make(m, 1));
  int gradients;
  if (sdg_box_empty(&m->part))
    return SDG_OK;
  SDG_TRY(sdg_plan_scratch(m->plan, &m->parts, m->y_slab, &gradients));
  const int all[] = {
      [Y] = m->y_slab, [DY] = dy, [X] = m->parts_slab, [DX] = gradients};
  const int piece[] = {
      [Y] = m->parts_slab, [DY] = gradients, [X] = m->x_slab, [DX] = dx};
  SDG_TRY(gradient_add(m, backward_all, all, &m->y, &m->parts, OVER_PIECES, 1));
  return gradient_add(m, backward_piece, piece, &m->part, &m->x, OVER_PIECE, 1);
}

static sdg_status_t steps_make(maker_t *m) {
  const sdg_pool_t *pool = m->of.pool;
  const sdg_window_op_t *op = &pool->op;
  int dy, dx;
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->x, &op->x_box, &m->x_slab));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->y, &op->y_box, &m->y_slab));
  if (pool->dx < 0)
    return forward_make(m);
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->dy, &op->y_box, &dy));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->dx, &op->x_box, &dx));
  return is_mean(pool) ? mean_make(m, dy, dx) : maximum_make(m, dy, dx);
}

// Whether images and channels are cut alike in x and y.
static bool cut_alike(const sdg_pool_t *pool, const sdg_tagging_t *tagging) {
  const sdg_placement_t *x = &tagging->placement[pool->x];
  for (int d = 0; d < 2; d++)
    if (!sdg_part_equal(&x->part[d], &pool->op.y_placement.part[d]))
      return false;
  return true;
}

// Among equal maxima the first in the order of a window gets the gradient. Its
// piece is the first such piece only if pieces follow each other in that order.
static bool pieces_in_order(const sdg_pool_t *pool) {
  bool seen = false;
  for (int i = pool->parameters.spatial - 1; i >= 0; i--) {
    bool merged = pool->spec.everyones[i + 2];
    if (seen && (merged || pool->parameters.window[i] > 1))
      return false;
    seen |= merged;
  }
  return true;
}

bool sdg_pool_global_can(const sdg_pool_t *pool, const sdg_tagging_t *tagging) {
  // Windows across the end of a periodic dimension see rows of two pieces.
  if (!pool->global || tagging->section->strategy == SDG_STRATEGY_EXTEND ||
      sdg_window_op_wraps(&pool->op))
    return false;
  return pool->dx < 0 ||
         (cut_alike(pool, tagging) && (is_mean(pool) || pieces_in_order(pool)));
}

// The type of pieces' results.
static sdg_type_t part_type_of(const sdg_pool_t *pool, sdg_type_t type) {
  sdg_type_t wide = sdg_merge_type(type);
  return pool->dx < 0 && is_mean(pool) && wide >= 0 ? wide : type;
}

sdg_status_t sdg_pool_global_plan(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  const sdg_pool_t *pool,
                                  sdg_plan_t **out_plan) {
  sdg_type_t type = call->operand[pool->x].type;
  maker_t m = {
      .call = call,
      .of = {tagging, pool},
      .type = type,
      .part_type = part_type_of(pool, type),
      .x = sdg_tagging_own(tagging, &tagging->placement[pool->x]),
      .y = sdg_tagging_own(tagging, &pool->op.y_placement),
  };
  SDG_TRY(sdg_plan_create("pieces", &m.plan));
  m.part = sdg_pool_pieces_part(&m.of, tagging->rank);
  m.parts = sdg_pool_pieces_parts(&m.of, tagging->rank);
  if (pool->dx < 0 || !is_mean(pool))
    m.plan->axes = tagging->axes;
  sdg_status_t status = steps_make(&m);
  return sdg_plan_finish(m.plan, status, out_plan);
}
