// SPDX-License-Identifier: Apache-2.0
// The steps of attention by heads.
//
// Each rank projects its rows for all heads. An all-to-all exchange gives each
// rank the whole sequences of some heads. The rank computes their attention in
// one sub-call without projections, where the heads are members of the batch.
// A second exchange brings the results back to the rows' ranks, which project
// them to the output. Gradients repeat the first exchange and the attention,
// and the second exchange carries gradients of the projected rows.
#include "rules/attention/strategy/heads.h"

#include <stdlib.h>
#include <string.h>

#include "rules/attention/call/apply.h"
#include "rules/attention/call/project.h"
#include "rules/attention/strategy/field.h"
#include "rules/kit/gradient_sum.h"
#include "rules/kit/merge.h"

enum { Q, K, V, O, PARTS, FIELDS = 2 * PARTS };

typedef struct heads {
  sdg_attention_maker_t *m;
  sdg_type_t type; // of the arithmetic
  int operand[PARTS];
  sdg_attention_project_t project;
  sdg_subcall_tensor_t row[PARTS]; // the operands' rows
  // Fields of q, k, v and the heads' results, then of their gradients.
  sdg_attention_field_t field[FIELDS];
  int *lo, *hi;
  int *q_length, *k_length; // of the sub-call's sequences, one for each head
} heads_t;

// ---- padding ---------------------------------------------------------------
//
// The program's memory behind a sequence's end may contain NaN. Products of
// rows would spread them, so this strategy sets padding to zero.

static const sdg_attention_lengths_t *lengths_of(const heads_t *h, int part) {
  return part == K || part == V ? &h->m->keys : &h->m->queries;
}

static bool is_padded(const heads_t *h) {
  return h->m->queries.length || h->m->keys.length;
}

// Sets the elements behind the ends of sequences to zero, in a slab whose first
// dimensions are time, batch, beam.
static sdg_status_t padding_zero(heads_t *h, int part, int slab) {
  sdg_plan_t *plan = h->m->plan;
  const sdg_box_t all = plan->slab[slab].box;
  sdg_range_t time = all.dim[SDG_SEQUENCE_TIME];
  for (int64_t b = all.dim[SDG_SEQUENCE_BATCH].lo;
       lengths_of(h, part)->length && b < all.dim[SDG_SEQUENCE_BATCH].hi; b++) {
    sdg_box_t box = all;
    box.dim[SDG_SEQUENCE_BATCH] = (sdg_range_t){b, b + 1};
    box.dim[SDG_SEQUENCE_TIME].lo +=
        sdg_attention_lengths_in(lengths_of(h, part), b, 0, time);
    if (!sdg_box_empty(&box))
      SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, slab, &box));
  }
  return SDG_OK;
}

// Sets the padding of an output to zero.
static sdg_status_t operand_finish(heads_t *h, int part, int index) {
  const sdg_placement_t *placement = &h->m->tagging->placement[index];
  sdg_box_t own = sdg_tagging_own(h->m->tagging, placement);
  int slab;
  if (!lengths_of(h, part)->length)
    return SDG_OK;
  SDG_TRY(sdg_plan_operand(h->m->plan, h->m->call, index, &own, &slab));
  return padding_zero(h, part, slab);
}

// The lengths of the whole sequences, one for each head of this rank.
static sdg_status_t lengths_make(const heads_t *h, int part, int **out) {
  const sdg_attention_lengths_t *lengths = lengths_of(h, part);
  const sdg_box_t *box = &h->field[part].need_heads[h->m->tagging->me];
  const sdg_range_t *batch = &box->dim[SDG_SEQUENCE_BATCH];
  int64_t heads =
      h->m->a.desc.heads / h->m->rows->part[SDG_SEQUENCE_TIME].pieces;
  size_t at = 0;
  if (!lengths->length)
    return SDG_OK;
  *out = malloc((size_t)((batch->hi - batch->lo) * heads) * sizeof **out);
  if (!*out)
    return sdg_fail(SDG_E_NO_MEMORY, "lengths of %lld heads", (long long)heads);
  for (int64_t b = batch->lo; b < batch->hi; b++)
    for (int64_t head = 0; head < heads; head++)
      (*out)[at++] = (int)sdg_attention_lengths_in(lengths, b, 0,
                                                   box->dim[SDG_SEQUENCE_TIME]);
  return SDG_OK;
}

// ---- rows of operands ------------------------------------------------------

static sdg_type_t type_of(const heads_t *h) {
  return (sdg_type_t)h->m->a.desc.type;
}

