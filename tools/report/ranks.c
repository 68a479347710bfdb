// SPDX-License-Identifier: Apache-2.0
// Adds up each rank's calls and phases.
#include "tools/report/ranks.h"

#include <stdio.h>

#include "tools/report/advice/sums.h"

rank_times_t ranks_times(const recorded_rank_t *rank) {
  rank_times_t times = {.host_ns = 0};
  for (int i = 0; i < rank->calls; i++) {
    times.host_ns += rank->call[i].took_ns;
    times.agreed_ns += rank->call[i].agreed_ns;
  }
  for (int i = 0; i < rank->phases; i++)
    times.phase_ns[rank->phase[i].phase] += rank->phase[i].took_ns;
  return times;
}

static double share_of(int64_t part_ns, const recorded_t *run) {
  int64_t all = run->end_ns - run->begin_ns;
  return all > 0 ? (double)part_ns / (double)all : 0;
}

static json_t *rank_make(const recorded_t *run, const recorded_rank_t *rank) {
  rank_times_t t = ranks_times(rank);
  kind_sums_t sums = sums_rank(run, rank, -1);
  int64_t waited = t.agreed_ns + t.phase_ns[SDG_PHASE_WAIT];
  return json_pack(
      "{s:i,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:I,s:I,s:I,"
      "s:I,s:b}",
      "rank", rank->rank, "host", recorded_text(rank->facts, "host"), "pid",
      (json_int_t)recorded_number(rank->facts, "pid"), "calls",
      (json_int_t)sums.calls, "host_ns", (json_int_t)t.host_ns, "agreed_ns",
      (json_int_t)t.agreed_ns, "device_ns",
      (json_int_t)t.phase_ns[SDG_PHASE_CALL], "real_ns",
      (json_int_t)t.phase_ns[SDG_PHASE_REAL], "copy_ns",
      (json_int_t)t.phase_ns[SDG_PHASE_COPY], "transfer_ns",
      (json_int_t)t.phase_ns[SDG_PHASE_TRANSFER], "sum_ns",
      (json_int_t)t.phase_ns[SDG_PHASE_SUM], "wait_ns",
      (json_int_t)t.phase_ns[SDG_PHASE_WAIT], "wait_share",
      share_of(waited, run), "received_bytes", (json_int_t)sums.received_bytes,
      "sum_bytes", (json_int_t)sums.sum_bytes, "scratch_bytes",
      (json_int_t)recorded_number(rank->totals, "scratch_bytes"),
      "compared_bytes",
      (json_int_t)recorded_number(json_object_get(rank->totals, "compared"),
                                  "bytes"),
      "refused", (json_int_t)recorded_number(rank->totals, "refused"),
      "has_totals", rank->totals != NULL);
}

json_t *ranks_make(const recorded_t *run) {
  json_t *list = json_array();
  for (int r = 0; r < run->found && list; r++)
    if (json_array_append_new(list, rank_make(run, &run->rank[r])) != 0) {
      json_decref(list);
      return NULL;
    }
  return list;
}

// A rank that others wait for waits least itself.
json_t *ranks_slowest(const recorded_t *run) {
  int least = 0;
  int64_t least_ns = 0, sum_ns = 0, real_ns[SDG_RANKS_MAX];
  for (int r = 0; r < run->found; r++) {
    rank_times_t t = ranks_times(&run->rank[r]);
    int64_t wait_ns = t.agreed_ns + t.phase_ns[SDG_PHASE_WAIT];
    real_ns[r] = t.phase_ns[SDG_PHASE_REAL];
    sum_ns += wait_ns;
    if (r == 0 || wait_ns < least_ns) {
      least = r;
      least_ns = wait_ns;
    }
  }
  if (run->found < 2)
    return json_null();
  int64_t others_ns = (sum_ns - least_ns) / (run->found - 1), other_real = 0;
  for (int r = 0; r < run->found; r++)
    other_real += r == least ? 0 : real_ns[r] / (run->found - 1);
  if (share_of(others_ns, run) < 0.05 || 2 * least_ns > others_ns)
    return json_null();
  char why[160];
  snprintf(why, sizeof why,
           "the other ranks wait %.3g ms on average, this one %.3g ms; it "
           "computes %.3g ms, the others %.3g ms",
           (double)others_ns / 1e6, (double)least_ns / 1e6,
           (double)real_ns[least] / 1e6, (double)other_real / 1e6);
  return json_pack("{s:i,s:s,s:f}", "rank", run->rank[least].rank, "why", why,
                   "share", share_of(others_ns, run));
}
