// SPDX-License-Identifier: Apache-2.0
// A function in the whole view: each rank calls it on its own elements and
// those in reach, in the program's memory where strides allow it.
#include <stdlib.h>
#include <string.h>

#include "rules/function/fit.h"
#include "rules/function/maker.h"
#include "rules/memory/memory.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"
#include "src/geometry/transfer.h"

typedef struct sharer {
  sdg_function_maker_t m;
  sdg_tagging_t at; // m.tagging, with the placements of all tensors
  // Operands that the function finds in scratch: strides that follow from the
  // extents of a piece are not the program's, or rows are images of others.
  bool scratch[SDG_OPERANDS_MAX];
  // A kernel whose grid is known for the program's extents only: every rank
  // launches it on all elements, and nothing is moved. No element sees another,
  // so that those that were right before are right afterwards.
  bool still;
} sharer_t;

static bool is_result(const sharer_t *s, int index) {
  return sdg_function_is_combined(&s->m, index);
}

// ---- memory ----------------------------------------------------------------

// Bits of sdg_function_memory(). UNSEEN << i: operand i is an output in memory
// that the program can read without a call.
enum {
  PAGEABLE = 1, // an output is in memory that cannot be sent
  SAME = 2,     // an output is in the memory of an input
  OVERLAPS = 4, // an output has a part of another tensor's memory
  UNSEEN = 8,
};

static sdg_span_t span_of(const sdg_operand_t *operand) {
  sdg_layout_t layout = sdg_operand_layout(operand);
  return (sdg_span_t){(uintptr_t)operand->data, sdg_layout_bytes(&layout)};
}

static bool is_same(const sdg_operand_t *a, const sdg_operand_t *b) {
  return a->data == b->data && a->elem_bytes == b->elem_bytes &&
         a->is_output != b->is_output &&
         memcmp(a->extent, b->extent, sizeof a->extent) == 0 &&
         memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

static uint64_t memory_of_two(const sdg_operand_t *output,
                              const sdg_operand_t *other) {
  if (!sdg_span_overlap(span_of(output), span_of(other)))
    return 0;
  return is_same(output, other) ? SAME : OVERLAPS;
}

uint64_t sdg_function_memory(const sdg_call_t *call) {
  uint64_t bits = 0;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *output = &call->operand[i];
    sdg_span_t allocation;
    if (!output->is_output || output->role == SDG_ROLE_RESULT)
      continue;
    if (!sdg_buffers_allocation(sdg_memory_table(), (uintptr_t)output->data,
                                &allocation))
      bits |= (uint64_t)UNSEEN << i |
              (sdg_function_is_pageable(output->data) ? PAGEABLE : 0);
    for (int k = 0; k < call->operands; k++)
      if (k != i)
        bits |= memory_of_two(output, &call->operand[k]);
  }
  return bits;
}

// ---- where the tensors are -------------------------------------------------

static bool sees_all(const sdg_function_t *function, int dims, int d) {
  sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, dims);
  return function->reach[dim] == SDG_REACH_ALL;
}

// Places the lead as it was written or as the section says, but not split in
// dimensions of which every element sees all, or which it does not have.
static sdg_status_t lead_place(sharer_t *s, const sdg_placement_t *given) {
  int lead = sdg_function_tensor_of(s->m.function, 0), from[SDG_DIMS_MAX];
  for (int d = 0; d < given->dims; d++)
    from[d] = sees_all(s->m.function, given->dims, d) ||
                      sdg_function_extent_at(s->m.function, lead, d) < 0
                  ? -1
                  : d;
  return sdg_placement_like(given->dims, s->m.call->operand[0].extent,
                            s->at.mesh, given, from, &s->at.placement[0]);
}

static sdg_status_t other_place(sharer_t *s, int index) {
  const sdg_operand_t *operand = &s->m.call->operand[index];
  int tensor = sdg_function_tensor_of(s->m.function, index);
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < operand->dims; d++)
    from[d] = !is_result(s, index) &&
                      sdg_function_extent_at(s->m.function, tensor, d) >= 0
                  ? d
                  : -1;
  return sdg_placement_like(operand->dims, operand->extent, s->at.mesh,
                            &s->at.placement[0], from, &s->at.placement[index]);
}