// This rank's piece of an operand, seen as packed rows.
static sdg_status_t rows_view(heads_t *h, int index,
                              sdg_subcall_tensor_t *out) {
  const sdg_operand_t *o = &h->m->call->operand[index];
  sdg_plan_t *plan = h->m->plan;
  int64_t wide = o->extent[SDG_SEQUENCE_VECTOR];
  sdg_box_t box = {.dims = 4, .dim = {{0, 1}, {0, wide}, {0, 1}, {0, 1}}};
  for (int d = 0; d < SDG_SEQUENCE_VECTOR; d++)
    box.dim[0].hi *= o->extent[d];
  int slab;
  SDG_TRY(sdg_plan_operand(plan, h->m->call, index, &box, &slab));
  const int64_t stride[] = {wide, 1, 1, 1}, nesting[] = {4, 3, 2, 1};
  memcpy(plan->slab[slab].stride, stride, sizeof stride);
  memcpy(plan->slab[slab].nesting, nesting, sizeof nesting);
  *out = sdg_subcall_slab(plan, slab, type_of(h));
  return SDG_OK;
}

static sdg_status_t room_like(heads_t *h, const sdg_subcall_tensor_t *rows,
                              sdg_subcall_tensor_t *out) {
  int slab;
  SDG_TRY(sdg_plan_scratch_of(h->m->plan, &rows->box, sdg_merge_bytes(h->type),
                              rows->slab, &slab));
  *out = sdg_subcall_slab(h->m->plan, slab, h->type);
  return SDG_OK;
}

// The rows of an input in the arithmetic's type. Gradients of parameters are
// sums over all rows, so for them padding becomes zero.
static sdg_status_t rows_read(heads_t *h, int part, sdg_subcall_tensor_t *out) {
  const sdg_operand_t *o = &h->m->call->operand[h->operand[part]];
  const sdg_tagging_t *tagging = h->m->tagging;
  bool trims = is_padded(h) && h->m->a.kind == SDG_ATTENTION_WEIGHTS;
  sdg_subcall_tensor_t there;
  int rows;
  SDG_TRY(rows_view(h, h->operand[part], &there));
  *out = there;
  if (there.type == h->type && !trims)
    return SDG_OK;
  SDG_TRY(room_like(h, &there, out));
  SDG_TRY(sdg_subcall_transform(h->m->plan, 1, &there, 0, out));
  if (!trims)
    return SDG_OK;
  sdg_box_t own =
      sdg_tagging_own(tagging, &tagging->placement[h->operand[part]]);
  SDG_TRY(sdg_plan_within(h->m->plan, out->slab, 0, &own, out->slab, &rows));
  memcpy(h->m->plan->slab[rows].stride, o->stride, sizeof o->stride);
  memcpy(h->m->plan->slab[rows].nesting, o->nesting, sizeof o->nesting);
  return padding_zero(h, part, rows);
}

// Where the rows of an output are computed: in place, or in scratch if the
// arithmetic has another type. rows_store() converts them afterwards.
static sdg_status_t rows_room(heads_t *h, int index,
                              sdg_subcall_tensor_t *out) {
  sdg_subcall_tensor_t there;
  SDG_TRY(rows_view(h, index, &there));
  *out = there;
  return there.type == h->type ? SDG_OK : room_like(h, &there, out);
}

static sdg_status_t rows_store(heads_t *h, int index,
                               const sdg_subcall_tensor_t *made) {
  sdg_subcall_tensor_t there;
  if (type_of(h) == h->type)
    return SDG_OK;
  SDG_TRY(rows_view(h, index, &there));
  return sdg_subcall_transform(h->m->plan, 1, made, 0, &there);
}

// ---- projections -----------------------------------------------------------

// Computes the projected q, k and v and, for gradients, the gradient of the
// heads' results.
static sdg_status_t project(heads_t *h) {
  for (int i = 0; i < O; i++) {
    SDG_TRY(rows_read(h, i, &h->row[i]));
    SDG_TRY(sdg_attention_project_right(&h->project, i, &h->row[i],
                                        &h->field[i].flat));
  }
  if (h->m->a.kind == SDG_ATTENTION_FORWARD)
    return SDG_OK;
  sdg_attention_field_t *f = &h->field[PARTS + O];
  SDG_TRY(rows_read(h, O, &h->row[O]));
  return h->project.matrix[O].is_there
             ? sdg_attention_project_left(&h->project, O, &f->flat, &h->row[O])
             : sdg_subcall_transform(h->m->plan, 1, &h->row[O], 0, &f->flat);
}

// ---- one rank's heads ------------------------------------------------------

