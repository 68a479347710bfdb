// SPDX-License-Identifier: Apache-2.0
// The ring of keys and values: memory for two pieces, and messages.
#include "rules/graph/attention/side.h"

#include <stdlib.h>

#include "rules/kit/fetch.h"
#include "rules/kit/subcall.h"

enum { SEQ = SDG_HEADED_SEQ, DIMS = SDG_HEADED_DIMS };

typedef sdg_graph_attention_view_t view_t;
typedef sdg_graph_side_t side_t;

int sdg_graph_ring_steps(const sdg_graph_attention_t *a) {
  return a->merges ? 1 : a->side[SDG_KEYS]->part[SEQ].pieces;
}

sdg_range_t sdg_graph_ring_keys(const sdg_graph_attention_t *a, int rank,
                                int step) {
  const sdg_part_t *keys = &a->side[SDG_KEYS]->part[SEQ];
  const sdg_placement_t *like = a->merges ? a->side[SDG_KEYS] : a->queries;
  int own = sdg_split_piece(&like->split[SEQ], a->tagging->mesh, rank);
  int piece = (own + step) % keys->pieces;
  return (sdg_range_t){keys->offset[piece], keys->offset[piece + 1]};
}

static void needs_find(side_t *side, int step) {
  const sdg_graph_attention_t *a = side->a;
  for (int i = 0; i < a->tagging->ranks; i++) {
    int rank = a->tagging->rank_list[i];
    side->need[i] = sdg_graph_attention_need(
        a, side->side, rank, sdg_graph_ring_keys(a, rank, step));
  }
}

static const sdg_box_t *mine(const side_t *side) {
  return &side->need[side->a->tagging->me];
}

static cudnnDataType_t type_of(const side_t *side) {
  const sdg_graph_attention_t *a = side->a;
  return (cudnnDataType_t)a->call->operand[a->operand[side->role]].type;
}

// ---- memory ----------------------------------------------------------------

static sdg_status_t terms_room(side_t *side, size_t bytes) {
  // The sequence is the outermost dimension, so that some keys are one run.
  static const int64_t by_sequence[SDG_DIMS_MAX] = {[SDG_HEADED_BATCH] = 3,
                                                    [SDG_HEADED_HEADS] = 2,
                                                    [SDG_HEADED_SEQ] = 4,
                                                    [SDG_HEADED_VECTOR] = 1};
  static const sdg_box_t one = {DIMS, {{0, 1}, {0, 1}, {0, 1}, {0, 1}}};
  sdg_plan_t *plan = side->a->plan;
  SDG_TRY(
      sdg_plan_packed(plan, &one, by_sequence, side->elem_bytes, &side->like));
  for (int i = 0; i < SDG_RESIDENT; i++)
    SDG_TRY(sdg_plan_workspace(plan, bytes, &side->part[i]));
  SDG_TRY(sdg_plan_workspace(
      plan, (size_t)sdg_box_count(&side->own) * (size_t)side->elem_bytes,
      &side->landing));
  SDG_TRY(sdg_plan_packed(plan, &side->own, by_sequence, sizeof(float),
                          &side->sum));
  return sdg_plan_zero(plan, SDG_LANE_MAIN, side->sum, &side->own);
}

sdg_status_t sdg_graph_side_open(sdg_graph_attention_t *a, int index,
                                 side_t *side) {
  bool keys = index == SDG_KEYS;
  int64_t most = 0;
  *side = (side_t){.a = a,
                   .side = index,
                   .role = keys ? SDG_COMPOSITE_K : SDG_COMPOSITE_V,
                   .back = keys ? SDG_COMPOSITE_DK : SDG_COMPOSITE_DV};
  side->elem_bytes = a->call->operand[a->operand[side->role]].elem_bytes;
  side->own = sdg_tagging_own(a->tagging, a->side[index]);
  SDG_TRY(SDG_ALLOCATE(side->need, a->tagging->ranks, "boxes of %d ranks",
                       a->tagging->ranks));
  for (int step = 0; step < sdg_graph_ring_steps(a); step++) {
    needs_find(side, step);
    int64_t count = sdg_box_count(mine(side));
    most = count > most ? count : most;
  }
  size_t bytes = (size_t)most * (size_t)side->elem_bytes;
  for (int i = 0; i < SDG_RESIDENT; i++)
    SDG_TRY(sdg_plan_workspace(a->plan, bytes, &side->room[i]));
  return a->composite->backward ? terms_room(side, bytes) : SDG_OK;
}