static bool extents_fit(const sharer_t *s, int index) {
  const sdg_placement_t *lead = &s->at.placement[0];
  const sdg_operand_t *operand = &s->m.call->operand[index];
  int tensor = sdg_function_tensor_of(s->m.function, index);
  for (int d = 0; d < lead->dims && !is_result(s, index); d++)
    if (sdg_placement_splits(lead, d) &&
        sdg_function_extent_at(s->m.function, tensor, d) >= 0 &&
        operand->extent[d] != s->m.call->operand[0].extent[d])
      return false;
  return true;
}

// ---- whether the call can be shared ----------------------------------------

static sdg_box_t own_box(const sharer_t *s, int rank) {
  return sdg_placement_box(&s->at.placement[0], s->at.mesh, rank);
}

static bool any_idle(const sharer_t *s) {
  for (int r = 0; r < sdg_mesh_ranks(s->at.mesh); r++) {
    sdg_box_t own = own_box(s, r);
    if (sdg_box_empty(&own))
      return true;
  }
  return false;
}

static bool any_reach(const sharer_t *s) {
  for (int r = 0; r < sdg_mesh_ranks(s->at.mesh); r++) {
    sdg_box_t own = own_box(s, r);
    sdg_box_t need = sdg_function_need(s->m.call, &s->at, r);
    if (!sdg_box_equal(&own, &need))
      return true;
  }
  return false;
}

// Notes which operands need scratch for this piece.
static sdg_status_t scratch_note(sharer_t *s, const sdg_box_t *piece) {
  int64_t integer[SDG_ARGUMENTS_MAX], stride[SDG_DIMS_MAX];
  SDG_TRY(sdg_function_fit(sdg_function_call_of(s->m.call), piece, integer));
  for (int i = 0; i < s->m.call->operands; i++) {
    const sdg_operand_t *operand = &s->m.call->operand[i];
    sdg_box_t box = sdg_function_box(&s->m, i, piece);
    sdg_box_t all = sdg_operand_box(operand);
    if (is_result(s, i))
      continue;
    SDG_TRY(sdg_function_strides(s->m.function,
                                 sdg_function_tensor_of(s->m.function, i), &box,
                                 integer, stride));
    s->scratch[i] |= !sdg_box_contains(&all, &box);
    for (int d = 0; d < operand->dims; d++)
      s->scratch[i] |=
          sdg_box_length(&box, d) > 1 && stride[d] != operand->stride[d];
  }
  return SDG_OK;
}

// Every rank decides by the pieces of all, so that all decide alike.
static sdg_status_t pieces_check(sharer_t *s, bool *out_fit) {
  sdg_status_t status = SDG_OK;
  sdg_probe_begin();
  for (int r = 0; r < sdg_mesh_ranks(s->at.mesh) && status == SDG_OK; r++) {
    sdg_box_t piece = sdg_function_need(s->m.call, &s->at, r);
    if (!sdg_box_empty(&piece))
      status = scratch_note(s, &piece);
  }
  sdg_probe_end();
  *out_fit = status == SDG_OK;
  return status == SDG_E_NO_MEMORY ? status : SDG_OK;
}

// Whether the launch of a kernel follows the extents of a piece.
static bool grid_follows(const sharer_t *s) {
  const sdg_placement_t *lead = &s->at.placement[0];
  for (int d = 0; d < lead->dims && s->m.function->is_kernel; d++)
    if (sdg_placement_splits(lead, d) &&
        sdg_grid_unsaid(s->m.function,
                        sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims)) >= 0)
      return false;
  return true;
}

// Some output is not split as the first tensor is.
static bool any_common(const sharer_t *s) {
  sdg_axes_t axes = sdg_placement_axes(&s->at.placement[0]);
  for (int i = 0; i < s->m.call->operands; i++)
    if (s->m.call->operand[i].is_output && !is_result(s, i) &&
        sdg_placement_axes(&s->at.placement[i]) != axes)
      return true;
  return false;
}

// Reasons why every rank makes the call in full; NULL: it need not.

