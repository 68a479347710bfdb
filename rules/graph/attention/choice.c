// SPDX-License-Identifier: Apache-2.0
// Chooses between the strategies of attention by what they move and keep.
#include "rules/graph/attention/choice.h"

#include "rules/kit/fetch.h"
#include "rules/place/place.h"

enum { BATCH = SDG_HEADED_BATCH, SEQ = SDG_HEADED_SEQ };

static sdg_range_t all_keys(const sdg_graph_attention_t *a) {
  return (sdg_range_t){0, sdg_placement_extent(a->side[SDG_KEYS], SEQ)};
}

static int64_t elem_bytes(const sdg_graph_attention_t *a, int side) {
  int role = side == SDG_KEYS ? SDG_COMPOSITE_K : SDG_COMPOSITE_V;
  return a->call->operand[a->operand[role]].elem_bytes;
}

bool sdg_graph_attention_sums(const sdg_graph_attention_t *a) {
  const sdg_tagging_t *tagging = a->tagging;
  sdg_box_t need[SDG_RANKS_MAX];
  for (int side = 0; side < SDG_SIDES; side++) {
    for (int r = 0; r < tagging->ranks; r++)
      need[r] =
          sdg_graph_attention_need(a, side, tagging->rank_list[r], all_keys(a));
    if (sdg_fetch_returns(tagging, a->side[side], a->queries, need))
      return true;
  }
  return false;
}

// ---- bias ------------------------------------------------------------------

// What a rank needs and has of a bias; false: nothing is added.
static bool bias_boxes(const sdg_graph_attention_t *a, int rank,
                       sdg_range_t among, sdg_box_t *need, sdg_box_t *has) {
  int index = a->operand[SDG_COMPOSITE_BIAS];
  if (index < 0)
    return false;
  *need = sdg_graph_bias_need(a, rank, among);
  *has =
      sdg_placement_box(&a->tagging->placement[index], a->tagging->mesh, rank);
  return true;
}

static bool bias_travels(const sdg_graph_attention_t *a) {
  sdg_box_t need, has;
  for (int r = 0; r < a->tagging->ranks; r++)
    if (bias_boxes(a, a->tagging->rank_list[r], all_keys(a), &need, &has) &&
        !sdg_box_empty(&need) && !sdg_box_contains(&has, &need))
      return true;
  return false;
}

// ---- ring ------------------------------------------------------------------

// Why keys and values cannot come piece by piece; NULL: they can.
static const char *ring_obstacle(const sdg_graph_attention_t *a) {
  const sdg_placement_t *q = a->queries;
  for (int side = 0; side < SDG_SIDES; side++) {
    const sdg_placement_t *keys = a->side[side];
    if (!sdg_split_equal(&q->split[SEQ], &keys->split[SEQ]) ||
        !sdg_split_equal(&q->split[BATCH], &keys->split[BATCH]) ||
        !sdg_part_equal(&q->part[BATCH], &keys->part[BATCH]) ||
        !sdg_part_equal(&a->side[SDG_KEYS]->part[SEQ], &keys->part[SEQ]))
      return "queries, keys and values are not cut over the same axes";
  }
  return q->part[SEQ].pieces < 2 ? "the sequence is in one piece"
         : sdg_graph_lengths_there(a)
             ? "lengths are in device memory: a piece of keys may be padding"
         : bias_travels(a) ? "a rank does not have the rows and columns of "
                             "the bias that its queries need"
                           : NULL;
}

// ---- merge -----------------------------------------------------------------

// The keys that a rank has.
static sdg_range_t own_keys(const sdg_graph_attention_t *a, int rank) {
  const sdg_placement_t *keys = a->side[SDG_KEYS];
  int piece = sdg_split_piece(&keys->split[SEQ], a->tagging->mesh, rank);
  return (sdg_range_t){keys->part[SEQ].offset[piece],
                       keys->part[SEQ].offset[piece + 1]};
}

// Whether every rank has what its queries need of its own keys, and nobody
// else's terms of gradients.
static bool side_is_own(const sdg_graph_attention_t *a, int side) {
  const sdg_tagging_t *tagging = a->tagging;
  sdg_box_t need[SDG_RANKS_MAX];
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    need[r] = sdg_graph_attention_need(a, side, rank, own_keys(a, rank));
  }
  return !sdg_fetch_communicates(tagging, a->side[side], need) &&
         !(a->composite->backward &&
           sdg_fetch_returns(tagging, a->side[side], a->queries, need));
}

