// SPDX-License-Identifier: Apache-2.0
// Adds up the reports of the ranks, and reports failures that they show.
#include "tools/record/report.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/statvfs.h>

#include "src/base/log.h"
#include "tools/record/declared.h"
#include "tools/record/table.h"

static int64_t max_int64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *name) {
  return (int64_t)json_integer_value(json_object_get(object, name));
}

// Returns the row of this kind of call, new or known; NULL if memory runs out.
static table_row_t *row_find(call_table_t *table, const json_t *call) {
  const char *rule = text_of(call, "rule"), *entry = text_of(call, "entry"),
             *strategy = text_of(call, "strategy");
  for (int i = 0; i < table->rows; i++)
    if (strcmp(table->row[i].rule, rule) == 0 &&
        strcmp(table->row[i].entry, entry) == 0 &&
        strcmp(table->row[i].strategy, strategy) == 0)
      return &table->row[i];
  if (table->rows == table->room) {
    int room = table->room ? 2 * table->room : 16;
    table_row_t *more = realloc(table->row, (size_t)room * sizeof *more);
    if (!more)
      return NULL;
    table->row = more;
    table->room = room;
  }
  table_row_t row = {.rule = strdup(rule),
                     .entry = strdup(entry),
                     .strategy = strdup(strategy)};
  if (!row.rule || !row.entry || !row.strategy)
    return NULL;
  table->row[table->rows] = row;
  return &table->row[table->rows++];
}

// Returns the index of the axis with this name, new or known; -1: too many
// axes.
static int axis_find(call_table_t *table, const char *name) {
  for (int i = 0; i < table->axes; i++)
    if (strcmp(table->axis[i], name) == 0)
      return i;
  if (table->axes == SDG_AXES_MAX)
    return -1;
  snprintf(table->axis[table->axes], SDG_AXIS_NAME_MAX, "%s", name);
  return table->axes++;
}

static void call_add(call_table_t *table, const json_t *call) {
  table_row_t *row = row_find(table, call);
  if (!row)
    return;
  row->count = max_int64(row->count, number_of(call, "count"));
  row->halo_bytes += number_of(call, "halo_bytes");
  row->sum_bytes += number_of(call, "sum_bytes");
  row->wait_ns = max_int64(row->wait_ns, number_of(call, "wait_ns"));
  const char *name;
  json_t *bytes;
  json_object_foreach(json_object_get(call, "axes"), name, bytes) {
    int axis = axis_find(table, name);
    if (axis >= 0)
      row->axis_bytes[axis] += (int64_t)json_integer_value(bytes);
  }
  const json_t *copies = json_object_get(call, "copies");
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    row->copied_bytes[i] +=
        number_of(copies, sdg_copy_kind_name((sdg_copy_kind_t)i));
}

// Returns false if the process left no report that can be read.
static bool process_read(call_table_t *table, const char *path, int rank) {
  json_error_t error;
  size_t index;
  json_t *call;
  json_t *report = json_load_file(path, 0, &error);
  if (!json_is_object(report)) {
    json_decref(report);
    if (table->cut < 0 && access(path, F_OK) == 0)
      table->cut = rank;
    return false;
  }
  table->matched += number_of(report, "matched");
  table->refused += number_of(report, "refused");
  const json_t *compared = json_object_get(report, "compared");
  table->compared = max_int64(table->compared, number_of(compared, "count"));
  table->compared_bytes =
      max_int64(table->compared_bytes, number_of(compared, "bytes"));
  table->compared_ns =
      max_int64(table->compared_ns, number_of(compared, "spent_ns"));
  table->in_full += number_of(report, "in_full");
  json_array_foreach(json_object_get(report, "calls"), index, call)
      call_add(table, call);
  json_decref(report);
  return true;
}

// Reads the reports of all processes that were this rank, one after the other.
// Returns false if one of them left no report.
static bool rank_read(call_table_t *table, const char *folder, int rank) {
  char path[4096];
  snprintf(path, sizeof path, "%s/rank-%d.json", folder, rank);
  bool all = process_read(table, path, rank);
  for (int number = 2;; number++) {
    snprintf(path, sizeof path, "%s/rank-%d-%d.json", folder, rank, number);
    if (access(path, F_OK) != 0)
      return all;
    all &= process_read(table, path, rank);
  }
}

// Returns the number of files PREFIXpid in the folder, and the text of one of
// them.
static int words_read(const char *folder, const char *prefix, char *out_text,
                      size_t bytes) {
  DIR *entries = opendir(folder);
  int count = 0;
  out_text[0] = '\0';
  if (!entries)
    return 0;
  for (struct dirent *entry; (entry = readdir(entries));) {
    char path[4096];
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
      continue;
    count++;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    FILE *file = *out_text ? NULL : fopen(path, "re");
    if (!file)
      continue;
    size_t n = fread(out_text, 1, bytes - 1, file);
    out_text[n] = '\0';
    fclose(file);
  }
  closedir(entries);
  return count;
}

// The calls and tensors of processes without a tagged call.
typedef struct seen {
  int processes;
  int64_t calls, opaque, strangers;
  int64_t misses; // of `nearest`
  char nearest[256];
} seen_t;

static void seen_add(seen_t *seen, const json_t *report) {
  const char *text = text_of(report, "near");
  int64_t misses = number_of(report, "misses");
  seen->processes++;
  seen->calls += number_of(report, "calls");
  seen->opaque += number_of(report, "opaque");
  seen->strangers += number_of(report, "strangers");
  if (*text && (!*seen->nearest || misses < seen->misses)) {
    snprintf(seen->nearest, sizeof seen->nearest, "%s", text);
    seen->misses = misses;
  }
}

