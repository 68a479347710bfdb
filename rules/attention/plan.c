// SPDX-License-Identifier: Apache-2.0
// Plans of attention in the shard view.
#include "rules/attention/rule.h"

#include <string.h>

#include "rules/attention/plan.h"
#include "rules/attention/strategy/heads.h"
#include "rules/attention/strategy/merge.h"
#include "rules/attention/strategy/steps.h"
#include "rules/kit/subcall.h"
#include "rules/place/place.h"
#include "rules/place/same_split.h"

// ---- what can be split -----------------------------------------------------

const char *sdg_attention_obstacle(const sdg_call_t *call,
                                   const sdg_attention_t *a,
                                   bool sequence_is_split) {
  if (a->reserve && sdg_attention_descriptor_drops(
                        (cudnnHandle_t)(uintptr_t)call->handle, &a->desc))
    return "it applies dropout";
  return sequence_is_split && a->current >= 0
             ? "it computes a single step (currIdx >= 0) of a split sequence"
             : NULL;
}

// ---- the plan --------------------------------------------------------------

// What the section asks for; a strategy of graphs alone is none of these.
static sdg_strategy_t asked_for(const sdg_attention_maker_t *m) {
  return m->section->attention == SDG_STRATEGY_RING ? SDG_STRATEGY_AUTO
                                                    : m->section->attention;
}

// Whether the plan shares heads. Uses only facts that are equal on all ranks,
// so that all ranks choose alike.
static sdg_status_t strategy_choose(sdg_attention_maker_t *m, bool *out_heads) {
  sdg_strategy_t said = asked_for(m);
  const char *why = sdg_attention_heads_obstacle(m);
  *out_heads =
      !why && (said == SDG_STRATEGY_HEADS ||
               (said == SDG_STRATEGY_AUTO &&
                sdg_attention_heads_bytes(m) < sdg_attention_halo_bytes(m)));
  return why && said == SDG_STRATEGY_HEADS
             ? sdg_fail(SDG_E_ATTENTION,
                        "%s cannot use 'strategy = heads': %s (%d heads, SEQ "
                        "in %d pieces)",
                        m->call->entry_name, why, m->a.desc.heads,
                        m->rows->part[SDG_SEQUENCE_TIME].pieces)
             : SDG_OK;
}

static const char *reason(const sdg_attention_maker_t *m, bool open) {
  if (asked_for(m) != SDG_STRATEGY_AUTO)
    return "asked for by 'strategy ='";
  if (!sdg_attention_heads_obstacle(m))
    return "auto: fetching the keys and values in the windows sends fewer "
           "bytes to the rank that receives most than projected rows by heads "
           "would; queries stay";
  return open ? "auto: the windows have no limit, so all keys and values that "
                "they see are fetched; queries stay; heads cannot be used"
              : "auto: keys and values of the window come from the ranks that "
                "have them; queries stay; heads cannot be used";
}

static const char *own_reason(const sdg_attention_maker_t *m) {
  return m->sums ? "keys and values are on every rank: their gradients are "
                   "summed over the ranks, like those of parameters"
                 : "gradients of parameters are summed over the ranks";
}

static sdg_status_t plan_open(sdg_attention_maker_t *m, const char *strategy,
                              const char *why) {
  SDG_TRY(sdg_plan_create(strategy, &m->plan));
  m->plan->why = why;
  return sdg_subcalls_open(m->plan, m->call);
}

static sdg_status_t plan_make(sdg_attention_maker_t *m, bool heads) {
  int64_t count =
      sdg_placement_extent(&m->side[SDG_ATTENTION_KEYS], SDG_SEQUENCE_TIME);
  sdg_strategy_t said = asked_for(m);
  bool open = said == SDG_STRATEGY_AUTO
                  ? m->band.left >= count - 1 || m->band.right >= count - 1
                  : said == SDG_STRATEGY_GATHER;
  if (m->merges) {
    SDG_TRY(plan_open(m, "merge",
                      "queries are on every rank: keys and values stay, and "
                      "the ranks' parts of each query's softmax are merged"));
    return sdg_attention_merge_steps(m);
  }
  if (heads) {
    SDG_TRY(plan_open(
        m, "heads",
        said == SDG_STRATEGY_HEADS
            ? "asked for by 'strategy ='"
            : "auto: projected rows by heads send fewer bytes to the rank that "
              "receives most than the keys and values in the windows"));
    return sdg_attention_heads_steps(m);
  }
  if (m->moves)
    SDG_TRY(plan_open(m, open ? "gather" : "halo", reason(m, open)));
  else
    SDG_TRY(plan_open(m, "own queries", own_reason(m)));
  return sdg_attention_maker_steps(m);
}

static bool cut_alike(const sdg_placement_t *a, const sdg_placement_t *b) {
  bool alike = sdg_place_same(a->split, b->split, SDG_SEQUENCE_DIMS);
  for (int d = 0; d < SDG_SEQUENCE_BEAM; d++)
    alike = alike && sdg_part_equal(&a->part[d], &b->part[d]);
  return alike;
}

// Whether results of the call are sums over ranks.
static bool has_terms(const sdg_attention_maker_t *m) {
  return (m->a.kind == SDG_ATTENTION_WEIGHTS && m->sum_axes) ||
         (m->a.kind == SDG_ATTENTION_DATA && m->returns);
}

