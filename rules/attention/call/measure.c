// SPDX-License-Identifier: Apache-2.0
// How lengths of sequences affect a plan of attention: which pieces consist of
// padding.
#include "rules/attention/call/maker.h"

// Whether each rank's piece is a set of sequences of its own (`window = local`
// for split sequences), so that lengths are not compared between ranks.
static bool is_apart(const sdg_attention_maker_t *m) {
  const sdg_placement_t *p = m->tagging->placement;
  return m->tagging->section->window == SDG_WINDOW_LOCAL &&
         (sdg_placement_splits(&p[m->a.q], SDG_SEQUENCE_TIME) ||
          sdg_placement_splits(&p[m->a.k], SDG_SEQUENCE_TIME));
}

static sdg_status_t lengths_read(const sdg_attention_maker_t *m, int index,
                                 sdg_attention_lengths_t *out) {
  const sdg_operand_t *operand = &m->call->operand[index];
  sdg_box_t own = {.dims = SDG_SEQUENCE_DIMS};
  if (m->tagging->section->view == SDG_VIEW_SHARD && !is_apart(m))
    return sdg_attention_lengths_agreed(m->call, m->tagging, index, out);
  if (m->tagging->section->view == SDG_VIEW_SHARD) {
    if (sdg_attention_lengths_none(operand))
      return sdg_fail(SDG_E_ATTENTION,
                      "%s: a sequence of %s has length 0 on some rank, but "
                      "with 'window = local' each rank has its own sequences",
                      m->call->entry_name, sdg_role_name(operand->role));
    own = sdg_tagging_own(m->tagging, &m->tagging->placement[index]);
  }
  return sdg_attention_lengths_read(operand, &own, out);
}

// Reads the lengths of operand `index`. *out_same: whether operand `beside` has
// the same lengths.
static sdg_status_t side_measure(const sdg_attention_maker_t *m, int index,
                                 int beside, sdg_attention_lengths_t *out,
                                 bool *out_same) {
  sdg_attention_lengths_t other;
  SDG_TRY(lengths_read(m, index, out));
  SDG_TRY(lengths_read(m, beside, &other));
  *out_same = sdg_attention_lengths_equal(out, &other);
  sdg_attention_lengths_fini(&other);
  return SDG_OK;
}

sdg_status_t sdg_attention_maker_measure(sdg_attention_maker_t *m,
                                         const char **out_why) {
  bool queries, keys;
  *out_why = NULL;
  SDG_TRY(side_measure(m, m->a.q, m->a.o, &m->queries, &queries));
  SDG_TRY(side_measure(m, m->a.k, m->a.v, &m->keys, &keys));
  if (!queries)
    *out_why = "queries and output have sequences of different lengths";
  else if (!keys)
    *out_why = "keys and values have sequences of different lengths";
  return SDG_OK;
}

// Whether some sequence has queries in `rows`, but no keys in `need`.
static bool sees_nothing(const sdg_attention_maker_t *m, const sdg_box_t *rows,
                         sdg_range_t need) {
  sdg_range_t time = rows->dim[SDG_SEQUENCE_TIME];
  sdg_range_t batch = rows->dim[SDG_SEQUENCE_BATCH];
  sdg_range_t beam = rows->dim[SDG_SEQUENCE_BEAM];
  for (int64_t b = batch.lo; b < batch.hi; b++)
    for (int64_t e = beam.lo; e < beam.hi; e++)
      if (sdg_attention_lengths_in(&m->queries, b, e, time) > 0 &&
          sdg_attention_lengths_in(&m->keys, b, m->keys.beams > 1 ? e : 0,
                                   need) == 0)
        return true;
  return false;
}

// Whether some sequence has no elements in `box`.
static bool has_blanks(const sdg_attention_lengths_t *lengths,
                       const sdg_box_t *box) {
  for (int64_t b = box->dim[SDG_SEQUENCE_BATCH].lo;
       lengths->length && b < box->dim[SDG_SEQUENCE_BATCH].hi; b++)
    for (int64_t e = box->dim[SDG_SEQUENCE_BEAM].lo;
         e < box->dim[SDG_SEQUENCE_BEAM].hi; e++)
      if (sdg_attention_lengths_in(lengths, b, e,
                                   box->dim[SDG_SEQUENCE_TIME]) == 0)
        return true;
  return false;
}

bool sdg_attention_maker_has_empty_piece(const sdg_attention_maker_t *m) {
  for (int r = 0; r < m->tagging->ranks; r++) {
    sdg_box_t rows =
        sdg_attention_maker_rows(m, m->a.q, m->tagging->rank_list[r]);
    if (has_blanks(&m->queries, &rows) ||
        has_blanks(&m->keys, &m->need[SDG_ATTENTION_KEYS][r]))
      return true;
  }
  return false;
}

int sdg_attention_maker_rank_without_keys(const sdg_attention_maker_t *m) {
  for (int r = 0; m->keys.length && r < m->tagging->ranks; r++) {
    int rank = m->tagging->rank_list[r];
    sdg_box_t rows = sdg_attention_maker_rows(m, m->a.q, rank);
    if (!sdg_box_empty(&rows) &&
        sees_nothing(m, &rows,
                     m->need[SDG_ATTENTION_KEYS][r].dim[SDG_SEQUENCE_TIME]))
      return rank;
  }
  return -1;
}
