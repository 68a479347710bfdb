// SPDX-License-Identifier: Apache-2.0
// Writes the events of all ranks in columns.
#include "tools/report/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/critical.h"

const char *event_name(event_kind_t kind) {
  static const char *const names[EVENT_COUNT] = {
      [SDG_PHASE_CALL] = "call", [SDG_PHASE_REAL] = "compute",
      [SDG_PHASE_COPY] = "copy", [SDG_PHASE_TRANSFER] = "transfer",
      [SDG_PHASE_SUM] = "sum",   [SDG_PHASE_WAIT] = "wait",
      [EVENT_HOST] = "host",     [EVENT_AGREEMENT] = "agreement",
      [EVENT_UPDATE] = "gather",
  };
  return names[kind];
}

// An event comes before those within it.
static int by_begin(const void *a, const void *b) {
  const event_t *p = a, *q = b;
  if (p->at_ns != q->at_ns)
    return p->at_ns < q->at_ns ? -1 : 1;
  if (p->took_ns != q->took_ns)
    return p->took_ns > q->took_ns ? -1 : 1;
  return (p->kind > q->kind) - (p->kind < q->kind);
}

// The kinds of calls by number, of one thread after the other.
typedef struct types {
  const recorded_call_t **call;
  int calls;
} types_t;

static int by_number(const void *a, const void *b) {
  const recorded_call_t *p = *(const recorded_call_t *const *)a,
                        *q = *(const recorded_call_t *const *)b;
  if (p->thread != q->thread)
    return p->thread < q->thread ? -1 : 1;
  return (p->number > q->number) - (p->number < q->number);
}

static int type_of(const types_t *types, const recorded_phase_t *phase) {
  recorded_call_t key = {.number = phase->call, .thread = phase->thread};
  const recorded_call_t *wanted = &key,
                        **found =
                            bsearch(&wanted, types->call, (size_t)types->calls,
                                    sizeof wanted, by_number);
  return found ? (*found)->kind : -1;
}

static int calls_put(const recorded_t *run, const recorded_rank_t *rank,
                     event_t *out) {
  int count = 0;
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    event_t event = {.at_ns = call->at_ns - run->begin_ns,
                     .took_ns = call->took_ns,
                     .call = call->number,
                     .kind = call->number ? EVENT_HOST : EVENT_UPDATE,
                     .type = call->kind,
                     .thread = call->thread};
    out[count++] = event;
    if (call->agreed_ns <= 0)
      continue;
    event.kind = EVENT_AGREEMENT;
    event.took_ns =
        call->agreed_ns < call->took_ns ? call->agreed_ns : call->took_ns;
    out[count++] = event;
  }
  return count;
}

sdg_status_t timeline_events(const recorded_t *run, const recorded_rank_t *rank,
                             event_t **out, int *out_count) {
  size_t calls = (size_t)rank->calls,
         room = 2 * calls + (size_t)rank->phases + 1;
  types_t types = {malloc((calls + 1) * sizeof(recorded_call_t *)), 0};
  event_t *events = malloc(room * sizeof *events);
  if (!types.call || !events) {
    free(types.call);
    free(events);
    return sdg_fail(SDG_E_NO_MEMORY, "the report's time line");
  }
  for (int i = 0; i < rank->calls; i++)
    if (rank->call[i].number)
      types.call[types.calls++] = &rank->call[i];
  qsort(types.call, (size_t)types.calls, sizeof *types.call, by_number);
  int count = calls_put(run, rank, events);
  for (int i = 0; i < rank->phases; i++) {
    const recorded_phase_t *phase = &rank->phase[i];
    events[count++] = (event_t){.at_ns = phase->at_ns - run->begin_ns,
                                .took_ns = phase->took_ns,
                                .call = phase->call,
                                .kind = (int)phase->phase,
                                .type = type_of(&types, phase),
                                .thread = phase->thread};
  }
  free(types.call);
  qsort(events, (size_t)count, sizeof *events, by_begin);
  *out = events;
  *out_count = count;
  return SDG_OK;
}