static bool bias_is_own(const sdg_graph_attention_t *a) {
  sdg_box_t need, has;
  for (int r = 0; r < a->tagging->ranks; r++) {
    int rank = a->tagging->rank_list[r];
    if (bias_boxes(a, rank, own_keys(a, rank), &need, &has) &&
        !sdg_box_empty(&need) && !sdg_box_contains(&has, &need))
      return false;
  }
  return true;
}

// Whether every rank can attend to its own keys: its queries are those of all
// ranks that have other keys of the same sequences.
static bool can_merge(const sdg_graph_attention_t *a) {
  const sdg_placement_t *keys = a->side[SDG_KEYS];
  const sdg_placement_t *values = a->side[SDG_VALUES];
  sdg_axes_t axes = sdg_split_all_axes(&keys->split[SEQ]);
  return keys->part[SEQ].pieces > 1 &&
         !(sdg_placement_axes(a->queries) & axes) &&
         sdg_split_equal(&keys->split[SEQ], &values->split[SEQ]) &&
         sdg_part_equal(&keys->part[SEQ], &values->part[SEQ]) &&
         a->queries->part[SEQ].pieces == 1 && !sdg_graph_lengths_there(a) &&
         side_is_own(a, SDG_KEYS) && side_is_own(a, SDG_VALUES) &&
         bias_is_own(a);
}

// The bytes that a rank receives for the forward pass, in two steps of an
// all-reduce: results and two numbers of each query, in float.
static int64_t merged_bytes(const sdg_graph_attention_t *a) {
  int64_t pieces = a->side[SDG_KEYS]->part[SEQ].pieces, most = 0;
  int64_t depth =
      sdg_placement_extent(a->side[SDG_VALUES], SDG_HEADED_VECTOR) + 2;
  for (int r = 0; r < a->tagging->ranks; r++) {
    sdg_box_t rows = sdg_graph_attention_rows(a, a->tagging->rank_list[r]);
    rows.dim[SDG_HEADED_VECTOR] = (sdg_range_t){0, depth};
    int64_t bytes = sdg_box_count(&rows) * (int64_t)sizeof(float);
    most = bytes > most ? bytes : most;
  }
  return 2 * (pieces - 1) * most / pieces;
}

// ---- bytes -----------------------------------------------------------------

// The elements of `need` that are not in `has`.
static int64_t missing(const sdg_box_t *need, const sdg_box_t *has) {
  sdg_box_t both = sdg_box_intersect(need, has);
  return sdg_box_count(need) -
         (sdg_box_empty(&both) ? 0 : sdg_box_count(&both));
}

// The bytes that a rank receives for the forward pass.
static int64_t received(const sdg_graph_attention_t *a, int rank) {
  const sdg_tagging_t *tagging = a->tagging;
  sdg_box_t rows = sdg_graph_attention_rows(a, rank);
  sdg_box_t own = sdg_placement_box(a->queries, tagging->mesh, rank);
  const sdg_operand_t *q = &a->call->operand[a->operand[SDG_COMPOSITE_Q]];
  // Queries that come, and outputs that go back.
  int64_t bytes = missing(&rows, &own) * q->elem_bytes;
  own.dim[SDG_HEADED_VECTOR].hi = rows.dim[SDG_HEADED_VECTOR].hi =
      sdg_placement_extent(a->side[SDG_VALUES], SDG_HEADED_VECTOR);
  bytes += missing(&own, &rows) * q->elem_bytes;
  for (int side = 0; side < SDG_SIDES; side++) {
    sdg_box_t need = sdg_graph_attention_need(a, side, rank, all_keys(a));
    sdg_box_t has = sdg_placement_box(a->side[side], tagging->mesh, rank);
    bytes += missing(&need, &has) * elem_bytes(a, side);
  }
  sdg_box_t need, has;
  if (bias_boxes(a, rank, all_keys(a), &need, &has) && !sdg_box_empty(&need))
    bytes += missing(&need, &has) *
             a->call->operand[a->operand[SDG_COMPOSITE_BIAS]].elem_bytes;
  return bytes;
}

// Those of the rank that receives most.
static int64_t most_received(const sdg_graph_attention_t *a) {
  int64_t most = 0;
  for (int r = 0; r < a->tagging->ranks; r++) {
    int64_t bytes = received(a, a->tagging->rank_list[r]);
    most = bytes > most ? bytes : most;
  }
  return most;
}

