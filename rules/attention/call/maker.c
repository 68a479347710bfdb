// SPDX-License-Identifier: Apache-2.0
// What each rank needs of keys and values.
#include "rules/attention/call/maker.h"

#include <stdlib.h>

#include "rules/kit/fetch.h"

sdg_status_t sdg_attention_like(const sdg_tagging_t *tagging,
                                const sdg_placement_t *like, int64_t vector,
                                sdg_placement_t *out) {
  int64_t extent[SDG_SEQUENCE_DIMS];
  int from[SDG_SEQUENCE_DIMS];
  for (int d = 0; d < SDG_SEQUENCE_DIMS; d++) {
    extent[d] = sdg_placement_extent(like, d);
    from[d] = d;
  }
  extent[SDG_SEQUENCE_VECTOR] = vector;
  from[SDG_SEQUENCE_VECTOR] = -1;
  return sdg_placement_like(SDG_SEQUENCE_DIMS, extent, tagging->mesh, like,
                            from, out);
}

sdg_box_t sdg_attention_maker_rows(const sdg_attention_maker_t *m, int index,
                                   int rank) {
  sdg_box_t box = sdg_placement_box(m->rows, m->tagging->mesh, rank);
  if (index >= 0 && !sdg_box_empty(&box))
    box.dim[SDG_SEQUENCE_VECTOR] =
        (sdg_range_t){0, m->call->operand[index].extent[SDG_SEQUENCE_VECTOR]};
  return box;
}

// The keys that the queries in `rows` see; at least one, because a descriptor
// cannot describe a sequence without elements.
static sdg_range_t span_of(const sdg_attention_maker_t *m, sdg_range_t rows,
                           int64_t keys) {
  sdg_range_t span = {0, keys};
  if (m->everything)
    return span;
  span = m->windows.lo
             ? sdg_windows_need(&m->windows, rows.lo, rows.hi - rows.lo, keys)
             : sdg_band_need(&m->band, rows, keys);
  return span.lo < span.hi ? span : (sdg_range_t){0, 1};
}

sdg_box_t sdg_attention_maker_need(const sdg_attention_maker_t *m, int side,
                                   int rank) {
  const sdg_placement_t *placement = &m->side[side];
  sdg_box_t rows = sdg_attention_maker_rows(m, m->a.q, rank);
  sdg_box_t need = {.dims = SDG_SEQUENCE_DIMS};
  if (sdg_box_empty(&rows))
    return need;
  if (m->local)
    return sdg_placement_box(placement, m->tagging->mesh, rank);
  for (int d = 0; d < SDG_SEQUENCE_DIMS; d++)
    need.dim[d].hi = sdg_placement_extent(placement, d);
  need.dim[SDG_SEQUENCE_BATCH] = rows.dim[SDG_SEQUENCE_BATCH];
  need.dim[SDG_SEQUENCE_TIME] =
      span_of(m, rows.dim[SDG_SEQUENCE_TIME], need.dim[SDG_SEQUENCE_TIME].hi);
  if (!m->merges)
    return need;
  sdg_box_t own = sdg_placement_box(placement, m->tagging->mesh, rank);
  return sdg_box_intersect(&own, &need);
}

static sdg_status_t side_init(sdg_attention_maker_t *m, int side, int index,
                              const sdg_placement_t *like) {
  const sdg_tagging_t *tagging = m->tagging;
  int64_t vector = m->call->operand[index].extent[SDG_SEQUENCE_VECTOR];
  SDG_TRY(sdg_placement_splits(like, SDG_SEQUENCE_VECTOR)
              ? sdg_placement_copy(like, &m->side[side])
              : sdg_attention_like(tagging, like, vector, &m->side[side]));
  SDG_TRY(SDG_ALLOCATE(m->need[side], tagging->ranks, "boxes of %d ranks",
                       tagging->ranks));
  for (int r = 0; r < tagging->ranks; r++)
    m->need[side][r] = sdg_attention_maker_need(m, side, tagging->rank_list[r]);
  m->moves |= sdg_fetch_communicates(tagging, &m->side[side], m->need[side]);
  m->returns |=
      sdg_fetch_returns(tagging, &m->side[side], m->rows, m->need[side]);
  return SDG_OK;
}

sdg_status_t sdg_attention_maker_init(sdg_attention_maker_t *m,
                                      const sdg_placement_t *keys,
                                      const sdg_placement_t *values) {
  SDG_TRY(side_init(m, SDG_ATTENTION_KEYS, m->a.k, keys));
  SDG_TRY(side_init(m, SDG_ATTENTION_VALUES, m->a.v, values));
  m->same = m->a.same && sdg_placement_equal(&m->side[SDG_ATTENTION_KEYS],
                                             &m->side[SDG_ATTENTION_VALUES]);
  return SDG_OK;
}

void sdg_attention_maker_fini(sdg_attention_maker_t *m) {
  for (int i = 0; i < SDG_ATTENTION_SIDES; i++) {
    sdg_placement_fini(&m->side[i]);
    free(m->need[i]);
  }
  sdg_attention_lengths_fini(&m->queries);
  sdg_attention_lengths_fini(&m->keys);
}

// If the axes that cut the queries cut no keys, every rank has all keys along
// them, and their gradients are sums over these ranks.
sdg_axes_t sdg_attention_maker_sums(const sdg_attention_maker_t *m,
                                    const sdg_placement_t *keys,
                                    const sdg_placement_t *values) {
  sdg_axes_t of_queries = sdg_placement_axes(m->rows);
  sdg_axes_t theirs = sdg_placement_axes(keys) | sdg_placement_axes(values);
  return m->local || m->merges || of_queries & theirs ? 0 : of_queries;
}

const void *sdg_attention_old_factor(const sdg_call_t *call) {
  static const float single[] = {0, 1};
  static const double twice[] = {0, 1};
  sdg_attention_t a;
  (void)sdg_attention_read(call, &a);
  return call->operand[0].type == CUDNN_DATA_DOUBLE
             ? (const void *)&twice[a.adds]
             : (const void *)&single[a.adds];
}
