// SPDX-License-Identifier: Apache-2.0
// Counts tagged calls by kind, and writes the counts at exit.
#include "src/observe/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/json_text.h"
#include "src/base/options.h"
#include "src/base/fd.h"
#include "src/job/job.h"
#include "src/job/live.h"
#include "src/observe/inspect_record.h"

enum { REPORTS_MAX = 10000 }; // most reports of one rank

// A row belongs to one calling thread, and only that thread adds to it, so an
// addition is a load and a store. Rows are read at exit, when threads may
// still be in calls.
typedef _Atomic(int64_t) sum_t;
struct sdg_report_row {
  const char *entry, *section, *strategy;
  _Atomic(const char *) family; // NULL: none
  sum_t count;
  sum_t received_bytes, sum_bytes;
  sum_t axis_bytes[SDG_AXES_MAX];
  sum_t copied_bytes[SDG_COPY_COUNT];
  sum_t wait_ns;
  _Atomic(sdg_report_row_t *) next;
};

static struct {
  _Atomic(sdg_report_row_t *) first;
  sdg_report_row_t *last;
  sum_t calls;
} threads[SDG_CHANNEL_THREADS]; // index: the thread's channel
static atomic_ullong refused;   // by any thread
static struct {
  atomic_llong count, bytes, spent_ns;
} compared; // by any thread
static atomic_ullong in_full;

static _Thread_local sdg_report_tally_t tally;

// What to report if nothing is tagged.
static struct {
  atomic_ullong saw[SDG_SAW_COUNT];
  atomic_int pid;    // the process that saw it: children inherit this
  atomic_uint looks; // number of untagged tensors examined
  pthread_mutex_t lock;
  int misses;     // misses of `text`, which is empty at first
  char text[256]; // guarded by the lock; read at exit
} nearest = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add(sum_t *sum, int64_t more) {
  atomic_store_explicit(sum,
                        atomic_load_explicit(sum, memory_order_relaxed) + more,
                        memory_order_relaxed);
}

static bool alike(const sdg_report_row_t *row, const char *entry,
                  const char *section, const char *strategy) {
  // Strings are constants, or names that live as long as the process, so equal
  // kinds have equal pointers.
  return row->entry == entry && row->section == section &&
         row->strategy == strategy;
}

sdg_report_row_t *sdg_report_find(const char *entry, const char *section,
                                  const char *strategy) {
  int channel = sdg_channel_get();
  sdg_report_row_t *row = threads[channel].first;
  for (; row; row = row->next)
    if (alike(row, entry, section, strategy))
      return row;
  row = calloc(1, sizeof *row);
  if (row) {
    row->entry = entry;
    row->section = section;
    row->strategy = strategy;
    if (threads[channel].last)
      threads[channel].last->next = row;
    else
      threads[channel].first = row;
    threads[channel].last = row;
  }
  return row;
}

void sdg_report_family(sdg_report_row_t *row, const char *family) {
  if (row)
    row->family = family;
}

void sdg_report_received(sdg_report_row_t *row, const sdg_plan_t *plan) {
  if (!row)
    return;
  add(&row->received_bytes, plan->received_bytes);
  add(&row->sum_bytes, plan->sum_bytes);
  tally.received_bytes += plan->received_bytes;
  sdg_live_received(plan->received_bytes);
  tally.sum_bytes += plan->sum_bytes;
  for (int i = 0; i < SDG_AXES_MAX; i++)
    add(&row->axis_bytes[i], plan->axis_bytes[i]);
}

void sdg_report_summed(sdg_report_row_t *row, const sdg_plan_t *plan) {
  if (!row)
    return;
  add(&row->sum_bytes, plan->sum_bytes);
  tally.sum_bytes += plan->sum_bytes;
  for (int i = 0; i < SDG_AXES_MAX; i++)
    add(&row->axis_bytes[i], plan->sum_axis_bytes[i]);
}