void sdg_graph_side_fini(side_t *side) {
  free(side->need);
  sdg_transfer_fini(&side->transfer);
  free(side->landed);
}

// ---- keys ------------------------------------------------------------------

sdg_status_t sdg_graph_side_fetch(side_t *side, int step, view_t *out) {
  sdg_graph_attention_t *a = side->a;
  int own = a->slab[side->role];
  sdg_fetch_t fetch;
  needs_find(side, step);
  *out = (view_t){own, *mine(side), type_of(side)};
  if (!sdg_fetch_communicates(a->tagging, a->side[side->side], side->need))
    return SDG_OK;
  if (!sdg_box_empty(mine(side)) && !sdg_box_contains(&side->own, mine(side)))
    SDG_TRY(sdg_plan_within(a->plan, side->room[step % SDG_RESIDENT], 0,
                            mine(side), own, &out->slab));
  sdg_status_t status = sdg_fetch_open(a->plan, a->tagging, a->side[side->side],
                                       side->need, own, out->slab, &fetch);
  // A piece has one owner, whose message is all of it.
  for (int i = 0; status == SDG_OK && i < fetch.transfer.recvs; i++)
    if (fetch.landed[i] >= 0)
      status = sdg_fail(SDG_E_INTERNAL, "a piece of keys in several messages");
  sdg_fetch_fini(&fetch);
  return status;
}

// ---- gradients -------------------------------------------------------------

sdg_status_t sdg_graph_side_terms(side_t *side, int step, const view_t *keys) {
  int at = step % SDG_RESIDENT;
  side->terms[at] = (view_t){-1, keys->box, type_of(side)};
  return sdg_box_empty(&keys->box)
             ? SDG_OK
             : sdg_plan_within(side->a->plan, side->part[at], 0, &keys->box,
                               side->like, &side->terms[at].slab);
}

sdg_status_t sdg_graph_side_send(side_t *side, int step) {
  sdg_graph_attention_t *a = side->a;
  const view_t *terms = &side->terms[step % SDG_RESIDENT];
  sdg_transfer_t *transfer = &side->transfer;
  int into = SDG_SLAB_SCRATCH;
  needs_find(side, step);
  SDG_TRY(sdg_scatter_transfer(a->tagging, a->side[side->side], a->queries,
                               side->need, NULL, transfer));
  SDG_TRY(SDG_ALLOCATE(side->landed, transfer->recvs + 1, "a transfer"));
  if (transfer->recvs == 1)
    SDG_TRY(sdg_plan_within(a->plan, side->landing, 0, &transfer->recv[0].box,
                            side->like, &into));
  SDG_TRY(sdg_plan_messages(a->plan, transfer,
                            terms->slab < 0 ? side->like : terms->slab, &into,
                            into == SDG_SLAB_SCRATCH ? 0 : 1, side->landed));
  if (transfer->recvs == 1 && side->landed[0] < 0)
    side->landed[0] = into;
  return SDG_OK;
}

static sdg_status_t term_add(const side_t *side, int slab,
                             const sdg_box_t *box) {
  sdg_subcall_tensor_t term = {
      .slab = slab, .box = *box, .type = (sdg_type_t)type_of(side)};
  sdg_subcall_tensor_t sum = {
      .slab = side->sum, .box = *box, .type = CUDNN_DATA_FLOAT};
  return sdg_subcall_transform(side->a->plan, 1, &term, 1, &sum);
}

sdg_status_t sdg_graph_side_add(side_t *side, int step) {
  sdg_transfer_t *transfer = &side->transfer;
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < transfer->recvs && status == SDG_OK; i++)
    status = term_add(side, side->landed[i], &transfer->recv[i].box);
  for (int i = 0; i < transfer->locals && status == SDG_OK; i++)
    status = term_add(side, side->terms[step % SDG_RESIDENT].slab,
                      &transfer->local[i].box);
  sdg_transfer_fini(transfer);
  *transfer = (sdg_transfer_t){.sends = 0};
  free(side->landed);
  side->landed = NULL;
  return status;
}
