// SPDX-License-Identifier: Apache-2.0
// Products whose K is split: each rank multiplies its part of K. It sends the
// terms for other ranks' pieces of the result to these ranks, and adds the
// terms that it receives to its own piece. Then the ranks gather all pieces,
// unless the result remains in pieces.
#include <stdlib.h>

#include "rules/product/rule.h"

typedef struct sums {
  sdg_plan_t *plan;
  const sdg_product_parts_t *m;
  const int *slab;
  // Boxes of the result: for which this rank has terms; whose sums it computes.
  sdg_box_t all, own;
  bool terms;           // this rank has a part of K
  bool narrow;          // the types of sums and result differ
  bool follows;         // an epilogue follows
  sdg_transfer_t parts; // sent: terms of others' pieces; received: of the own
  int *landed;          // slabs of the received terms
} sums_t;

static int me_of(const sdg_product_parts_t *m) {
  return m->tagging->rank;
}

static bool has_terms(const sdg_product_parts_t *m, int rank) {
  sdg_box_t box = sdg_product_own_box(m, rank);
  return box.dim[SDG_K].hi > box.dim[SDG_K].lo;
}

// The box of the product whose result is `box`, with this rank's part of K.
static sdg_box_t product_of(const sums_t *s, const sdg_box_t *box) {
  sdg_box_t out = sdg_product_own_box(s->m, me_of(s->m));
  const sdg_matrix_t *result = &s->m->product.matrix[SDG_RESULT];
  for (int d = 0; d < result->dims; d++)
    out.dim[result->dim[d]] = box->dim[d];
  return out;
}

// Lists the messages: each rank that has terms sends to every partner the terms
// of that partner's piece.
static sdg_status_t parts_list(sums_t *s) {
  const sdg_tagging_t *tagging = s->m->tagging;
  int ranks = tagging->ranks;
  SDG_TRY(SDG_ALLOCATE(s->parts.send, ranks, "messages of %d ranks", ranks));
  SDG_TRY(SDG_ALLOCATE(s->parts.recv, ranks, "messages of %d ranks", ranks));
  SDG_TRY(SDG_ALLOCATE(s->landed, ranks, "messages of %d ranks", ranks));
  for (int i = 0; i < tagging->ranks; i++) {
    int rank = tagging->rank_list[i];
    if (rank == me_of(s->m) || !sdg_product_partners(s->m, rank, me_of(s->m)))
      continue;
    sdg_box_t theirs = sdg_product_piece(s->m, rank);
    if (s->terms && !sdg_box_empty(&theirs))
      s->parts.send[s->parts.sends++] =
          (sdg_message_t){.peer = i, .box = theirs};
    if (has_terms(s->m, rank) && !sdg_box_empty(&s->own))
      s->parts.recv[s->parts.recvs++] =
          (sdg_message_t){.peer = i, .box = s->own};
  }
  return SDG_OK;
}

static sdg_status_t scratch(sums_t *s, const sdg_box_t *box, int *out_slab) {
  const int type = sdg_product_sum_type(&s->m->product);
  return sdg_plan_scratch_of(s->plan, box, sdg_product_type_bytes(type),
                             s->slab[SDG_RESULT], out_slab);
}

static sdg_product_multiply_args_t multiply_of(const sums_t *s,
                                               const sdg_box_t *box) {
  return (sdg_product_multiply_args_t){
      .box = product_of(s, box),
      .factor = {s->slab[SDG_FACTOR_1], s->slab[SDG_FACTOR_2]},
      .source = -1,
      .addend = s->slab[SDG_ADDEND],
      .result = s->slab[SDG_RESULT]};
}

