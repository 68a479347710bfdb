// SPDX-License-Identifier: Apache-2.0
// Exchanges digests and finds the ranks that differ.
#include "src/job/digests.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/stopwatch.h"
#include "src/control/control.h"
#include "src/job/job.h"
#include "src/job/thread.h"

enum { ENTRY_BYTES = 80, LISTED = 16 };

typedef struct record {
  char magic[8];
  char entry[ENTRY_BYTES];
  sdg_digests_t digests;
} record_t;
static const char record_magic[8] = "digests";

static sdg_status_t record_read(const record_t *mine, int rank,
                                const char *record, size_t bytes,
                                sdg_digests_t *out) {
  record_t theirs;
  bool same = bytes == sizeof theirs;
  if (same)
    memcpy(&theirs, record, sizeof theirs);
  same = same && memcmp(theirs.magic, mine->magic, sizeof mine->magic) == 0 &&
         memcmp(theirs.entry, mine->entry, sizeof mine->entry) == 0;
  if (!same)
    return sdg_fail(SDG_E_DIVERGED,
                    "rank %d is at another call while this rank compares the "
                    "operands of %s",
                    rank, mine->entry);
  *out = theirs.digests;
  return SDG_OK;
}

sdg_status_t sdg_digests_exchange(const char *entry_name,
                                  const sdg_digests_t *mine, sdg_digests_t *out,
                                  int64_t *io_wait_ns) {
  const sdg_group_t *group = sdg_job_group();
  sdg_records_t all;
  record_t record;
  char what[128];
  memset(&record, 0, sizeof record);
  memcpy(record.magic, record_magic, sizeof record.magic);
  snprintf(record.entry, sizeof record.entry, "%s", entry_name);
  record.digests = *mine;
  sdg_job_call(what, sizeof what);
  uint64_t start_ns = sdg_monotonic_ns();
  sdg_status_t status =
      sdg_job_gather(sdg_channel_get(), &record, sizeof record, what, &all);
  *io_wait_ns += (int64_t)(sdg_monotonic_ns() - start_ns);
  for (int r = 0; r < group->count && status == SDG_OK; r++)
    status = record_read(&record, group->rank[r], all.data[r], all.bytes[r],
                         &out[r]);
  sdg_records_free(&all);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

sdg_digests_state_t sdg_digests_state(const sdg_digests_t *all) {
  for (int r = 0; r < sdg_job_group()->count; r++)
    if (all[r].state != SDG_DIGESTS_READ)
      return (sdg_digests_state_t)all[r].state;
  return SDG_DIGESTS_READ;
}

// Returns true if two ranks of the group must have the same values and both
// have a digest.
static bool comparable(const sdg_digests_t *all, int operand, sdg_axes_t axes,
                       int a, int b) {
  const sdg_mesh_t *mesh = sdg_job_mesh();
  const sdg_group_t *group = sdg_job_group();
  int at_a[SDG_AXES_MAX], at_b[SDG_AXES_MAX];
  sdg_mesh_coords(mesh, group->rank[a], at_a);
  sdg_mesh_coords(mesh, group->rank[b], at_b);
  for (int i = 0; i < mesh->axes; i++)
    if (!(axes >> i & 1) && at_a[i] != at_b[i])
      return false;
  return (all[a].read & all[b].read) >> operand & 1;
}

int sdg_digests_differ(const sdg_digests_t *all, int operand, sdg_axes_t axes) {
  for (int b = 1; b < sdg_job_group()->count; b++)
    for (int a = 0; a < b; a++)
      if (comparable(all, operand, axes, a, b)) {
        if (all[a].of[operand] != all[b].of[operand])
          return b;
        break; // equal to the first rank of its class
      }
  return -1;
}

typedef struct text {
  char *at;
  size_t bytes, used;
} text_t;

__attribute__((format(printf, 2, 3))) static void say(text_t *text,
                                                      const char *format, ...) {
  if (text->used >= text->bytes)
    return;
  va_list more;
  va_start(more, format);
  int n =
      vsnprintf(text->at + text->used, text->bytes - text->used, format, more);
  va_end(more);
  text->used += n > 0 ? (size_t)n : 0;
}

// Lists the ranks of one class, or of all classes if `which` < 0: "rank 2",
// "ranks 0, 1, 3".
static void ranks_say(text_t *text, const int *member, const int *class_of,
                      int members, int which) {
  int count = 0, said = 0;
  for (int i = 0; i < members; i++)
    count += which < 0 || class_of[i] == which;
  say(text, "%s", count == 1 ? "rank" : "ranks");
  for (int i = 0; i < members && said <= LISTED; i++)
    if (which < 0 || class_of[i] == which) {
      if (said == LISTED)
        say(text, " ...");
      else
        say(text, "%s %d", said ? "," : "", sdg_job_group()->rank[member[i]]);
      said++;
    }
}

void sdg_digests_format(const sdg_digests_t *all, int operand, sdg_axes_t axes,
                        int index, const char *one, const char *many, char *out,
                        size_t out_bytes) {
  int member[SDG_RANKS_MAX], class_of[SDG_RANKS_MAX] = {0}, size[SDG_RANKS_MAX];
  int members = 0, classes = 0;
  text_t text = {out, out_bytes, 0};
  for (int r = 0; r < sdg_job_group()->count; r++)
    if (r == index || comparable(all, operand, axes, index, r))
      member[members++] = r;
  for (int i = 0; i < members; i++) {
    int same = 0;
    while (all[member[same]].of[operand] != all[member[i]].of[operand])
      same++;
    class_of[i] = same == i ? classes++ : class_of[same];
    if (same == i)
      size[class_of[i]] = 0;
    size[class_of[i]]++;
  }
  out[0] = '\0';
  if (classes == 2) { // name the smaller class first; class 1 if equal
    int few = size[0] < size[1] ? 0 : 1;
    ranks_say(&text, member, class_of, members, few);
    say(&text, " %s ", size[few] == 1 ? one : many);
    ranks_say(&text, member, class_of, members, !few);
    return;
  }
  if (classes == members)
    ranks_say(&text, member, class_of, members, -1);
  for (int c = 0; c < classes && classes < members && c <= LISTED; c++) {
    if (c > 0)
      say(&text, "%s", c == classes - 1 ? " and " : ", ");
    ranks_say(&text, member, class_of, members, c);
  }
  say(&text, " all differ from each other");
}
