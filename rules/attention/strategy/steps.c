// SPDX-License-Identifier: Apache-2.0
// The steps of attention: fetch keys and values, compute the rank's queries,
// scatter gradients of keys and values.
#include "rules/attention/strategy/steps.h"

#include <stdlib.h>
#include <string.h>

#include "rules/attention/call/apply.h"
#include "rules/kit/fetch.h"
#include "rules/kit/gradient_sum.h"
#include "rules/kit/merge.h"
#include "rules/kit/scatter_add.h"

// A tensor of the sub-call, and the operand that it is a part of.
typedef struct place {
  int operand; // the operand's slab
  sdg_subcall_tensor_t view;
} place_t;

typedef struct steps {
  sdg_attention_maker_t *m;
  bool idle; // this rank has no queries
  place_t q, o, residual, dq, key[SDG_ATTENTION_SIDES],
      back[SDG_ATTENTION_SIDES];
  sdg_fetch_t fetch[SDG_ATTENTION_SIDES];
  sdg_scatter_add_t scatter[SDG_ATTENTION_SIDES];
  sdg_gradient_sum_t sum;
  int *lo, *hi;
  int *q_length, *k_length; // of the sub-call's sequences; NULL: full
  bool q_blank, k_blank;    // some sequence has no element on this rank
} steps_t;

static sdg_type_t type_of(const steps_t *s) {
  return (sdg_type_t)s->m->a.desc.type;
}

static sdg_status_t operand_add(steps_t *s, int index, const sdg_box_t *own,
                                place_t *out) {
  return sdg_merge_operand(s->m->plan, s->m->call, index, own, &out->operand);
}

// `box` of an operand: in place, or as scratch if sequence descriptors cannot
// express its strides, or if `apart`, because parts of it must be overwritten.
static sdg_status_t view_make(steps_t *s, const sdg_box_t *box, bool apart,
                              place_t *out) {
  sdg_plan_t *plan = s->m->plan;
  out->view = (sdg_subcall_tensor_t){
      .slab = out->operand, .box = *box, .type = type_of(s)};
  return !apart && sdg_sequence_packed(box, plan->slab[out->operand].stride)
             ? SDG_OK
             : sdg_plan_scratch(plan, box, out->operand, &out->view.slab);
}

static sdg_status_t view_fill(steps_t *s, const place_t *place) {
  return place->view.slab == place->operand
             ? SDG_OK
             : sdg_plan_copy(s->m->plan, SDG_LANE_MAIN, place->operand,
                             place->view.slab, NULL, &place->view.box,
                             SDG_COPY_ACTIVATION);
}

static sdg_status_t view_store(steps_t *s, const place_t *place) {
  return place->view.slab == place->operand
             ? SDG_OK
             : sdg_plan_copy(s->m->plan, SDG_LANE_MAIN, place->view.slab,
                             place->operand, NULL, &place->view.box,
                             SDG_COPY_ACTIVATION);
}

// ---- sequences that have no element on this rank ---------------------------
//
// A sequence descriptor cannot express a length of 0. The sub-call therefore
// gets one element of each such sequence, a row of zeros, and its result is
// overwritten. The program's memory there is padding and may contain any bytes.

static sdg_status_t blanks_zero(steps_t *s,
                                const sdg_attention_lengths_t *lengths,
                                const place_t *place) {
  const sdg_box_t *box = &place->view.box;
  const sdg_range_t *batch = &box->dim[SDG_SEQUENCE_BATCH];
  const sdg_range_t *beam = &box->dim[SDG_SEQUENCE_BEAM];
  for (int64_t b = batch->lo; b < batch->hi; b++)
    for (int64_t e = beam->lo; e < beam->hi; e++) {
      sdg_box_t row = *box;
      if (sdg_attention_lengths_in(lengths, b, e, box->dim[SDG_SEQUENCE_TIME]) >
          0)
        continue;
      row.dim[SDG_SEQUENCE_BATCH] = (sdg_range_t){b, b + 1};
      row.dim[SDG_SEQUENCE_BEAM] = (sdg_range_t){e, e + 1};
      row.dim[SDG_SEQUENCE_TIME].hi = row.dim[SDG_SEQUENCE_TIME].lo + 1;
      SDG_TRY(sdg_plan_zero(s->m->plan, SDG_LANE_MAIN, place->view.slab, &row));
    }
  return SDG_OK;
}