// Computes the terms of other ranks' pieces, and adds the messages that send
// them.
static sdg_status_t others_multiply(sums_t *s) {
  sdg_box_t left[2 * SDG_DIMS_MAX];
  int partial = s->slab[SDG_RESULT], count = 0;
  // Messages have the type of sums, even if they are empty.
  if (s->parts.sends > 0 || s->parts.recvs > 0)
    SDG_TRY(scratch(s, s->parts.sends > 0 ? &s->all : &s->own, &partial));
  if (s->parts.sends > 0)
    count = sdg_box_subtract(&s->all, &s->own, left);
  for (int i = 0; i < count; i++) {
    sdg_product_multiply_args_t multiply = multiply_of(s, &left[i]);
    multiply.result = partial;
    multiply.widened = true;
    multiply.beta = SDG_BETA_ZERO;
    SDG_TRY(sdg_product_multiply(s->plan, &multiply));
  }
  SDG_TRY(sdg_plan_join(s->plan, SDG_LANE_COMM));
  SDG_TRY(sdg_plan_messages(s->plan, &s->parts, partial, NULL, 0, s->landed));
  return sdg_plan_exchange(s->plan);
}

// Adds the received terms, from message `first` on, to slab `to`. `widened`:
// the slab has the type of sums.
static sdg_status_t received_add(sums_t *s, int first, int to, bool widened) {
  for (int i = first; i < s->parts.recvs; i++) {
    const sdg_product_addition_t add = {.box = product_of(s, &s->own),
                                        .from = s->landed[i],
                                        .source = to,
                                        .to = to,
                                        .source_widened = widened,
                                        .to_widened = widened,
                                        .beta = SDG_BETA_ONE};
    SDG_TRY(sdg_product_add(s->plan, &add));
  }
  return SDG_OK;
}

// result = sums + beta * old values, which are in the source if the call has
// one, otherwise in the result.
static sdg_status_t old_add(sums_t *s, int sums) {
  bool apart = s->m->product.matrix[SDG_SOURCE].there;
  const sdg_product_addition_t add = {
      .box = product_of(s, &s->own),
      .from = sums,
      .source = s->slab[apart ? SDG_SOURCE : SDG_RESULT],
      .to = s->slab[SDG_RESULT],
      .beta = s->m->product.keeps ? SDG_BETA_PROGRAM : SDG_BETA_ZERO};
  return sdg_product_add(s->plan, &add);
}

// Result = received terms + beta * old values. For ranks without a part of K,
// because the vendor cannot multiply empty matrices, and before an epilogue.
static sdg_status_t piece_received(sums_t *s) {
  SDG_TRY(sdg_plan_join(s->plan, SDG_LANE_MAIN));
  SDG_TRY(received_add(s, 1, s->landed[0], true));
  return old_add(s, s->landed[0]);
}

// Computes own terms plus old values while messages travel, then adds the
// others' terms.
static sdg_status_t piece_plain(sums_t *s) {
  sdg_product_multiply_args_t multiply = multiply_of(s, &s->own);
  if (s->m->product.matrix[SDG_SOURCE].there)
    multiply.source = s->slab[SDG_SOURCE];
  if (!s->m->product.keeps)
    multiply.beta = SDG_BETA_ZERO;
  SDG_TRY(sdg_product_multiply(s->plan, &multiply));
  SDG_TRY(sdg_plan_join(s->plan, SDG_LANE_MAIN));
  return received_add(s, 0, s->slab[SDG_RESULT], false);
}

// Like piece_plain(), but in the type of sums, so that the result is rounded
// only once.
static sdg_status_t piece_narrow(sums_t *s) {
  int sums;
  SDG_TRY(scratch(s, &s->own, &sums));
  sdg_product_multiply_args_t multiply = multiply_of(s, &s->own);
  multiply.result = sums;
  multiply.widened = true;
  multiply.beta = SDG_BETA_ZERO;
  SDG_TRY(sdg_product_multiply(s->plan, &multiply));
  SDG_TRY(sdg_plan_join(s->plan, SDG_LANE_MAIN));
  SDG_TRY(received_add(s, 0, sums, true));
  return old_add(s, sums);
}

