// SPDX-License-Identifier: Apache-2.0
// Collects what the ranks' processes were.
#include "tools/report/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/report/options.h"

// Appends a text that a list does not have yet.
static void list_add(json_t *list, const char *text) {
  size_t index;
  json_t *item;
  json_array_foreach(list, index, item) {
    if (strcmp(json_string_value(item), text) == 0)
      return;
  }
  (void)json_array_append_new(list, json_string(text));
}

static void warn(json_t *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void warn(json_t *warnings, const char *format, ...) {
  char *text = NULL;
  va_list args;
  va_start(args, format);
  int n = vasprintf(&text, format, args);
  va_end(args);
  if (n >= 0)
    list_add(warnings, text);
  free(n < 0 ? NULL : text);
}

static json_t *hosts_make(const recorded_t *run) {
  json_t *hosts = json_array();
  for (int r = 0; r < run->found; r++)
    list_add(hosts, recorded_text(run->rank[r].facts, "host"));
  return hosts;
}

static json_t *libraries_make(const recorded_t *run) {
  json_t *libraries = json_array();
  for (int r = 0; r < run->found; r++) {
    size_t index;
    json_t *path;
    json_array_foreach(json_object_get(run->rank[r].totals, "libraries"), index,
                       path) {
      if (json_is_string(path))
        list_add(libraries, json_string_value(path));
    }
  }
  return libraries;
}

// Calls of all ranks whose plan comes from a section that begins at `line`.
static int64_t line_calls(const recorded_t *run, int64_t line) {
  int64_t calls = 0;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++)
      if (recorded_number(run->rank[r].plan[i].line, "line") == line)
        calls += run->rank[r].plan[i].calls;
  return calls;
}

// The rules' text, and how many calls each section was applied to.
static json_t *rules_make(const recorded_t *run) {
  const json_t *facts = run->rank[0].facts;
  if (!json_object_get(facts, "rules_text"))
    return json_null();
  const char *text = recorded_text(facts, "rules_text");
  json_t *sections = json_array();
  int64_t line = 1;
  for (const char *at = text; *at; line++) {
    size_t bytes = strcspn(at, "\n");
    size_t blank = strspn(at, " \t");
    if (at[blank] == '[')
      (void)json_array_append_new(
          sections, json_pack("{s:I,s:I}", "line", (json_int_t)line, "calls",
                              (json_int_t)line_calls(run, line)));
    at += bytes + (at[bytes] == '\n');
  }
  return json_pack("{s:s,s:s,s:o}", "path", recorded_text(facts, "rules"),
                   "text", text, "sections", sections);
}

static int64_t failed_calls(const recorded_rank_t *rank, const char **entry,
                            const recorded_t *run) {
  int64_t failed = 0;
  for (int i = 0; i < rank->calls; i++)
    if (rank->call[i].failed && failed++ == 0)
      *entry = run->kind[rank->call[i].kind].entry;
  return failed;
}

static json_t *warnings_make(const recorded_t *run) {
  json_t *warnings = json_array();
  if (run->found < run->ranks)
    warn(warnings, "the record has %d of %d ranks", run->found, run->ranks);
  for (int r = 0; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    const char *entry = "";
    int64_t failed = failed_calls(rank, &entry, run);
    if (failed)
      warn(warnings,
           "%" PRId64 " calls of rank %d failed, the first of them %s", failed,
           rank->rank, entry);
    if (!rank->totals)
      warn(warnings,
           "rank %d left no totals, because it did not end by itself: its "
           "bytes are added up from the calls that it had written",
           rank->rank);
    if (strcmp(recorded_text(rank->facts, "version"),
               recorded_text(run->rank[0].facts, "version")) != 0)
      warn(warnings, "rank %d ran version %s of sundog, rank %d version %s",
           rank->rank, recorded_text(rank->facts, "version"), run->rank[0].rank,
           recorded_text(run->rank[0].facts, "version"));
    if (rank->full)
      warn(warnings,
           "rank %d recorded its first %d calls only (--record-max): times are "
           "those of these calls, bytes those of all",
           rank->rank, rank->calls);
    if (rank->broken)
      warn(warnings, "%" PRId64 " lines of rank %d cannot be read",
           rank->broken, rank->rank);
    int64_t in_full = recorded_number(rank->totals, "in_full"),
            matched = recorded_number(rank->totals, "matched");
    if (in_full)
      warn(warnings,
           "%" PRId64 " of %" PRId64
           " calls ran in full on every rank (whole view)",
           in_full, matched);
  }
  return warnings;
}

static json_t *began_make(const json_t *facts) {
  char text[32];
  time_t at = (time_t)(recorded_number(facts, "realtime_ns") / 1000000000);
  struct tm parts;
  gmtime_r(&at, &parts);
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return json_string(text);
}

json_t *facts_make(const recorded_t *run) {
  const json_t *facts = run->rank[0].facts;
  json_t *command = json_object_get(facts, "command"),
         *mesh = json_object_get(facts, "mesh");
  return json_pack("{s:s,s:O,s:s,s:i,s:O,s:o,s:o,s:o,s:f,s:o,s:o,s:o}",
                   "version", recorded_text(facts, "version"), "command",
                   command, "folder", recorded_text(facts, "folder"), "ranks",
                   run->ranks, "mesh", mesh, "hosts", hosts_make(run),
                   "libraries", libraries_make(run), "began", began_make(facts),
                   "seconds", (double)(run->end_ns - run->begin_ns) / 1e9,
                   "options", options_make(run), "rules", rules_make(run),
                   "warnings", warnings_make(run));
}
