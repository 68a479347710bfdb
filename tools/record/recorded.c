// SPDX-License-Identifier: Apache-2.0
// Reads the files that the ranks of a run have left.
#include "tools/record/recorded.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/record/bounds.h"
#include "tools/record/formula.h"
#include "tools/record/line.h"

enum { LIST_FIRST = 64 };
// Two processes of one host see its start this close together.
static const int64_t RESTART_NS = INT64_C(60000000000);
// Clocks of several hosts may differ by this.
static const int64_t CLOCKS_NS = INT64_C(3600000000000);

const char *recorded_text(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

int64_t recorded_number(const json_t *object, const char *name) {
  return (int64_t)json_integer_value(json_object_get(object, name));
}

// Makes room for one more element; NULL if memory runs out.
static void *list_grow(void *list, int count, int *room, size_t bytes) {
  if (count < *room)
    return list;
  if (*room > INT_MAX / 2)
    return NULL;
  int more = *room ? 2 * *room : LIST_FIRST;
  void *grown = realloc(list, (size_t)more * bytes);
  if (grown)
    *room = more;
  return grown;
}

int recorded_kind(recorded_t *run, const char *entry, const char *rule,
                  const char *strategy) {
  for (int i = 0; i < run->kinds; i++)
    if (strcmp(run->kind[i].entry, entry) == 0 &&
        strcmp(run->kind[i].rule, rule) == 0 &&
        strcmp(run->kind[i].strategy, strategy) == 0)
      return i;
  recorded_kind_t *more =
      list_grow(run->kind, run->kinds, &run->kind_room, sizeof *more);
  if (!more)
    return -1;
  run->kind = more;
  recorded_kind_t *kind = &run->kind[run->kinds];
  snprintf(kind->entry, sizeof kind->entry, "%s", entry);
  snprintf(kind->rule, sizeof kind->rule, "%s", rule);
  snprintf(kind->strategy, sizeof kind->strategy, "%s", strategy);
  return run->kinds++;
}

// A plan's line may follow the line of its first call, so that calls keep its
// number until all lines are read.
static sdg_status_t plan_take(recorded_rank_t *rank, json_t *line) {
  recorded_plan_t *more =
      list_grow(rank->plan, rank->plans, &rank->plan_room, sizeof *more);
  if (!more)
    return sdg_fail(SDG_E_NO_MEMORY, "plans of a record");
  rank->plan = more;
  more[rank->plans++] =
      (recorded_plan_t){.line = json_incref(line),
                        .number = recorded_number(line, "plan"),
                        .formula_bytes = formula_halo_bytes(line)};
  return SDG_OK;
}

static sdg_status_t call_take(recorded_t *run, recorded_rank_t *rank,
                              const json_t *line) {
  recorded_call_t *more =
      list_grow(rank->call, rank->calls, &rank->call_room, sizeof *more);
  if (!more)
    return sdg_fail(SDG_E_NO_MEMORY, "calls of a record");
  rank->call = more;
  const char *update = recorded_text(line, "update");
  recorded_call_t *call = &more[rank->calls++];
  *call = (recorded_call_t){
      .number = recorded_number(line, "call"),
      .thread = (int)recorded_number(line, "thread"),
      .plan = (int)recorded_number(line, "by"),
      .failed = json_object_get(line, "failed") != NULL,
      .captured = json_is_true(json_object_get(line, "captured")),
      .at_ns = recorded_number(line, "at") + rank->shift_ns,
      .took_ns = recorded_number(line, "took"),
      .agreed_ns = recorded_number(line, "agreed"),
      .received_bytes = recorded_number(line, "received"),
      .sum_bytes = recorded_number(line, "summed"),
      .copied_bytes = recorded_number(line, "copied"),
      .x = recorded_number(line, "x"),
      .y = recorded_number(line, "y"),
  };
  // The kind of a call with a plan is known when all plans are.
  call->kind = -1;
  if (call->plan > 0 && !call->failed && !*update)
    return SDG_OK;
  call->kind = *update ? recorded_kind(run, update, "-", "update")
                       : recorded_kind(run, recorded_text(line, "entry"), "-",
                                       call->failed ? "failed" : "untagged");
  return call->kind < 0 ? sdg_fail(SDG_E_NO_MEMORY, "kinds of a record")
                        : SDG_OK;
}

// When the host was started, by its clocks.
static int64_t start_of(const json_t *facts) {
  return recorded_number(facts, "realtime_ns") -
         recorded_number(facts, "monotonic_ns");
}

static sdg_status_t facts_take(recorded_t *run, recorded_rank_t *rank,
                               json_t *facts) {
  if (rank->facts)
    return SDG_OK;
  rank->facts = json_incref(facts);
  // Hosts have clocks of their own; the time of day orders them.
  const json_t *first = run->rank[0].facts;
  int64_t shift_ns = start_of(facts) - start_of(first);
  rank->own_clock =
      strcmp(recorded_text(first, "host"), recorded_text(facts, "host")) != 0 ||
      shift_ns > RESTART_NS || shift_ns < -RESTART_NS;
  rank->shift_ns = rank->own_clock ? shift_ns : 0;
  return SDG_OK;
}

static sdg_status_t lines_read(recorded_t *run, recorded_rank_t *rank,
                               FILE *file) {
  char *text = NULL;
  size_t room = 0;
  sdg_status_t status = SDG_OK;
  while (status == SDG_OK && getline(&text, &room, file) > 0) {
    line_mend(text);
    json_t *line = json_loads(text, 0, NULL);
    json_t *facts = json_object_get(line, "run");
    if (facts && bounds_facts(facts))
      status = facts_take(run, rank, facts);
    else if (json_object_get(line, "plan") && bounds_plan(line))
      status = plan_take(rank, line);
    else if ((json_object_get(line, "call") ||
              json_object_get(line, "update")) &&
             bounds_call(line))
      status = call_take(run, rank, line);
    else if (json_object_get(line, "full"))
      rank->full = true;
    else
      rank->broken++;
    json_decref(line);
  }
  free(text);
  return status;
}

static int by_number(const void *a, const void *b) {
  const recorded_plan_t *p = a, *q = b;
  return (p->number > q->number) - (p->number < q->number);
}

static const char *strategy_of(const json_t *plan) {
  return json_object_get(plan, "strategy") ? recorded_text(plan, "strategy")
                                           : "query";
}

// Gives the calls the indices of their plans, and their kinds.
static sdg_status_t plans_join(recorded_t *run, recorded_rank_t *rank) {
  if (rank->plans > 0)
    qsort(rank->plan, (size_t)rank->plans, sizeof *rank->plan, by_number);
  for (int i = 0; i < rank->calls; i++) {
    recorded_call_t *call = &rank->call[i];
    recorded_plan_t key = {.number = call->plan};
    recorded_plan_t *plan = rank->plans
                                ? bsearch(&key, rank->plan, (size_t)rank->plans,
                                          sizeof key, by_number)
                                : NULL;
    call->plan = plan ? (int)(plan - rank->plan) : -1;
    if (plan && !call->failed && !call->captured && call->number)
      plan->calls++;
    if (call->kind >= 0)
      continue;
    call->kind = plan ? recorded_kind(run, recorded_text(plan->line, "entry"),
                                      recorded_text(plan->line, "section"),
                                      strategy_of(plan->line))
                      : recorded_kind(run, "a lost plan", "-", "unknown");
    if (call->kind < 0)
      return sdg_fail(SDG_E_NO_MEMORY, "kinds of a record");
  }
  return SDG_OK;
}

static int by_begin(const void *a, const void *b) {
  const recorded_phase_t *p = a, *q = b;
  return (p->at_ns > q->at_ns) - (p->at_ns < q->at_ns);
}

static int call_compare(const recorded_call_t *a, const recorded_call_t *b) {
  if (a->thread != b->thread)
    return a->thread < b->thread ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static int by_call(const void *a, const void *b) {
  return call_compare(*(recorded_call_t *const *)a,
                      *(recorded_call_t *const *)b);
}

static int to_call(const void *key, const void *element) {
  return call_compare(key, *(recorded_call_t *const *)element);
}

// Adds the times of phases to the calls that they belong to.
static sdg_status_t phases_join(recorded_rank_t *rank) {
  size_t calls = (size_t)rank->calls;
  recorded_call_t **order = malloc((calls + 1) * sizeof(recorded_call_t *));
  if (!order)
    return sdg_fail(SDG_E_NO_MEMORY, "times of a record");
  for (size_t i = 0; i < calls; i++)
    order[i] = &rank->call[i];
  qsort(order, calls, sizeof *order, by_call);
  for (int i = 0; i < rank->phases; i++) {
    const recorded_phase_t *phase = &rank->phase[i];
    recorded_call_t key = {.number = phase->call, .thread = phase->thread};
    recorded_call_t **found =
        bsearch(&key, order, calls, sizeof(recorded_call_t *), to_call);
    if (found && phase->phase == SDG_PHASE_CALL) {
      (*found)->device_at_ns = phase->at_ns;
      (*found)->device_took_ns = phase->took_ns;
    } else if (found && phase->phase == SDG_PHASE_WAIT) {
      (*found)->wait_ns += phase->took_ns;
    } else if (found && phase->phase == SDG_PHASE_REAL &&
               phase->took_ns > (*found)->real_ns) {
      (*found)->real_ns = phase->took_ns;
    }
  }
  free(order);
  return SDG_OK;
}

static sdg_status_t phases_read(const char *folder, recorded_rank_t *rank) {
  char path[PATH_MAX], line[256];
  snprintf(path, sizeof path, "%s/times-%d", folder, rank->rank);
  FILE *file = fopen(path, "re");
  if (!file)
    return SDG_OK; // no call needed the device
  sdg_status_t status = SDG_OK;
  while (status == SDG_OK && fgets(line, sizeof line, file)) {
    recorded_phase_t phase;
    int kind;
    if (sscanf(line, "[%d,%" SCNd64 ",%d,%" SCNd64 ",%" SCNd64 "]",
               &phase.thread, &phase.call, &kind, &phase.at_ns,
               &phase.took_ns) != 5 ||
        !(phase.phase = (sdg_phase_t)kind, bounds_phase(&phase))) {
      rank->broken++;
      continue;
    }
    recorded_phase_t *more =
        list_grow(rank->phase, rank->phases, &rank->phase_room, sizeof *more);
    if (!more) {
      status = sdg_fail(SDG_E_NO_MEMORY, "times of a record");
      break;
    }
    rank->phase = more;
    phase.at_ns += rank->shift_ns;
    more[rank->phases++] = phase;
  }
  fclose(file);
  if (rank->phases > 0)
    qsort(rank->phase, (size_t)rank->phases, sizeof *rank->phase, by_begin);
  return status == SDG_OK ? phases_join(rank) : status;
}

// A transfer, or a call that was not recorded, may be counted only.
static sdg_status_t totals_kinds(recorded_t *run, const recorded_rank_t *rank) {
  size_t index;
  json_t *row;
  json_array_foreach(json_object_get(rank->totals, "calls"), index, row) {
    if (recorded_kind(run, recorded_text(row, "entry"),
                      recorded_text(row, "rule"),
                      recorded_text(row, "strategy")) < 0)
      return sdg_fail(SDG_E_NO_MEMORY, "kinds of a record");
  }
  return SDG_OK;
}

static sdg_status_t rank_read(recorded_t *run, recorded_rank_t *rank,
                              bool *out_found) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/rank-%d", run->folder, rank->rank);
  FILE *file = fopen(path, "re");
  *out_found = file != NULL;
  if (!file)
    return errno == ENOENT
               ? SDG_OK
               : sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  sdg_status_t status = lines_read(run, rank, file);
  fclose(file);
  if (status == SDG_OK && !rank->facts)
    status = sdg_fail(SDG_E_FILE_IO,
                      "%s has no times: it is no record, or one of an earlier "
                      "version of sundog",
                      path);
  if (status == SDG_OK)
    status = plans_join(run, rank);
  if (status == SDG_OK)
    status = phases_read(run->folder, rank);
  snprintf(path, sizeof path, "%s/totals-%d.json", run->folder, rank->rank);
  rank->totals = json_load_file(path, 0, NULL);
  const json_t *pid = json_object_get(rank->totals, "pid");
  rank->strange =
      rank->facts && pid &&
      json_integer_value(pid) != recorded_number(rank->facts, "pid");
  if (rank->strange) {
    json_decref(rank->totals);
    rank->totals = NULL;
  }
  if (rank->totals && !bounds_totals(rank->totals)) {
    json_decref(rank->totals);
    rank->totals = NULL;
    rank->broken++;
  }
  if (status == SDG_OK && !bounds_rank(rank))
    status = sdg_fail(SDG_E_FILE_IO,
                      "the record of rank %d in %s is damaged: its times or "
                      "bytes add up to more than any run's",
                      rank->rank, run->folder);
  return status == SDG_OK ? totals_kinds(run, rank) : status;
}

typedef struct span {
  int64_t begin_ns, end_ns; // begin > end: none
} span_t;
static const span_t no_span = {INT64_MAX, INT64_MIN};

static void span_note(span_t *span, int64_t at_ns, int64_t took_ns) {
  if (at_ns < span->begin_ns)
    span->begin_ns = at_ns;
  if (at_ns + took_ns > span->end_ns)
    span->end_ns = at_ns + took_ns;
}

static void rank_span(const recorded_rank_t *rank, span_t *io_span) {
  for (int i = 0; i < rank->calls; i++)
    span_note(io_span, rank->call[i].at_ns, rank->call[i].took_ns);
  for (int i = 0; i < rank->phases; i++)
    span_note(io_span, rank->phase[i].at_ns, rank->phase[i].took_ns);
}

static bool are_apart(const span_t *a, const span_t *b, int64_t far_ns) {
  bool known = a->begin_ns <= a->end_ns && b->begin_ns <= b->end_ns;
  return known &&
         (a->begin_ns - b->end_ns > far_ns || b->begin_ns - a->end_ns > far_ns);
}

// All ranks of a run meet in their first calls, so their times overlap. Others
// are of a run before or after it, into the same folder.
static sdg_status_t is_one_run(const recorded_t *run) {
  span_t first = no_span;
  rank_span(&run->rank[0], &first);
  int64_t size = recorded_number(run->rank[0].facts, "size");
  for (int r = 1; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    span_t own = no_span;
    rank_span(rank, &own);
    if (are_apart(&first, &own, rank->own_clock ? CLOCKS_NS : 0) ||
        recorded_number(rank->facts, "size") != size)
      return sdg_fail(SDG_E_FILE_IO,
                      "%s has records of several runs: that of rank %d is not "
                      "of the same run as that of rank %d; empty the folder "
                      "before a run",
                      run->folder, rank->rank, run->rank[0].rank);
  }
  return SDG_OK;
}

static void span_set(recorded_t *run) {
  span_t span = no_span;
  for (int r = 0; r < run->found; r++)
    rank_span(&run->rank[r], &span);
  if (span.begin_ns > span.end_ns)
    return;
  run->begin_ns = span.begin_ns;
  run->end_ns = span.end_ns;
}

sdg_status_t recorded_read(const char *folder, recorded_t *out) {
  recorded_t run = {.folder = strdup(folder), .ranks = SDG_RANKS_MAX};
  run.rank = calloc(SDG_RANKS_MAX, sizeof *run.rank);
  sdg_status_t status =
      run.folder && run.rank ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "a record");
  for (int r = 0; r < run.ranks && status == SDG_OK; r++) {
    bool found;
    recorded_rank_t *rank = &run.rank[run.found];
    rank->rank = r;
    status = rank_read(&run, rank, &found);
    run.found += found;
    int64_t size = found ? recorded_number(rank->facts, "size") : 0;
    if (size > 0 && size < run.ranks)
      run.ranks = (int)size;
  }
  if (status == SDG_OK && run.found == 0)
    status = sdg_fail(SDG_E_FILE_IO,
                      "%s has no record of a run; `sundog run --record` makes "
                      "one",
                      folder);
  if (status == SDG_OK)
    status = is_one_run(&run);
  if (status == SDG_OK)
    span_set(&run);
  if (status == SDG_OK)
    *out = run;
  else
    recorded_fini(&run);
  return status;
}

