// SPDX-License-Identifier: Apache-2.0
// Chooses between strategies of attention: whether heads can be shared, and how
// many bytes each strategy sends.
#include "rules/attention/call/project.h"
#include "rules/attention/strategy/heads.h"
#include "rules/kit/merge.h"
#include "rules/place/place.h"

// Whether keys or values are split over the same axes as the queries, and along
// the batch at the same places. Along time they may be cut at other places.
static bool cut_as_rows(const sdg_attention_maker_t *m, int side) {
  const sdg_placement_t *p = &m->side[side], *rows = m->rows;
  return sdg_place_same(p->split, rows->split, SDG_SEQUENCE_DIMS) &&
         sdg_part_equal(&p->part[SDG_SEQUENCE_BATCH],
                        &rows->part[SDG_SEQUENCE_BATCH]);
}

const char *sdg_attention_heads_obstacle(const sdg_attention_maker_t *m) {
  const sdg_attention_descriptor_t *desc = &m->a.desc;
  const sdg_placement_t *keys = &m->side[SDG_ATTENTION_KEYS];
  int pieces = m->rows->part[SDG_SEQUENCE_TIME].pieces;
  if (m->local)
    return "with 'window = local' queries see only their own rank's keys";
  if (m->sums)
    return "keys and values are on every rank";
  if (!cut_as_rows(m, SDG_ATTENTION_KEYS) ||
      !cut_as_rows(m, SDG_ATTENTION_VALUES))
    return "keys or values are not split like the queries";
  if (!desc->q_projected || !desc->k_projected || !desc->v_projected)
    return "without projections all heads use the same vectors";
  if (desc->heads % pieces != 0)
    return "the number of ranks does not divide the number of heads";
  if (sdg_placement_extent(m->rows, SDG_SEQUENCE_BEAM) > 1 ||
      sdg_placement_extent(keys, SDG_SEQUENCE_BEAM) > 1)
    return "the sequences have beams";
  return NULL;
}

// The number of elements along time outside of piece `piece`; *out_own: inside.
static int64_t others_rows(const sdg_placement_t *placement, int piece,
                           int64_t *out_own) {
  const sdg_part_t *part = &placement->part[SDG_SEQUENCE_TIME];
  *out_own = sdg_part_size(part, piece);
  return sdg_part_extent(part) - *out_own;
}

int64_t sdg_attention_heads_bytes(const sdg_attention_maker_t *m) {
  const sdg_attention_descriptor_t *desc = &m->a.desc;
  int pieces = m->rows->part[SDG_SEQUENCE_TIME].pieces;
  int64_t each[SDG_ATTENTION_PARTS], max = 0, own, unused;
  int64_t mine = desc->heads / pieces, theirs = desc->heads - mine;
  sdg_attention_project_each(desc, each);
  for (int r = 0; r < pieces; r++) {
    int64_t elements =
        others_rows(m->rows, r, &own) * mine * each[SDG_ATTENTION_PART_Q];
    elements += others_rows(&m->side[SDG_ATTENTION_KEYS], r, &unused) * mine *
                (each[SDG_ATTENTION_PART_K] + each[SDG_ATTENTION_PART_V]);
    elements += own * theirs * each[SDG_ATTENTION_PART_O];
    max = elements > max ? elements : max;
  }
  return max * sdg_merge_bytes(sdg_merge_type((sdg_type_t)desc->type));
}

int64_t sdg_attention_halo_bytes(const sdg_attention_maker_t *m) {
  const sdg_part_t *keys = &m->side[SDG_ATTENTION_KEYS].part[SDG_SEQUENCE_TIME];
  const sdg_part_t *rows = &m->rows->part[SDG_SEQUENCE_TIME];
  int64_t max = 0;
  for (int r = 0; r < rows->pieces; r++) {
    sdg_range_t own = {rows->offset[r], rows->offset[r + 1]};
    sdg_range_t need = sdg_band_need(&m->band, own, sdg_part_extent(keys));
    sdg_range_t has = {keys->offset[r], keys->offset[r + 1]};
    int64_t lo = need.lo > has.lo ? need.lo : has.lo;
    int64_t hi = need.hi < has.hi ? need.hi : has.hi;
    int64_t halo = need.hi - need.lo - (hi > lo ? hi - lo : 0);
    max = halo > max ? halo : max;
  }
  return max * (m->a.desc.k_size + m->a.desc.v_size) *
         m->call->operand[m->a.k].elem_bytes;
}
