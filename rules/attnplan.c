// SPDX-License-Identifier: Apache-2.0
// What each rank needs of keys and values; plans of attention in the shard
// view.
#include "rules/attnplan.h"

#include <stdlib.h>
#include <string.h>

#include "rules/alike.h"
#include "rules/attnheads.h"
#include "rules/attnmerge.h"
#include "rules/bring.h"
#include "rules/subcall.h"
#include "rules/tagging.h"

sdg_status_t sdg_attn_like(const sdg_tagging_t *tagging,
                           const sdg_placement_t *like, int64_t vector,
                           sdg_placement_t *out) {
  int64_t extent[SDG_SEQUENCE_DIMS];
  for (int d = 0; d < SDG_SEQUENCE_DIMS; d++)
    extent[d] = sdg_placement_extent(like, d);
  extent[SDG_SEQUENCE_VECTOR] = vector;
  SDG_TRY(sdg_placement_init(SDG_SEQUENCE_DIMS, extent, out));
  for (int d = 0; d < SDG_SEQUENCE_VECTOR; d++) {
    if (like->split[d].axes == 0)
      continue;
    sdg_status_t status = sdg_placement_split(out, tagging->mesh, d,
                                              &like->split[d], &like->part[d]);
    if (status != SDG_OK) {
      sdg_placement_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

static bool is_split(const sdg_placement_t *placement, int dim) {
  return placement->part[dim].pieces > 1;
}

static sdg_axes_t axes_of(const sdg_placement_t *placement, int dim) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < placement->split[dim].axes && is_split(placement, dim);
       i++)
    axes |= 1u << placement->split[dim].axis[i];
  return axes;
}

sdg_axes_t sdg_attnmaker_sums(const sdg_attnmaker_t *m) {
  const sdg_placement_t *keys = &m->tagging->placement[m->a.k];
  sdg_axes_t of_queries = axes_of(m->rows, SDG_SEQUENCE_TIME) |
                          axes_of(m->rows, SDG_SEQUENCE_BATCH);
  return m->local ? 0
                  : of_queries & ~(axes_of(keys, SDG_SEQUENCE_TIME) |
                                   axes_of(keys, SDG_SEQUENCE_BATCH));
}

// ---- who needs what --------------------------------------------------------

sdg_box_t sdg_attnmaker_rows(const sdg_attnmaker_t *m, int index, int rank) {
  sdg_box_t box = sdg_placement_box(m->rows, m->tagging->mesh, rank);
  if (index >= 0 && !sdg_box_empty(&box))
    box.dim[SDG_SEQUENCE_VECTOR] =
        (sdg_range_t){0, m->call->operand[index].extent[SDG_SEQUENCE_VECTOR]};
  return box;
}

// A descriptor has room for one key at least, also where queries see none.
static sdg_range_t span_of(const sdg_attnmaker_t *m, sdg_range_t rows,
                           int64_t keys) {
  sdg_range_t span = {0, keys};
  if (m->everything)
    return span;
  span = m->windows.lo
             ? sdg_windows_need(&m->windows, rows.lo, rows.hi - rows.lo, keys)
             : sdg_band_need(&m->band, rows, keys);
  return span.lo < span.hi ? span : (sdg_range_t){0, 1};
}

sdg_box_t sdg_attnmaker_need(const sdg_attnmaker_t *m, int side, int rank) {
  const sdg_placement_t *placement = &m->side[side];
  sdg_box_t rows = sdg_attnmaker_rows(m, m->a.q, rank);
  sdg_box_t need = {.dims = SDG_SEQUENCE_DIMS};
  if (sdg_box_empty(&rows))
    return need;
  if (m->local)
    return sdg_placement_box(placement, m->tagging->mesh, rank);
  for (int d = 0; d < SDG_SEQUENCE_DIMS; d++)
    need.dim[d].hi = sdg_placement_extent(placement, d);
  need.dim[SDG_SEQUENCE_BATCH] = rows.dim[SDG_SEQUENCE_BATCH];
  need.dim[SDG_SEQUENCE_TIME] =
      span_of(m, rows.dim[SDG_SEQUENCE_TIME], need.dim[SDG_SEQUENCE_TIME].hi);
  if (!m->merges)
    return need;
  sdg_box_t own = sdg_placement_box(placement, m->tagging->mesh, rank);
  return sdg_box_intersect(&own, &need);
}

sdg_status_t sdg_attnmaker_init(sdg_attnmaker_t *m) {
  const int operand[SDG_ATTN_SIDES] = {m->a.k, m->a.v};
  const sdg_placement_t *keys = &m->tagging->placement[m->a.k];
  for (int i = 0; i < SDG_ATTN_SIDES; i++) {
    SDG_TRY(sdg_attn_like(
        m->tagging, keys,
        m->call->operand[operand[i]].extent[SDG_SEQUENCE_VECTOR], &m->side[i]));
    m->need[i] = calloc((size_t)m->tagging->ranks, sizeof *m->need[i]);
    if (!m->need[i])
      return sdg_fail(SDG_E_NO_MEMORY, "boxes of %d ranks", m->tagging->ranks);
    for (int r = 0; r < m->tagging->ranks; r++)
      m->need[i][r] = sdg_attnmaker_need(m, i, m->tagging->rank_list[r]);
  }
  m->moves = sdg_bring_communicates(m->tagging, &m->side[SDG_ATTN_KEYS],
                                    m->need[SDG_ATTN_KEYS]);
  return SDG_OK;
}

void sdg_attnmaker_fini(sdg_attnmaker_t *m) {
  for (int i = 0; i < SDG_ATTN_SIDES; i++) {
    sdg_placement_fini(&m->side[i]);
    free(m->need[i]);
  }
  sdg_attnlengths_fini(&m->queries);
  sdg_attnlengths_fini(&m->keys);
}

// ---- what goes with queries and keys ---------------------------------------

// What nothing is said of goes with queries or keys where one of these is on
// every rank and the other is not.
sdg_status_t sdg_attention_place(const sdg_call_t *call,
                                 sdg_tagging_t *tagging) {
  sdg_attention_t a;
  sdg_placement_t *p = tagging->placement, like;
  if (!sdg_attention_read(call, &a) || p[a.q].dims == 0 || p[a.k].dims == 0 ||
      is_split(&p[a.q], SDG_SEQUENCE_TIME) ==
          is_split(&p[a.k], SDG_SEQUENCE_TIME))
    return SDG_OK;
  for (int i = 0; i < call->operands; i++) {
    bool keys = i == a.v || i == a.dk || i == a.dv;
    if (i == a.q || i == a.k || i == a.w || i == a.dw || p[i].dims == 0 ||
        call->operand[i].label)
      continue;
    SDG_TRY(sdg_attn_like(tagging, &p[keys ? a.k : a.q],
                          call->operand[i].extent[SDG_SEQUENCE_VECTOR], &like));
    sdg_placement_fini(&p[i]);
    p[i] = like;
  }
  return SDG_OK;
}

// ---- what can be split -----------------------------------------------------

const char *sdg_attn_obstacle(const sdg_call_t *call, const sdg_attention_t *a,
                              bool sequence_is_split) {
  if (a->reserve &&
      sdg_attndesc_drops((cudnnHandle_t)(uintptr_t)call->handle, &a->desc))
    return "dropout";
  return sequence_is_split && a->current >= 0 ? "a single step" : NULL;
}

// Queries and what lies beside them, keys and what lies beside them; and both
// in the same pieces of the batch.
static sdg_status_t alike_check(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_attention_t *a) {
  const sdg_placement_t *p = tagging->placement;
  for (int i = 0; i < call->operands; i++) {
    bool keys = i == a->k || i == a->v || i == a->dk || i == a->dv;
    if (i == a->w || i == a->dw)
      continue;
    const char *names[SDG_DIMS_MAX];
    sdg_tagging_names(call->family, SDG_SEQUENCE_DIMS, names);
    for (int d = SDG_SEQUENCE_BEAM; d < SDG_SEQUENCE_DIMS; d++)
      if (is_split(&p[i], d))
        return sdg_fail(SDG_E_ATTENTION, "%s: %s of %s is split",
                        call->entry_name, names[d],
                        sdg_role_name(call->operand[i].role));
    int like = keys ? a->k : a->q;
    if (!sdg_part_equal(&p[i].part[SDG_SEQUENCE_TIME],
                        &p[like].part[SDG_SEQUENCE_TIME]) ||
        !sdg_part_equal(&p[i].part[SDG_SEQUENCE_BATCH],
                        &p[a->q].part[SDG_SEQUENCE_BATCH]))
      return sdg_tagging_differ(call, tagging, i, like);
  }
  // Each pair of queries and keys meets on one rank.
  sdg_axes_t queries = axes_of(&p[a->q], SDG_SEQUENCE_TIME);
  sdg_axes_t keys = axes_of(&p[a->k], SDG_SEQUENCE_TIME);
  return queries && keys && queries != keys
             ? sdg_tagging_differ(call, tagging, a->k, a->q)
             : SDG_OK;
}

// ---- windows in the shard view ---------------------------------------------

// The rank's own elements along the sequence.
static sdg_range_t own_range(const sdg_attnmaker_t *m, int index) {
  sdg_box_t own = sdg_placement_box(&m->tagging->placement[index],
                                    m->tagging->mesh, m->tagging->rank);
  return own.dim[SDG_SEQUENCE_TIME];
}

static sdg_status_t windows_compare(const sdg_attnmaker_t *m) {
  const sdg_attention_t *a = &m->a;
  if (a->kind == SDG_ATTENTION_WEIGHTS || m->local)
    return SDG_OK;
  int64_t first = own_range(m, a->q).lo;
  sdg_range_t keys = own_range(m, a->k);
  int64_t t = sdg_windows_differ(&a->windows, &m->band, first, keys);
  if (t < 0)
    return SDG_OK;
  sdg_range_t should = sdg_band_among(&m->band, first + t, keys);
  return sdg_fail(SDG_E_ATTENTION_WINDOW,
                  "%s: query %lld of the shard sees keys [%d, %d) of %lld, by "
                  "the rule it would be [%lld, %lld)",
                  m->call->entry_name, (long long)t, a->windows.lo[t],
                  a->windows.hi[t], (long long)(keys.hi - keys.lo),
                  (long long)should.lo, (long long)should.hi);
}

// Positions of queries and of keys mean the same where both are cut alike, or
// one of them is all here; else only windows without bounds are the same for
// any.
static sdg_status_t band_find(sdg_attnmaker_t *m) {
  const sdg_section_t *section = m->tagging->section;
  const sdg_placement_t *p = m->tagging->placement;
  const sdg_part_t *queries = &p[m->a.q].part[SDG_SEQUENCE_TIME];
  const sdg_part_t *keys = &p[m->a.k].part[SDG_SEQUENCE_TIME];
  m->band = (sdg_band_t){SDG_BAND_UNBOUND, SDG_BAND_UNBOUND};
  switch (section->window) {
  case SDG_WINDOW_UNSAID:
    return sdg_fail(SDG_E_ATTENTION_WINDOW,
                    "%s: SEQ is split and section '%s' has no window",
                    m->call->entry_name, section->name);
  case SDG_WINDOW_GLOBAL:
    break;
  case SDG_WINDOW_LOCAL:
    m->local = true;
    return SDG_OK;
  case SDG_WINDOW_SIZES:
    m->band = (sdg_band_t){section->window_left, section->window_right};
    break;
  }
  if (queries->pieces > 1 && keys->pieces > 1 &&
      !sdg_part_equal(queries, keys) &&
      !sdg_band_is_all(&m->band, sdg_part_extent(queries),
                       sdg_part_extent(keys)))
    return sdg_tagging_differ(m->call, m->tagging, m->a.k, m->a.q);
  return windows_compare(m);
}

// ---- the plan --------------------------------------------------------------

// By which strategy; from what all ranks have alike.
static sdg_status_t strategy_choose(sdg_attnmaker_t *m, bool *out_heads) {
  sdg_strategy_t said = m->tagging->section->attention;
  const char *why = sdg_attnheads_obstacle(m);
  *out_heads = !why && (said == SDG_STRATEGY_HEADS ||
                        (said == SDG_STRATEGY_AUTO &&
                         sdg_attnheads_bytes(m) < sdg_attnhalo_bytes(m)));
  return why && said == SDG_STRATEGY_HEADS
             ? sdg_fail(SDG_E_ATTENTION, "%s by heads: %s", m->call->entry_name,
                        why)
             : SDG_OK;
}

static const char *reason(const sdg_attnmaker_t *m, bool open) {
  if (m->tagging->section->attention != SDG_STRATEGY_AUTO)
    return "asked for by 'strategy ='";
  if (!sdg_attnheads_obstacle(m))
    return "auto: the keys and values that windows see are fewer bytes for the "
           "rank that receives most than projected rows by heads would be; "
           "queries stay";
  return open ? "auto: the windows have no bound, so that the keys and values "
                "that they see come here; queries stay; it cannot be done by "
                "heads"
              : "auto: keys and values of the window come from the ranks that "
                "have them; queries stay; it cannot be done by heads";
}

static const char *own_reason(const sdg_attnmaker_t *m) {
  return m->sums
             ? "keys and values are on every rank: their gradients are sums "
               "over the ranks, as those of parameters are"
             : "gradients of parameters are summed over the ranks";
}

static sdg_status_t plan_open(sdg_attnmaker_t *m, const char *strategy,
                              const char *why) {
  m->plan = sdg_plan_create(strategy);
  if (!m->plan)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  m->plan->why = why;
  return sdg_subcalls_open(m->plan, m->call);
}

static sdg_status_t plan_make(sdg_attnmaker_t *m, bool heads) {
  int64_t count =
      sdg_placement_extent(&m->side[SDG_ATTN_KEYS], SDG_SEQUENCE_TIME);
  sdg_strategy_t said = m->tagging->section->attention;
  bool open = said == SDG_STRATEGY_AUTO
                  ? m->band.left >= count - 1 || m->band.right >= count - 1
                  : said == SDG_STRATEGY_GATHER;
  if (heads) {
    SDG_TRY(plan_open(m, "heads",
                      said == SDG_STRATEGY_HEADS
                          ? "asked for by 'strategy ='"
                          : "auto: projected rows by heads are fewer bytes for "
                            "the rank that receives most than the keys and "
                            "values that windows see"));
    return sdg_attnheads_steps(m);
  }
  if (m->moves)
    SDG_TRY(plan_open(m, open ? "gather" : "halo", reason(m, open)));
  else
    SDG_TRY(plan_open(m, "own queries", own_reason(m)));
  return sdg_attnmaker_steps(m);
}

// Whether ranks have terms of the call's results.
static bool has_terms(const sdg_attnmaker_t *m) {
  return (m->a.kind == SDG_ATTENTION_WEIGHTS && m->tagging->sum_axes) ||
         (m->a.kind == SDG_ATTENTION_DATA && m->sums);
}

// By some strategy, or the program's own call.
static sdg_status_t way_make(sdg_attnmaker_t *m, bool sequence) {
  bool heads = false;
  SDG_TRY(sdg_attnmaker_init(m));
  if (m->merges) {
    SDG_TRY(plan_open(m, "merge",
                      "queries are on every rank: keys and values stay, and "
                      "the ranks' shares in the softmax of each query are "
                      "merged"));
    return sdg_attnmerge_steps(m);
  }
  if (sequence)
    SDG_TRY(strategy_choose(m, &heads));
  if (!heads && sdg_attnmaker_blind(m) >= 0)
    return sdg_fail(SDG_E_ATTENTION,
                    "%s: rank %d has queries of a sequence, and no key that "
                    "they see is one of its elements",
                    m->call->entry_name, sdg_attnmaker_blind(m));
  return !heads && !m->moves && !sdg_attnmaker_blanks(m) && !has_terms(m)
             ? sdg_literal_plan(&m->plan)
             : plan_make(m, heads);
}

// What becomes of queries and keys, by their placements and the windows.
static sdg_status_t maker_fill(sdg_attnmaker_t *m, bool sequence) {
  const char *why = sdg_attn_obstacle(m->call, &m->a, sequence);
  if (!why)
    SDG_TRY(sdg_attnmaker_measure(m, &why));
  if (why)
    return sdg_fail(SDG_E_ATTENTION, "%s: %s", m->call->entry_name, why);
  m->local = !sequence;
  if (sequence)
    SDG_TRY(band_find(m));
  m->merges = !m->local &&
              sdg_attnmerge_applies(m->rows, &m->tagging->placement[m->a.k]);
  why = m->merges ? sdg_attnmerge_obstacle(m) : NULL;
  if (why)
    return sdg_fail(SDG_E_ATTENTION, "%s: %s", m->call->entry_name, why);
  m->sums = sdg_attnmaker_sums(m);
  // With the keys that the program's own calls have, forward and for gradients
  // of parameters: the reserve space is one.
  m->everything =
      m->sums || (sequence && !m->local &&
                  m->tagging->section->attention == SDG_STRATEGY_GATHER);
  return SDG_OK;
}

sdg_status_t sdg_attention_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  sdg_attnmaker_t m = {.call = call, .tagging = tagging};
  if (!sdg_attention_read(call, &m.a) || tagging->ranks < 2) {
    SDG_TRY(sdg_sequence_whole(call));
    return sdg_literal_plan(out_plan);
  }
  SDG_TRY(alike_check(call, tagging, &m.a));
  m.rows = &tagging->placement[m.a.q];
  bool sequence = is_split(m.rows, SDG_SEQUENCE_TIME) ||
                  is_split(&tagging->placement[m.a.k], SDG_SEQUENCE_TIME);
  sdg_status_t status = maker_fill(&m, sequence);
  if (status == SDG_OK)
    status = way_make(&m, sequence);
  sdg_attnmaker_fini(&m);
  if (status == SDG_OK)
    *out_plan = m.plan;
  else
    sdg_plan_destroy(m.plan);
  return status;
}