// Adds own terms last, in the call that applies the epilogue.
static sdg_status_t piece_followed(sums_t *s) {
  sdg_product_multiply_args_t multiply = multiply_of(s, &s->own);
  multiply.follows = true;
  multiply.beta = SDG_BETA_ONE;
  if (s->parts.recvs > 0) {
    SDG_TRY(piece_received(s));
  } else {
    SDG_TRY(sdg_plan_join(s->plan, SDG_LANE_MAIN));
    multiply.beta = SDG_BETA_PROGRAM;
    if (s->m->product.matrix[SDG_SOURCE].there)
      multiply.source = s->slab[SDG_SOURCE];
  }
  return sdg_product_multiply(s->plan, &multiply);
}

static sdg_status_t piece_make(sums_t *s) {
  if (sdg_box_empty(&s->own))
    return sdg_plan_join(s->plan, SDG_LANE_MAIN);
  if (s->follows)
    return piece_followed(s);
  if (!s->terms && s->parts.recvs > 0)
    return piece_received(s);
  return s->narrow ? piece_narrow(s) : piece_plain(s);
}

// Sends all pieces of the result to all partners.
static sdg_status_t pieces_gather(const sums_t *s) {
  const sdg_tagging_t *tagging = s->m->tagging;
  size_t ranks = (size_t)tagging->ranks;
  int result = s->slab[SDG_RESULT];
  sdg_transfer_t transfer = {.sends = 0};
  sdg_status_t status;
  sdg_box_t *owned = calloc(2 * ranks, sizeof *owned);
  int *landed = calloc(ranks * ranks + 1, sizeof *landed);
  if (!owned || !landed) {
    status = sdg_fail(SDG_E_NO_MEMORY, "boxes of %d ranks", tagging->ranks);
    goto out;
  }
  for (size_t i = 0; i < ranks; i++) {
    owned[i] = sdg_product_piece(s->m, tagging->rank_list[i]);
    owned[ranks + i] =
        sdg_product_need(s->m, SDG_RESULT, tagging->rank_list[i]);
  }
  SDG_TRY_GOTO(sdg_transfer_plan(owned, owned + ranks, tagging->ranks,
                                 tagging->me, NULL, &transfer),
               out);
  SDG_TRY_GOTO(sdg_plan_join(s->plan, SDG_LANE_COMM), out);
  SDG_TRY_GOTO(
      sdg_plan_messages(s->plan, &transfer, result, &result, 1, landed), out);
  SDG_TRY_GOTO(sdg_plan_exchange(s->plan), out);
  SDG_TRY_GOTO(sdg_plan_join(s->plan, SDG_LANE_MAIN), out);
  for (int i = 0; i < transfer.recvs && status == SDG_OK; i++)
    if (landed[i] >= 0)
      status = sdg_plan_copy(s->plan, SDG_LANE_MAIN, landed[i], result, NULL,
                             NULL, SDG_COPY_HALO);
out:
  sdg_transfer_fini(&transfer);
  free(landed);
  free(owned);
  return status;
}

sdg_status_t sdg_product_sums(sdg_plan_t *plan, const sdg_product_parts_t *m,
                              const int slab[SDG_PRODUCT_MATRICES]) {
  sums_t s = {.plan = plan,
              .m = m,
              .slab = slab,
              .all = sdg_product_need(m, SDG_RESULT, me_of(m)),
              .own = sdg_product_piece(m, me_of(m)),
              .terms = has_terms(m, me_of(m)),
              .narrow = m->product.matrix[SDG_RESULT].type !=
                        sdg_product_sum_type(&m->product),
              .follows = m->product.epilogue > 1}; // 1: no epilogue
  sdg_status_t status = parts_list(&s);
  if (status == SDG_OK)
    status = others_multiply(&s);
  if (status == SDG_OK)
    status = piece_make(&s);
  if (status == SDG_OK && !m->stays)
    status = pieces_gather(&s);
  sdg_transfer_fini(&s.parts);
  free(s.landed);
  return status;
}
