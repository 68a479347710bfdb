// SPDX-License-Identifier: Apache-2.0
// Plans of a pooling gradient: messages, the call in place, strips.
#include <math.h>
#include <stdlib.h>

#include "rules/kit/subcall.h"
#include "rules/place/tagging.h"
#include "rules/pool/backward.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// The program's tensors, or copies of some of their rows. Means read neither x
// nor y, so copies for a mean have x = dx and y = dy.
typedef struct slabs {
  int x, y, dy, dx;
} slabs_t;

// One call that computes rows of dx separately, or adds an image to them.
typedef struct part {
  int image;
  bool first, last; // whether it is the first, the last part of its strip
  sdg_window_piece_t piece;
  slabs_t slabs;
} part_t;

// A plan while it is being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_pool_backward_t *back;
  sdg_plan_t *plan;
  slabs_t program;
  part_t *part;
  int parts;
  sdg_copy_kind_t copy; // of assembled slabs
  int *landed;          // slab of each received message, -1: in place; in the
                        // order in which messages are added
} maker_t;

// ---- the sub-call ----------------------------------------------------------

enum { Y, DY, X, DX, TENSORS };

static cudnnStatus_t back_call(const sdg_subcall_run_t *run, const void *beta) {
  return sdg_cudnn_get()->cudnnPoolingBackward(
      run->handle, run->op, sdg_call_scalar_at(run->call, SDG_ALPHA),
      run->descriptor[Y], run->data[Y], run->descriptor[DY], run->data[DY],
      run->descriptor[X], run->data[X], beta, run->descriptor[DX],
      run->data[DX]);
}

static cudnnStatus_t back_run(const sdg_subcall_run_t *run) {
  return back_call(run, sdg_call_scalar_at(run->call, SDG_BETA));
}

static cudnnStatus_t back_add(const sdg_subcall_run_t *run) {
  return back_call(run, &run->scalar[0]);
}

static sdg_status_t sub_add(maker_t *m, const sdg_window_piece_t *piece,
                            const slabs_t *slabs, bool adds) {
  const sdg_pool_t *pool = &m->back->pool;
  const sdg_operand_t *of = m->call->operand;
  cudnnPoolingDescriptor_t descriptor;
  SDG_TRY(sdg_pool_descriptor(&pool->parameters, piece->pad + 2, &descriptor));
  sdg_subcall_t sub = {
      .fn = adds ? back_add : back_run,
      .tensors = TENSORS,
      .tensor =
          {
              [Y] = {slabs->y, piece->y, of[pool->y].type, NULL},
              [DY] = {slabs->dy, piece->y, of[pool->dy].type, NULL},
              [X] = {slabs->x, piece->x, of[pool->x].type, NULL},
              [DX] = {slabs->dx, piece->x, of[pool->dx].type, NULL},
          },
      .scalar = {sdg_scalar(of[pool->dx].type, 1)},
      .op = descriptor,
      .op_destroy = sdg_pool_descriptor_destroy,
  };
  return sdg_subcall_add(m->plan, &sub);
}

// ---- slabs and messages ----------------------------------------------------

static sdg_status_t program_open(maker_t *m, const sdg_box_t *x,
                                 const sdg_box_t *y) {
  const sdg_pool_t *pool = &m->back->pool;
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->x, x, &m->program.x));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->y, y, &m->program.y));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, pool->dy, y, &m->program.dy));
  return sdg_plan_operand(m->plan, m->call, pool->dx, x, &m->program.dx);
}

static sdg_status_t part_open(maker_t *m, const sdg_box_t *want, int image,
                              bool first) {
  part_t *part = &m->part[m->parts];
  *part = (part_t){.image = image, .first = first, .last = true};
  if (!sdg_pool_backward_piece(m->back, want, image, &part->piece))
    return SDG_OK;
  const sdg_window_piece_t *p = &part->piece;
  slabs_t *s = &part->slabs;
  SDG_TRY(sdg_plan_scratch(m->plan, &p->x, m->program.dx, &s->dx));
  SDG_TRY(sdg_plan_scratch(m->plan, &p->y, m->program.dy, &s->dy));
  s->x = s->dx;
  s->y = s->dy;
  // A GPU wants equal strides of x and dx, and of y and dy, also in dimensions
  // of one element.
  if (m->back->reads) {
    SDG_TRY(sdg_plan_scratch(m->plan, &p->x, m->program.dx, &s->x));
    SDG_TRY(sdg_plan_scratch(m->plan, &p->y, m->program.dy, &s->y));
  }
  if (!first)
    part[-1].last = false;
  m->parts++;
  return SDG_OK;
}

static int slab_of(const part_t *part, int tensor) {
  const slabs_t *s = &part->slabs;
  return tensor == X ? s->x : tensor == Y ? s->y : s->dy;
}