static sdg_status_t lengths_find(steps_t *s, const sdg_box_t *rows,
                                 const sdg_box_t *keys) {
  if (s->idle)
    return SDG_OK;
  SDG_TRY(sdg_attention_lengths_cut(&s->m->queries, rows, &s->q_length,
                                    &s->q_blank));
  return sdg_attention_lengths_cut(&s->m->keys, keys, &s->k_length,
                                   &s->k_blank);
}

// ---- rows ------------------------------------------------------------------

static sdg_status_t rows_open(steps_t *s, int index, bool reads, place_t *out) {
  sdg_box_t own = sdg_attention_maker_rows(s->m, index, s->m->tagging->rank);
  if (index < 0)
    return SDG_OK;
  SDG_TRY(operand_add(s, index, &own, out));
  if (s->idle)
    return SDG_OK;
  bool blank = s->q_blank && reads && index != s->m->a.residual;
  SDG_TRY(view_make(s, &own, blank, out));
  if (reads)
    SDG_TRY(view_fill(s, out));
  return blank ? blanks_zero(s, &s->m->queries, out) : SDG_OK;
}

// Stores rows that the sub-call computed.
static sdg_status_t rows_store(steps_t *s, const place_t *place) {
  if (s->q_blank)
    SDG_TRY(blanks_zero(s, &s->m->queries, place));
  return view_store(s, place);
}

// ---- keys and values -------------------------------------------------------

static const sdg_box_t *need_of(const steps_t *s, int side) {
  return &s->m->need[side][s->m->tagging->me];
}

// Adds the slab of keys or values that this rank needs. In the whole view they
// are in place; in the shard view messages fetch what this rank does not own.
static sdg_status_t keys_open(steps_t *s, int side, int index) {
  sdg_attention_maker_t *m = s->m;
  place_t *key = &s->key[side];
  sdg_box_t own = sdg_tagging_own(m->tagging, &m->side[side]);
  SDG_TRY(operand_add(s, index, &own, key));
  if (m->plan->share || sdg_box_contains(&own, need_of(s, side))) {
    if (!s->idle)
      SDG_TRY(view_make(s, need_of(s, side), s->k_blank, key));
  } else {
    key->view.box = *need_of(s, side);
    key->view.type = type_of(s);
    SDG_TRY(sdg_plan_scratch(m->plan, &key->view.box, key->operand,
                             &key->view.slab));
  }
  bool comes =
      !s->idle && !m->plan->share && !sdg_box_contains(&own, need_of(s, side));
  return m->moves && !m->plan->share
             ? sdg_fetch_open(m->plan, m->tagging, &m->side[side],
                              m->need[side], key->operand,
                              comes ? key->view.slab : key->operand,
                              &s->fetch[side])
             : SDG_OK;
}

static sdg_status_t keys_fetch(steps_t *s) {
  sdg_attention_maker_t *m = s->m;
  int sides = m->same ? 1 : SDG_ATTENTION_SIDES;
  SDG_TRY(keys_open(s, SDG_ATTENTION_KEYS, m->a.k));
  if (!m->same)
    SDG_TRY(keys_open(s, SDG_ATTENTION_VALUES, m->a.v));
  bool travels = m->moves && !m->plan->share;
  if (travels)
    SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < sides; i++) {
    const sdg_fetch_t *fetch = &s->fetch[i];
    if (travels && fetch->into != fetch->from)
      SDG_TRY(sdg_fetch_own(m->plan, fetch));
    else if (!s->idle)
      SDG_TRY(view_fill(s, &s->key[i]));
  }
  if (travels)
    SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; travels && i < sides; i++)
    SDG_TRY(sdg_fetch_land(m->plan, &s->fetch[i]));
  for (int i = 0; s->k_blank && i < sides; i++)
    SDG_TRY(blanks_zero(s, &m->keys, &s->key[i]));
  if (m->same)
    s->key[SDG_ATTENTION_VALUES] = s->key[SDG_ATTENTION_KEYS];
  return SDG_OK;
}