// Whether every rank has exactly the keys and values that its queries see, so
// that the program's own call sees the right ones.
static bool has_needs(const sdg_attention_maker_t *m) {
  const sdg_tagging_t *tagging = m->tagging;
  for (int r = 0; r < tagging->ranks; r++)
    for (int i = 0; i < SDG_ATTENTION_SIDES; i++) {
      sdg_box_t own =
          sdg_placement_box(&m->side[i], tagging->mesh, tagging->rank_list[r]);
      if (!sdg_box_empty(&m->need[i][r]) &&
          !sdg_box_equal(&own, &m->need[i][r]))
        return false;
    }
  return true;
}

// Whether the program adds up gradients of parameters over ranks that all
// compute the same gradients: ranks along an axis that cuts neither queries nor
// keys, and over which sundog does not sum.
static bool counts_twice(const sdg_attention_maker_t *m) {
  const sdg_section_t *section = m->tagging->section;
  sdg_axes_t terms = sdg_placement_axes(m->rows);
  if (m->merges)
    terms |= sdg_placement_axes(&m->side[SDG_ATTENTION_KEYS]);
  return (sdg_section_axes(section) & ~section->sum_axes & ~terms) != 0;
}

// Plans a strategy, or the program's own call.
static sdg_status_t plan_choose(sdg_attention_maker_t *m, bool sequence) {
  bool heads = false;
  if (sequence && !m->merges)
    SDG_TRY(strategy_choose(m, &heads));
  bool own = !m->merges && has_needs(m);
  const char *why = sdg_attention_obstacle(m->call, &m->a, sequence || !own);
  if (!why && m->a.kind == SDG_ATTENTION_WEIGHTS && counts_twice(m))
    why = "the program sums gradients of parameters ('sum = no'), but ranks "
          "with the same queries compute the same gradients: write 'sum = yes'";
  if (why)
    return sdg_fail(SDG_E_ATTENTION, "%s: %s", m->call->entry_name, why);
  if (!m->merges && !heads && sdg_attention_maker_rank_without_keys(m) >= 0)
    return sdg_fail(SDG_E_ATTENTION,
                    "%s: rank %d has queries of a sequence, but all keys that "
                    "they see are padding",
                    m->call->entry_name,
                    sdg_attention_maker_rank_without_keys(m));
  return own && !heads && !sdg_attention_maker_has_empty_piece(m) &&
                 !has_terms(m)
             ? sdg_literal_plan(&m->plan)
             : plan_make(m, heads);
}

// Fills the maker from the placements and the windows. Afterwards m->moves and
// m->merges tell whether keys move.
static sdg_status_t maker_fill(sdg_attention_maker_t *m, bool sequence) {
  const sdg_placement_t *p = m->tagging->placement;
  const sdg_placement_t *keys = &p[m->a.k], *values = &p[m->a.v];
  const char *why;
  SDG_TRY(sdg_attention_maker_measure(m, &why));
  if (why)
    return sdg_fail(SDG_E_ATTENTION, "%s: %s", m->call->entry_name, why);
  if (sequence)
    SDG_TRY(sdg_attention_maker_windows(m));
  else
    m->windows = m->a.windows;
  m->merges = sequence && !m->local && cut_alike(keys, values) &&
              sdg_attention_merge_applies(m->rows, keys) &&
              sdg_attention_merge_can(m);
  m->sums = sdg_attention_maker_sums(m, keys, values);
  // All calls that use one reserve space must use the same keys: the forward
  // call, and both calls for gradients.
  m->everything = !sequence || m->sums ||
                  (!m->local && m->section->attention == SDG_STRATEGY_GATHER);
  return sdg_attention_maker_init(m, keys, values);
}

sdg_status_t sdg_attention_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  sdg_attention_maker_t m = {.call = call, .tagging = tagging};
  const sdg_placement_t *p = tagging->placement;
  if (!sdg_attention_read(call, &m.a) || tagging->ranks < 2) {
    SDG_TRY(sdg_sequence_whole(call));
    return sdg_literal_plan(out_plan);
  }
  SDG_TRY(sdg_attention_check(call, tagging, &m.a));
  SDG_TRY(sdg_attention_section(call, tagging, m.a.q, &m.section));
  m.rows = &p[m.a.q];
  bool sequence = sdg_placement_splits(m.rows, SDG_SEQUENCE_TIME) ||
                  sdg_placement_splits(&p[m.a.k], SDG_SEQUENCE_TIME) ||
                  sdg_placement_splits(&p[m.a.v], SDG_SEQUENCE_TIME);
  sdg_status_t status = maker_fill(&m, sequence);
  // Ranks with the same queries and the same keys have equal gradients of
  // parameters, so no sum is needed along their axes.
  m.sum_axes =
      tagging->sum_axes & (sdg_placement_axes(m.rows) |
                           (m.merges ? sdg_placement_axes(&p[m.a.k]) : 0));
  if (status == SDG_OK)
    status = plan_choose(&m, sequence);
  sdg_attention_maker_fini(&m);
  return sdg_plan_finish(m.plan, status, out_plan);
}