static int program_of(const maker_t *m, int tensor) {
  const slabs_t *s = &m->program;
  return tensor == X ? s->x : tensor == Y ? s->y : s->dy;
}

// Calls `visit` for each fetch of rows of the parts' x, y and dy, always in the
// same order, with the transfer, the tensor, its image (-1: all), and the
// address of its messages' slabs.
typedef sdg_status_t (*visit_t)(maker_t *m, const sdg_transfer_t *transfer,
                                int tensor, int image, int *landed);
static sdg_status_t transfers_visit(maker_t *m, visit_t visit) {
  const sdg_pool_backward_t *back = m->back;
  int *landed = m->landed;
  if (back->reads) {
    SDG_TRY(visit(m, &back->transfer, X, -1, landed));
    landed += back->transfer.recvs;
  }
  for (int i = 0; i < back->images; i++)
    for (int tensor = Y; tensor <= DY; tensor++) {
      if (tensor == Y && !back->reads)
        continue;
      const sdg_transfer_t *transfer = &back->image[i].transfer;
      SDG_TRY(visit(m, transfer, tensor, i, landed));
      landed += transfer->recvs;
    }
  return SDG_OK;
}

static int recvs_count(const sdg_pool_backward_t *back) {
  int count = back->transfer.recvs;
  for (int i = 0; i < back->images; i++)
    count += 2 * back->image[i].transfer.recvs;
  return count;
}

static sdg_status_t messages_add(maker_t *m, const sdg_transfer_t *transfer,
                                 int tensor, int image, int *landed) {
  int *into, intos = 0;
  SDG_TRY(SDG_ALLOCATE(into, m->parts + 1, "a plan"));
  for (int i = 0; i < m->parts; i++)
    if (image < 0 || m->part[i].image == image)
      into[intos++] = slab_of(&m->part[i], tensor);
  sdg_status_t status = sdg_plan_messages(
      m->plan, transfer, program_of(m, tensor), into, intos, landed);
  free(into);
  return status;
}

// Copies the rows that this rank owns.
static sdg_status_t own_copy(maker_t *m, const sdg_transfer_t *transfer,
                             int tensor, int image, int *landed) {
  (void)landed;
  for (int i = 0; i < m->parts; i++)
    for (int k = 0; k < transfer->locals; k++) {
      const sdg_message_t *local = &transfer->local[k];
      sdg_box_t box = sdg_box_shift(&local->box, local->shift);
      if (image < 0 || m->part[i].image == image)
        SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, program_of(m, tensor),
                              slab_of(&m->part[i], tensor), local->shift, &box,
                              m->copy));
    }
  return SDG_OK;
}

static sdg_status_t received_copy(maker_t *m, const sdg_transfer_t *transfer,
                                  int tensor, int image, int *landed) {
  for (int i = 0; i < m->parts; i++)
    for (int k = 0; k < transfer->recvs; k++)
      if (landed[k] >= 0 && (image < 0 || m->part[i].image == image))
        SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, landed[k],
                              slab_of(&m->part[i], tensor), NULL, NULL,
                              SDG_COPY_HALO));
  return SDG_OK;
}

// ---- the steps -------------------------------------------------------------

// Windows outside the domain have a gradient of zero.
static sdg_status_t outside_clear(maker_t *m, const part_t *part) {
  const sdg_window_op_t *op = &m->back->pool.op;
  sdg_box_t domain = {.dims = op->dims}, outside[2 * SDG_DIMS_MAX];
  for (int d = 0; d < op->dims; d++)
    domain.dim[d].hi = op->dim[d].y_extent;
  int count = sdg_box_subtract(&part->piece.y, &domain, outside);
  for (int i = 0; i < count; i++)
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, part->slabs.dy, &outside[i]));
  return SDG_OK;
}

static sdg_status_t strip_make(maker_t *m, const part_t *part) {
  const sdg_box_t *keep = &part->piece.keep;
  if (!part->first)
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, part[-1].slabs.dx,
                          part->slabs.dx, NULL, keep, SDG_COPY_STRIP));
  SDG_TRY(sub_add(m, &part->piece, &part->slabs, !part->first));
  if (!part->last)
    return SDG_OK;
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, part->slabs.dx, m->program.dx,
                       NULL, keep, SDG_COPY_STRIP);
}

bool sdg_pool_backward_reads_old(const sdg_call_t *call) {
  return sdg_call_scalar(call, SDG_BETA) != 0;
}