static seen_t seen_read(const char *folder) {
  seen_t seen = {.processes = 0};
  DIR *files = opendir(folder);
  struct dirent *entry;
  while (files && (entry = readdir(files))) {
    char path[4096];
    json_error_t error;
    if (strncmp(entry->d_name, "seen-", 5) != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    json_t *report = json_load_file(path, 0, &error);
    if (json_is_object(report))
      seen_add(&seen, report);
    json_decref(report);
  }
  if (files)
    closedir(files);
  return seen;
}

// Reports that no call was tagged, and which calls the processes made.
static sdg_status_t nothing_fail(const char *folder, int reports) {
  seen_t seen = seen_read(folder);
  if (seen.calls > 0 && *seen.nearest)
    return sdg_fail(SDG_E_NOTHING_MATCHED,
                    "%" PRId64 " calls were seen, and the rules split none of "
                    "their tensors; nearest: %s",
                    seen.calls, seen.nearest);
  if (seen.opaque > 0)
    return sdg_fail(SDG_E_NOTHING_MATCHED,
                    "%" PRId64
                    " calls were of fused ops, or of graphs that sundog "
                    "does not split; no other call was seen",
                    seen.opaque);
  if (seen.calls > 0 || reports > 0)
    return sdg_fail(
        SDG_E_NOTHING_MATCHED,
        "%" PRId64
        " calls were seen, and the rules split none of their tensors",
        seen.calls);
  if (seen.strangers > 0)
    return sdg_fail(
        SDG_E_NOTHING_MATCHED,
        "cuDNN was called only by a process that is not a rank (%" PRId64
        " calls): a child of a rank's process, or a second process of a rank",
        seen.strangers);
  return sdg_fail(SDG_E_NOTHING_MATCHED,
                  "no process that ran its exit functions called cuDNN (or "
                  "cuBLAS, if the rules have sections for products)");
}

// Prints a warning if the rules match but every rank did all the work.
static void full_say(const call_table_t *table, report_ranks_t ranks) {
  // With `sundog exec`, only the first rank prints it.
  if (ranks.size > 1 && ranks.first == 0 && table->matched > 0 &&
      table->in_full == table->matched)
    sdg_log("every tagged call (%" PRId64 " of %s) ran in full on each rank: "
            "nothing was shared; --record FOLDER and `sundog explain` tell why",
            table->matched, ranks.end == ranks.size ? "all ranks" : "rank 0");
}

// Returns whether the disk of the folder is full.
static bool is_full(const char *folder) {
  struct statvfs is;
  return statvfs(folder, &is) == 0 &&
         (is.f_bavail == 0 || (is.f_files > 0 && is.f_favail == 0));
}

// Reports a full disk, because incomplete reports do not show what was split.
static sdg_status_t space_check(const call_table_t *table, const char *folder) {
  bool full = is_full(folder);
  if (full ? table->missing < 0 : table->cut < 0 || table->matched > 0)
    return SDG_OK;
  return sdg_fail(
      SDG_E_REPORT,
      "the report of rank %d in %s is %s%s, so its calls are unknown",
      table->cut >= 0 ? table->cut : table->missing, folder,
      table->cut >= 0 ? "incomplete" : "missing",
      full ? ", where no space is left" : "");
}

sdg_status_t report_read(const char *folder, report_ranks_t ranks, int asked,
                         bool whole, int verbose) {
  call_table_t table = {.missing = -1, .cut = -1};
  sdg_status_t status = SDG_OK;
  int reports = 0;
  for (int r = ranks.first; r < ranks.end; r++) {
    bool there = rank_read(&table, folder, r);
    reports += there;
    if (!there && table.missing < 0)
      table.missing = r;
  }
  if (verbose)
    call_table_print(&table);
  char failure[512], kernel[512];
  // Processes that could not join as their rank.
  int strays = words_read(folder, "failed-", failure, sizeof failure);
  // Host device only. Even without a split, the output of such a program is
  // wrong.
  int launchers = words_read(folder, "unlaunched-", kernel, sizeof kernel);
  if (launchers > 0)
    status = sdg_fail(SDG_E_CALLS_REFUSED,
                      "the host device cannot run kernels of the program (%s, "
                      "in %d process%s); use --device cuda",
                      kernel, launchers, launchers == 1 ? "" : "es");
  else if (asked && strays > 0)
    status = sdg_fail(
        SDG_E_CALLS_REFUSED,
        "%d process%s could not join, and sundog refused calls of theirs: %s",
        strays, strays == 1 ? "" : "es", failure);
  if (asked && status == SDG_OK)
    status = space_check(&table, folder);
  if (asked && status == SDG_OK && table.refused > 0 && table.matched > 0)
    status = sdg_fail(SDG_E_CALLS_REFUSED, "%" PRId64 " calls", table.refused);
  else if (asked && status == SDG_OK)
    status = declared_check(folder);
  if (!asked || status != SDG_OK)
    ; // reported already, or no failure
  else if (table.matched == 0)
    status = nothing_fail(folder, reports);
  else if (table.missing >= 0)
    status =
        sdg_fail(SDG_E_REPORT_LOST, "rank %d left no report", table.missing);
  if (whole && status == SDG_E_NOTHING_MATCHED)
    sdg_log("in the whole view each rank computed everything, as a single rank "
            "would");
  full_say(&table, ranks);
  call_table_free(&table);
  return status;
}
