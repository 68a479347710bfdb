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

static int64_t end_of(const recorded_call_t *call) {
  return call->device_at_ns ? call->device_at_ns + call->device_took_ns
                            : call->at_ns + call->took_ns;
}

// Where a rank waits for others in a call: on its stream, for their data, or
// before that on its host, in an agreement.
typedef enum place { ON_STREAM, ON_HOST, PLACES } place_t;

static int64_t begin_of(const recorded_call_t *call, place_t place) {
  return place == ON_STREAM && call->device_at_ns ? call->device_at_ns
                                                  : call->at_ns;
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

// Whether the rank waits in the call, and the end of the run with it. The host
// delays nothing while the stream still works at earlier calls.
static bool waits(const lane_t *lane, int64_t number, place_t place) {
  const recorded_call_t *call = lane->call[number], *before = NULL;
  if (place == ON_STREAM)
    return call->device_at_ns && call->wait_ns >= WAIT_LEAST_NS;
  for (int64_t n = number - 1; n > 0 && !before; n--)
    before = lane->call[n];
  return call->agreed_ns >= WAIT_LEAST_NS &&
         (!before || end_of(before) <= call->at_ns + call->agreed_ns);
}

// Returns the rank that came last to the call.
static int last_at(const lane_t *lane, int lanes, int64_t number, int rank,
                   place_t place) {
  int last = rank;
  for (int r = 0; r < lanes; r++) {
    const recorded_call_t *call = call_at(&lane[r], number);
    if (call &&
        begin_of(call, place) > begin_of(call_at(&lane[last], number), place))
      last = r;
  }
  return last;
}

// Returns the rank, and its call, that end last: a stream may still work at an
// earlier call when a later one has ended on the host.
static int last_of_all(const lane_t *lane, int lanes, int64_t *out_number) {
  int last = -1;
  int64_t end_ns = INT64_MIN;
  for (int r = 0; r < lanes; r++)
    for (int64_t n = lane[r].calls; n > 0; n--) {
      const recorded_call_t *call = lane[r].call[n];
      if (!call || end_of(call) <= end_ns)
        continue;
      end_ns = end_of(call);
      last = r;
      *out_number = n;
    }
  return last;
}

// Grows backwards in time, on a rank, from to_ns.
typedef struct path {
  int rank;
  int64_t to_ns, *share_ns;
  segment_t *segment;
  size_t segments, room;
  bool lacks_memory; // then some segments are missing
} path_t;

static void path_extend(path_t *io, int64_t from_ns) {
  if (from_ns >= io->to_ns)
    return;
  io->share_ns[io->rank] += io->to_ns - from_ns;
  if (io->segments == io->room) {
    size_t room = io->room ? 2 * io->room : 64;
    segment_t *more = realloc(io->segment, room * sizeof *more);
    if (!more) {
      io->lacks_memory = true;
      return;
    }
    io->segment = more;
    io->room = room;
  }
  io->segment[io->segments++] = (segment_t){io->rank, from_ns, io->to_ns};
  io->to_ns = from_ns;
}

// Makes neighbours one until they are SEGMENTS_MOST at most: on the rank of the
// longest. Returns whether it did.
static bool path_shorten(path_t *io) {
  if (io->segments <= SEGMENTS_MOST)
    return false;
  int64_t grain_ns =
      2 * (io->segment[0].to_ns - io->segment[io->segments - 1].from_ns) /
          SEGMENTS_MOST +
      1;
  size_t left = 0;
  int64_t longest_ns = 0;
  for (size_t i = 0; i < io->segments; i++) {
    const segment_t segment = io->segment[i];
    int64_t took_ns = segment.to_ns - segment.from_ns;
    segment_t *to = left ? &io->segment[left - 1] : NULL;
    if (!to || to->to_ns - to->from_ns >= grain_ns) {
      io->segment[left++] = segment;
      longest_ns = took_ns;
      continue;
    }
    to->from_ns = segment.from_ns;
    if (took_ns > longest_ns) {
      to->rank = segment.rank;
      longest_ns = took_ns;
    }
  }
  io->segments = left;
  return true;
}

static void path_find(const lane_t *lane, int lanes, path_t *io) {
  int64_t number = 0;
  io->rank = last_of_all(lane, lanes, &number);
  if (io->rank < 0)
    return;
  io->to_ns = end_of(lane[io->rank].call[number]);
  for (; number > 0; number--)
    for (place_t place = 0; place < PLACES; place++) {
      if (!call_at(&lane[io->rank], number) ||
          !waits(&lane[io->rank], number, place))
        continue;
      int last = last_at(lane, lanes, number, io->rank, place);
      if (last == io->rank)
        continue;
      path_extend(io, begin_of(call_at(&lane[last], number), place));
      io->rank = last;
    }
  for (int64_t n = 1; n <= lane[io->rank].calls; n++)
    if (lane[io->rank].call[n]) {
      path_extend(io, lane[io->rank].call[n]->at_ns);
      break;
    }
}

static void path_put(const recorded_t *run, const path_t *path, bool complete,
                     FILE *to) {
  fprintf(to, ",\n\"critical\":{\"complete\":%s,\"rank_ns\":[",
          complete ? "true" : "false");
  for (int r = 0; r < run->found; r++)
    fprintf(to, "%s%" PRId64, r ? "," : "", path->share_ns[r]);
  fprintf(to, "],\"segments\":[");
  for (size_t i = path->segments; i > 0; i--) {
    const segment_t *segment = &path->segment[i - 1];
    fprintf(to, "[%d,%" PRId64 ",%" PRId64 "]%s", run->rank[segment->rank].rank,
            segment->from_ns - run->begin_ns, segment->to_ns - run->begin_ns,
            i > 1 ? "," : "");
  }
  fprintf(to, "]}");
}

sdg_status_t critical_write(const recorded_t *run, FILE *to) {
  lane_t *lane = calloc((size_t)run->found, sizeof *lane);
  path_t path = {
      .share_ns = calloc((size_t)run->found, sizeof *path.share_ns),
  };
  sdg_status_t status = lane && path.share_ns
                            ? SDG_OK
                            : sdg_fail(SDG_E_NO_MEMORY, "the critical path");
  for (int r = 0; r < run->found && status == SDG_OK; r++)
    status = lane_make(&run->rank[r], &lane[r]);
  if (status == SDG_OK) {
    path_find(lane, run->found, &path);
    if (path.lacks_memory)
      status = sdg_fail(SDG_E_NO_MEMORY, "the critical path");
  }
  if (status == SDG_OK)
    path_put(run, &path, !path_shorten(&path), to);
  for (int r = 0; lane && r < run->found; r++)
    free(lane[r].call);
  free(lane);
  free(path.segment);
  free(path.share_ns);
  return status;
}
