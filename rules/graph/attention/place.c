// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a call of attention are, and what its queries see.

#include "rules/graph/attention/attention.h"
#include "rules/place/colocate.h"
#include "rules/place/tagging.h"
#include "rules/step/compare.h"
#include "src/call/tag.h"
#include "src/job/job.h"

enum {
  BATCH = SDG_HEADED_BATCH,
  HEADS = SDG_HEADED_HEADS,
  SEQ = SDG_HEADED_SEQ,
  VECTOR = SDG_HEADED_VECTOR,
  DIMS = SDG_HEADED_DIMS
};

// ---- operands --------------------------------------------------------------

static const sdg_graph_pattern_t *pattern_of(const sdg_call_t *call) {
  return sdg_graph_call_execution(call)->pattern;
}

int sdg_graph_attention_operand(const sdg_call_t *call, int role) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  int t = p->attention->tensor[role], i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return t >= 0 && i < p->operands ? i : -1;
}

int sdg_graph_attention_like_of(int role) {
  switch (role) {
  case SDG_COMPOSITE_K:
  case SDG_COMPOSITE_DK:
    return SDG_COMPOSITE_K;
  case SDG_COMPOSITE_V:
  case SDG_COMPOSITE_DV:
    return SDG_COMPOSITE_V;
  }
  return SDG_COMPOSITE_Q;
}

bool sdg_graph_attention_is_sequence(int role) {
  return role != SDG_COMPOSITE_STATS && role != SDG_COMPOSITE_BIAS &&
         role != SDG_COMPOSITE_LENGTH_Q && role != SDG_COMPOSITE_LENGTH_KV;
}

// ---- placements ------------------------------------------------------------

sdg_status_t sdg_graph_attention_like(const sdg_mesh_t *mesh,
                                      const sdg_placement_t *like,
                                      int64_t vector, sdg_placement_t *out) {
  int from[DIMS] = {BATCH, HEADS, SEQ, -1};
  int64_t extent[DIMS];
  for (int d = 0; d < VECTOR; d++)
    extent[d] = sdg_placement_extent(like, d);
  extent[VECTOR] = vector;
  return sdg_placement_like(DIMS, extent, mesh, like, from, out);
}

int64_t sdg_graph_attention_extent(const sdg_operand_t *operand, int r, int d) {
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  return vector->extent[(size_t)r * (size_t)vector->dims + (size_t)d];
}

// Whether dimension d of a tensor is cut as the queries'; 1 on every rank is
// the same for all, unless the queries have 1 on every rank, too.
static sdg_status_t cut_find(const sdg_call_t *call, int index, int d,
                             const sdg_placement_t *queries, bool *out_cut) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_operand_t *q =
      &call->operand[sdg_graph_attention_operand(call, SDG_COMPOSITE_Q)];
  bool pieces = true, ones = true, same = true;
  for (int r = 0; r < sdg_job_group()->count; r++) {
    int64_t extent = sdg_graph_attention_extent(operand, r, d);
    pieces &= extent == sdg_graph_attention_extent(q, r, d);
    same &= extent == sdg_graph_attention_extent(operand, 0, d);
    ones &= extent == 1;
  }
  *out_cut = queries->split[d].axes > 0 && pieces;
  return *out_cut || (queries->split[d].axes > 0 ? ones : same)
             ? SDG_OK
             : sdg_fail(SDG_E_OPERANDS_DIFFER,
                        "%s: %s of %s has neither that of the queries on "
                        "every rank, nor 1",
                        call->entry_name,
                        sdg_tagging_name(call->family, DIMS, d),
                        sdg_role_name(operand->role));
}

// Statistics and lengths: cut as the queries are.
static sdg_status_t beside_place(const sdg_call_t *call, sdg_tagging_t *tagging,
                                 int role) {
  int index = sdg_graph_attention_operand(call, role), from[DIMS];
  int64_t extent[DIMS];
  if (index < 0)
    return SDG_OK;
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *queries =
      &tagging->placement[sdg_graph_attention_operand(call, SDG_COMPOSITE_Q)];
  if (operand->dims != DIMS || queries->dims != DIMS ||
      !sdg_tag_vector(operand->descriptor, operand->generation))
    return SDG_OK;
  for (int d = 0; d < DIMS; d++) {
    bool cut = false;
    // The last dimension has one element.
    if (d != VECTOR)
      SDG_TRY(cut_find(call, index, d, queries, &cut));
    from[d] = cut ? d : -1;
    extent[d] = cut ? sdg_placement_extent(queries, d) : operand->extent[d];
  }
  sdg_placement_fini(&tagging->placement[index]);
  return sdg_placement_like(DIMS, extent, tagging->mesh, queries, from,
                            &tagging->placement[index]);
}

sdg_status_t sdg_graph_attention_place(const sdg_call_t *call,
                                       sdg_tagging_t *tagging) {
  static const int roles[] = {SDG_COMPOSITE_STATS, SDG_COMPOSITE_LENGTH_Q,
                              SDG_COMPOSITE_LENGTH_KV};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    SDG_TRY(beside_place(call, tagging, roles[i]));
  return sdg_graph_bias_place(call, tagging);
}