// The bytes of the largest piece of keys with its values.
static int64_t largest_piece(const sdg_graph_attention_t *a) {
  int64_t most = 0;
  for (int r = 0; r < a->tagging->ranks; r++) {
    int64_t bytes = 0;
    for (int side = 0; side < SDG_SIDES; side++) {
      sdg_box_t own = sdg_placement_box(a->side[side], a->tagging->mesh,
                                        a->tagging->rank_list[r]);
      bytes += sdg_box_count(&own) * elem_bytes(a, side);
    }
    most = bytes > most ? bytes : most;
  }
  return most;
}

// ---- the choice ------------------------------------------------------------

enum { OWN, HALO, RING, GATHER, BY_HEADS, MERGE };
static const sdg_graph_way_t ways[] = {
    [OWN] = {"own queries",
             "every rank has the keys and values that its queries see; "
             "gradients are summed",
             sdg_graph_attention_fetch},
    [HALO] = {"halo",
              "auto: the keys and values that the queries see come at once, no "
              "more than two pieces",
              sdg_graph_attention_fetch},
    [RING] = {"ring",
              "auto: keys and values come piece by piece, and two pieces at a "
              "time are kept",
              sdg_graph_attention_ring},
    [GATHER] = {"gather",
                "auto: the keys and values that the queries see come at once, "
                "because they are cut otherwise than the queries",
                sdg_graph_attention_fetch},
    [BY_HEADS] = {"heads",
                  "auto: whole sequences of some heads send fewer bytes to the "
                  "rank that receives most than keys and values would",
                  sdg_graph_attention_fetch},
    [MERGE] = {"merge",
               "auto: every rank attends to its own keys, and results of whole "
               "queries are fewer bytes than keys and values",
               sdg_graph_attention_merge},
};

static sdg_status_t asked_check(const sdg_graph_attention_t *a, int way) {
  const char *why = way == RING       ? ring_obstacle(a)
                    : way == BY_HEADS ? sdg_graph_attention_heads_obstacle(a)
                                      : NULL;
  return why ? sdg_fail(SDG_E_ATTENTION, "%s cannot use 'strategy = %s': %s",
                        a->call->entry_name, ways[way].strategy, why)
             : SDG_OK;
}

// Whether heads send fewer bytes. Leaves the work where it is.
static sdg_status_t heads_try(const sdg_graph_attention_t *a, bool *out_fewer) {
  sdg_graph_attention_t trial = *a;
  *out_fewer = false;
  if (sdg_graph_attention_heads_obstacle(a))
    return SDG_OK;
  sdg_status_t status = sdg_graph_attention_by_heads(&trial);
  if (status == SDG_OK)
    *out_fewer = most_received(&trial) < most_received(a);
  sdg_graph_attention_fini(&trial);
  return status;
}

static sdg_status_t auto_choose(const sdg_graph_attention_t *a, int *out) {
  int64_t fetched = most_received(a);
  bool fewer;
  SDG_TRY(heads_try(a, &fewer));
  *out = fetched == 0                                ? OWN
         : can_merge(a) && merged_bytes(a) < fetched ? MERGE
         : fewer                                     ? BY_HEADS
         : fetched <= 2 * largest_piece(a)           ? HALO
         : ring_obstacle(a)                          ? GATHER
                                                     : RING;
  return SDG_OK;
}

sdg_status_t sdg_graph_attention_choose(sdg_graph_attention_t *a,
                                        sdg_graph_way_t *out) {
  static const int by_strategy[] = {
      [SDG_STRATEGY_HALO] = HALO,
      [SDG_STRATEGY_GATHER] = GATHER,
      [SDG_STRATEGY_HEADS] = BY_HEADS,
      [SDG_STRATEGY_RING] = RING,
  };
  sdg_strategy_t said = a->tagging->section->attention;
  int way = by_strategy[said];
  if (said == SDG_STRATEGY_AUTO)
    SDG_TRY(auto_choose(a, &way));
  else
    SDG_TRY(asked_check(a, way));
  *out = ways[way];
  if (said != SDG_STRATEGY_AUTO)
    out->why = "asked for by 'strategy ='";
  return way == BY_HEADS ? sdg_graph_attention_by_heads(a) : SDG_OK;
}
