// SPDX-License-Identifier: Apache-2.0
// Writes events one by one; times are in microseconds.
#include "tools/report/trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/base/json_text.h"
#include "tools/report/timeline.h"

enum { LANES = 3, TRACKS_MOST = 32, DEPTH_MOST = 16 };

// A row of the viewer. Its events lie within each other, or apart: calls of
// several threads and streams that overlap need several tracks.
typedef struct track {
  int lane, thread, number;   // number: among those of the lane and thread
  int64_t call;               // the last one
  int64_t end_ns[DEPTH_MOST]; // of the events around the next one
  int depth;
} track_t;

typedef struct tracks {
  track_t track[TRACKS_MOST];
  int count;
} tracks_t;

static int lane_of(int kind) {
  switch (kind) {
  case SDG_PHASE_CALL:
  case SDG_PHASE_REAL:
  case SDG_PHASE_COPY:
  case SDG_PHASE_WAIT:
    return 1;
  case SDG_PHASE_TRANSFER:
  case SDG_PHASE_SUM:
    return 2;
  default:
    return 0;
  }
}

static bool track_fits(track_t *io, const event_t *event) {
  while (io->depth > 0 && io->end_ns[io->depth - 1] <= event->at_ns)
    io->depth--;
  return io->depth == 0 ||
         (io->depth < DEPTH_MOST &&
          event->at_ns + event->took_ns <= io->end_ns[io->depth - 1]);
}

// Returns the track of an event: that of its call if it fits there. Events come
// in the order of their begins. The last track takes what fits nowhere.
static int track_of(tracks_t *io, const event_t *event) {
  int lane = lane_of(event->kind), found = -1, alike = 0;
  for (int i = 0; i < io->count; i++) {
    track_t *track = &io->track[i];
    if (track->lane != lane || track->thread != event->thread)
      continue;
    alike++;
    if (track_fits(track, event) && (found < 0 || track->call == event->call))
      found = i;
  }
  if (found < 0 && io->count == TRACKS_MOST)
    return TRACKS_MOST - 1;
  if (found < 0) {
    found = io->count++;
    io->track[found] =
        (track_t){.lane = lane, .thread = event->thread, .number = alike};
  }
  track_t *track = &io->track[found];
  track->call = event->call;
  track->end_ns[track->depth++] = event->at_ns + event->took_ns;
  return found;
}

static void track_write(int rank, const track_t *track, int tid, FILE *to) {
  static const char *const lanes[LANES] = {"host", "program's stream",
                                           "transfers"};
  fprintf(to,
          ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
          "\"args\":{\"name\":\"%s",
          rank, tid, lanes[track->lane]);
  if (track->thread > 0)
    fprintf(to, " of thread %d", track->thread);
  if (track->number > 0)
    fprintf(to, ", at the same time %d", track->number);
  fprintf(to,
          "\"}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,"
          "\"tid\":%d,\"args\":{\"sort_index\":%d}}",
          rank, tid,
          (track->thread * LANES + track->lane) * TRACKS_MOST + track->number);
}

// A call has its entry's name, and other events have that of their kind.
static void event_write(const recorded_t *run, const recorded_rank_t *rank,
                        const event_t *event, int tid, FILE *to) {
  bool call = event->type >= 0 &&
              (event->kind == SDG_PHASE_CALL || event->kind == EVENT_HOST ||
               event->kind == EVENT_UPDATE);
  fprintf(to, ",\n{\"name\":");
  sdg_json_text(to, call ? run->kind[event->type].entry
                         : event_name((event_kind_t)event->kind));
  fprintf(to,
          ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRId64
          ".%03d,\"dur\":%" PRId64 ".%03d,\"args\":{\"call\":%" PRId64
          ",\"thread\":%d}}",
          event_name((event_kind_t)event->kind), rank->rank, tid,
          event->at_ns / 1000, (int)(event->at_ns % 1000),
          event->took_ns / 1000, (int)(event->took_ns % 1000), event->call,
          event->thread);
}

static sdg_status_t rank_write(const recorded_t *run,
                               const recorded_rank_t *rank, FILE *to) {
  event_t *events;
  int count;
  tracks_t tracks = {.count = 0};
  SDG_TRY(timeline_events(run, rank, &events, &count));
  fprintf(to,
          "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{"
          "\"name\":\"rank %d\"}}",
          rank == run->rank ? "" : ",\n", rank->rank, rank->rank);
  for (int i = 0; i < count; i++) {
    int known = tracks.count, tid = track_of(&tracks, &events[i]);
    if (tid >= known)
      track_write(rank->rank, &tracks.track[tid], tid, to);
    event_write(run, rank, &events[i], tid, to);
  }
  free(events);
  return SDG_OK;
}

sdg_status_t trace_write(const recorded_t *run, FILE *to) {
  fprintf(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  for (int r = 0; r < run->found; r++)
    SDG_TRY(rank_write(run, &run->rank[r], to));
  fprintf(to, "]}\n");
  return SDG_OK;
}
