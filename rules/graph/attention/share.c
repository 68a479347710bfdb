// SPDX-License-Identifier: Apache-2.0
// Attention in the whole view: every rank has memory for all of every tensor,
// and computes its own queries, in place, of the keys and values that these
// see. Terms of the gradients of keys and values go to the ranks that have
// these, as in the shard view.
#include <string.h>

#include "rules/graph/attention/attention.h"
#include "rules/graph/maker.h"
#include "rules/kit/subcall.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"

enum {
  BATCH = SDG_HEADED_BATCH,
  HEADS = SDG_HEADED_HEADS,
  SEQ = SDG_HEADED_SEQ,
  VECTOR = SDG_HEADED_VECTOR,
  DIMS = SDG_HEADED_DIMS
};

typedef struct sharing {
  sdg_graph_attention_t a;
  const sdg_tagging_t *said; // where the section has the inputs
  sdg_tagging_t placed;      // where the ranks' pieces are, of all operands
  const char *why;           // the ranks cannot share it, for people; NULL
} sharing_t;

static const sdg_operand_t *operand_of(const sharing_t *s, int role) {
  return &s->a.call->operand[s->a.operand[role]];
}

static const sdg_placement_t *said_of(const sharing_t *s, int role) {
  return &s->said->placement[s->a.operand[role]];
}

static sdg_placement_t *place_of(sharing_t *s, int role) {
  return &s->placed.placement[s->a.operand[role]];
}

// ---- queries ---------------------------------------------------------------

static int64_t groups_of(const sharing_t *s, int role) {
  return operand_of(s, role)->extent[HEADS];
}

// Whether every piece of heads is whole groups that share keys, or part of one.
static bool groups_fit(const sharing_t *s, const sdg_part_t *part, int role) {
  int64_t each = sdg_part_extent(part) / groups_of(s, role);
  for (int i = 0; i < part->pieces; i++) {
    int64_t lo = part->offset[i], hi = part->offset[i + 1];
    bool whole = lo % each == 0 && hi % each == 0;
    if (hi > lo && !whole && lo / each != (hi - 1) / each)
      return false;
  }
  return true;
}

static bool heads_fit(const sharing_t *s, const sdg_part_t *part) {
  return groups_fit(s, part, SDG_COMPOSITE_K) &&
         groups_fit(s, part, SDG_COMPOSITE_V);
}

// As the section has the heads of queries, or in groups. Without pieces if no
// part is one of groups of keys and of values.
static sdg_status_t heads_place(sharing_t *s, sdg_placement_t *queries) {
  const sdg_placement_t *said = said_of(s, SDG_COMPOSITE_Q);
  int64_t size[SDG_RANKS_MAX];
  int64_t keys = groups_of(s, SDG_COMPOSITE_K),
          values = groups_of(s, SDG_COMPOSITE_V);
  sdg_part_t part;
  if (!said->split[HEADS].axes)
    return SDG_OK;
  if (heads_fit(s, &said->part[HEADS]))
    return sdg_placement_split(queries, s->said->mesh, HEADS,
                               &said->split[HEADS], &said->part[HEADS]);
  sdg_graph_attention_heads_sizes(sdg_placement_extent(said, HEADS),
                                  keys < values ? keys : values,
                                  said->part[HEADS].pieces, size);
  SDG_TRY(sdg_part_from_sizes(said->part[HEADS].pieces, size, &part));
  if (heads_fit(s, &part))
    return sdg_placement_take(queries, s->said->mesh, HEADS,
                              &said->split[HEADS], &part);
  sdg_part_fini(&part);
  return SDG_OK;
}

// Lengths count rows from the first of all.
static bool has_lengths(const sharing_t *s) {
  return s->a.operand[SDG_COMPOSITE_LENGTH_Q] >= 0 ||
         s->a.operand[SDG_COMPOSITE_LENGTH_KV] >= 0;
}

static sdg_status_t queries_place(sharing_t *s) {
  const sdg_operand_t *q = operand_of(s, SDG_COMPOSITE_Q);
  int from[DIMS] = {BATCH, -1, has_lengths(s) ? -1 : SEQ, -1};
  sdg_placement_t *queries = place_of(s, SDG_COMPOSITE_Q);
  SDG_TRY(sdg_placement_like(DIMS, q->extent, s->said->mesh,
                             said_of(s, SDG_COMPOSITE_Q), from, queries));
  SDG_TRY(heads_place(s, queries));
  if (!sdg_placement_axes(queries))
    s->why = has_lengths(s) ? "lengths in device memory of sequences that are "
                              "split, and nothing else is"
                            : "no dimension of queries that is split, but for "
                              "HEAD, or heads that share keys otherwise than "
                              "values";
  return SDG_OK;
}

// ---- keys and values -------------------------------------------------------

