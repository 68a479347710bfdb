// SPDX-License-Identifier: Apache-2.0
// Colocates operands of attention that are cut at different places. Queries
// lead, and the operands that belong to them follow. Keys and values stay,
// because a plan fetches those that windows see from any placement.
#include "rules/attention/plan.h"
#include "rules/attention/rule.h"
#include "rules/file/setup.h"
#include "rules/place/colocate.h"
#include "rules/place/tagging.h"
#include "rules/vendor/sequence.h"
#include "src/call/tag.h"

sdg_status_t sdg_attention_section(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int queries,
                                   const sdg_section_t **out) {
  const sdg_rules_t *rules;
  const sdg_placement_t *q = &tagging->placement[queries];
  int64_t extent[SDG_SEQUENCE_DIMS];
  *out = tagging->section;
  if (!call->operand[queries].label)
    return SDG_OK;
  for (int d = 0; d < SDG_SEQUENCE_DIMS; d++)
    extent[d] = sdg_placement_extent(q, d);
  SDG_TRY(sdg_setup_rules(&rules));
  for (int s = 0; s < rules->sections; s++)
    if (!rules->section[s].is_local &&
        sdg_section_match(&rules->section[s], call->family, call->entry_name,
                          extent, SDG_SEQUENCE_DIMS)) {
      *out = &rules->section[s];
      return SDG_OK;
    }
  return SDG_OK;
}

static bool cut(const sdg_placement_t *p, int dim) {
  return p->split[dim].axes > 0;
}

// Takes reading `reading` of where an operand is, so that the operand does not
// move. index < 0: the call has no such operand.
static sdg_status_t reading_take(sdg_colocation_t *colocation, int index,
                                 int reading) {
  if (index < 0)
    return SDG_OK;
  colocation->is[index] = reading;
  sdg_placement_fini(&colocation->tagging.placement[index]);
  return sdg_placement_copy(&colocation->place[index][reading].placement,
                            &colocation->tagging.placement[index]);
}

// ---- queries, residual, output ---------------------------------------------

// The reading in which every rank has the whole operand, if a section states it
// or if the operand has no other reading; otherwise -1.
static int reading_uncut(const sdg_colocation_t *colocation, int index) {
  for (int k = 0; k < colocation->places[index]; k++)
    if ((colocation->place[index][k].section ||
         colocation->places[index] == 1) &&
        !sdg_placement_axes(&colocation->place[index][k].placement))
      return k;
  return -1;
}

// Creates the placement of sequences with the extents of `is`, cut like the
// keys. *out_can is false if a cut dimension of the keys has another extent.
static sdg_status_t beside_keys(const sdg_colocation_t *colocation,
                                const sdg_placement_t *is,
                                const sdg_placement_t *keys, bool *out_can,
                                sdg_placement_t *out) {
  int64_t extent[SDG_SEQUENCE_DIMS];
  int from[SDG_SEQUENCE_DIMS];
  *out_can = is->dims == keys->dims;
  for (int d = 0; d < is->dims && *out_can; d++) {
    extent[d] = sdg_placement_extent(is, d);
    from[d] = cut(keys, d) ? d : -1;
    *out_can = !cut(keys, d) || (d < SDG_SEQUENCE_BEAM &&
                                 extent[d] == sdg_placement_extent(keys, d));
  }
  return *out_can
             ? sdg_placement_like(is->dims, extent, colocation->tagging.mesh,
                                  keys, from, out)
             : SDG_OK;
}

// Queries that are cut along VECTOR, and not along TIME, move: the plan cuts
// them like the keys.
static sdg_status_t queries_follow(sdg_colocation_t *colocation,
                                   const sdg_attention_t *a) {
  const int beside[] = {a->q, a->residual, a->dq};
  sdg_placement_t want;
  colocation->fits =
      colocation->places[a->q] > 0 &&
      cut(&colocation->place[a->q][0].placement, SDG_SEQUENCE_VECTOR) &&
      !cut(&colocation->place[a->q][0].placement, SDG_SEQUENCE_TIME);
  if (colocation->fits)
    SDG_TRY(beside_keys(colocation, &colocation->place[a->q][0].placement,
                        sdg_colocate_at(colocation, a->k), &colocation->fits,
                        &want));
  if (!colocation->fits)
    return SDG_OK;
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < 3 && colocation->fits && status == SDG_OK; i++)
    if (beside[i] >= 0)
      status = sdg_colocate_follow(colocation, beside[i], &want, false);
  sdg_placement_fini(&want);
  return status;
}

