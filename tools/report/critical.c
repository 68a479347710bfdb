// SPDX-License-Identifier: Apache-2.0
// Follows waits from the end of a run to its begin.
#include "tools/report/critical.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SEGMENTS_MOST = 20000 };
static const int64_t WAIT_LEAST_NS = 2000;

// Calls of the first thread of a rank, by number.
typedef struct lane {
  const recorded_call_t **call; // call[n]: number n; NULL: not recorded
  int64_t calls;
} lane_t;

typedef struct segment {
  int rank;
  int64_t from_ns, to_ns;
} segment_t;

static int64_t begin_of(const recorded_call_t *call) {
  return call->device_at_ns ? call->device_at_ns : call->at_ns;
}

static int64_t end_of(const recorded_call_t *call) {
  return call->device_at_ns ? call->device_at_ns + call->device_took_ns
                            : call->at_ns + call->took_ns;
}

static int64_t wait_of(const recorded_call_t *call) {
  return call->device_at_ns ? call->wait_ns : call->agreed_ns;
}

static sdg_status_t lane_make(const recorded_rank_t *rank, lane_t *out) {
  for (int i = 0; i < rank->calls; i++)
    if (rank->call[i].thread == 0 && rank->call[i].number > out->calls)
      out->calls = rank->call[i].number;
  // A number of a damaged record may be anything.
  if (out->calls > 4 * (int64_t)rank->calls + 64)
    out->calls = 4 * (int64_t)rank->calls + 64;
  out->call = calloc((size_t)out->calls + 1, sizeof(recorded_call_t *));
  if (!out->call)
    return sdg_fail(SDG_E_NO_MEMORY, "the critical path");
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    if (call->thread == 0 && call->number > 0 && call->number <= out->calls)
      out->call[call->number] = call;
  }
  return SDG_OK;
}

static const recorded_call_t *call_at(const lane_t *lane, int64_t number) {
  return number <= lane->calls ? lane->call[number] : NULL;
}

// Returns the rank that came last to the call.
static int last_at(const lane_t *lane, int lanes, int64_t number, int rank) {
  int last = rank;
  for (int r = 0; r < lanes; r++) {
    const recorded_call_t *call = call_at(&lane[r], number);
    if (call && begin_of(call) > begin_of(call_at(&lane[last], number)))
      last = r;
  }
  return last;
}

static int last_of_all(const lane_t *lane, int lanes, int64_t *out_number) {
  int last = -1;
  int64_t end_ns = INT64_MIN;
  for (int r = 0; r < lanes; r++)
    for (int64_t n = lane[r].calls; n > 0; n--) {
      const recorded_call_t *call = lane[r].call[n];
      if (!call)
        continue;
      if (end_of(call) > end_ns) {
        end_ns = end_of(call);
        last = r;
        *out_number = n;
      }
      break;
    }
  return last;
}

static int path_find(const lane_t *lane, int lanes, segment_t *out,
                     int64_t *share_ns) {
  int64_t number = 0, to_ns;
  int rank = last_of_all(lane, lanes, &number), segments = 0;
  if (rank < 0)
    return 0;
  to_ns = end_of(lane[rank].call[number]);
  for (; number > 0; number--) {
    const recorded_call_t *call = call_at(&lane[rank], number);
    if (!call || wait_of(call) < WAIT_LEAST_NS)
      continue;
    int last = last_at(lane, lanes, number, rank);
    if (last == rank)
      continue;
    int64_t from_ns = begin_of(call_at(&lane[last], number));
    if (from_ns < to_ns) {
      share_ns[rank] += to_ns - from_ns;
      if (segments < SEGMENTS_MOST)
        out[segments++] = (segment_t){rank, from_ns, to_ns};
      to_ns = from_ns;
    }
    rank = last;
  }
  int64_t from_ns = to_ns;
  for (int64_t n = 1; n <= lane[rank].calls && from_ns == to_ns; n++)
    if (lane[rank].call[n] && begin_of(lane[rank].call[n]) < to_ns)
      from_ns = begin_of(lane[rank].call[n]);
  share_ns[rank] += to_ns - from_ns;
  if (segments < SEGMENTS_MOST && from_ns < to_ns)
    out[segments++] = (segment_t){rank, from_ns, to_ns};
  return segments;
}

static void path_put(const recorded_t *run, const segment_t *segment,
                     int segments, const int64_t *share_ns, FILE *to) {
  fprintf(to, ",\n\"critical\":{\"complete\":%s,\"rank_ns\":[",
          segments < SEGMENTS_MOST ? "true" : "false");
  for (int r = 0; r < run->found; r++)
    fprintf(to, "%s%" PRId64, r ? "," : "", share_ns[r]);
  fprintf(to, "],\"segments\":[");
  for (int i = segments - 1; i >= 0; i--)
    fprintf(to, "[%d,%" PRId64 ",%" PRId64 "]%s",
            run->rank[segment[i].rank].rank, segment[i].from_ns - run->begin_ns,
            segment[i].to_ns - run->begin_ns, i ? "," : "");
  fprintf(to, "]}");
}

sdg_status_t critical_write(const recorded_t *run, FILE *to) {
  lane_t *lane = calloc((size_t)run->found, sizeof *lane);
  segment_t *segment = calloc(SEGMENTS_MOST, sizeof *segment);
  int64_t *share_ns = calloc((size_t)run->found, sizeof *share_ns);
  sdg_status_t status = lane && segment && share_ns
                            ? SDG_OK
                            : sdg_fail(SDG_E_NO_MEMORY, "the critical path");
  for (int r = 0; r < run->found && status == SDG_OK; r++)
    status = lane_make(&run->rank[r], &lane[r]);
  if (status == SDG_OK)
    path_put(run, segment, path_find(lane, run->found, segment, share_ns),
             share_ns, to);
  for (int r = 0; lane && r < run->found; r++)
    free(lane[r].call);
  free(lane);
  free(segment);
  free(share_ns);
  return status;
}