static const char *section_obstacle(const sharer_t *s) {
  const char *why = NULL;
  for (int i = 1; i < s->m.call->operands; i++)
    if (!extents_fit(s, i))
      why = "tensors of other extents than the first";
  if (sdg_function_has_ghosts(s->m.function))
    why = "ghosts";
  if (!sdg_placement_axes(&s->at.placement[0]))
    why = "reach = all wherever it is split";
  return why;
}

// Of a call whose tensors are all placed.
static sdg_status_t call_obstacle(sharer_t *s, const char **out_why) {
  uint64_t memory = sdg_function_memory(s->m.call);
  bool fit = true, reach = any_reach(s);
  s->still = !grid_follows(s);
  if (!s->still)
    SDG_TRY(pieces_check(s, &fit));
  if (memory & PAGEABLE)
    *out_why = "an output in memory that the CUDA runtime did not allocate";
  else if (memory & OVERLAPS || (memory & SAME && reach))
    *out_why = "an output in the memory of what it sees";
  else if (s->still && (reach || any_common(s) || s->m.function->results > 0))
    *out_why = "`grid` does not say how the launch follows the extents";
  else if (!s->still && any_idle(s)) // it may return a number
    *out_why = "ranks without elements";
  else
    *out_why = fit ? NULL : "a piece that no arguments describe";
  return SDG_OK;
}

static sdg_status_t obstacle_find(sharer_t *s, const char **out_why) {
  *out_why = section_obstacle(s);
  if (*out_why)
    return SDG_OK;
  for (int i = 1; i < s->m.call->operands; i++)
    SDG_TRY(other_place(s, i));
  return call_obstacle(s, out_why);
}

// ---- the share -------------------------------------------------------------

static sdg_status_t share_fill(sharer_t *s) {
  sdg_share_t *share = s->m.plan->share;
  // The program's own call would see other rows at inner borders, so that a
  // failure is no reason to make it.
  share->around = true;
  share->completes = true;
  for (int i = 0; i < s->m.call->operands; i++) {
    const sdg_operand_t *operand = &s->m.call->operand[i];
    sdg_box_t *box;
    if (operand->is_output)
      SDG_TRY(sdg_share_output(share, i, &s->at.placement[i]));
    if (is_result(s, i))
      continue;
    SDG_TRY(sdg_share_reads(share, i, &box));
    for (int r = 0; r < share->ranks; r++) {
      // The function may leave elements of its outputs as they are.
      box[r] = sdg_function_reads(&s->m, i)
                   ? sdg_function_need(s->m.call, &s->at, r)
                   : own_box(s, r);
      box[r] = sdg_function_box(&s->m, i, &box[r]);
    }
  }
  return SDG_OK;
}

// ---- this rank's steps -----------------------------------------------------

// The piece of an operand where it lies.
static sdg_status_t in_place(sharer_t *s, int index, const sdg_box_t *box,
                             int *out_slab) {
  const sdg_operand_t *operand = &s->m.call->operand[index];
  SDG_TRY(sdg_plan_operand(s->m.plan, s->m.call, index, box, out_slab));
  for (int d = 0; d < box->dims; d++)
    s->m.plan->slab[*out_slab].offset_bytes +=
        (size_t)(box->dim[d].lo * operand->stride[d] * operand->elem_bytes);
  return SDG_OK;
}

// Copies what the function reads into scratch, images beyond the ends of
// periodic dimensions included.
static sdg_status_t images_copy(sharer_t *s, int from, int into,
                                const sdg_box_t *all, const sdg_box_t *box) {
  int64_t period[SDG_DIMS_MAX] = {0};
  sdg_transfer_t images;
  sdg_function_periods(&s->m, period);
  SDG_TRY(sdg_transfer_plan(all, box, 1, 0, period, &images));
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < images.locals && status == SDG_OK; i++) {
    const sdg_message_t *local = &images.local[i];
    sdg_box_t to = sdg_box_shift(&local->box, local->shift);
    status = sdg_plan_copy(s->m.plan, SDG_LANE_MAIN, from, into, local->shift,
                           &to, SDG_COPY_ACTIVATION);
  }
  sdg_transfer_fini(&images);
  return status;
}

