// SPDX-License-Identifier: Apache-2.0
// Chooses how attention is carried out, and makes its plan.
#include "rules/graph/attention/attention.h"
#include "rules/graph/attention/choice.h"
#include "rules/graph/maker.h"
#include "rules/kit/subcall.h"
#include "rules/place/same_split.h"

// With `window = local` nothing moves: queries that are whole would have other
// results on every rank, and gradients of whole keys would be other sums. Of a
// bias that has more than the rank's scores the execution reads what comes
// first.
static sdg_status_t local_check(const sdg_graph_attention_t *a) {
  sdg_axes_t queries = sdg_placement_axes(a->queries);
  for (int side = 0; side < SDG_SIDES; side++) {
    sdg_axes_t keys = sdg_placement_axes(a->side[side]);
    if ((keys & ~queries) || (a->composite->backward && (queries & ~keys)))
      return sdg_fail(SDG_E_ATTENTION,
                      "%s: 'window = local', and queries, keys and values that "
                      "are not cut over the same axes",
                      a->call->entry_name);
  }
  if (a->sequences && sdg_graph_lengths_there(a) &&
      a->tagging->section->lengths == SDG_SIZES_WHOLE)
    return sdg_fail(SDG_E_ATTENTION,
                    "%s: 'window = local' attends to pieces, whose lengths are "
                    "not those of 'lengths = whole'",
                    a->call->entry_name);
  return sdg_graph_bias_is_own(a->call)
             ? SDG_OK
             : sdg_fail(SDG_E_ATTENTION,
                        "%s: 'window = local', and a bias with more rows, "
                        "columns, heads or members of the batch than this "
                        "rank's scores",
                        a->call->entry_name);
}

// Whether the program's own execution is right: its queries see the same keys
// with and without a split, and each rank has those that they see, of which no
// other rank has terms of gradients.
static bool is_literal(const sdg_graph_attention_t *a) {
  const sdg_tagging_t *tagging = a->tagging;
  if (tagging->section->window == SDG_WINDOW_LOCAL)
    return true;
  if (a->sequences || !sdg_graph_bias_is_own(a->call))
    return false;
  // Whole sequences: which keys the queries see of them does not matter.
  sdg_graph_attention_t all_seen = *a;
  all_seen.sight = (sdg_sight_t){.right = false};
  for (int side = 0; side < SDG_SIDES; side++) {
    const sdg_placement_t *keys = a->side[side];
    sdg_range_t all = {0, sdg_placement_extent(keys, SDG_HEADED_SEQ)};
    for (int r = 0; r < tagging->ranks; r++) {
      int rank = tagging->rank_list[r];
      sdg_box_t own = sdg_placement_box(keys, tagging->mesh, rank);
      sdg_box_t need = sdg_graph_attention_need(&all_seen, side, rank, all);
      if (!sdg_box_equal(&own, &need))
        return false;
    }
  }
  return !a->composite->backward || !sdg_graph_attention_sums(a);
}

static sdg_status_t steps_make(sdg_graph_attention_t *a,
                               const sdg_graph_way_t *way) {
  SDG_TRY(sdg_plan_create(way->strategy, &a->plan));
  a->plan->why = way->why;
  SDG_TRY(sdg_subcalls_open(a->plan, a->call));
  SDG_TRY(way->make(a));
  return sdg_graph_refusals_compare(a->call, a->refusal);
}

sdg_status_t sdg_graph_attention_plan(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_plan_t **out_plan) {
  sdg_graph_attention_t a;
  if (tagging->ranks < 2)
    return sdg_literal_plan(out_plan);
  SDG_TRY(sdg_graph_attention_open(call, tagging, &a));
  if (tagging->section->window == SDG_WINDOW_LOCAL)
    SDG_TRY(local_check(&a));
  if (is_literal(&a))
    return sdg_literal_plan(out_plan);
  const char *why = sdg_graph_attention_beginnings_obstacle(&a);
  if (why)
    return sdg_fail(SDG_E_ATTENTION,
                    "%s: %s, and keys or values that are elsewhere than their "
                    "queries",
                    call->entry_name, why);
  sdg_graph_way_t way;
  sdg_status_t status = sdg_graph_attention_choose(&a, &way);
  if (status == SDG_OK)
    status = steps_make(&a, &way);
  sdg_graph_attention_fini(&a);
  return sdg_plan_finish(a.plan, status, out_plan);
}