// Makes short events of a kind one if they begin in the same grain of time, in
// place. Returns how many are left.
static int merge(event_t *events, int count, int64_t grain_ns) {
  int last[EVENT_COUNT], left = 0;
  for (int k = 0; k < EVENT_COUNT; k++)
    last[k] = -1;
  for (int i = 0; i < count; i++) {
    const event_t event = events[i];
    event_t *to = last[event.kind] < 0 ? NULL : &events[last[event.kind]];
    if (to && event.took_ns < grain_ns && to->took_ns < grain_ns &&
        event.at_ns / grain_ns == to->at_ns / grain_ns) {
      int64_t took_ns = event.at_ns + event.took_ns - to->at_ns;
      to->took_ns = took_ns > to->took_ns ? took_ns : to->took_ns;
      continue;
    }
    last[event.kind] = left;
    events[left++] = event;
  }
  return left;
}

typedef int64_t column_t(const event_t *event, const event_t *before);

static void column_write(FILE *to, const char *name, const event_t *events,
                         int count, column_t *value) {
  static const event_t first = {.at_ns = 0};
  fprintf(to, ",\"%s\":[", name);
  for (int i = 0; i < count; i++)
    fprintf(to, "%s%" PRId64, i ? "," : "",
            value(&events[i], i ? &events[i - 1] : &first));
  fprintf(to, "]");
}

static int64_t kind_value(const event_t *event, const event_t *before) {
  (void)before;
  return event->kind;
}
static int64_t at_value(const event_t *event, const event_t *before) {
  return event->at_ns - before->at_ns;
}
static int64_t took_value(const event_t *event, const event_t *before) {
  (void)before;
  return event->took_ns;
}
static int64_t call_value(const event_t *event, const event_t *before) {
  return event->call - before->call;
}
static int64_t type_value(const event_t *event, const event_t *before) {
  (void)before;
  return event->type;
}

static void rank_write(FILE *to, int rank, const event_t *events, int count) {
  fprintf(to, "{\"rank\":%d", rank);
  column_write(to, "event", events, count, kind_value);
  column_write(to, "at", events, count, at_value);
  column_write(to, "took", events, count, took_value);
  column_write(to, "call", events, count, call_value);
  column_write(to, "kind", events, count, type_value);
  fprintf(to, "}");
}

static void timeline_put(const recorded_t *run, int64_t grain_ns,
                         event_t *const *events, const int *count, FILE *to) {
  fprintf(to, ",\n\"timeline\":{\"grain_ns\":%" PRId64 ",\"events\":[",
          grain_ns);
  for (int k = 0; k < EVENT_COUNT; k++)
    fprintf(to, "%s\"%s\"", k ? "," : "", event_name((event_kind_t)k));
  fprintf(to, "],\"ranks\":[");
  for (int r = 0; r < run->found; r++) {
    fputs(r ? ",\n" : "\n", to);
    rank_write(to, run->rank[r].rank, events[r], count[r]);
  }
  fprintf(to, "]}");
}

sdg_status_t timeline_write(const recorded_t *run, int64_t most, FILE *to) {
  event_t **events = calloc((size_t)run->found, sizeof *events);
  int *count = calloc((size_t)run->found, sizeof *count);
  int64_t all = 0, grain_ns = 0;
  sdg_status_t status =
      events && count ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "a time line");
  for (int r = 0; r < run->found && status == SDG_OK; r++) {
    status = timeline_events(run, &run->rank[r], &events[r], &count[r]);
    all += count[r];
  }
  while (status == SDG_OK && most > 0 && all > most) {
    grain_ns = grain_ns ? 2 * grain_ns : 1000;
    all = 0;
    for (int r = 0; r < run->found; r++) {
      count[r] = merge(events[r], count[r], grain_ns);
      all += count[r];
    }
    if (grain_ns > run->end_ns - run->begin_ns)
      break;
  }
  if (status == SDG_OK)
    timeline_put(run, grain_ns, events, count, to);
  if (status == SDG_OK)
    status = critical_write(run, to);
  for (int r = 0; events && r < run->found; r++)
    free(events[r]);
  free(events);
  free(count);
  return status;
}
