// SPDX-License-Identifier: Apache-2.0
// Reads the record of a rank's calls, lists them, and describes one of them.
#include "tools/record/explain_call.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *name) {
  return (int64_t)json_integer_value(json_object_get(object, name));
}

// A summary of a thread's calls, and the record of the requested call.
typedef struct found {
  json_t *call, *plan;                 // owned
  int64_t last;                        // number of the last call
  int64_t same, first_same, last_same; // number of calls with the same plan,
                                       // the first and the last of them
} found_t;

// Calls `take` with each line that is an object.
static sdg_status_t lines_read(const char *path,
                               void (*take)(json_t *line, void *to), void *to) {
  char *line = NULL;
  size_t room = 0;
  FILE *file = fopen(path, "re");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  while (getline(&line, &room, file) > 0) {
    json_t *object = json_loads(line, 0, NULL);
    if (json_is_object(object))
      take(object, to);
    json_decref(object);
  }
  free(line);
  fclose(file);
  return SDG_OK;
}

typedef struct wanted {
  int thread;
  int64_t number;
  found_t found;
} wanted_t;

static void call_take(json_t *line, void *to) {
  wanted_t *wanted = to;
  if (!json_object_get(line, "call") ||
      number_of(line, "thread") != wanted->thread)
    return;
  wanted->found.last = number_of(line, "call");
  if (wanted->found.last == wanted->number && !wanted->found.call)
    wanted->found.call = json_incref(line);
}

static void plan_take(json_t *line, void *to) {
  wanted_t *wanted = to;
  found_t *found = &wanted->found;
  int64_t by = number_of(found->call, "by");
  if (by == 0)
    return;
  if (number_of(line, "plan") == by && !found->plan)
    found->plan = json_incref(line);
  if (!json_object_get(line, "call") || number_of(line, "by") != by ||
      number_of(line, "thread") != wanted->thread)
    return;
  found->last_same = number_of(line, "call");
  if (found->same++ == 0)
    found->first_same = found->last_same;
}

static void extents_print(const json_t *list) {
  size_t index;
  json_t *extent;
  json_array_foreach(list, index, extent) printf(
      "%s%" PRId64, index ? "x" : "", (int64_t)json_integer_value(extent));
}

static void operands_print(const json_t *plan) {
  size_t index;
  json_t *operand;
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    const json_t *whole = json_object_get(operand, "whole");
    printf("  %-9s ", text_of(operand, "role"));
    extents_print(json_object_get(operand, "extent"));
    if (whole) {
      printf(" here, of ");
      extents_print(whole);
      printf(": %s; this piece begins at (", text_of(operand, "split"));
      size_t d;
      json_t *first;
      json_array_foreach(json_object_get(operand, "first"), d, first) printf(
          "%s%" PRId64, d ? ", " : "", (int64_t)json_integer_value(first));
      printf(")");
    } else {
      printf(", the same on every rank");
    }
    printf("%s\n",
           json_is_true(json_object_get(operand, "output")) ? ", output" : "");
  }
}

static void messages_print(const json_t *plan) {
  const json_t *messages = json_object_get(plan, "messages");
  size_t index;
  json_t *message;
  printf("  halo      %" PRId64 " bytes from other ranks\n",
         number_of(plan, "halo_bytes"));
  json_array_foreach(messages, index, message) printf(
      "            %s %" PRId64 " bytes %s rank %" PRId64 "\n",
      json_is_true(json_object_get(message, "send")) ? "sends" : "receives",
      number_of(message, "bytes"),
      json_is_true(json_object_get(message, "send")) ? "to" : "from",
      number_of(message, "rank"));
  if (number_of(plan, "reduced_bytes") > 0)
    printf("  sums      %" PRId64 " bytes, made over the ranks\n",
           number_of(plan, "reduced_bytes"));
}

static void plan_print(const found_t *found) {
  const json_t *plan = found->plan;
  int64_t line = number_of(plan, "line");
  if (json_is_true(json_object_get(found->call, "captured")))
    printf(
        "  captured  into a CUDA graph: only the graph's launches do this\n");
  printf("  rule      [shard %s] of %s", text_of(plan, "section"),
         text_of(plan, "source"));
  if (line > 0)
    printf(", line %" PRId64, line);
  printf(": the first section that matches\n");
  operands_print(plan);
  if (!json_object_get(plan, "strategy")) {
    printf("  strategy  a query: answered for the pieces that sundog makes\n");
    return;
  }
  printf("  strategy  %s; %s\n", text_of(plan, "strategy"),
         text_of(plan, "why"));
  messages_print(plan);
  const json_t *copies = json_object_get(plan, "copies");
  printf("  copies    %" PRId64 " bytes of halos, %" PRId64
         " of strips, %" PRId64 " of the whole piece\n",
         number_of(copies, "halo"), number_of(copies, "strip"),
         number_of(copies, "activation"));
  printf("  calls     %" PRId64 " of the vendor's function, %" PRId64
         " bytes of scratch\n",
         number_of(plan, "subcalls"), number_of(plan, "scratch_bytes"));
  printf("  same plan %" PRId64 " calls of this rank, from call %" PRId64
         " to call %" PRId64 "\n",
         found->same, found->first_same, found->last_same);
}

