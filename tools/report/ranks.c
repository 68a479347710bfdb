// SPDX-License-Identifier: Apache-2.0
// Adds up each rank's calls and phases.
#include "tools/report/ranks.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

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

typedef struct span {
  int64_t from_ns, to_ns;
} span_t;

static int by_from(const void *a, const void *b) {
  const span_t *p = a, *q = b;
  return (p->from_ns > q->from_ns) - (p->from_ns < q->from_ns);
}

// How long the host or a stream waits for other ranks. Both may wait at the
// same time: a stream for a call's halo, the host in the next call. -1 if
// memory runs out.
static int64_t waited_of(const recorded_rank_t *rank) {
  size_t room = (size_t)rank->calls + (size_t)rank->phases + 1, spans = 0;
  span_t *span = malloc(room * sizeof *span);
  if (!span)
    return -1;
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    span[spans++] = (span_t){call->at_ns, call->at_ns + call->agreed_ns};
  }
  for (int i = 0; i < rank->phases; i++) {
    const recorded_phase_t *phase = &rank->phase[i];
    if (phase->phase == SDG_PHASE_WAIT)
      span[spans++] = (span_t){phase->at_ns, phase->at_ns + phase->took_ns};
  }
  qsort(span, spans, sizeof *span, by_from);
  int64_t waited_ns = 0, until_ns = INT64_MIN;
  for (size_t i = 0; i < spans; i++) {
    int64_t from_ns = span[i].from_ns > until_ns ? span[i].from_ns : until_ns;
    if (span[i].to_ns <= from_ns)
      continue;
    waited_ns += span[i].to_ns - from_ns;
    until_ns = span[i].to_ns;
  }
  free(span);
  return waited_ns;
}

static double share_of(int64_t part_ns, const recorded_t *run) {
  int64_t all = run->end_ns - run->begin_ns;
  return all > 0 ? (double)part_ns / (double)all : 0;
}

static json_t *rank_make(const recorded_t *run, const recorded_rank_t *rank) {
  rank_times_t t = ranks_times(rank);
  kind_sums_t sums = sums_rank(run, rank, -1);
  int64_t waited_ns = waited_of(rank);
  if (waited_ns < 0)
    return NULL;
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
      share_of(waited_ns, run), "received_bytes",
      (json_int_t)sums.received_bytes, "sum_bytes", (json_int_t)sums.sum_bytes,
      "scratch_bytes",
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

// Whether some ranks have times of their streams, and others have not: these
// may have waited, too.
static bool times_differ(const recorded_t *run) {
  int timed = 0;
  for (int r = 0; r < run->found; r++)
    timed += run->rank[r].phases > 0;
  return timed > 0 && timed < run->found;
}

// As the page shows spans of time.
static const char *span_text(int64_t ns, char (*out)[24]) {
  static const struct {
    double ns;
    const char *name;
  } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  int unit = ns >= 1000000000 ? 0 : ns >= 1000000 ? 1 : ns >= 1000 ? 2 : 3;
  double value = (double)ns / units[unit].ns;
  int digits = unit == 3 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  snprintf(*out, sizeof *out, "%.*f %s", digits, value, units[unit].name);
  return *out;
}

// A rank that others wait for waits least itself.
json_t *ranks_slowest(const recorded_t *run) {
  int least = 0;
  int64_t least_ns = 0, sum_ns = 0, real_ns[SDG_RANKS_MAX];
  if (run->found < 2 || times_differ(run))
    return json_null();
  for (int r = 0; r < run->found; r++) {
    int64_t wait_ns = waited_of(&run->rank[r]);
    if (wait_ns < 0)
      return NULL;
    real_ns[r] = ranks_times(&run->rank[r]).phase_ns[SDG_PHASE_REAL];
    sum_ns += wait_ns;
    if (r == 0 || wait_ns < least_ns) {
      least = r;
      least_ns = wait_ns;
    }
  }
  int64_t others_ns = (sum_ns - least_ns) / (run->found - 1), other_real = 0;
  for (int r = 0; r < run->found; r++)
    other_real += r == least ? 0 : real_ns[r] / (run->found - 1);
  if (share_of(others_ns, run) < 0.05 || 2 * least_ns > others_ns)
    return json_null();
  char why[192], text[4][24];
  bool two = run->found == 2;
  snprintf(
      why, sizeof why, "the other %s %s%s, this one %s; it computes %s, %s %s",
      two ? "rank waits" : "ranks wait", span_text(others_ns, &text[0]),
      two ? "" : " on average", span_text(least_ns, &text[1]),
      span_text(real_ns[least], &text[2]), two ? "the other one" : "the others",
      span_text(other_real, &text[3]));
  return json_pack("{s:i,s:s,s:f}", "rank", run->rank[least].rank, "why", why,
                   "share", share_of(others_ns, run));
}