// Adds the slab for gradients of the keys or values that the queries see: in
// place if this rank owns exactly these, otherwise scratch.
static sdg_status_t back_open(steps_t *s, int side, int index) {
  sdg_attention_maker_t *m = s->m;
  place_t *back = &s->back[side];
  sdg_box_t own = sdg_tagging_own(m->tagging, &m->side[side]);
  SDG_TRY(operand_add(s, index, &own, back));
  if (s->idle)
    return SDG_OK;
  if (sdg_box_equal(&own, need_of(s, side)))
    return view_make(s, &own, false, back);
  back->view.box = *need_of(s, side);
  back->view.type = type_of(s);
  SDG_TRY(sdg_plan_scratch(m->plan, &back->view.box, back->operand,
                           &back->view.slab));
  // The real function may or may not write padding.
  return s->k_length ? sdg_plan_zero(m->plan, SDG_LANE_MAIN, back->view.slab,
                                     &back->view.box)
                     : SDG_OK;
}

// Sums dk and dv over the ranks, if every rank has all keys and values.
static sdg_status_t keys_sum(steps_t *s) {
  sdg_attention_maker_t *m = s->m;
  for (int i = 0; i < SDG_ATTENTION_SIDES; i++) {
    sdg_box_t own = sdg_tagging_own(m->tagging, &m->side[i]);
    SDG_TRY(sdg_scatter_add_sum(m->plan, m->sums, &own,
                                s->idle ? -1 : s->back[i].view.slab,
                                s->back[i].operand, type_of(s)));
  }
  return SDG_OK;
}

static sdg_status_t keys_return(steps_t *s) {
  sdg_attention_maker_t *m = s->m;
  if (m->sums)
    return keys_sum(s);
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
  for (int i = 0; i < SDG_ATTENTION_SIDES; i++)
    SDG_TRY(sdg_scatter_add_open(m->plan, m->tagging, &m->side[i], m->rows,
                                 m->need[i], NULL,
                                 s->idle ? -1 : s->back[i].view.slab,
                                 s->back[i].operand, &s->scatter[i]));
  SDG_TRY(sdg_plan_exchange(m->plan));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < SDG_ATTENTION_SIDES; i++)
    SDG_TRY(sdg_scatter_add_close(m->plan, &s->scatter[i], type_of(s)));
  return SDG_OK;
}

// ---- the sub-call ----------------------------------------------------------

static sdg_status_t windows_make(steps_t *s) {
  const sdg_attention_maker_t *m = s->m;
  sdg_range_t rows = s->q.view.box.dim[SDG_SEQUENCE_TIME];
  sdg_range_t need = need_of(s, SDG_ATTENTION_KEYS)->dim[SDG_SEQUENCE_TIME];
  int64_t keys =
      sdg_placement_extent(&m->side[SDG_ATTENTION_KEYS], SDG_SEQUENCE_TIME);
  size_t count = (size_t)(rows.hi - rows.lo);
  if (m->a.kind == SDG_ATTENTION_WEIGHTS)
    return SDG_OK;
  SDG_TRY(SDG_ALLOCATE(s->lo, count, "windows of %zu queries", count));
  SDG_TRY(SDG_ALLOCATE(s->hi, count, "windows of %zu queries", count));
  for (size_t i = 0; i < count; i++) {
    int64_t t = rows.lo + (int64_t)i;
    sdg_range_t row = m->windows.lo ? sdg_windows_row(&m->windows, t, keys)
                                    : sdg_band_row(&m->band, t, keys);
    sdg_band_shift(row, need, &s->lo[i], &s->hi[i]);
  }
  return SDG_OK;
}