// Residual and dq have the descriptor of the queries, so they have its reading.
static sdg_status_t queries_place(sdg_colocation_t *colocation,
                                  const sdg_attention_t *a, int lead) {
  int reading =
      lead == a->q ? colocation->is[a->q] : reading_uncut(colocation, a->q);
  colocation->fits = lead == a->q || lead == a->k;
  if (!colocation->fits)
    return SDG_OK;
  if (reading < 0)
    SDG_TRY(queries_follow(colocation, a));
  else
    SDG_TRY(reading_take(colocation, a->q, reading));
  if (!colocation->fits)
    return SDG_OK;
  const sdg_placement_t *q = sdg_colocate_at(colocation, a->q);
  colocation->fits = q->dims == SDG_SEQUENCE_DIMS &&
                     !cut(q, SDG_SEQUENCE_BEAM) && !cut(q, SDG_SEQUENCE_VECTOR);
  if (reading < 0)
    return SDG_OK;
  SDG_TRY(reading_take(colocation, a->residual, reading));
  return reading_take(colocation, a->dq, reading);
}

static int64_t output_size(const sdg_attention_descriptor_t *desc) {
  int64_t each = desc->v_projected ? desc->v_projected : desc->v_size;
  return desc->o_projected ? desc->o_projected : each * desc->heads;
}

// Queries and output can move only if none of their sequences is padded.
static void moved_check(sdg_colocation_t *colocation,
                        const sdg_attention_t *a) {
  const int moved[] = {a->q, a->o};
  for (int i = 0; i < 2 && colocation->fits; i++) {
    const sdg_operand_t *operand = &colocation->call->operand[moved[i]];
    const sdg_tag_vector_t *vector =
        sdg_tag_vector(operand->descriptor, operand->generation);
    colocation->fits =
        !sdg_colocate_moves(colocation, moved[i]) || vector->details == 0;
  }
}

static sdg_status_t output_place(sdg_colocation_t *colocation,
                                 const sdg_attention_t *a) {
  sdg_placement_t want;
  SDG_TRY(sdg_attention_like(&colocation->tagging,
                             sdg_colocate_at(colocation, a->q),
                             output_size(&a->desc), &want));
  sdg_status_t status = sdg_colocate_follow(colocation, a->o, &want, false);
  sdg_placement_fini(&want);
  moved_check(colocation, a);
  return status;
}

// ---- keys and values -------------------------------------------------------

// The extents that keys or values must have; a time of -1 permits any. If
// queries and keys are both cut along time, the window must permit it: either
// both have equally many elements, or each query sees all keys.
typedef struct shape {
  int64_t time, batch, vector;
  sdg_band_t band; // of split sequences
} shape_t;

static bool has_shape(const sdg_placement_t *p, const sdg_placement_t *q,
                      const shape_t *shape) {
  if (p->dims != SDG_SEQUENCE_DIMS ||
      sdg_placement_extent(p, SDG_SEQUENCE_BATCH) != shape->batch ||
      sdg_placement_extent(p, SDG_SEQUENCE_VECTOR) != shape->vector)
    return false;
  int64_t time = sdg_placement_extent(p, SDG_SEQUENCE_TIME);
  int64_t queries = sdg_placement_extent(q, SDG_SEQUENCE_TIME);
  bool in_pieces = cut(p, SDG_SEQUENCE_TIME) && cut(q, SDG_SEQUENCE_TIME);
  return (shape->time < 0 || time == shape->time) &&
         (!in_pieces || time == queries ||
          sdg_band_is_all(&shape->band, queries, time));
}

// The reading of an operand that has this shape; -1 if none has. The section of
// the operand comes before that of the call, and both before the reading that
// every rank has the whole.
static int reading_find(const sdg_colocation_t *colocation, int index,
                        const sdg_placement_t *q, const shape_t *shape) {
  for (int pass = 0; pass < 2; pass++)
    for (int k = colocation->places[index] - 1; k >= 0; k--) {
      const sdg_place_t *place = &colocation->place[index][k];
      if ((place->section == NULL) == (pass == 1) &&
          has_shape(&place->placement, q, shape))
        return k;
    }
  return -1;
}