static sdg_status_t operand_open(sharer_t *s, int index,
                                 sdg_function_piece_t *piece) {
  const sdg_operand_t *operand = &s->m.call->operand[index];
  sdg_box_t box = sdg_function_box(&s->m, index, &piece->box);
  sdg_box_t own = sdg_function_box(&s->m, index, &s->m.own);
  sdg_box_t all = sdg_operand_box(operand);
  int from = s->m.own_slab[index];
  if (is_result(s, index))
    return SDG_OK;
  if (!s->scratch[index])
    return in_place(s, index, &box, &piece->slab[index]);
  SDG_TRY(sdg_function_scratch(&s->m, index, piece));
  return sdg_function_reads(&s->m, index)
             ? images_copy(s, from, piece->slab[index], &all, &box)
             : sdg_plan_copy(s->m.plan, SDG_LANE_MAIN, from, piece->slab[index],
                             NULL, &own, SDG_COPY_ACTIVATION);
}

static sdg_status_t steps_make(sharer_t *s) {
  sdg_box_t need = s->still ? sdg_operand_box(&s->m.call->operand[0])
                            : sdg_function_need(s->m.call, &s->at, s->at.rank);
  sdg_function_piece_t *piece;
  SDG_TRY(sdg_function_state_make(&s->m));
  for (int i = 0; i < s->m.call->operands; i++) {
    sdg_box_t all = sdg_operand_box(&s->m.call->operand[i]);
    SDG_TRY(sdg_plan_operand(s->m.plan, s->m.call, i, &all, &s->m.own_slab[i]));
  }
  SDG_TRY(sdg_function_piece_add(&s->m, &need, &piece));
  for (int i = 0; i < s->m.call->operands; i++)
    SDG_TRY(operand_open(s, i, piece));
  SDG_TRY(sdg_plan_call(s->m.plan, SDG_FUNCTION_CALL));
  for (int i = 0; i < s->m.call->operands; i++) {
    sdg_box_t own = sdg_function_box(&s->m, i, &s->m.own);
    if (s->m.call->operand[i].is_output && s->scratch[i])
      SDG_TRY(sdg_plan_copy(s->m.plan, SDG_LANE_MAIN, piece->slab[i],
                            s->m.own_slab[i], NULL, &own, SDG_COPY_ACTIVATION));
  }
  return sdg_function_end(&s->m);
}

static sdg_status_t shared_plan(sharer_t *s, sdg_plan_t **out_plan) {
  bool any = false;
  for (int i = 0; i < s->m.call->operands; i++)
    any |= s->scratch[i];
  SDG_TRY(sdg_plan_create_shared(s->still ? "still"
                                 : any    ? "extend"
                                          : "window",
                                 sdg_mesh_ranks(s->at.mesh), &s->m.plan));
  s->m.plan->why =
      s->still ? "every rank launches in full, and nothing is moved: `grid` "
                 "does not "
                 "say how the launch follows the extents"
      : any    ? "the function works on copies: strides follow from the "
                 "extents, or rows from beyond the ends"
               : "the function works on the rank's rows where they lie";
  s->m.own = own_box(s, s->at.rank);
  sdg_status_t status = share_fill(s);
  if (status == SDG_OK)
    status = steps_make(s);
  return sdg_plan_finish(s->m.plan, status, out_plan);
}

sdg_status_t sdg_function_share(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  const char *why = NULL;
  sharer_t *s;
  *out_plan = NULL;
  if (tagging->placement[0].dims == 0) // a split of dimensions it lacks
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(s, 1, "a plan"));
  s->m.call = call;
  s->m.function = sdg_function_call_of(call)->function;
  s->m.tagging = &s->at;
  s->at = *tagging;
  memset(s->at.placement, 0, sizeof s->at.placement);
  sdg_status_t status = lead_place(s, &tagging->placement[0]);
  if (status == SDG_OK)
    status = obstacle_find(s, &why);
  if (status == SDG_OK)
    status = why ? sdg_in_full_plan(why, out_plan) : shared_plan(s, out_plan);
  for (int i = 0; i < call->operands; i++)
    sdg_placement_fini(&s->at.placement[i]);
  free(s);
  return status;
}
