// SPDX-License-Identifier: Apache-2.0
// Adds up the calls of each kind.
#include "tools/report/kinds.h"
#include "tools/report/advice/sums.h"

#include <stdlib.h>
#include <string.h>

// The sums over all ranks, and what only recorded calls tell.
typedef struct kind_all {
  kind_sums_t sums;
  int64_t most_calls; // of the rank with the most
  int64_t recorded, host_ns, device_ns, agreed_ns, wait_ns, spent_ns;
  int64_t formula_bytes; // -1: no formula
  const json_t *plan;    // any plan of the kind; NULL: none
  const char *family;    // of ops; "": none
  json_t *why;
} kind_all_t;

static void why_add(json_t *list, const json_t *plan) {
  size_t index;
  json_t *known, *why = json_object_get(plan, "why");
  json_array_foreach(list, index, known) {
    if (json_equal(known, why))
      return;
  }
  if (why)
    (void)json_array_append(list, why);
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// The time of a call. Agreements wait on the host, transfers on the device,
// before or within what is timed there: a halo for several calls comes before.
static int64_t spent_of(const recorded_call_t *call) {
  int64_t device_ns = larger(call->device_took_ns, call->wait_ns);
  return device_ns ? call->agreed_ns + device_ns
                   : larger(call->took_ns, call->agreed_ns);
}

static void sums_add(kind_all_t *all, const kind_sums_t *sums) {
  all->sums.calls += sums->calls;
  all->sums.received_bytes += sums->received_bytes;
  all->sums.sum_bytes += sums->sum_bytes;
  all->sums.copied_bytes += sums->copied_bytes;
  all->most_calls = larger(all->most_calls, sums->calls);
}

static void call_add(kind_all_t *all, const recorded_rank_t *rank,
                     const recorded_call_t *call) {
  const recorded_plan_t *plan =
      call->plan >= 0 && call->number ? &rank->plan[call->plan] : NULL;
  all->recorded++;
  all->host_ns += call->took_ns;
  all->device_ns += call->device_took_ns;
  all->agreed_ns += call->agreed_ns;
  all->wait_ns += call->wait_ns;
  all->spent_ns += spent_of(call);
  if (!plan || plan->formula_bytes < 0)
    all->formula_bytes = -1;
  else if (all->formula_bytes >= 0 && !call->captured)
    all->formula_bytes += plan->formula_bytes;
  if (plan && all->plan != plan->line) {
    all->plan = plan->line;
    all->family = recorded_text(plan->line, "family");
    why_add(all->why, plan->line);
  }
}

static void alls_free(const recorded_t *run, kind_all_t *all) {
  for (int k = 0; k < run->kinds && all; k++)
    json_decref(all[k].why);
  free(all);
}

// The family of a kind whose plan was not recorded, as the rank counted it.
static void family_note(const recorded_t *run, const recorded_rank_t *rank,
                        kind_all_t *io_all) {
  size_t index;
  json_t *row;
  json_array_foreach(json_object_get(rank->totals, "calls"), index, row) {
    for (int k = 0; k < run->kinds; k++)
      if (!*io_all[k].family && sums_is_of(row, &run->kind[k]))
        io_all[k].family = recorded_text(row, "family");
  }
}

// Of all kinds, which the caller frees; NULL if memory runs out.
static kind_all_t *alls_make(const recorded_t *run) {
  size_t kinds = (size_t)run->kinds + 1;
  kind_all_t *all = calloc(kinds, sizeof *all);
  kind_sums_t *sums = calloc(kinds, sizeof *sums);
  for (int k = 0; k < run->kinds && all; k++)
    all[k] = (kind_all_t){.why = json_array(), .family = ""};
  for (int r = 0; r < run->found && all && sums; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    sums_kinds(run, rank, sums);
    for (int k = 0; k < run->kinds; k++)
      sums_add(&all[k], &sums[k]);
    for (int i = 0; i < rank->calls; i++)
      call_add(&all[rank->call[i].kind], rank, &rank->call[i]);
  }
  for (int r = 0; r < run->found && all; r++)
    family_note(run, &run->rank[r], all);
  // Calls that were not recorded have bytes, too.
  for (int k = 0; k < run->kinds && all; k++)
    if (all[k].recorded != all[k].sums.calls)
      all[k].formula_bytes = -1;
  if (!sums) {
    alls_free(run, all);
    all = NULL;
  }
  free(sums);
  return all;
}

static const char *cause_of(const recorded_kind_t *kind, const char *family) {
  static const struct {
    const char *family, *cause;
  } causes[] = {
      {"conv", "halo"},         {"pool", "halo"},    {"function", "halo"},
      {"neighborhood", "halo"}, {"sampler", "halo"}, {"attention", "attention"},
      {"matmul", "product"},
  };
  if (strcmp(kind->strategy, "update") == 0)
    return "gather";
  if (strcmp(kind->strategy, "from the first rank") == 0)
    return "parameters";
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
    if (strcmp(family, causes[i].family) == 0)
      return causes[i].cause;
  return "redistribution";
}

static json_t *kind_make(const recorded_kind_t *k, const kind_all_t *all) {
  int64_t waited_ns = all->agreed_ns + all->wait_ns;
  return json_pack(
      "{s:s,s:s,s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:o,s:I,s:I}", "entry",
      k->entry, "rule", k->rule, "strategy", k->strategy, "cause",
      cause_of(k, all->family), "why", json_incref(all->why), "calls",
      (json_int_t)all->most_calls, "all_calls", (json_int_t)all->sums.calls,
      "host_ns", (json_int_t)all->host_ns, "device_ns",
      (json_int_t)all->device_ns, "wait_ns", (json_int_t)waited_ns,
      "wait_share",
      all->spent_ns > 0 ? (double)waited_ns / (double)all->spent_ns : 0.0,
      "received_bytes", (json_int_t)all->sums.received_bytes, "formula_bytes",
      all->formula_bytes >= 0 ? json_integer(all->formula_bytes) : json_null(),
      "sum_bytes", (json_int_t)all->sums.sum_bytes, "copied_bytes",
      (json_int_t)all->sums.copied_bytes);
}

json_t *kinds_make(const recorded_t *run) {
  kind_all_t *all = alls_make(run);
  json_t *list = all ? json_array() : NULL;
  for (int k = 0; k < run->kinds && list; k++)
    if (json_array_append_new(list, kind_make(&run->kind[k], &all[k])) != 0) {
      json_decref(list);
      list = NULL;
    }
  alls_free(run, all);
  return list;
}

json_t *kinds_causes(const recorded_t *run) {
  static const char *const names[] = {"halo",   "attention",  "product",
                                      "gather", "parameters", "redistribution"};
  enum { NAMES = sizeof names / sizeof *names };
  int64_t bytes[NAMES] = {0};
  kind_all_t *all = alls_make(run);
  json_t *object = all ? json_object() : NULL;
  for (int k = 0; k < run->kinds && all; k++) {
    const char *cause = cause_of(&run->kind[k], all[k].family);
    for (int i = 0; i < NAMES; i++)
      bytes[i] += strcmp(cause, names[i]) == 0 ? all[k].sums.received_bytes : 0;
  }
  alls_free(run, all);
  for (int i = 0; i < NAMES; i++)
    (void)json_object_set_new(object, names[i], json_integer(bytes[i]));
  return object;
}