static sdg_attention_descriptor_t desc_of(const heads_t *h) {
  sdg_attention_descriptor_t desc = {.heads = 1,
                                     .scale = h->m->a.desc.scale,
                                     .type = (cudnnDataType_t)h->type,
                                     .compute = (cudnnDataType_t)h->type,
                                     .math = h->m->a.desc.math,
                                     .q_size = (int)h->project.each[Q],
                                     .k_size = (int)h->project.each[K],
                                     .v_size = (int)h->project.each[V],
                                     .beam = 1};
  desc.q_time = (int)h->field[Q].held.box.dim[SDG_SEQUENCE_TIME].hi;
  desc.k_time = (int)h->field[K].held.box.dim[SDG_SEQUENCE_TIME].hi;
  desc.batch = (int)h->field[Q].held.box.dim[SDG_SEQUENCE_BATCH].hi;
  return desc;
}

static sdg_status_t windows_make(heads_t *h,
                                 const sdg_attention_descriptor_t *desc) {
  size_t count = (size_t)desc->q_time;
  SDG_TRY(SDG_ALLOCATE(h->lo, count, "windows of %zu queries", count));
  SDG_TRY(SDG_ALLOCATE(h->hi, count, "windows of %zu queries", count));
  for (int t = 0; t < desc->q_time; t++)
    sdg_band_shift(sdg_band_row(&h->m->band, t, desc->k_time),
                   (sdg_range_t){0, desc->k_time}, &h->lo[t], &h->hi[t]);
  return SDG_OK;
}

static sdg_status_t attend(heads_t *h) {
  sdg_attention_maker_t *m = h->m;
  bool trains = m->a.kind != SDG_ATTENTION_FORWARD;
  sdg_attention_descriptor_t desc = desc_of(h);
  sdg_attention_apply_t sub = {.kind = SDG_ATTENTION_FORWARD,
                               .desc = desc,
                               .q = h->field[Q].held,
                               .k = h->field[K].held,
                               .v = h->field[V].held,
                               .o = h->field[O].held,
                               .apart = true,
                               .reserve = -1};
  SDG_TRY(windows_make(h, &desc));
  sub.lo = h->lo;
  sub.hi = h->hi;
  SDG_TRY(lengths_make(h, Q, &h->q_length));
  SDG_TRY(lengths_make(h, K, &h->k_length));
  sub.q_length = h->q_length;
  sub.k_length = h->k_length;
  if (trains)
    SDG_TRY(sdg_attention_apply_reserve(m->plan, &desc, &sub.reserve));
  SDG_TRY(sdg_attention_apply_add(m->plan, m->call, &sub));
  if (!trains)
    return SDG_OK;
  sub.kind = SDG_ATTENTION_DATA;
  sub.o = h->field[PARTS + O].held;
  sub.dq = h->field[PARTS + Q].held;
  sub.dk = h->field[PARTS + K].held;
  sub.dv = h->field[PARTS + V].held;
  return sdg_attention_apply_add(m->plan, m->call, &sub);
}

// ---- the directions --------------------------------------------------------

// Reads the rows of the residual, in the order of the output's rows. The
// residual is cut like the queries.
static sdg_status_t residual_read(heads_t *h, const sdg_subcall_tensor_t *rows,
                                  sdg_subcall_tensor_t *out) {
  sdg_attention_maker_t *m = h->m;
  sdg_box_t own = sdg_attention_maker_rows(m, m->a.residual, m->tagging->rank);
  int from, to;
  SDG_TRY(sdg_plan_operand(m->plan, m->call, m->a.residual, &own, &from));
  SDG_TRY(sdg_plan_packed(m->plan, &own, m->call->operand[m->a.o].stride,
                          sdg_merge_bytes(h->type), &to));
  sdg_subcall_tensor_t source = sdg_subcall_slab(m->plan, from, type_of(h));
  sdg_subcall_tensor_t target = sdg_subcall_slab(m->plan, to, h->type);
  SDG_TRY(sdg_subcall_transform(m->plan, 1, &source, 0, &target));
  *out = *rows;
  return sdg_plan_within(m->plan, to, 0, &rows->box, rows->slab, &out->slab);
}

static sdg_status_t output_make(heads_t *h) {
  sdg_plan_t *plan = h->m->plan;
  const sdg_attention_t *a = &h->m->a;
  sdg_subcall_tensor_t out, residual, *results = &h->field[O].flat;
  SDG_TRY(rows_room(h, a->o, &out));
  if (h->project.matrix[O].is_there)
    SDG_TRY(sdg_attention_project_right(&h->project, O, results, &out));
  else
    SDG_TRY(sdg_subcall_transform(plan, 1, results, 0, &out));
  if (a->residual >= 0) {
    SDG_TRY(residual_read(h, &out, &residual));
    SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, &out, 1, &residual, 0,
                           &out));
  }
  SDG_TRY(rows_store(h, a->o, &out));
  return operand_finish(h, O, a->o);
}

