// SPDX-License-Identifier: Apache-2.0
// Collects what the ranks' processes were.
#include "tools/report/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/log.h"
#include "tools/report/options.h"

// ---- what is wrong with the record ------------------------------------------

// Appends a text to a list that does not have it yet.
static void warn(json_t *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void warn(json_t *list, const char *format, ...) {
  char *text = NULL;
  va_list args;
  va_start(args, format);
  int n = vasprintf(&text, format, args);
  va_end(args);
  if (n < 0)
    return;
  size_t index;
  json_t *item;
  bool known = false;
  json_array_foreach(list, index, item) known |=
      strcmp(json_string_value(item), text) == 0;
  if (!known)
    (void)json_array_append_new(list, json_string(text));
  free(text);
}

static const char *option_of(const recorded_rank_t *rank, const char *name) {
  size_t index;
  json_t *option;
  json_array_foreach(json_object_get(rank->facts, "options"), index, option) {
    if (strcmp(recorded_text(option, "name"), name) == 0)
      return recorded_text(option, "value");
  }
  return "";
}

static bool facts_differ(const recorded_rank_t *a, const recorded_rank_t *b,
                         const char *name) {
  const json_t *x = json_object_get(a->facts, name),
               *y = json_object_get(b->facts, name);
  return x && y && !json_equal(x, y);
}

// `sundog run` makes a rendezvous for each run. That of a launcher's ranks may
// have another name on each machine.
static bool runs_differ(const recorded_rank_t *a, const recorded_rank_t *b) {
  static const char run[] = "sundog run", launch[] = "SUNDOG_LAUNCH";
  if (facts_differ(a, b, "size") || facts_differ(a, b, "version") ||
      facts_differ(a, b, "mesh") ||
      strcmp(option_of(a, launch), option_of(b, launch)) != 0)
    return true;
  return strcmp(option_of(a, launch), run) == 0 &&
         strcmp(option_of(a, "SUNDOG_RENDEZVOUS"),
                option_of(b, "SUNDOG_RENDEZVOUS")) != 0;
}

// Queries that are answered from a plan, calls that launches of graphs make,
// and transfers for other calls, which have no section, are counted, and have
// no line of their own.
static bool has_line(const char *rule, const char *strategy) {
  return strcmp(rule, "-") != 0 && strcmp(strategy, "query") != 0 &&
         strcmp(strategy, "replay") != 0;
}

// Whether the totals count a call under a section. One that fails is counted if
// it had a plan.
static bool is_counted(const recorded_t *run, const recorded_call_t *call) {
  const recorded_kind_t *kind = &run->kind[call->kind];
  return has_line(kind->rule, kind->strategy) ||
         (call->failed && call->plan >= 0);
}

// A call may be lost if a file was cut, or copied while the run wrote it.
static void calls_check(json_t *faults, const recorded_t *run,
                        const recorded_rank_t *rank) {
  int64_t counted = 0, known = 0;
  size_t index;
  json_t *row;
  if (rank->full || !rank->totals)
    return;
  json_array_foreach(json_object_get(rank->totals, "calls"), index, row) {
    if (has_line(recorded_text(row, "rule"), recorded_text(row, "strategy")))
      counted += recorded_number(row, "count");
  }
  for (int i = 0; i < rank->calls; i++)
    known += is_counted(run, &rank->call[i]);
  if (known < counted)
    warn(faults, "%" PRId64 " of the calls of rank %d %s missing from its file",
         counted - known, rank->rank, counted - known == 1 ? "is" : "are");
}

static void rank_check(json_t *faults, const recorded_t *run,
                       const recorded_rank_t *rank) {
  int64_t process = recorded_number(rank->facts, "process");
  if (runs_differ(&run->rank[0], rank))
    warn(faults,
         "ranks %d and %d are of different runs: record each run in a "
         "folder of its own",
         run->rank[0].rank, rank->rank);
  if (rank->strange)
    warn(faults,
         "the totals of rank %d are those of another process, and are "
         "left out: several runs wrote to this folder",
         rank->rank);
  else if (!rank->totals)
    warn(faults,
         "rank %d left no totals, because it is still running or did "
         "not end by itself: its bytes are added up from its calls",
         rank->rank);
  if (process > 1)
    warn(faults,
         "rank %d had %" PRId64 " processes that made tagged calls, one "
         "after the other: the record is that of the last one",
         rank->rank, process);
  if (rank->broken)
    warn(faults, "%" PRId64 " %s of rank %d cannot be read", rank->broken,
         rank->broken == 1 ? "line" : "lines", rank->rank);
  calls_check(faults, run, rank);
}

json_t *facts_faults(const recorded_t *run) {
  json_t *faults = json_array();
  const char *version = recorded_text(run->rank[0].facts, "version");
  int phases = 0;
  if (strcmp(version, SUNDOG_VERSION) != 0)
    warn(faults, "recorded by sundog %s, and read by %s", version,
         SUNDOG_VERSION);
  if (run->found < run->ranks)
    warn(faults, "the record has %d of %d ranks", run->found, run->ranks);
  for (int r = 0; r < run->found; r++)
    phases += run->rank[r].phases;
  for (int r = 0; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    rank_check(faults, run, rank);
    if (phases > 0 && rank->phases == 0)
      warn(faults, "rank %d left no times of its streams", rank->rank);
  }
  return faults;
}

void facts_faults_print(const char *name, const json_t *faults) {
  size_t index;
  json_t *text;
  json_array_foreach(faults, index, text) if (json_is_string(text))
      sdg_log("%s: %s", name, json_string_value(text));
}

// ---- what the run was -------------------------------------------------------

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

// Takes the faults of the record, and adds what the run itself did.
static json_t *warnings_make(const recorded_t *run, json_t *faults) {
  json_t *warnings = json_copy(faults);
  for (int r = 0; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    const char *entry = "";
    int64_t failed = failed_calls(rank, &entry, run);
    if (failed == 1)
      warn(warnings, "a call of rank %d failed: %s", rank->rank, entry);
    else if (failed)
      warn(warnings,
           "%" PRId64 " calls of rank %d failed, the first of them %s", failed,
           rank->rank, entry);
    if (rank->full)
      warn(warnings,
           "rank %d recorded its first %d calls only (--record-max): times are "
           "those of these calls, bytes those of all",
           rank->rank, rank->calls);
    int64_t in_full = recorded_number(rank->totals, "in_full"),
            matched = recorded_number(rank->totals, "matched");
    if (in_full && run->ranks > 1)
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
         *mesh = json_object_get(facts, "mesh"), *faults = facts_faults(run);
  return json_pack("{s:s,s:O,s:s,s:i,s:O,s:o,s:o,s:o,s:f,s:o,s:o,s:o,s:o}",
                   "version", recorded_text(facts, "version"), "command",
                   command, "folder", recorded_text(facts, "folder"), "ranks",
                   run->ranks, "mesh", mesh, "hosts", hosts_make(run),
                   "libraries", libraries_make(run), "began", began_make(facts),
                   "seconds", (double)(run->end_ns - run->begin_ns) / 1e9,
                   "options", options_make(run), "rules", rules_make(run),
                   "warnings", warnings_make(run, faults), "faults", faults);
}
