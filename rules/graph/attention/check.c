// SPDX-License-Identifier: Apache-2.0
// What a call of attention is, and whether it can be split as it is cut.
#include <stdio.h>
#include <string.h>

#include "rules/graph/attention/attention.h"
#include "rules/place/tagging.h"

enum {
  BATCH = SDG_HEADED_BATCH,
  HEADS = SDG_HEADED_HEADS,
  SEQ = SDG_HEADED_SEQ,
  VECTOR = SDG_HEADED_VECTOR,
  DIMS = SDG_HEADED_DIMS
};

// ---- what can be split -----------------------------------------------------

static sdg_status_t fail(const sdg_graph_attention_t *a, const char *why) {
  return sdg_fail(SDG_E_ATTENTION, "%s: %s", a->call->entry_name, why);
}

// That what belongs to queries is cut as they are, and what belongs to keys or
// values as those.
static sdg_status_t alike_check(const sdg_graph_attention_t *a) {
  const sdg_placement_t *p = a->tagging->placement;
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    int index = a->operand[role],
        like = a->operand[sdg_graph_attention_like_of(role)];
    if (index < 0 || !sdg_graph_attention_is_sequence(role))
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
  if (sdg_graph_bias_obstacle(a))
    return fail(a, sdg_graph_bias_obstacle(a));
  if (sdg_graph_lengths_obstacle(a))
    return fail(a, sdg_graph_lengths_obstacle(a));
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

// A piece counts rows and columns from the first query that sees a key, and
// from the first key that is seen.
const char *
sdg_graph_attention_beginnings_obstacle(const sdg_graph_attention_t *a) {
  sdg_range_t queries = {0, sdg_placement_extent(a->queries, SEQ)};
  sdg_range_t keys = {0, sdg_placement_extent(a->side[SDG_KEYS], SEQ)};
  sdg_sight_block_t seen = sdg_sight_block(&a->sight, queries, keys);
  if (a->band.by_lengths)
    return "a bottom right of lengths in device memory";
  return seen.queries.lo > queries.lo || seen.queries.hi < queries.hi
             ? "some queries that see no key"
             : NULL;
}

const char *sdg_graph_attention_band(sdg_graph_attention_t *a) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(a->call);
  sdg_composite_band_t *band = &a->band;
  if (!sdg_composite_numbers(a->composite, a->graph, execution->pointer, band))
    return "its numbers by value are none of attention";
  a->sight = (sdg_sight_t){.right = band->right,
                           .left = band->left,
                           .right_bound = band->right_bound,
                           .left_bound = band->left_bound};
  if (band->bottom_right && !band->by_lengths) {
    const sdg_operand_t *q = &a->call->operand[a->operand[SDG_COMPOSITE_Q]];
    const sdg_operand_t *k = &a->call->operand[a->operand[SDG_COMPOSITE_K]];
    if (band->size_kv - band->size_q != k->extent[SEQ] - q->extent[SEQ])
      return "its bottom right is that of sequences of other lengths";
    a->sight.shift = sdg_placement_extent(a->side[SDG_KEYS], SEQ) -
                     sdg_placement_extent(a->queries, SEQ);
  }
  return NULL;
}

void sdg_graph_attention_init(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_graph_attention_t *a) {
  const sdg_placement_t *p = tagging->placement;
  memset(a, 0, sizeof *a);
  a->call = call;
  a->tagging = tagging;
  a->graph = sdg_graph_call_execution(call)->pattern->graph;
  a->composite = sdg_graph_call_execution(call)->pattern->attention;
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    a->operand[role] = sdg_graph_attention_operand(call, role);
    a->slab[role] = -1;
  }
  a->lengths[0] = a->lengths[1] = -1;
  a->queries = a->work = &p[a->operand[SDG_COMPOSITE_Q]];
  a->side[SDG_KEYS] = &p[a->operand[SDG_COMPOSITE_K]];
  a->side[SDG_VALUES] = &p[a->operand[SDG_COMPOSITE_V]];
}

sdg_status_t sdg_graph_attention_open(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_graph_attention_t *a) {
  sdg_graph_attention_init(call, tagging, a);
  SDG_TRY(alike_check(a));
  SDG_TRY(extents_check(a));
  SDG_TRY(heads_check(a));
  const char *why = sdg_graph_attention_band(a);
  if (why)
    return fail(a, why);
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
