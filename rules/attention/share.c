// SPDX-License-Identifier: Apache-2.0
// Attention in the whole view. Either queries are cut, and each rank computes
// its own queries; or keys are cut, and each rank computes the part that its
// keys have in the results of all queries. Gradients of keys that several ranks
// see are summed over these ranks.
#include <string.h>

#include "rules/attention/call/kept.h"
#include "rules/attention/plan.h"
#include "rules/attention/rule.h"
#include "rules/attention/strategy/merge.h"
#include "rules/attention/strategy/steps.h"
#include "rules/kit/subcall.h"

// The box of each input that each rank of the job reads.
static sdg_status_t reads_fill(sdg_attention_maker_t *m) {
  sdg_share_t *share = m->plan->share;
  const sdg_attention_t *a = &m->a;
  const int rows[] = {a->q, a->residual,
                      a->kind == SDG_ATTENTION_FORWARD ? -1 : a->o};
  const int side[SDG_ATTENTION_SIDES] = {a->k, a->v};
  sdg_box_t *boxes;
  for (int i = 0; i < 3; i++) {
    if (rows[i] < 0)
      continue;
    SDG_TRY(sdg_share_reads(share, rows[i], &boxes));
    for (int r = 0; r < share->ranks; r++)
      boxes[r] = sdg_attention_maker_rows(m, rows[i], r);
  }
  for (int i = 0; i < SDG_ATTENTION_SIDES; i++) {
    SDG_TRY(sdg_share_reads(share, side[i], &boxes));
    for (int r = 0; r < share->ranks; r++)
      boxes[r] = sdg_attention_maker_need(m, i, r);
  }
  return SDG_OK;
}

static sdg_status_t output_add(sdg_attention_maker_t *m, int index,
                               const sdg_placement_t *like) {
  sdg_placement_t placement;
  if (index < 0)
    return SDG_OK;
  SDG_TRY(sdg_attention_like(
      m->tagging, like, m->call->operand[index].extent[SDG_SEQUENCE_VECTOR],
      &placement));
  sdg_status_t status = sdg_share_output(m->plan->share, index, &placement);
  sdg_placement_fini(&placement);
  return status;
}

// Adds all outputs but dw, which the steps that compute it add.
static sdg_status_t outputs_add(sdg_attention_maker_t *m) {
  if (m->a.kind == SDG_ATTENTION_FORWARD)
    return output_add(m, m->a.o, m->rows);
  SDG_TRY(output_add(m, m->a.dq, m->rows));
  SDG_TRY(output_add(m, m->a.dk, &m->side[SDG_ATTENTION_KEYS]));
  return output_add(m, m->a.dv, &m->side[SDG_ATTENTION_VALUES]);
}

static sdg_status_t plan_make(sdg_attention_maker_t *m) {
  SDG_TRY(sdg_plan_create_shared(m->merges ? "merge" : "window",
                                 sdg_mesh_ranks(m->tagging->mesh), &m->plan));
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(reads_fill(m));
  SDG_TRY(outputs_add(m));
  return m->merges ? sdg_attention_merge_steps(m)
                   : sdg_attention_maker_steps(m);
}

static bool same_extents(const sdg_call_t *call, int a, int b) {
  return memcmp(call->operand[a].extent, call->operand[b].extent,
                SDG_SEQUENCE_VECTOR * sizeof(int64_t)) == 0;
}

// A call that the real function rejects as a whole is left to it.
static bool extents_fit(const sdg_call_t *call, const sdg_attention_t *a) {
  return same_extents(call, a->q, a->o) && same_extents(call, a->k, a->v) &&
         call->operand[a->q].extent[SDG_SEQUENCE_BATCH] ==
             call->operand[a->k].extent[SDG_SEQUENCE_BATCH];
}