void recorded_fini(recorded_t *run) {
  for (int r = 0; run->rank && r < SDG_RANKS_MAX; r++) {
    recorded_rank_t *rank = &run->rank[r];
    for (int i = 0; i < rank->plans; i++)
      json_decref(rank->plan[i].line);
    json_decref(rank->facts);
    json_decref(rank->totals);
    free(rank->plan);
    free(rank->call);
    free(rank->phase);
  }
  free(run->rank);
  free(run->kind);
  free(run->folder);
}

// rank-N, times-N and totals-N.json.
static bool is_record(const char *name) {
  static const char *const stems[] = {"rank-", "times-", "totals-"};
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
    size_t stem = strlen(stems[i]);
    if (strncmp(name, stems[i], stem) != 0)
      continue;
    size_t digits = strspn(name + stem, "0123456789");
    const char *rest = name + stem + digits;
    if (digits > 0 && (!*rest || strcmp(rest, ".json") == 0))
      return true;
  }
  return false;
}

void recorded_clear(const char *folder) {
  DIR *files = opendir(folder);
  struct dirent *entry;
  while (files && (entry = readdir(files))) {
    struct stat is;
    if (is_record(entry->d_name) &&
        fstatat(dirfd(files), entry->d_name, &is, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(is.st_mode))
      (void)unlinkat(dirfd(files), entry->d_name, 0);
  }
  if (files)
    closedir(files);
}

bool recorded_owns(const char *folder, const char *path) {
  char real[PATH_MAX];
  struct stat in, here;
  if (!realpath(path, real))
    snprintf(real, sizeof real, "%s", path);
  char *slash = strrchr(real, '/');
  const char *name = slash ? slash + 1 : real;
  if (!is_record(name) && strcmp(name, "lock") != 0) // hold.h
    return false;
  if (slash)
    *slash = '\0';
  const char *parent = !slash ? "." : *real ? real : "/";
  return stat(parent, &in) == 0 && stat(folder, &here) == 0 &&
         in.st_dev == here.st_dev && in.st_ino == here.st_ino;
}
