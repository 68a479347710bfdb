// SPDX-License-Identifier: Apache-2.0
// Exchanges between rows of all heads and whole sequences of some heads.
#include "rules/attention/strategy/field.h"

#include <stdlib.h>
#include <string.h>

#include "rules/kit/merge.h"

enum { TIME, BATCH, BEAM, HEAD, ELEMENT, DIMS };

// A slab that begins at the address of another slab.
static sdg_status_t alias(sdg_plan_t *plan, int of, const sdg_box_t *box,
                          const int64_t *stride, const int64_t *nesting,
                          int *out) {
  SDG_TRY(sdg_plan_within(plan, of, 0, box, of, out));
  memcpy(plan->slab[*out].stride, stride, DIMS * sizeof *stride);
  memcpy(plan->slab[*out].nesting, nesting, DIMS * sizeof *nesting);
  return SDG_OK;
}

static sdg_status_t placements_make(const sdg_attention_maker_t *m, int like,
                                    sdg_attention_field_t *f) {
  const sdg_placement_t *p = &m->tagging->placement[like];
  const sdg_mesh_t *mesh = m->tagging->mesh;
  int64_t extent[DIMS];
  for (int d = 0; d < HEAD; d++)
    extent[d] = sdg_placement_extent(p, d);
  extent[HEAD] = m->a.desc.heads;
  extent[ELEMENT] = f->each;
  SDG_TRY(sdg_placement_init(DIMS, extent, &f->by_rows));
  SDG_TRY(sdg_placement_init(DIMS, extent, &f->by_heads));
  SDG_TRY(sdg_placement_split(&f->by_rows, mesh, TIME, &p->split[TIME],
                              &p->part[TIME]));
  if (p->split[BATCH].axes) {
    SDG_TRY(sdg_placement_split(&f->by_rows, mesh, BATCH, &p->split[BATCH],
                                &p->part[BATCH]));
    SDG_TRY(sdg_placement_split(&f->by_heads, mesh, BATCH, &p->split[BATCH],
                                &p->part[BATCH]));
  }
  sdg_part_t heads;
  SDG_TRY(sdg_part_divide(extent[HEAD], p->part[TIME].pieces, SDG_PART_EVEN, 1,
                          &heads));
  return sdg_placement_take(&f->by_heads, mesh, HEAD, &p->split[TIME], &heads);
}

static sdg_status_t needs_make(const sdg_attention_maker_t *m,
                               sdg_attention_field_t *f) {
  const sdg_tagging_t *tagging = m->tagging;
  int ranks = tagging->ranks;
  SDG_TRY(SDG_ALLOCATE(f->need_rows, ranks, "boxes of %d ranks", ranks));
  SDG_TRY(SDG_ALLOCATE(f->need_heads, ranks, "boxes of %d ranks", ranks));
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    f->need_rows[r] = sdg_placement_box(&f->by_rows, tagging->mesh, rank);
    f->need_heads[r] = sdg_placement_box(&f->by_heads, tagging->mesh, rank);
  }
  return SDG_OK;
}

// Adds `flat` and `rows`. The rows are stored in the order of the operand's.
static sdg_status_t rows_make(sdg_attention_maker_t *m, int like,
                              sdg_type_t type, sdg_attention_field_t *f) {
  static const int64_t row_major[SDG_DIMS_MAX] = {4, 3, 2, 1};
  const sdg_operand_t *o = &m->call->operand[like];
  const sdg_box_t *own = &f->need_rows[m->tagging->me];
  int64_t wide = m->a.desc.heads * f->each, stride[DIMS], nesting[DIMS];
  sdg_box_t box = {.dims = 4, .dim = {{0, 1}, {0, wide}, {0, 1}, {0, 1}}};
  for (int d = 0; d < HEAD; d++) {
    box.dim[0].hi *= sdg_box_length(own, d);
    stride[d] = o->stride[d] / o->extent[SDG_SEQUENCE_VECTOR] * wide;
    nesting[d] = o->nesting[d] + DIMS;
  }
  stride[HEAD] = f->each;
  stride[ELEMENT] = 1;
  nesting[HEAD] = 2;
  nesting[ELEMENT] = 1;
  int flat;
  SDG_TRY(
      sdg_plan_packed(m->plan, &box, row_major, sdg_merge_bytes(type), &flat));
  f->flat = sdg_subcall_slab(m->plan, flat, type);
  return alias(m->plan, flat, own, stride, nesting, &f->rows);
}

// Adds `held` and `spread`. They are stored sequence by sequence.
static sdg_status_t held_make(sdg_attention_maker_t *m, sdg_type_t type,
                              sdg_attention_field_t *f) {
  static const int64_t nesting[DIMS] = {
      [TIME] = 2, [BATCH] = 5, [BEAM] = 4, [HEAD] = 3, [ELEMENT] = 1};
  static const int64_t order[SDG_DIMS_MAX] = {2, 4, 3,
                                              1}; // time inside batch and beam
  const sdg_box_t *own = &f->need_heads[m->tagging->me];
  int64_t time = sdg_box_length(own, TIME), heads = sdg_box_length(own, HEAD);
  int64_t beams = sdg_box_length(own, BEAM);
  sdg_box_t box = {.dims = SDG_SEQUENCE_DIMS,
                   .dim = {{0, time},
                           {0, sdg_box_length(own, BATCH) * beams * heads},
                           {0, 1},
                           {0, f->each}}};
  const int64_t stride[DIMS] = {[TIME] = f->each,
                                [BATCH] = beams * heads * time * f->each,
                                [BEAM] = heads * time * f->each,
                                [HEAD] = time * f->each,
                                [ELEMENT] = 1};
  int held;
  SDG_TRY(sdg_plan_packed(m->plan, &box, order, sdg_merge_bytes(type), &held));
  f->held = sdg_subcall_slab(m->plan, held, type);
  return alias(m->plan, held, own, stride, nesting, &f->spread);
}

sdg_status_t sdg_attention_field_init(sdg_attention_maker_t *m, int like,
                                      int64_t each, sdg_type_t type,
                                      sdg_attention_field_t *out) {
  *out = (sdg_attention_field_t){.each = each};
  SDG_TRY(placements_make(m, like, out));
  SDG_TRY(needs_make(m, out));
  SDG_TRY(rows_make(m, like, type, out));
  return held_make(m, type, out);
}

void sdg_attention_field_fini(sdg_attention_field_t *field) {
  sdg_placement_fini(&field->by_rows);
  sdg_placement_fini(&field->by_heads);
  sdg_fetch_fini(&field->fetch);
  free(field->need_rows);
  free(field->need_heads);
}

sdg_status_t sdg_attention_field_exchange(sdg_attention_maker_t *m,
                                          sdg_attention_field_t *const *field,
                                          int fields, bool to_heads) {
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
  for (int i = 0; i < fields; i++) {
    sdg_attention_field_t *f = field[i];
    sdg_fetch_fini(&f->fetch);
    SDG_TRY(sdg_fetch_open(
        m->plan, m->tagging, to_heads ? &f->by_rows : &f->by_heads,
        to_heads ? f->need_heads : f->need_rows, to_heads ? f->rows : f->spread,
        to_heads ? f->spread : f->rows, &f->fetch));
  }
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < fields; i++)
    SDG_TRY(sdg_fetch_own(m->plan, &field[i]->fetch));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < fields; i++)
    SDG_TRY(sdg_fetch_land(m->plan, &field[i]->fetch));
  return SDG_OK;
}