// Those of the queries' groups; even pieces if queries of a group are in
// several.
static sdg_status_t groups_place(sharing_t *s, sdg_placement_t *side) {
  const sdg_placement_t *queries = place_of(s, SDG_COMPOSITE_Q);
  const sdg_part_t *heads = &queries->part[HEADS];
  int64_t groups = sdg_placement_extent(side, HEADS);
  int64_t each = sdg_part_extent(heads) / groups, size[SDG_RANKS_MAX];
  bool whole = true;
  sdg_part_t part;
  if (!queries->split[HEADS].axes)
    return SDG_OK;
  for (int i = 0; i < heads->pieces; i++) {
    whole &= heads->offset[i + 1] % each == 0;
    size[i] = sdg_part_size(heads, i) / each;
  }
  if (whole)
    SDG_TRY(sdg_part_from_sizes(heads->pieces, size, &part));
  else
    SDG_TRY(sdg_part_divide(groups, heads->pieces, SDG_PART_EVEN, 1, &part));
  return sdg_placement_take(side, s->said->mesh, HEADS, &queries->split[HEADS],
                            &part);
}

// Their sequence is in the pieces that the section says, if that of queries is.
static sdg_status_t side_place(sharing_t *s, int role) {
  const sdg_operand_t *operand = operand_of(s, role);
  const sdg_placement_t *queries = place_of(s, SDG_COMPOSITE_Q),
                        *said = said_of(s, role);
  const int from[DIMS] = {BATCH, -1, -1, -1};
  sdg_placement_t *side = place_of(s, role);
  SDG_TRY(sdg_placement_like(DIMS, operand->extent, s->said->mesh, queries,
                             from, side));
  SDG_TRY(groups_place(s, side));
  bool cut = queries->split[SEQ].axes && said->dims == DIMS &&
             sdg_split_equal(&said->split[SEQ], &queries->split[SEQ]);
  return cut ? sdg_placement_split(side, s->said->mesh, SEQ, &said->split[SEQ],
                                   &said->part[SEQ])
             : SDG_OK;
}

// ---- all others ------------------------------------------------------------

// In pieces as queries, keys or values are. What is added to scores, and
// lengths, may have one element for all.
static sdg_status_t beside_place(sharing_t *s, int role) {
  const sdg_operand_t *operand = operand_of(s, role);
  const sdg_placement_t *like = place_of(s, sdg_graph_attention_like_of(role));
  int from[DIMS];
  for (int d = 0; d < DIMS; d++)
    from[d] = d != VECTOR && operand->extent[d] == sdg_placement_extent(like, d)
                  ? d
                  : -1;
  return sdg_placement_like(DIMS, operand->extent, s->said->mesh, like, from,
                            place_of(s, role));
}

// ---- whether they can share it ---------------------------------------------

// Whether an operand has the extents that it has beside the queries.
static bool extents_fit(const sharing_t *s, int role) {
  const sdg_operand_t *operand = operand_of(s, role);
  const sdg_operand_t *like = operand_of(s, sdg_graph_attention_like_of(role));
  bool fits = operand->dims == DIMS && like->dims == DIMS;
  for (int d = 0; d < VECTOR && fits; d++) {
    bool beside =
        !sdg_graph_attention_is_sequence(role) && role != SDG_COMPOSITE_STATS;
    fits = operand->extent[d] == like->extent[d] ||
           (beside && operand->extent[d] == 1);
  }
  return fits && (role != SDG_COMPOSITE_BIAS ||
                  operand->extent[VECTOR] ==
                      operand_of(s, SDG_COMPOSITE_K)->extent[SEQ]);
}

static bool all_fit(const sharing_t *s) {
  const sdg_operand_t *q = operand_of(s, SDG_COMPOSITE_Q);
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++)
    if (s->a.operand[role] >= 0 && !extents_fit(s, role))
      return false;
  for (int role = SDG_COMPOSITE_K; role <= SDG_COMPOSITE_V; role++) {
    const sdg_operand_t *side = operand_of(s, role);
    if (side->extent[BATCH] != q->extent[BATCH] || side->extent[HEADS] < 1 ||
        q->extent[HEADS] % side->extent[HEADS] != 0 ||
        side->extent[SEQ] != operand_of(s, SDG_COMPOSITE_K)->extent[SEQ])
      return false;
  }
  return true;
}

// Lengths count from the first key of all to the last one.
static const char *lengths_obstacle(const sharing_t *s) {
  sdg_range_t queries = {0, operand_of(s, SDG_COMPOSITE_Q)->extent[SEQ]};
  sdg_range_t keys = {0, operand_of(s, SDG_COMPOSITE_K)->extent[SEQ]};
  sdg_range_t seen = sdg_sight_block(&s->a.sight, queries, keys).keys;
  return has_lengths(s) && (seen.lo > keys.lo || seen.hi < keys.hi)
             ? "lengths in device memory, and keys that no query sees"
             : NULL;
}

// Whether one tensor has two roles: it would need two placements.
static bool is_twice(const sharing_t *s) {
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++)
    for (int other = 0; other < role; other++)
      if (s->a.operand[role] >= 0 && s->a.operand[role] == s->a.operand[other])
        return true;
  return false;
}