// The reading of an operand in which no rank's piece is cut, or the first one.
static int reading_of(const sdg_colocation_t *colocation, int index,
                      bool uncut) {
  int places = colocation->places[index];
  for (int k = 0; uncut && k < places; k++)
    if (!sdg_placement_axes(&colocation->place[index][k].placement))
      return k;
  return places > 0 && !uncut ? 0 : -1;
}

static sdg_status_t reading_take(sdg_colocation_t *colocation, int index,
                                 int reading) {
  colocation->fits &= reading >= 0;
  if (reading < 0)
    return SDG_OK;
  colocation->is[index] = reading;
  sdg_placement_fini(&colocation->tagging.placement[index]);
  return sdg_placement_copy(&colocation->place[index][reading].placement,
                            &colocation->tagging.placement[index]);
}

// Nothing moves before the call: keys and values are read from where they are,
// and all others have to be where their queries, keys or values are.
sdg_status_t sdg_graph_attention_colocate(const sdg_call_t *call,
                                          sdg_colocation_t *colocation,
                                          int lead) {
  int at[SDG_COMPOSITE_DELTA];
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++)
    at[role] = sdg_graph_attention_operand(call, role);
  const int leads[] = {SDG_COMPOSITE_Q, SDG_COMPOSITE_K, SDG_COMPOSITE_V};
  bool is_lead = false;
  for (int i = 0; i < 3; i++) {
    int index = at[leads[i]];
    is_lead |= index == lead;
    SDG_TRY(reading_take(colocation, index,
                         index == lead ? colocation->is[lead]
                                       : reading_of(colocation, index,
                                                    lead != at[0] && i == 0)));
  }
  colocation->fits &= is_lead;
  for (int role = 0; role < SDG_COMPOSITE_DELTA && colocation->fits; role++) {
    sdg_placement_t want;
    if (at[role] < 0 || !sdg_graph_attention_is_sequence(role) ||
        sdg_graph_attention_like_of(role) == role)
      continue;
    const sdg_placement_t *like =
        sdg_colocate_at(colocation, at[sdg_graph_attention_like_of(role)]);
    int source = role == SDG_COMPOSITE_O || role == SDG_COMPOSITE_DO
                     ? SDG_COMPOSITE_V
                     : sdg_graph_attention_like_of(role);
    SDG_TRY(sdg_graph_attention_like(
        colocation->tagging.mesh, like,
        sdg_placement_extent(sdg_colocate_at(colocation, at[source]), VECTOR),
        &want));
    sdg_status_t status =
        sdg_colocate_follow(colocation, at[role], &want, false);
    sdg_placement_fini(&want);
    SDG_TRY(status);
    colocation->fits &= !sdg_colocate_moves(colocation, at[role]);
  }
  if (!colocation->fits)
    return SDG_OK;
  sdg_axes_t axes = colocation->tagging.axes;
  for (int i = 0; i < 3; i++)
    axes |= sdg_placement_axes(sdg_colocate_at(colocation, at[leads[i]]));
  sdg_tagging_span(&colocation->tagging, axes);
  return sdg_graph_attention_place(call, &colocation->tagging);
}

sdg_common_t sdg_graph_attention_common(const sdg_call_t *call,
                                        const sdg_tagging_t *tagging,
                                        int index) {
  sdg_common_t common = sdg_compare_common(call, tagging, index);
  const sdg_placement_t *placement = &tagging->placement[index];
  // What is added to scores is in pieces, or the same on all ranks.
  if (call->operand[index].role == SDG_ROLE_SCORES && placement->dims)
    common.axes = tagging->axes & ~sdg_placement_axes(placement);
  if (call->operand[index].role == SDG_ROLE_LENGTHS && placement->dims)
    common.axes = tagging->axes & ~sdg_placement_axes(placement) &
                  ~sdg_graph_lengths_differ(call, tagging);
  return common;
}

// ---- boxes -----------------------------------------------------------------

sdg_box_t sdg_graph_attention_rows(const sdg_graph_attention_t *a, int rank) {
  return sdg_placement_box(a->work, a->tagging->mesh, rank);
}

sdg_sight_block_t sdg_graph_attention_block(const sdg_graph_attention_t *a,
                                            int rank, sdg_range_t among) {
  sdg_box_t rows = sdg_graph_attention_rows(a, rank);
  sdg_range_t none = {0, 0};
  return sdg_sight_block(&a->sight, sdg_box_empty(&rows) ? none : rows.dim[SEQ],
                         among);
}

sdg_box_t sdg_graph_attention_need(const sdg_graph_attention_t *a, int side,
                                   int rank, sdg_range_t among) {
  const sdg_placement_t *keys = a->side[side];
  sdg_box_t rows = sdg_graph_attention_rows(a, rank);
  sdg_box_t need = {.dims = DIMS};
  int64_t heads = sdg_placement_extent(a->queries, HEADS);
  int64_t groups = sdg_placement_extent(keys, HEADS);
  sdg_range_t seen = sdg_graph_attention_block(a, rank, among).keys;
  if (seen.hi <= seen.lo)
    return need;
  need.dim[BATCH] = rows.dim[BATCH];
  need.dim[HEADS] =
      (sdg_range_t){rows.dim[HEADS].lo * groups / heads,
                    (rows.dim[HEADS].hi * groups + heads - 1) / heads};
  need.dim[SEQ] = seen;
  need.dim[VECTOR] = (sdg_range_t){0, sdg_placement_extent(keys, VECTOR)};
  return need;
}
