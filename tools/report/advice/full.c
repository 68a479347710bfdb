// SPDX-License-Identifier: Apache-2.0
// Whole view: tells which calls every rank makes in full, why, what was fetched
// for them, and what would have the ranks share them.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/advice/advisers.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

static const char by_none[] = "no section names or matches it",
                  kernel_of_none[] = "no section describes its kernels",
                  at_once[] = "its results are in memory that the program may "
                              "read without a call",
                  few_ranks[] = "Nothing is to be written for it: fewer ranks "
                                "would share them, but have more to do in all "
                                "other calls.";

// What would have the ranks share calls, by words of the planner's reason. None
// of it is a line whose gain the record proves.
static const struct {
  const char *reason, *change;
} changes[] = {
    {kernel_of_none, "Declare them in [kernel] sections, which `sundog "
                     "inspect` drafts; what they read and write only you "
                     "know."},
    {at_once, "Nothing can be written for it: computed by the device into "
              "memory of cudaMalloc, they would stay in pieces; in the shard "
              "view they do in any case."},
    {"`grid` does not say",
     "Write in its [kernel] section how the number of blocks follows the "
     "extents (`grid`, doc/rules.md); only you know it."},
    {"ghosts", "Nothing can be written for it: functions of tensors with "
               "ghosts are split in the shard view only."},
    {"a result in the memory of what it sees",
     "Nothing can be written for it: the program has to write the result to "
     "other memory than it reads."},
    {"a result in memory that the CUDA runtime did not allocate",
     "Nothing can be written for it: the program has to allocate the result by "
     "cudaMalloc, cudaMallocHost or cudaMallocManaged."},
    {"reach = all", "Split a dimension in which its `reach` is a number, if "
                    "there is one."},
    {"ranks without elements", few_ranks},
    {"a rank that computes nothing", few_ranks},
};

// Calls in full for one reason.
typedef struct full {
  const char *entry, *section, *why;
  int64_t calls, took_ns; // of a rank; 0: not known; on the device
  int64_t fetches;        // of a rank: tensors that were completed for them
  int64_t fetched_bytes;  // by all ranks
} full_t;

enum { FULLS = 64 };

static full_t *full_get(full_t *full, int *count, const char *entry,
                        const char *section, const char *why) {
  for (int i = 0; i < *count; i++)
    if (strcmp(full[i].entry, entry) == 0 &&
        strcmp(full[i].section, section) == 0 && strcmp(full[i].why, why) == 0)
      return &full[i];
  if (*count == FULLS)
    return NULL;
  full[*count] = (full_t){.entry = entry, .section = section, .why = why};
  return &full[(*count)++];
}

// Returns what a call, or a transfer, belongs to; NULL: nothing that runs in
// full. Copies and the like read whole tensors in any case.
static full_t *full_of(const recorded_t *run, const recorded_rank_t *rank,
                       const recorded_call_t *call, full_t *full, int *count) {
  const json_t *plan = call->plan < 0 ? NULL : rank->plan[call->plan].line;
  const char *entry = run->kind[call->kind].entry;
  bool kernel = strncmp(entry, "cudaLaunch", 10) == 0,
       whole = strcmp(recorded_text(plan, "strategy"), "whole") == 0;
  if (whole)
    return full_get(full, count, recorded_text(plan, "entry"),
                    recorded_text(plan, "section"), recorded_text(plan, "why"));
  if (call->number)
    return NULL;
  if (plan)
    return full_get(full, count, entry, recorded_text(plan, "section"),
                    at_once);
  return strncmp(entry, "cudnn", 5) == 0 || kernel
             ? full_get(full, count, entry, "",
                        kernel ? kernel_of_none : by_none)
             : NULL;
}

static void rank_add(const recorded_t *run, const recorded_rank_t *rank,
                     full_t *full, int *count) {
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    full_t *of = call->failed ? NULL : full_of(run, rank, call, full, count);
    if (of && call->number == 0) {
      of->fetched_bytes += call->received_bytes;
      of->fetches += rank == run->rank;
    } else if (of && rank == run->rank) {
      of->calls++;
      of->took_ns += call->device_took_ns;
    }
  }
}

