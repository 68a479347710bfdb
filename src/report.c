// SPDX-License-Identifier: Apache-2.0
// Counts tagged calls by kind and writes them at exit.
#include "src/report.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/job.h"
#include "src/options.h"
#include "src/scratch.h"
#include "src/sigguard.h"

struct sdg_report_row {
  const char *entry, *section, *strategy;
  uint64_t count;
  int64_t received_bytes;
  int64_t copied_bytes[SDG_COPY_COUNT];
  int64_t wait_ns;
  sdg_report_row_t *next;
};

static sdg_report_row_t *first_row, **last_row = &first_row;
static uint64_t calls;
static atomic_ullong refused; // by any thread

sdg_report_row_t *sdg_report_find(const char *entry, const char *section,
                                  const char *strategy) {
  // String constants and names that live as long as the process: equal kinds
  // have equal pointers.
  for (sdg_report_row_t *row = first_row; row; row = row->next)
    if (row->entry == entry && row->section == section &&
        row->strategy == strategy)
      return row;
  sdg_report_row_t *row = calloc(1, sizeof *row);
  if (row) {
    row->entry = entry;
    row->section = section;
    row->strategy = strategy;
    *last_row = row;
    last_row = &row->next;
  }
  return row;
}

void sdg_report_count(sdg_report_row_t *row, const sdg_plan_t *plan) {
  calls++;
  if (!row)
    return;
  row->count++;
  if (!plan)
    return;
  row->received_bytes += plan->received_bytes;
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    row->copied_bytes[i] += plan->copied_bytes[i];
}

void sdg_report_wait(sdg_report_row_t *row, int64_t wait_ns) {
  if (row)
    row->wait_ns += wait_ns;
}

void sdg_report_fail(void) {
  atomic_fetch_add(&refused, 1);
}

uint64_t sdg_report_calls(void) {
  return calls;
}

static void text_write(FILE *file, const char *text) {
  fputc('"', file);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      fprintf(file, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      fprintf(file, "\\u%04x", (unsigned char)*text);
    else
      fputc(*text, file);
  }
  fputc('"', file);
}

static void row_write(FILE *file, const sdg_report_row_t *row) {
  fprintf(file, "%s\n {\"entry\":", row == first_row ? "" : ",");
  text_write(file, row->entry);
  fprintf(file, ",\"rule\":");
  text_write(file, row->section);
  fprintf(file, ",\"strategy\":");
  text_write(file, row->strategy);
  fprintf(file, ",\"count\":%llu,\"halo_bytes\":%lld,\"wait_ns\":%lld,",
          (unsigned long long)row->count, (long long)row->received_bytes,
          (long long)row->wait_ns);
  fprintf(file, "\"copies\":{");
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    fprintf(file, "%s\"%s\":%lld", i ? "," : "",
            sdg_copy_kind_name((sdg_copy_kind_t)i),
            (long long)row->copied_bytes[i]);
  fprintf(file, "}}");
}

static void report_write(const char *folder) {
  char path[4096];
  int rank = sdg_job_rank();
  snprintf(path, sizeof path, "%s/rank-%d.json", folder, rank);
  FILE *file = fopen(path, "w");
  if (!file) {
    (void)sdg_fail(SDG_E_REPORT, "%s: %s", path, strerror(errno));
    return;
  }
  fprintf(
      file,
      "{\"rank\":%d,\"matched\":%llu,\"refused\":%llu,\"scratch_bytes\":%zu,"
      "\"calls\":[",
      rank, (unsigned long long)calls, atomic_load(&refused) + sdg_job_failed(),
      sdg_scratch_bytes());
  for (const sdg_report_row_t *row = first_row; row; row = row->next)
    row_write(file, row);
  fprintf(file, "]}\n");
  int failed = ferror(file);
  if (fclose(file) != 0 || failed)
    (void)sdg_fail(SDG_E_REPORT, "%s: write failed", path);
}

void sdg_report_write(void) {
  const char *folder = sdg_options_get()->report;
  // A process that never joined is no rank: it has nothing to report.
  if (!*folder || !sdg_job_joined())
    return;
  sdg_sigguard_t guard = sdg_sigguard_begin();
  report_write(folder);
  sdg_sigguard_end(&guard);
}
