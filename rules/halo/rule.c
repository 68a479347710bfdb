// SPDX-License-Identifier: Apache-2.0
// sundog_halo as an op: each rank gets the elements around its piece from the
// ranks that own them.
#include <stdio.h>
#include <stdlib.h>

#include "rules/halo/halo.h"
#include "rules/kit/fetch.h"
#include "rules/memory/memory.h"
#include "rules/place/tagging.h"
#include "src/job/job.h"

static sdg_status_t halo_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  static const char *const borders[] = {"leave", "wrap", "zero"};
  const sdg_halo_t *halo = call->args;
  const sdg_operand_t *x = &call->operand[SDG_HALO_X];
  size_t used = 0;
  for (int d = 0; d < x->dims && used < out_bytes; d++)
    used += (size_t)snprintf(
        out + used, out_bytes - used, "%s%s:%lld+%lld %s", d ? ", " : "",
        sdg_tagging_name(call->family, x->dims, d), (long long)halo->before[d],
        (long long)halo->after[d], borders[halo->border[d]]);
  return SDG_OK;
}

// The descriptor of `out` stands for widths and borders, too.
static int halo_key(const sdg_call_t *call, uint64_t *out) {
  (void)call, (void)out;
  return 0;
}

static void whole_get(const sdg_placement_t *placement, int64_t *out) {
  for (int d = 0; d < placement->dims; d++)
    out[d] = sdg_placement_extent(placement, d);
}

// `out` is cut as the piece is.
static sdg_status_t halo_place(const sdg_call_t *call, sdg_tagging_t *io) {
  const sdg_placement_t *x = &io->placement[SDG_HALO_X];
  int64_t whole[SDG_DIMS_MAX];
  int from[SDG_DIMS_MAX];
  (void)call;
  whole_get(x, whole);
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    from[d] = d;
  sdg_placement_fini(&io->placement[SDG_HALO_OUT]);
  return sdg_placement_like(x->dims, whole, io->mesh, x, from,
                            &io->placement[SDG_HALO_OUT]);
}

// ---- the plan --------------------------------------------------------------

typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  const sdg_halo_t *halo;
  sdg_plan_t *plan;
  sdg_box_t *need; // of each rank of the tagging
  sdg_fetch_t fetch;
  int64_t whole[SDG_DIMS_MAX];
} maker_t;

static sdg_box_t own_of(const maker_t *m, int rank) {
  return sdg_placement_box(&m->tagging->placement[SDG_HALO_X], m->tagging->mesh,
                           rank);
}

// Whether a rank's need extends beyond its piece in a dimension that is split.
// Otherwise it has all of it, images included.
static bool lacks(const maker_t *m, const sdg_box_t *own,
                  const sdg_box_t *need) {
  bool found = false;
  for (int d = 0; d < own->dims; d++)
    found |=
        sdg_placement_splits(&m->tagging->placement[SDG_HALO_X], d) &&
        (need->dim[d].lo < own->dim[d].lo || need->dim[d].hi > own->dim[d].hi);
  return found;
}

static sdg_status_t needs_make(maker_t *m) {
  const sdg_tagging_t *tagging = m->tagging;
  SDG_TRY(SDG_ALLOCATE(m->need, tagging->ranks, "boxes of %d ranks",
                       tagging->ranks));
  for (int r = 0; r < tagging->ranks; r++) {
    sdg_box_t own = own_of(m, tagging->rank_list[r]);
    m->need[r] = sdg_halo_need(m->halo, &own, m->whole);
    if (lacks(m, &own, &m->need[r])) // every rank finds the same
      m->plan->axes = tagging->axes;
  }
  return SDG_OK;
}

static sdg_status_t zeros_add(const maker_t *m, const sdg_box_t *own, int out) {
  sdg_box_t zero[2 * SDG_DIMS_MAX];
  int zeros = sdg_halo_zeros(m->halo, own, m->whole, zero);
  for (int i = 0; i < zeros; i++)
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, out, &zero[i]));
  return SDG_OK;
}

// Copies of what the rank has itself, images beyond the ends included.
static sdg_status_t own_add(const maker_t *m) {
  for (int i = 0; i < m->fetch.transfer.locals; i++) {
    const sdg_message_t *local = &m->fetch.transfer.local[i];
    sdg_box_t to = sdg_box_shift(&local->box, local->shift);
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->fetch.from, m->fetch.into,
                          local->shift, &to, SDG_COPY_ACTIVATION));
  }
  return SDG_OK;
}

static sdg_status_t steps_make(maker_t *m) {
  sdg_fetch_t *fetch = &m->fetch;
  sdg_box_t own = own_of(m, m->tagging->rank);
  sdg_box_t box = sdg_halo_box(m->halo, &own);
  int64_t period[SDG_DIMS_MAX];
  SDG_TRY(needs_make(m));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, SDG_HALO_X, &own, &fetch->from));
  SDG_TRY(sdg_plan_operand(m->plan, m->call, SDG_HALO_OUT, &box, &fetch->into));
  sdg_halo_periods(m->halo, own.dims, m->whole, period);
  SDG_TRY(sdg_fetch_transfer(m->tagging, &m->tagging->placement[SDG_HALO_X],
                             m->need, period, &fetch->transfer));
  SDG_TRY(SDG_ALLOCATE(fetch->landed, fetch->transfer.recvs + 1, "a transfer"));
  SDG_TRY(sdg_plan_messages(m->plan, &fetch->transfer, fetch->from,
                            &fetch->into, 1, fetch->landed));
  SDG_TRY(sdg_plan_exchange(m->plan));
  SDG_TRY(zeros_add(m, &own, fetch->into));
  SDG_TRY(own_add(m));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  return sdg_fetch_land(m->plan, fetch);
}

static sdg_status_t halo_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  maker_t m = {.call = call, .tagging = tagging, .halo = call->args};
  for (int i = 0; i < call->operands; i++)
    SDG_TRY(sdg_memory_sendable(call, i));
  whole_get(&tagging->placement[SDG_HALO_X], m.whole);
  SDG_TRY(sdg_plan_create("exchange", &m.plan));
  m.plan->why = "the program asks for the elements around its piece";
  sdg_status_t status = steps_make(&m);
  free(m.need);
  sdg_fetch_fini(&m.fetch);
  return sdg_plan_finish(m.plan, status, out_plan);
}

static const sdg_op_shard_t shard = {.place = halo_place};

const sdg_op_t sdg_op_halo = {
    .family = SDG_FAMILY_HALO,
    .describe = halo_describe,
    .key = halo_key,
    .plan = halo_plan,
    .shard = &shard,
};