void sdg_report_copied(sdg_report_row_t *row, const sdg_plan_t *plan) {
  for (int i = 0; row && i < SDG_COPY_COUNT; i++) {
    add(&row->copied_bytes[i], plan->copied_bytes[i]);
    tally.copied_bytes += plan->copied_bytes[i];
  }
}

void sdg_report_moved(sdg_report_row_t *row, const sdg_plan_t *plan) {
  sdg_report_received(row, plan);
  sdg_report_copied(row, plan);
}

void sdg_report_moves_add(sdg_report_moves_t *io, const sdg_plan_t *plan) {
  io->calls++;
  io->received_bytes += plan->received_bytes;
  io->sum_bytes += plan->sum_bytes;
  for (int i = 0; i < SDG_AXES_MAX; i++)
    io->axis_bytes[i] += plan->axis_bytes[i];
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    io->copied_bytes[i] += plan->copied_bytes[i];
}

void sdg_report_launched(const sdg_report_moves_t *moves) {
  const sdg_report_row_t *captured = moves->row;
  sdg_report_row_t *row =
      captured ? sdg_report_find(captured->entry, captured->section, "replay")
               : NULL;
  if (!row)
    return;
  row->family = captured->family;
  add(&row->count, moves->calls);
  add(&row->received_bytes, moves->received_bytes);
  add(&row->sum_bytes, moves->sum_bytes);
  sdg_live_received(moves->received_bytes);
  for (int i = 0; i < SDG_AXES_MAX; i++)
    add(&row->axis_bytes[i], moves->axis_bytes[i]);
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    add(&row->copied_bytes[i], moves->copied_bytes[i]);
}

void sdg_report_update(sdg_report_row_t *row) {
  if (row)
    add(&row->count, 1);
}

void sdg_report_count(sdg_report_row_t *row, const sdg_plan_t *plan) {
  add(&threads[sdg_channel_get()].calls, 1);
  sdg_live_call();
  if (!row)
    return;
  add(&row->count, 1);
  if (plan)
    sdg_report_moved(row, plan);
}

void sdg_report_stream_wait(sdg_report_row_t *row, int64_t wait_ns) {
  if (row)
    add(&row->wait_ns, wait_ns);
  sdg_live_stream_wait(wait_ns);
}

void sdg_report_wait(sdg_report_row_t *row, int64_t wait_ns) {
  if (row)
    add(&row->wait_ns, wait_ns);
  tally.wait_ns += row ? wait_ns : 0;
}

sdg_report_tally_t sdg_report_tally_get(void) {
  return tally;
}

void sdg_report_compared(int64_t bytes, int64_t spent_ns) {
  atomic_fetch_add(&compared.count, 1);
  atomic_fetch_add(&compared.bytes, bytes);
  atomic_fetch_add(&compared.spent_ns, spent_ns);
}

void sdg_report_in_full(void) {
  atomic_fetch_add(&in_full, 1);
}

void sdg_report_saw(sdg_saw_t what) {
  if (atomic_fetch_add_explicit(&nearest.saw[what], 1, memory_order_relaxed) ==
      0)
    atomic_store(&nearest.pid, (int)getpid());
}

// Returns the number of tagged calls so far, over all threads.
static uint64_t calls_tagged(void) {
  int64_t all = 0;
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    all += threads[channel].calls;
  return (uint64_t)all;
}

bool sdg_report_near_wanted(void) {
  // Programs that create their descriptors for each call get here in each
  // call.
  enum { LOOKS = 1000 };
  return calls_tagged() == 0 && *sdg_options_get()->report &&
         atomic_fetch_add_explicit(&nearest.looks, 1, memory_order_relaxed) <
             LOOKS;
}

void sdg_report_near(int misses, const char *text) {
  pthread_mutex_lock(&nearest.lock);
  if (!*nearest.text || misses < nearest.misses) {
    nearest.misses = misses;
    snprintf(nearest.text, sizeof nearest.text, "%s", text);
  }
  pthread_mutex_unlock(&nearest.lock);
}

