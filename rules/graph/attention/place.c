// SPDX-License-Identifier: Apache-2.0
// What a call of attention is, where its tensors are, and what its queries see.
#include <stdio.h>
#include <string.h>

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

// The call's operand of a role; -1: none.
static int operand_of(const sdg_call_t *call, int role) {
  const sdg_graph_pattern_t *p = pattern_of(call);
  int t = p->attention->tensor[role], i = 0;
  while (i < p->operands && p->operand[i] != t)
    i++;
  return t >= 0 && i < p->operands ? i : -1;
}

// The role whose placement another has: queries, keys or values.
static int like_of(int role) {
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

// Whether it is a sequence of vectors, which a section matches.
static bool is_sequence(int role) {
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

static int64_t extent_on(const sdg_operand_t *operand, int r, int d) {
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  return vector->extent[(size_t)r * (size_t)vector->dims + (size_t)d];
}

// Whether dimension d of a tensor is cut as the queries'; 1 on every rank is
// the same for all, unless the queries have 1 on every rank, too.
static sdg_status_t cut_find(const sdg_call_t *call, int index, int d,
                             const sdg_placement_t *queries, bool *out_cut) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_operand_t *q = &call->operand[operand_of(call, SDG_COMPOSITE_Q)];
  bool pieces = true, ones = true, same = true;
  for (int r = 0; r < sdg_job_group()->count; r++) {
    int64_t extent = extent_on(operand, r, d);
    pieces &= extent == extent_on(q, r, d);
    same &= extent == extent_on(operand, 0, d);
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

// Statistics, lengths, and what is added to scores: cut as the queries are.
static sdg_status_t beside_place(const sdg_call_t *call, sdg_tagging_t *tagging,
                                 int role) {
  int index = operand_of(call, role), from[DIMS];
  int64_t extent[DIMS];
  if (index < 0)
    return SDG_OK;
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *queries =
      &tagging->placement[operand_of(call, SDG_COMPOSITE_Q)];
  if (operand->dims != DIMS || queries->dims != DIMS ||
      !sdg_tag_vector(operand->descriptor, operand->generation))
    return SDG_OK;
  for (int d = 0; d < DIMS; d++) {
    bool cut = false;
    // The last dimension is that of keys, or has one element.
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
  static const int roles[] = {SDG_COMPOSITE_STATS, SDG_COMPOSITE_BIAS,
                              SDG_COMPOSITE_LENGTH_Q, SDG_COMPOSITE_LENGTH_KV};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    SDG_TRY(beside_place(call, tagging, roles[i]));
  return SDG_OK;
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
    at[role] = operand_of(call, role);
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
    if (at[role] < 0 || !is_sequence(role) || like_of(role) == role)
      continue;
    const sdg_placement_t *like =
        sdg_colocate_at(colocation, at[like_of(role)]);
    int source = role == SDG_COMPOSITE_O || role == SDG_COMPOSITE_DO
                     ? SDG_COMPOSITE_V
                     : like_of(role);
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
  // What is added to scores is in pieces, or the same for all.
  if (call->operand[index].role == SDG_ROLE_SCORES && placement->dims)
    common.axes = tagging->axes & ~sdg_placement_axes(placement);
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

// ---- what can be split -----------------------------------------------------

static sdg_status_t fail(const sdg_graph_attention_t *a, const char *why) {
  return sdg_fail(SDG_E_ATTENTION, "%s: %s", a->call->entry_name, why);
}

// That what belongs to queries is cut as they are, and what belongs to keys or
// values as those.
static sdg_status_t alike_check(const sdg_graph_attention_t *a) {
  const sdg_placement_t *p = a->tagging->placement;
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    int index = a->operand[role], like = a->operand[like_of(role)];
    if (index < 0 || !is_sequence(role))
      continue;
    bool alike = p[index].dims == DIMS && p[like].dims == DIMS;
    for (int d = 0; d < VECTOR && alike; d++)
      alike = sdg_split_equal(&p[index].split[d], &p[like].split[d]) &&
              sdg_part_equal(&p[index].part[d], &p[like].part[d]);
    if (!alike)
      return sdg_tagging_differ(a->call, a->tagging, index, like);
    if (p[index].part[VECTOR].pieces > 1)
      return sdg_fail(SDG_E_ATTENTION, "%s: HEAD of %s is split",
                      a->call->entry_name,
                      sdg_role_name(a->call->operand[index].role));
  }
  return SDG_OK;
}

static sdg_status_t extents_check(const sdg_graph_attention_t *a) {
  int64_t heads = sdg_placement_extent(a->queries, HEADS);
  for (int side = 0; side < SDG_SIDES; side++) {
    const sdg_placement_t *keys = a->side[side];
    int64_t groups = sdg_placement_extent(keys, HEADS);
    int role = side == SDG_KEYS ? SDG_COMPOSITE_K : SDG_COMPOSITE_V;
    if (sdg_placement_extent(keys, BATCH) !=
            sdg_placement_extent(a->queries, BATCH) ||
        sdg_placement_extent(keys, SEQ) !=
            sdg_placement_extent(a->side[SDG_KEYS], SEQ))
      return sdg_tagging_differ(a->call, a->tagging, a->operand[role],
                                a->operand[SDG_COMPOSITE_Q]);
    if (groups < 1 || heads % groups != 0)
      return fail(a, "the heads of all ranks' queries are no multiple of "
                     "those of all ranks' keys or values; a head of keys that "
                     "is the same on every rank needs a [local] section or a "
                     "tag");
    const sdg_part_t *part = &a->queries->part[HEADS];
    for (int i = 0; groups > 1 && i < part->pieces; i++)
      if (part->offset[i] % (heads / groups) != 0)
        return fail(a, "a group of heads that shares keys or values is on two "
                       "ranks");
  }
  return SDG_OK;
}

// One query on every rank may be one of each rank, as the section says, or the
// same on all, as in a step of inference: each would see other keys.
static sdg_status_t ones_check(const sdg_graph_attention_t *a) {
  const sdg_part_t *part = &a->queries->part[SEQ];
  const sdg_operand_t *q = &a->call->operand[a->operand[SDG_COMPOSITE_Q]];
  if (q->label || part->pieces < 2 || sdg_part_extent(part) != part->pieces ||
      sdg_placement_extent(a->side[SDG_KEYS], SEQ) == sdg_part_extent(part))
    return SDG_OK;
  return sdg_fail(SDG_E_ONE_EACH,
                  "%s: every rank has one query, and more keys: if all ranks "
                  "have the same query, tag it \"local\" or name it in a "
                  "[local] section",
                  a->call->entry_name);
}

// Whether the section says how many heads there are.
static bool says_heads(const sdg_section_t *section) {
  for (int i = 0; i < section->terms; i++)
    if (section->term[i].dim == SDG_DIM_HEADS &&
        section->term[i].compare != SDG_COMPARE_ANY)
      return true;
  for (int i = 0; i < section->splits; i++)
    if (section->split[i].dim == SDG_DIM_HEADS &&
        sdg_part_listed(section->split[i].parts) >= 0)
      return true;
  return false;
}

// One head of keys on every rank may be one of each, or the same on all: its
// gradient would be another.
static sdg_status_t heads_check(const sdg_graph_attention_t *a) {
  for (int side = 0; side < SDG_SIDES && a->composite->backward; side++) {
    int role = side == SDG_KEYS ? SDG_COMPOSITE_K : SDG_COMPOSITE_V;
    const sdg_part_t *part = &a->side[side]->part[HEADS];
    const sdg_operand_t *operand = &a->call->operand[a->operand[role]];
    if (part->pieces > 1 && sdg_part_extent(part) == part->pieces &&
        !operand->label && !says_heads(a->tagging->section))
      return sdg_fail(SDG_E_ONE_EACH,
                      "%s: %s has one head on every rank: say how many there "
                      "are (match = BATCH HEADS=%d SEQ HEAD), or, if all "
                      "ranks have the same one, tag it \"local\" or name it in "
                      "a [local] section",
                      a->call->entry_name, sdg_role_name(operand->role),
                      part->pieces);
  }
  return SDG_OK;
}

// A section's window has to be that of the graph.
static sdg_status_t window_check(const sdg_graph_attention_t *a) {
  const sdg_section_t *section = a->tagging->section;
  const sdg_composite_band_t *band = &a->band;
  bool global = section->window == SDG_WINDOW_GLOBAL;
  if (!global && section->window != SDG_WINDOW_SIZES)
    return SDG_OK;
  bool same =
      global ? !band->right && !band->left
             : band->right && band->right_bound == section->window_right &&
                   band->left && band->left_bound - 1 == section->window_left;
  if (same)
    return SDG_OK;
  char right[32] = "none", left[32] = "none";
  if (band->right)
    snprintf(right, sizeof right, "%lld", (long long)band->right_bound);
  if (band->left)
    snprintf(left, sizeof left, "%lld", (long long)band->left_bound - 1);
  return sdg_fail(SDG_E_ATTENTION_WINDOW,
                  "%s: a query of the graph sees keys before it up to: %s, "
                  "behind it up to: %s; section '%s' says another window. A "
                  "graph states its window itself, so that its section needs "
                  "none",
                  a->call->entry_name, left, right, section->name);
}

// That every query sees a key, and that nothing is left out of what is cut.
static sdg_status_t sequences_check(const sdg_graph_attention_t *a) {
  sdg_range_t queries = {0, sdg_placement_extent(a->queries, SEQ)};
  sdg_range_t keys = {0, sdg_placement_extent(a->side[SDG_KEYS], SEQ)};
  if (a->operand[SDG_COMPOSITE_BIAS] >= 0)
    return fail(a, "something is added to scores (a bias) of sequences in "
                   "pieces");
  if (a->operand[SDG_COMPOSITE_LENGTH_Q] >= 0 ||
      a->operand[SDG_COMPOSITE_LENGTH_KV] >= 0 || a->band.by_lengths)
    return fail(a, "lengths of sequences in pieces are in device memory");
  // cudnn-frontend subtracts a bottom right's lengths, which are those of a
  // piece, from the bound.
  if (a->band.left && !a->band.right &&
      !sdg_part_equal(&a->queries->part[SEQ], &a->side[SDG_KEYS]->part[SEQ]))
    return fail(a, "a window before queries alone, which may count from the "
                   "top left or from the bottom right, and queries and keys "
                   "in different parts");
  sdg_range_t seeing = sdg_sight_block(&a->sight, queries, keys).queries;
  return seeing.lo == queries.lo && seeing.hi == queries.hi
             ? ones_check(a)
             : fail(a, "some queries see no key");
}

static sdg_status_t band_read(sdg_graph_attention_t *a) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(a->call);
  sdg_composite_band_t *band = &a->band;
  if (!sdg_composite_numbers(a->composite, a->graph, execution->pointer, band))
    return fail(a, "its numbers by value are none of attention");
  a->sight = (sdg_sight_t){.right = band->right,
                           .left = band->left,
                           .right_bound = band->right_bound,
                           .left_bound = band->left_bound};
  if (band->bottom_right && !band->by_lengths) {
    const sdg_operand_t *q = &a->call->operand[a->operand[SDG_COMPOSITE_Q]];
    const sdg_operand_t *k = &a->call->operand[a->operand[SDG_COMPOSITE_K]];
    if (band->size_kv - band->size_q != k->extent[SEQ] - q->extent[SEQ])
      return fail(a, "its bottom right is that of sequences of other lengths");
    a->sight.shift = sdg_placement_extent(a->side[SDG_KEYS], SEQ) -
                     sdg_placement_extent(a->queries, SEQ);
  }
  return SDG_OK;
}

sdg_status_t sdg_graph_attention_open(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_graph_attention_t *a) {
  const sdg_placement_t *p = tagging->placement;
  memset(a, 0, sizeof *a);
  a->call = call;
  a->tagging = tagging;
  a->graph = pattern_of(call)->graph;
  a->composite = pattern_of(call)->attention;
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    a->operand[role] = operand_of(call, role);
    a->slab[role] = -1;
  }
  a->queries = a->work = &p[a->operand[SDG_COMPOSITE_Q]];
  a->side[SDG_KEYS] = &p[a->operand[SDG_COMPOSITE_K]];
  a->side[SDG_VALUES] = &p[a->operand[SDG_COMPOSITE_V]];
  SDG_TRY(alike_check(a));
  SDG_TRY(extents_check(a));
  SDG_TRY(heads_check(a));
  SDG_TRY(band_read(a));
  a->sequences = a->queries->part[SEQ].pieces > 1;
  for (int side = 0; side < SDG_SIDES; side++)
    a->sequences |= a->side[side]->part[SEQ].pieces > 1;
  if (tagging->section->window == SDG_WINDOW_LOCAL)
    return SDG_OK;
  SDG_TRY(window_check(a));
  return a->sequences ? sequences_check(a) : SDG_OK;
}

void sdg_graph_attention_fini(sdg_graph_attention_t *a) {
  sdg_placement_fini(&a->by_heads);
}