static sdg_status_t keys_place(sdg_colocation_t *colocation,
                               const sdg_attention_t *a, int lead) {
  const sdg_placement_t *q = sdg_colocate_at(colocation, a->q);
  const sdg_section_t *said;
  SDG_TRY(sdg_attention_section(colocation->call, &colocation->tagging, a->q,
                                &said));
  shape_t shape = {.time = -1,
                   .batch = sdg_placement_extent(q, SDG_SEQUENCE_BATCH),
                   .vector = a->desc.k_size,
                   .band = {SDG_BAND_UNBOUND, SDG_BAND_UNBOUND}};
  if (said->window == SDG_WINDOW_SIZES)
    shape.band = (sdg_band_t){said->window_left, said->window_right};
  int keys = reading_find(colocation, a->k, q, &shape), values = -1;
  if (lead == a->k && keys != colocation->is[lead])
    keys = -1;
  if (keys >= 0) {
    shape.time = sdg_placement_extent(&colocation->place[a->k][keys].placement,
                                      SDG_SEQUENCE_TIME);
    shape.vector = a->desc.v_size;
    values = reading_find(colocation, a->v, q, &shape);
  }
  colocation->fits = values >= 0;
  if (!colocation->fits)
    return SDG_OK;
  SDG_TRY(reading_take(colocation, a->k, keys));
  SDG_TRY(reading_take(colocation, a->dk, keys));
  SDG_TRY(reading_take(colocation, a->v, values));
  return reading_take(colocation, a->dv, values);
}

sdg_status_t sdg_attention_colocate(const sdg_call_t *call,
                                    sdg_colocation_t *colocation, int lead) {
  sdg_attention_t a;
  colocation->fits = sdg_attention_read(call, &a);
  if (!colocation->fits)
    return SDG_OK;
  SDG_TRY(queries_place(colocation, &a, lead));
  if (colocation->fits)
    SDG_TRY(keys_place(colocation, &a, lead));
  if (colocation->fits)
    SDG_TRY(output_place(colocation, &a));
  if (!colocation->fits)
    return SDG_OK;
  // The plan exchanges messages between all ranks that have any part of it.
  sdg_tagging_span(&colocation->tagging,
                   colocation->tagging.axes |
                       sdg_placement_axes(sdg_colocate_at(colocation, a.q)) |
                       sdg_placement_axes(sdg_colocate_at(colocation, a.k)) |
                       sdg_placement_axes(sdg_colocate_at(colocation, a.v)));
  return SDG_OK;
}

// ---- the check before a plan -----------------------------------------------

static bool extent_equal(const sdg_placement_t *a, const sdg_placement_t *b,
                         int dim) {
  return sdg_placement_extent(a, dim) == sdg_placement_extent(b, dim);
}

static sdg_status_t queries_check(const sdg_call_t *call, int index,
                                  const sdg_placement_t *p) {
  for (int d = SDG_SEQUENCE_BEAM; d < SDG_SEQUENCE_DIMS; d++)
    if (p->part[d].pieces > 1)
      return sdg_fail(SDG_E_ATTENTION, "%s: %s of %s is split",
                      call->entry_name,
                      sdg_tagging_name(call->family, SDG_SEQUENCE_DIMS, d),
                      sdg_role_name(call->operand[index].role));
  return SDG_OK;
}

sdg_status_t sdg_attention_check(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_attention_t *a) {
  const sdg_placement_t *p = tagging->placement;
  for (int i = 0; i < call->operands; i++) {
    bool keys = i == a->k || i == a->v || i == a->dk || i == a->dv;
    if (i == a->w || i == a->dw)
      continue;
    if (!keys)
      SDG_TRY(queries_check(call, i, &p[i]));
    int like = keys ? a->k : a->q;
    bool fits = extent_equal(&p[i], &p[a->q], SDG_SEQUENCE_BATCH) &&
                extent_equal(&p[i], &p[like], SDG_SEQUENCE_TIME);
    for (int d = 0; fits && !keys && d < SDG_SEQUENCE_BEAM; d++)
      fits = sdg_part_equal(&p[i].part[d], &p[like].part[d]);
    if (!fits)
      return sdg_tagging_differ(call, tagging, i, like);
  }
  return SDG_OK;
}