static const char *obstacle(sharing_t *s) {
  if (is_twice(s))
    return "one tensor in several roles";
  if (!all_fit(s) || said_of(s, SDG_COMPOSITE_Q)->dims != DIMS)
    return "extents of one tensor that do not fit the others'";
  for (int side = 0; side < SDG_SIDES; side++)
    if (s->a.side[side]->dims != DIMS)
      return "keys or values that no section has";
  const char *why = sdg_graph_attention_band(&s->a);
  if (!why)
    why = sdg_graph_attention_beginnings_obstacle(&s->a);
  return why ? why : lengths_obstacle(s);
}

// Places all operands, and makes these placements those of `a`. s->why: the
// ranks cannot share it.
static sdg_status_t operands_place(sharing_t *s) {
  s->why = obstacle(s);
  if (!s->why)
    SDG_TRY(queries_place(s));
  if (s->why)
    return SDG_OK;
  SDG_TRY(side_place(s, SDG_COMPOSITE_K));
  SDG_TRY(side_place(s, SDG_COMPOSITE_V));
  for (int role = SDG_COMPOSITE_O; role < SDG_COMPOSITE_DELTA; role++)
    if (s->a.operand[role] >= 0)
      SDG_TRY(beside_place(s, role));
  s->a.tagging = &s->placed;
  s->a.queries = s->a.work = place_of(s, SDG_COMPOSITE_Q);
  s->a.side[SDG_KEYS] = place_of(s, SDG_COMPOSITE_K);
  s->a.side[SDG_VALUES] = place_of(s, SDG_COMPOSITE_V);
  sdg_tagging_span(&s->placed, sdg_placement_axes(s->a.queries));
  return SDG_OK;
}

// ---- the plan --------------------------------------------------------------

// What each rank of the job reads of an input.
static sdg_status_t reads_fill(sharing_t *s, int role) {
  sdg_share_t *share = s->a.plan->share;
  const sdg_placement_t *keys = s->a.side[SDG_KEYS];
  sdg_range_t all = {0, sdg_placement_extent(keys, SEQ)};
  sdg_box_t *box;
  SDG_TRY(sdg_share_reads(share, s->a.operand[role], &box));
  for (int r = 0; r < share->ranks; r++)
    box[r] = role == SDG_COMPOSITE_K || role == SDG_COMPOSITE_V
                 ? sdg_graph_attention_need(
                       &s->a, role == SDG_COMPOSITE_K ? SDG_KEYS : SDG_VALUES,
                       r, all)
                 : sdg_placement_box(place_of(s, role), s->placed.mesh, r);
  return SDG_OK;
}

static sdg_status_t share_fill(sharing_t *s) {
  for (int role = 0; role < SDG_COMPOSITE_DELTA; role++) {
    int index = s->a.operand[role];
    if (index < 0)
      continue;
    if (s->a.call->operand[index].is_output)
      SDG_TRY(sdg_share_output(s->a.plan->share, index, place_of(s, role)));
    else if (role != SDG_COMPOSITE_BIAS && role != SDG_COMPOSITE_LENGTH_Q &&
             role != SDG_COMPOSITE_LENGTH_KV)
      SDG_TRY(reads_fill(s, role));
  }
  return SDG_OK;
}

// s->why: some rank has no engine for its piece.
static sdg_status_t plan_make(sharing_t *s) {
  sdg_graph_attention_t *a = &s->a;
  int refusal, rank;
  SDG_TRY(sdg_plan_create_shared("window", sdg_mesh_ranks(s->placed.mesh),
                                 &a->plan));
  SDG_TRY(sdg_subcalls_open(a->plan, a->call));
  SDG_TRY(share_fill(s));
  SDG_TRY(sdg_graph_attention_fetch(a));
  SDG_TRY(sdg_graph_refusals_gather(a->call, a->refusal, &refusal, &rank));
  if (refusal) {
    s->why = "a rank's piece that cuDNN has no engine for";
    sdg_plan_destroy(a->plan);
    a->plan = NULL;
  }
  return SDG_OK;
}

sdg_status_t sdg_graph_attention_share(const sdg_call_t *call,
                                       const sdg_tagging_t *tagging,
                                       sdg_plan_t **out_plan) {
  sharing_t s = {.said = tagging, .placed = *tagging};
  memset(s.placed.placement, 0, sizeof s.placed.placement);
  sdg_graph_attention_init(call, tagging, &s.a);
  s.a.whole = true;
  sdg_status_t status = operands_place(&s);
  if (status == SDG_OK && !s.why)
    status = plan_make(&s);
  for (int i = 0; i < call->operands; i++)
    sdg_placement_fini(&s.placed.placement[i]);
  if (status == SDG_OK && s.why)
    return sdg_in_full_plan(s.why, out_plan);
  return sdg_plan_finish(s.a.plan, status, out_plan);
}