// Whether the advice about `op` names the entry.
static bool is_in_op(const json_t *list, const char *entry) {
  size_t index;
  json_t *advice;
  json_array_foreach(list, index, advice) {
    if (strcmp(recorded_text(advice, "about"), "op") == 0 &&
        strstr(recorded_text(advice, "text"), entry))
      return true;
  }
  return false;
}

// Whether some section says `op`, which may leave the entry out.
static bool has_op(const recorded_t *run) {
  place_t place;
  bool found = false;
  if (!place_find_all(run, &place))
    return false;
  for (int i = 0; i < (place.option ? 1 : place.sections); i++) {
    char *words = place_value(&place, i, "op");
    found |= words != NULL;
    free(words);
  }
  return found;
}

static const char *change_of(const recorded_t *run, const full_t *full,
                             const json_t *list) {
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    if (strstr(full->why, changes[i].reason))
      return changes[i].change;
  if (full->why != by_none)
    return "Nothing can be written for it: no line of the rules would have "
           "the ranks share them.";
  if (is_in_op(list, full->entry))
    return "The line about `op` has the ranks share them.";
  if (has_op(run))
    return "If `op` leaves out its word (doc/rules.md), the ranks share them "
           "with it; but windows and copies may then fetch as much, so that no "
           "line is advised: compare the bytes of both runs.";
  return "Nothing is to be written for it unless a [shard] section's pattern "
         "can match its tensors.";
}

// The planner's reason, as the end of a sentence.
static const char *because(const char *why) {
  const char *reason = strstr(why, "because of ");
  return reason ? reason : "because no op shares such a call";
}

static char *text_of(const recorded_t *run, const full_t *full,
                     const json_t *list) {
  const char *change = change_of(run, full, list);
  if (full->calls)
    return said_text("%" PRId64 " calls of %s ran in full on every rank, %s. "
                     "%s",
                     full->calls, full->entry, because(full->why), change);
  return said_text("%s%s, because %s: tensors were completed %" PRId64
                   " times on every rank. %s",
                   full->entry,
                   full->why == at_once ? " left nothing in pieces"
                                        : " ran in full",
                   full->why, full->fetches, change);
}

static char *effect_of(const full_t *full) {
  return full->took_ns > 0
             ? said_text("They took each rank %.3g ms, and all ranks received "
                         "%" PRId64 " bytes for them.",
                         (double)full->took_ns / 1e6, full->fetched_bytes)
             : said_text("All ranks received %" PRId64 " bytes for this.",
                         full->fetched_bytes);
}

static json_t *number_or_null(int64_t number) {
  return number ? json_integer(number) : json_null();
}

static void full_say(const recorded_t *run, const full_t *full, json_t *list) {
  json_t *advice = said_add(list, &(said_t){.about = "full",
                                            .text = text_of(run, full, list),
                                            .line = said_text("%s", ""),
                                            .where = said_text("%s", ""),
                                            .effect = effect_of(full)});
  if (!advice)
    return;
  (void)json_object_set_new(advice, "entry", json_string(full->entry));
  (void)json_object_set_new(advice, "why", json_string(full->why));
  (void)json_object_set_new(advice, "calls", number_or_null(full->calls));
  (void)json_object_set_new(advice, "device_ns", number_or_null(full->took_ns));
  (void)json_object_set_new(advice, "fetches", json_integer(full->fetches));
  (void)json_object_set_new(advice, "fetched_bytes",
                            json_integer(full->fetched_bytes));
}

static int by_cost(const void *a, const void *b) {
  const full_t *p = a, *q = b;
  if (p->took_ns != q->took_ns)
    return p->took_ns < q->took_ns ? 1 : -1;
  return (p->fetched_bytes < q->fetched_bytes) -
         (p->fetched_bytes > q->fetched_bytes);
}

void advise_full(const recorded_t *run, json_t *list) {
  full_t full[FULLS];
  int count = 0;
  if (run->found < run->ranks || run->ranks < 2)
    return;
  for (int r = 0; r < run->found; r++)
    rank_add(run, &run->rank[r], full, &count);
  qsort(full, (size_t)count, sizeof *full, by_cost);
  for (int i = 0; i < count; i++)
    full_say(run, &full[i], list);
}