static void call_print(const wanted_t *wanted, int rank) {
  const found_t *found = &wanted->found;
  printf("call %" PRId64 " of rank %d: %s\n", wanted->number, rank,
         text_of(found->call, "entry"));
  if (json_object_get(found->call, "failed"))
    printf("  failed    %s\n", text_of(found->call, "failed"));
  else if (found->plan)
    plan_print(found);
  else
    printf("  untagged  no [shard] section matches, or a [local] one comes "
           "first: the\n            program's call is unchanged\n");
}

// ---- the list of calls ----

// Calls of one entry with the same plan.
typedef struct kind {
  char entry[96], section[64], strategy[32];
  int64_t by; // number of the plan; 0: untagged, -1: failed
  int64_t first, count;
} kind_t;

typedef struct listed {
  int thread;
  json_t *plans; // by number; owned
  int64_t calls;
  kind_t *kind; // in the order of their first calls; owned
  int count, room;
  bool lacks_memory;
} listed_t;

static void plan_keep(json_t *line, void *to) {
  listed_t *listed = to;
  char key[24];
  if (!json_object_get(line, "plan"))
    return;
  snprintf(key, sizeof key, "%" PRId64, number_of(line, "plan"));
  if (!json_object_get(listed->plans, key))
    (void)json_object_set(listed->plans, key, line);
}

static kind_t *kind_add(listed_t *listed) {
  if (listed->count == listed->room) {
    int room = listed->room ? 2 * listed->room : 16;
    kind_t *more = realloc(listed->kind, (size_t)room * sizeof *more);
    if (!more) {
      listed->lacks_memory = true;
      return NULL;
    }
    listed->kind = more;
    listed->room = room;
  }
  listed->kind[listed->count] = (kind_t){.by = 0};
  return &listed->kind[listed->count++];
}

static void call_list(json_t *line, void *to) {
  listed_t *listed = to;
  if (!json_object_get(line, "call") ||
      number_of(line, "thread") != listed->thread)
    return;
  int64_t by = number_of(line, "by"), number = number_of(line, "call");
  const char *entry = text_of(line, "entry");
  bool failed = json_object_get(line, "failed") != NULL;
  kind_t *kind = NULL;
  listed->calls++;
  for (int i = 0; i < listed->count && !failed; i++)
    if (listed->kind[i].by == by && strcmp(listed->kind[i].entry, entry) == 0)
      kind = &listed->kind[i];
  if (!kind) {
    char key[24];
    kind = kind_add(listed);
    if (!kind)
      return;
    snprintf(key, sizeof key, "%" PRId64, by);
    const json_t *plan = by ? json_object_get(listed->plans, key) : NULL;
    snprintf(kind->entry, sizeof kind->entry, "%s", entry);
    snprintf(kind->section, sizeof kind->section, "%s",
             plan ? text_of(plan, "section") : "-");
    snprintf(kind->strategy, sizeof kind->strategy, "%s",
             failed                              ? "failed"
             : !plan                             ? "untagged"
             : json_object_get(plan, "strategy") ? text_of(plan, "strategy")
                                                 : "query");
    kind->by = failed ? -1 : by;
    kind->first = number;
  }
  kind->count++;
}

sdg_status_t explain_list(const char *folder, int rank, int thread) {
  char path[PATH_MAX];
  listed_t listed = {.thread = thread, .plans = json_object()};
  snprintf(path, sizeof path, "%s/rank-%d", folder, rank);
  // A plan's line may follow the line of its first call.
  sdg_status_t status = lines_read(path, plan_keep, &listed);
  if (status == SDG_OK)
    status = lines_read(path, call_list, &listed);
  if (status == SDG_OK && listed.lacks_memory)
    status = sdg_fail(SDG_E_NO_MEMORY, "the calls of %s", path);
  if (status == SDG_OK && listed.calls == 0)
    status = sdg_fail(SDG_E_USAGE, "%s has no call of thread %d", path, thread);
  if (status == SDG_OK) {
    printf("%" PRId64 " calls of rank %d\n%7s %7s %-10s %-14s %s\n",
           listed.calls, rank, "FIRST", "CALLS", "STRATEGY", "RULE", "ENTRY");
    for (const kind_t *kind = listed.kind; kind < listed.kind + listed.count;
         kind++)
      printf("%7" PRId64 " %7" PRId64 " %-10s %-14.14s %s\n", kind->first,
             kind->count, kind->strategy, kind->section, kind->entry);
  }
  free(listed.kind);
  json_decref(listed.plans);
  return status;
}

sdg_status_t explain_call(const char *folder, int rank, int thread,
                          int64_t number) {
  char path[PATH_MAX];
  wanted_t wanted = {.thread = thread, .number = number};
  snprintf(path, sizeof path, "%s/rank-%d", folder, rank);
  sdg_status_t status = lines_read(path, call_take, &wanted);
  if (status == SDG_OK && !wanted.found.call)
    status = sdg_fail(SDG_E_USAGE,
                      "%s has no call %" PRId64 " of thread %d; the last is "
                      "%" PRId64,
                      path, number, thread, wanted.found.last);
  if (status == SDG_OK)
    status = lines_read(path, plan_take, &wanted);
  if (status == SDG_OK)
    call_print(&wanted, rank);
  json_decref(wanted.found.call);
  json_decref(wanted.found.plan);
  return status;
}