static sdg_status_t lengths_hash(const sdg_call_t *call,
                                 const sdg_attention_t *a, uint64_t *out_hash) {
  uint64_t queries, keys;
  SDG_TRY(sdg_attention_lengths_hash(&call->operand[a->q], &queries));
  SDG_TRY(sdg_attention_lengths_hash(&call->operand[a->k], &keys));
  *out_hash = queries * 31 + keys;
  return SDG_OK;
}

// Finds how the ranks share the call: gradients are shared like their forward
// call. Leaves m->rows NULL if the ranks cannot share it, or if neither queries
// nor keys are cut.
static sdg_status_t rows_find(sdg_attention_maker_t *m) {
  const sdg_placement_t *rows = &m->tagging->placement[m->a.q];
  const sdg_attention_kept_t *kept =
      m->a.kind == SDG_ATTENTION_FORWARD
          ? NULL
          : sdg_attention_kept_find(m->a.reserve);
  const char *why;
  m->windows = m->a.windows;
  m->rows = NULL;
  if (m->a.kind != SDG_ATTENTION_FORWARD && !kept)
    return SDG_OK;
  SDG_TRY(sdg_attention_maker_measure(m, &why));
  bool can = !why && !sdg_attention_obstacle(m->call, &m->a, true) &&
             extents_fit(m->call, &m->a);
  if (kept) {
    uint64_t lengths;
    SDG_TRY(lengths_hash(m->call, &m->a, &lengths));
    if (!can || kept->windows.count != m->a.windows.count ||
        kept->lengths != lengths)
      return sdg_fail(
          SDG_E_ATTENTION,
          "%s: windows, lengths or options differ from those of the forward "
          "call with this reserve space",
          m->call->entry_name);
    rows = &kept->rows;
    m->windows = kept->windows;
  }
  m->rows = rows;
  const sdg_placement_t *keys = &m->tagging->placement[m->a.k];
  m->merges = can && sdg_attention_merge_applies(rows, keys);
  if (m->merges)
    can = sdg_attention_merge_can(m) &&
          sdg_part_equal(&rows->part[SDG_SEQUENCE_BATCH],
                         &keys->part[SDG_SEQUENCE_BATCH]);
  bool cut = m->merges || rows->split[SDG_SEQUENCE_TIME].axes ||
             rows->split[SDG_SEQUENCE_BATCH].axes;
  for (int d = SDG_SEQUENCE_BEAM; d < SDG_SEQUENCE_DIMS; d++)
    can &= rows->split[d].axes == 0 && keys->split[d].axes == 0;
  if (!can || !cut)
    m->rows = NULL;
  else
    m->sums = sdg_attention_maker_sums(m, keys, keys);
  return SDG_OK;
}

sdg_status_t sdg_attention_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) {
  sdg_attention_maker_t m = {.call = call, .tagging = tagging};
  *out_plan = NULL;
  if (!sdg_attention_read(call, &m.a))
    return SDG_OK;
  const sdg_placement_t *keys = &tagging->placement[m.a.k];
  m.sum_axes = tagging->sum_axes;
  sdg_status_t status = rows_find(&m);
  if (status == SDG_OK && m.rows)
    status = sdg_attention_maker_init(&m, keys, keys);
  // The real function decides the result of queries without keys.
  if (status == SDG_OK && m.rows &&
      sdg_attention_maker_rank_without_keys(&m) < 0)
    status = plan_make(&m);
  sdg_attention_maker_fini(&m);
  return sdg_plan_finish(m.plan, status, out_plan);
}

sdg_status_t sdg_attention_note(const sdg_call_t *call,
                                const sdg_plan_t *plan) {
  sdg_attention_t a;
  if (call->is_query || !sdg_attention_read(call, &a) || !a.reserve ||
      a.kind != SDG_ATTENTION_FORWARD)
    return SDG_OK;
  if (plan && plan->share) {
    uint64_t lengths;
    SDG_TRY(lengths_hash(call, &a, &lengths));
    return sdg_attention_kept_put(
        a.reserve, &a.windows, sdg_share_placement(plan->share, a.o), lengths);
  }
  sdg_attention_kept_drop(a.reserve);
  return SDG_OK;
}