// The sum of a kind of call over the rows of all threads.
typedef struct totals {
  int64_t count, received_bytes, sum_bytes, wait_ns;
  int64_t axis_bytes[SDG_AXES_MAX], copied_bytes[SDG_COPY_COUNT];
} totals_t;

static bool is_first(const sdg_report_row_t *row, int of_channel) {
  for (int channel = 0; channel <= of_channel; channel++)
    for (const sdg_report_row_t *other = threads[channel].first; other;
         other = other->next)
      if (alike(other, row->entry, row->section, row->strategy))
        return other == row;
  return true;
}

static totals_t totals_of(const sdg_report_row_t *row) {
  totals_t totals = {0};
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    for (sdg_report_row_t *other = threads[channel].first; other;
         other = other->next) {
      if (!alike(other, row->entry, row->section, row->strategy))
        continue;
      totals.count += other->count;
      totals.received_bytes += other->received_bytes;
      totals.sum_bytes += other->sum_bytes;
      for (int i = 0; i < SDG_AXES_MAX; i++)
        totals.axis_bytes[i] += other->axis_bytes[i];
      for (int i = 0; i < SDG_COPY_COUNT; i++)
        totals.copied_bytes[i] += other->copied_bytes[i];
      totals.wait_ns += other->wait_ns;
    }
  return totals;
}

static void row_write(FILE *file, const sdg_report_row_t *row,
                      const char *before) {
  totals_t totals = totals_of(row);
  fprintf(file, "%s\n {\"entry\":", before);
  sdg_json_text(file, row->entry);
  fprintf(file, ",\"rule\":");
  sdg_json_text(file, row->section);
  fprintf(file, ",\"strategy\":");
  sdg_json_text(file, row->strategy);
  fprintf(file, ",\"family\":");
  sdg_json_text(file, row->family ? row->family : "");
  fprintf(file,
          ",\"count\":%lld,\"halo_bytes\":%lld,\"sum_bytes\":%lld,"
          "\"wait_ns\":%lld,",
          (long long)totals.count, (long long)totals.received_bytes,
          (long long)totals.sum_bytes, (long long)totals.wait_ns);
  const sdg_mesh_t *mesh = sdg_job_mesh();
  fprintf(file, "\"axes\":{");
  for (int i = 0; i < mesh->axes; i++)
    fprintf(file, "%s\"%s\":%lld", i ? "," : "", mesh->name[i],
            (long long)totals.axis_bytes[i]);
  fprintf(file, "},\"copies\":{");
  for (int i = 0; i < SDG_COPY_COUNT; i++)
    fprintf(file, "%s\"%s\":%lld", i ? "," : "",
            sdg_copy_kind_name((sdg_copy_kind_t)i),
            (long long)totals.copied_bytes[i]);
  fprintf(file, "}}");
}

// The file of this process; a later process that is the same rank has another
// one. Number 0: no file could be made, and writing it will report why.
static char own_path[4096];
static int own_number;

int sdg_report_process(void) {
  return own_number;
}

void sdg_report_begin(void) {
  const char *folder = sdg_options_get()->report;
  int rank = sdg_job_rank();
  if (!*folder)
    return;
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  for (int number = 1, file = -1; number < REPORTS_MAX && file < 0; number++) {
    if (number == 1)
      snprintf(own_path, sizeof own_path, "%s/rank-%d.json", folder, rank);
    else
      snprintf(own_path, sizeof own_path, "%s/rank-%d-%d.json", folder, rank,
               number);
    file = open(own_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      own_number = number;
      close(file);
    } else if (errno != EEXIST)
      break;
  }
  sdg_signal_guard_end(&guard);
}