static sdg_status_t vectors_make(heads_t *h) {
  const sdg_attention_t *a = &h->m->a;
  const int to[] = {a->dq, a->dk, a->dv};
  for (int i = 0; i < O; i++) {
    sdg_subcall_tensor_t out;
    SDG_TRY(rows_room(h, to[i], &out));
    SDG_TRY(sdg_attention_project_left(&h->project, i, &out,
                                       &h->field[PARTS + i].flat));
    SDG_TRY(rows_store(h, to[i], &out));
    SDG_TRY(operand_finish(h, i, to[i]));
  }
  return SDG_OK;
}

// Computes the gradients of one projection's parameters, as sums over rows.
static sdg_status_t parameter_make(heads_t *h, int part, int weights,
                                   bool adds) {
  const sdg_subcall_tensor_t *left = &h->row[part],
                             *right = &h->field[PARTS + part].flat;
  if (part == O) {
    left = &h->field[O].flat;
    right = &h->row[O];
  }
  SDG_TRY(sdg_attention_project_matrix(&h->project, part, left, right, weights,
                                       adds));
  return sdg_attention_project_bias(&h->project, part, right, weights, adds);
}

static sdg_status_t parameters_make(heads_t *h) {
  sdg_attention_maker_t *m = h->m;
  sdg_gradient_sum_t sum;
  SDG_TRY(sdg_gradient_sum_open(m->plan, m->call, m->a.dw, m->sum_axes,
                                sdg_attention_old_factor, &sum));
  bool adds = sum.takes_beta && m->a.adds;
  if (!adds)
    SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &sum));
  for (int i = 0; i < PARTS; i++) {
    const sdg_attention_field_t *sums = &h->field[i == O ? O : PARTS + i];
    SDG_TRY(padding_zero(h, i, sums->rows));
    SDG_TRY(parameter_make(h, i, sum.part, adds));
  }
  return sdg_gradient_sum_close(m->plan, m->call, &sum);
}

static sdg_status_t fields_init(heads_t *h) {
  int fields = h->m->a.kind == SDG_ATTENTION_FORWARD ? PARTS : FIELDS;
  for (int i = 0; i < fields; i++)
    SDG_TRY(sdg_attention_field_init(h->m, h->operand[i % PARTS],
                                     h->project.each[i % PARTS], h->type,
                                     &h->field[i]));
  return SDG_OK;
}

static sdg_status_t steps_make(heads_t *h) {
  sdg_attention_field_t *there[] = {&h->field[Q], &h->field[K], &h->field[V],
                                    &h->field[PARTS + O]};
  sdg_attention_field_t *back[] = {&h->field[PARTS + Q], &h->field[PARTS + K],
                                   &h->field[PARTS + V], &h->field[O]};
  sdg_attention_kind_t kind = h->m->a.kind;
  bool forward = kind == SDG_ATTENTION_FORWARD;
  h->m->plan->axes = h->m->tagging->axes;
  SDG_TRY(sdg_attention_project_open(h->m, &h->project));
  SDG_TRY(fields_init(h));
  SDG_TRY(project(h));
  SDG_TRY(sdg_attention_field_exchange(h->m, there, forward ? 3 : 4, true));
  SDG_TRY(attend(h));
  if (forward) {
    SDG_TRY(sdg_attention_field_exchange(h->m, &back[3], 1, false));
    return output_make(h);
  }
  SDG_TRY(sdg_attention_field_exchange(
      h->m, back, kind == SDG_ATTENTION_DATA ? 3 : 4, false));
  return kind == SDG_ATTENTION_DATA ? vectors_make(h) : parameters_make(h);
}

sdg_status_t sdg_attention_heads_steps(sdg_attention_maker_t *m) {
  heads_t h = {.m = m,
               .type = sdg_merge_type((sdg_type_t)m->a.desc.type),
               .operand = {m->a.q, m->a.k, m->a.v, m->a.o}};
  sdg_status_t status = steps_make(&h);
  for (int i = 0; i < FIELDS; i++)
    sdg_attention_field_fini(&h.field[i]);
  free(h.lo);
  free(h.hi);
  free(h.q_length);
  free(h.k_length);
  return status;
}