static sdg_status_t attention_add(steps_t *s) {
  const sdg_attention_maker_t *m = s->m;
  sdg_attention_apply_t sub = {
      .kind = m->a.kind,
      .desc = m->a.desc,
      .q = s->q.view,
      .k = s->key[SDG_ATTENTION_KEYS].view,
      .v = s->key[SDG_ATTENTION_VALUES].view,
      .o = s->o.view,
      .residual = m->a.residual < 0 ? NULL : &s->residual.view,
      .dq = s->dq.view,
      .dk = s->back[SDG_ATTENTION_KEYS].view,
      .dv = s->back[SDG_ATTENTION_VALUES].view,
  };
  if (m->a.kind == SDG_ATTENTION_WEIGHTS) {
    sub.dw = sdg_subcall_slab(m->plan, s->sum.part, type_of(s));
    sub.adds = m->a.adds && s->sum.takes_beta;
  }
  SDG_TRY(windows_make(s));
  sub.lo = s->lo;
  sub.hi = s->hi;
  sub.q_length = s->q_length;
  sub.k_length = s->k_length;
  return sdg_attention_apply_add(m->plan, m->call, &sub);
}

// ---- the directions --------------------------------------------------------

static sdg_status_t forward_make(steps_t *s) {
  SDG_TRY(rows_open(s, s->m->a.residual, true, &s->residual));
  SDG_TRY(rows_open(s, s->m->a.o, false, &s->o));
  if (s->idle)
    return SDG_OK;
  SDG_TRY(attention_add(s));
  return rows_store(s, &s->o);
}

static sdg_status_t data_make(steps_t *s) {
  SDG_TRY(rows_open(s, s->m->a.o, true, &s->o));
  SDG_TRY(rows_open(s, s->m->a.dq, false, &s->dq));
  SDG_TRY(back_open(s, SDG_ATTENTION_KEYS, s->m->a.dk));
  SDG_TRY(back_open(s, SDG_ATTENTION_VALUES, s->m->a.dv));
  if (!s->idle) {
    SDG_TRY(attention_add(s));
    SDG_TRY(rows_store(s, &s->dq));
  }
  return keys_return(s);
}

static sdg_status_t weights_make(steps_t *s) {
  const sdg_attention_maker_t *m = s->m;
  if (m->call->operand[m->a.dw].extent[SDG_SEQUENCE_VECTOR] == 0)
    return SDG_OK; // without projections there are no parameters
  SDG_TRY(rows_open(s, m->a.o, true, &s->o));
  if (m->plan->share)
    SDG_TRY(sdg_gradient_sum_share(m->plan->share, m->call, m->a.dw,
                                   sdg_attention_old_factor(m->call)));
  SDG_TRY(sdg_gradient_sum_open(m->plan, m->call, m->a.dw, m->sum_axes,
                                sdg_attention_old_factor, &s->sum));
  if (s->idle)
    SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &s->sum));
  else
    SDG_TRY(attention_add(s));
  return sdg_gradient_sum_close(m->plan, m->call, &s->sum);
}

static sdg_status_t steps_make(steps_t *s) {
  sdg_attention_maker_t *m = s->m;
  bool returns = m->returns && m->a.kind == SDG_ATTENTION_DATA;
  if (returns || (m->moves && !m->plan->share))
    m->plan->axes = m->tagging->axes;
  sdg_box_t rows = sdg_attention_maker_rows(m, m->a.q, m->tagging->rank);
  SDG_TRY(lengths_find(s, &rows, need_of(s, SDG_ATTENTION_KEYS)));
  SDG_TRY(rows_open(s, m->a.q, true, &s->q));
  SDG_TRY(keys_fetch(s));
  switch (m->a.kind) {
  case SDG_ATTENTION_FORWARD:
    return forward_make(s);
  case SDG_ATTENTION_DATA:
    return data_make(s);
  case SDG_ATTENTION_WEIGHTS:
    break;
  }
  return weights_make(s);
}

sdg_status_t sdg_attention_maker_steps(sdg_attention_maker_t *m) {
  sdg_box_t rows = sdg_attention_maker_rows(m, m->a.q, m->tagging->rank);
  steps_t s = {.m = m, .idle = sdg_box_empty(&rows)};
  sdg_status_t status = steps_make(&s);
  for (int i = 0; i < SDG_ATTENTION_SIDES; i++) {
    sdg_fetch_fini(&s.fetch[i]);
    sdg_scatter_add_fini(&s.scatter[i]);
  }
  free(s.lo);
  free(s.hi);
  free(s.q_length);
  free(s.k_length);
  return status;
}