// `flag`: O_TRUNC, or O_EXCL for a file that must be new.
static void report_write(const char *path, int flag, size_t scratch_bytes) {
  int rank = sdg_job_rank();
  int at = open(path, O_WRONLY | O_CREAT | flag | O_CLOEXEC, 0600);
  FILE *file = at >= 0 ? fdopen(at, "w") : NULL;
  if (!file) {
    (void)sdg_fail(SDG_E_REPORT, "%s: %s", path, strerror(errno));
    return;
  }
  fprintf(file,
          "{\"rank\":%d,\"pid\":%d,\"matched\":%llu,\"refused\":%llu,\"in_"
          "full\":%llu,"
          "\"scratch_bytes\":%zu,"
          "\"compared\":{\"count\":%lld,\"bytes\":%lld,\"spent_ns\":%lld},",
          rank, (int)getpid(), (unsigned long long)calls_tagged(),
          atomic_load(&refused) + sdg_job_failed(), atomic_load(&in_full),
          scratch_bytes, atomic_load(&compared.count),
          atomic_load(&compared.bytes), atomic_load(&compared.spent_ns));
  fprintf(file, "\"libraries\":");
  sdg_inspect_libraries(file);
  fprintf(file, ",\"calls\":[");
  const char *before = "";
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    for (const sdg_report_row_t *row = threads[channel].first; row;
         row = row->next) {
      if (!is_first(row, channel))
        continue;
      row_write(file, row, before);
      before = ",";
    }
  fprintf(file, "]}\n");
  // An earlier write error left only the stream's error flag; the usual cause
  // is a full disk.
  int failed = fflush(file) != 0 || ferror(file) ? errno : 0;
  if (fclose(file) != 0 && !failed)
    failed = errno;
  if (failed)
    (void)sdg_fail(SDG_E_REPORT, "%s: %s", path, strerror(failed));
}

// Written at once, because another process may write this rank's report.
static void stray_write(void) {
  const char *folder = sdg_options_get()->report, *text = sdg_last_error();
  char path[4096];
  if (!*folder)
    return;
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  snprintf(path, sizeof path, "%s/failed-%d", folder, (int)getpid());
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    ssize_t written = write(file, text, strlen(text));
    (void)written; // the file's existence is what matters
    close(file);
  }
  sdg_signal_guard_end(&guard);
}

void sdg_report_fail(void) {
  atomic_fetch_add(&refused, 1);
  if (!sdg_job_joined())
    stray_write();
}

static void seen_write(const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/seen-%d.json", folder, (int)getpid());
  FILE *file = fopen(path, "we");
  if (!file)
    return; // a folder of an earlier run, removed since
  fprintf(file,
          "{\"rank\":%d,\"pid\":%d,\"calls\":%llu,\"opaque\":%llu,"
          "\"strangers\":%llu,\"misses\":%d,\"near\":",
          sdg_options_get()->rank, (int)getpid(),
          atomic_load(&nearest.saw[SDG_SAW_CALL]),
          atomic_load(&nearest.saw[SDG_SAW_OPAQUE]),
          atomic_load(&nearest.saw[SDG_SAW_STRANGER]), nearest.misses);
  sdg_json_text(file, nearest.text);
  fprintf(file, "}\n");
  fclose(file);
}

void sdg_report_write_seen(void) {
  const char *folder = sdg_options_get()->report;
  uint64_t any = 0;
  for (int i = 0; i < SDG_SAW_COUNT; i++)
    any += atomic_load(&nearest.saw[i]);
  if (!*folder || any == 0 || calls_tagged() > 0 ||
      atomic_load(&nearest.pid) != (int)getpid())
    return;
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  seen_write(folder);
  sdg_signal_guard_end(&guard);
}

void sdg_report_write(size_t scratch_bytes) {
  const sdg_options_t *options = sdg_options_get();
  // A process that never joined is not a rank and has no report.
  if ((!*options->report && !*options->record) || !sdg_job_joined())
    return;
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  if (*options->report)
    report_write(own_path, own_number ? O_TRUNC : O_EXCL, scratch_bytes);
  if (*options->record) {
    char path[4096];
    snprintf(path, sizeof path, "%s/totals-%d.json", options->record,
             sdg_job_rank());
    report_write(path, O_TRUNC, scratch_bytes);
  }
  sdg_signal_guard_end(&guard);
}
