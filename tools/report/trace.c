// SPDX-License-Identifier: Apache-2.0
// Writes events one by one; times are in microseconds.
#include "tools/report/trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/base/json_text.h"
#include "tools/report/timeline.h"

enum { LANES = 3 };

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

static void names_write(const recorded_rank_t *rank, bool first, FILE *to) {
  static const char *const lanes[LANES] = {"host", "program's stream",
                                           "transfers"};
  fprintf(to,
          "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{"
          "\"name\":\"rank %d\"}}",
          first ? "" : ",\n", rank->rank, rank->rank);
  for (int lane = 0; lane < LANES; lane++)
    fprintf(to,
            ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
            "\"args\":{\"name\":\"%s\"}}",
            rank->rank, lane, lanes[lane]);
}

// A call has its entry's name, and other events have that of their kind.
static void event_write(const recorded_t *run, const recorded_rank_t *rank,
                        const event_t *event, FILE *to) {
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
          event_name((event_kind_t)event->kind), rank->rank,
          lane_of(event->kind), event->at_ns / 1000, (int)(event->at_ns % 1000),
          event->took_ns / 1000, (int)(event->took_ns % 1000), event->call,
          event->thread);
}

sdg_status_t trace_write(const recorded_t *run, FILE *to) {
  fprintf(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  for (int r = 0; r < run->found; r++)
    names_write(&run->rank[r], r == 0, to);
  for (int r = 0; r < run->found; r++) {
    event_t *events;
    int count;
    SDG_TRY(timeline_events(run, &run->rank[r], &events, &count));
    for (int i = 0; i < count; i++)
      event_write(run, &run->rank[r], &events[i], to);
    free(events);
  }
  fprintf(to, "]}\n");
  return SDG_OK;
}