// The steps in their order: send messages; fill strips with own rows, before
// the call in place overwrites old values; compute in place what is possible;
// then fill and compute the strips.
static sdg_status_t steps_make(maker_t *m, bool extend) {
  sdg_box_t strip[2 * SDG_DIMS_MAX];
  int strips = sdg_pool_backward_strips(m->back, extend, strip);
  SDG_TRY(SDG_ALLOCATE(m->part, strips * m->back->images + 1, "a plan"));
  SDG_TRY(SDG_ALLOCATE(m->landed, recvs_count(m->back) + 1, "a plan"));
  for (int i = 0; i < strips; i++)
    for (int k = 0; k < m->back->images; k++)
      SDG_TRY(part_open(m, &strip[i], k, k == 0));
  SDG_TRY(transfers_visit(m, messages_add));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < m->parts; i++) {
    SDG_TRY(outside_clear(m, &m->part[i]));
    if (m->part[i].first && sdg_pool_backward_reads_old(m->call))
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->program.dx,
                            m->part[i].slabs.dx, NULL, &m->part[i].piece.keep,
                            SDG_COPY_STRIP));
  }
  SDG_TRY(transfers_visit(m, own_copy));
  if (!extend) {
    sdg_window_piece_t view = sdg_pool_backward_view(m->back);
    SDG_TRY(sub_add(m, &view, &m->program, false));
  }
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  SDG_TRY(transfers_visit(m, received_copy));
  for (int i = 0; i < m->parts; i++)
    SDG_TRY(strip_make(m, &m->part[i]));
  return SDG_OK;
}

static bool is_literal(const sdg_pool_backward_t *back) {
  const sdg_window_op_t *op = &back->pool.op;
  if (op->whole)
    return false;
  sdg_window_piece_t view = sdg_pool_backward_view(back);
  bool alone = back->transfer.sends == 0 && back->transfer.recvs == 0;
  for (int i = 0; i < back->images; i++)
    alone &= back->image[i].transfer.sends == 0 &&
             back->image[i].transfer.recvs == 0;
  return alone && sdg_box_equal(&view.keep, &op->x_box) &&
         sdg_box_equal(&view.x, &op->x_box) &&
         sdg_box_equal(&view.y, &op->y_box);
}

// Takes ownership of the plan, which is NULL if memory ran out.
static sdg_status_t plan_finish(maker_t *m, sdg_status_t status,
                                sdg_plan_t **out_plan) {
  free(m->part);
  free(m->landed);
  return sdg_plan_finish(m->plan, status, out_plan);
}

sdg_status_t sdg_pool_backward_make(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    const sdg_pool_backward_t *back,
                                    sdg_plan_t **out_plan) {
  // Images that are infinities of both signs would add up to NaN.
  if (back->images > 1 && isinf(sdg_call_scalar(call, SDG_ALPHA)))
    return sdg_fail(SDG_E_NO_RULE,
                    "%s with an infinite alpha and a periodic dimension: "
                    "use 1, and scale the result",
                    call->entry_name);
  bool whole = back->pool.op.whole;
  bool asked = tagging->section->strategy == SDG_STRATEGY_EXTEND;
  sdg_window_piece_t view = sdg_pool_backward_view(back);
  bool literal = !asked && is_literal(back);
  bool extend = asked || sdg_window_op_is_cheaper_extended(&back->pool.op) ||
                sdg_box_empty(&view.keep);
  maker_t m = {
      .call = call,
      .back = back,
      .copy = extend ? SDG_COPY_ACTIVATION : SDG_COPY_STRIP,
  };
  SDG_TRY(sdg_plan_create(literal  ? "literal"
                          : extend ? "extend"
                          : whole  ? "window"
                                   : "repair",
                          &m.plan));
  m.plan->axes = back->communicates ? tagging->axes : 0;
  m.plan->price = back->pool.op.price;
  sdg_status_t status;
  if (literal) {
    m.plan->literal = true;
    return plan_finish(&m, sdg_plan_exchange(m.plan), out_plan);
  }
  SDG_TRY_GOTO(sdg_subcalls_open(m.plan, call), out);
  SDG_TRY_GOTO(program_open(&m, &back->pool.op.x_box, &back->pool.op.y_box),
               out);
  status = steps_make(&m, extend);
out:
  return plan_finish(&m, status, out_plan);
}

sdg_status_t sdg_pool_backward_plan(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_plan_t **out_plan) {
  sdg_pool_backward_t back;
  SDG_TRY(sdg_tagging_sure(call, tagging));
  SDG_TRY(sdg_pool_backward_init(call, tagging, &back));
  sdg_status_t status =
      sdg_pool_global_can(&back.pool, tagging)
          ? sdg_pool_global_plan(call, tagging, &back.pool, out_plan)
          : sdg_pool_backward_make(call, tagging, &back, out_plan);
  sdg_pool_backward_fini(&back);
  return status;
}
