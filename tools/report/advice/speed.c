// SPDX-License-Identifier: Apache-2.0
// Compares what ranks take for calls of the same kind.
#include "tools/report/advice/speed.h"

#include <stdlib.h>
#include <string.h>

enum {
  QUARTERS = 4,
  CALLS_LEAST = 16, // of a kind: four in each quarter
  // Values of a kind's times on a rank: the median, those of the quarters of
  // the run, the bounds of the middle half, and the first decile, which other
  // programs on the same cores hardly touch.
  MEDIAN = 0,
  QUARTER = 1,
  LOW = QUARTER + QUARTERS,
  HIGH,
  DECILE,
  VALUES,
};
static const int64_t OWN_MOST = INT64_C(1) << 40; // more is a damaged record
static const double TIME_LEAST_NS = 20e3; // shorter ones are the clock's

// How many times as long a rank must take: in the median of its calls; in each
// quarter, and in the first decile; of its middle calls, the first over the
// other rank's last. On cores of a processor, other programs, caches and
// denormal numbers make equal work differ by a half.
typedef struct bounds {
  double median, each, apart;
} bounds_t;
static const bounds_t of_gpus = {1.2, 1.12, 1.02}, of_cores = {1.5, 1.35, 1.1};

// Calls of one kind on one rank.
typedef struct lot {
  int64_t own; // extent of its piece; -1: it has changed
  int calls, room;
  double *took_ns; // in the order of the calls; owned
  double value[VALUES];
} lot_t;

typedef struct kind {
  lot_t *lot; // of each rank; owned
  bool good;
} kind_t;

typedef struct work {
  const cut_t *cut;
  bounds_t bounds;
  json_t *index; // key: number of its kind
  int kinds, room;
  kind_t *kind;
} work_t;

// ---- collecting ------------------------------------------------------------

// What calls of the same kind have in common on all ranks; NULL: the plan's
// calls are not compared.
static char *key_of(const cut_t *cut, const json_t *plan) {
  size_t index;
  json_t *operand, *all = json_array();
  const json_t *lead = cut_lead(plan);
  if (!lead || cut_dim(lead, cut->dim) < 0 ||
      !json_object_get(plan, "strategy") ||
      strcmp(recorded_text(plan, "strategy"), "whole") == 0) {
    json_decref(all);
    return NULL;
  }
  (void)json_array_append(all, json_object_get(plan, "entry"));
  (void)json_array_append(all, json_object_get(plan, "section"));
  if (json_object_get(plan, "window"))
    (void)json_array_append(all, json_object_get(plan, "window"));
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    const char *extents =
        json_object_get(operand, "whole") ? "whole" : "extent";
    (void)json_array_append(all, json_object_get(operand, "role"));
    (void)json_array_append(all, json_object_get(operand, extents));
    (void)json_array_append(all, json_object_get(operand, "bytes"));
  }
  char *key = json_dumps(all, JSON_COMPACT);
  json_decref(all);
  return key;
}

// Returns the index of the kind of a plan's calls; -1: they are not compared.
static int kind_get(work_t *work, const json_t *plan) {
  char *key = key_of(work->cut, plan);
  if (!key)
    return -1;
  const json_t *known = json_object_get(work->index, key);
  int number = known ? (int)json_integer_value(known) : work->kinds;
  if (!known && work->kinds == work->room) {
    int room = work->room ? 2 * work->room : 16;
    kind_t *more = realloc(work->kind, (size_t)room * sizeof *more);
    if (more) {
      work->kind = more;
      work->room = room;
    }
  }
  if (!known && work->kinds < work->room) {
    lot_t *lots = calloc((size_t)work->cut->run->found, sizeof *lots);
    if (lots &&
        json_object_set_new(work->index, key, json_integer(number)) == 0)
      work->kind[work->kinds++] = (kind_t){lots, true};
    else
      free(lots);
  }
  free(key);
  return number < work->kinds ? number : -1;
}

static void lot_add(lot_t *lot, int64_t own, int64_t took_ns) {
  if (lot->calls == 0)
    lot->own = own < OWN_MOST ? own : -1;
  else if (lot->own != own)
    lot->own = -1;
  if (lot->calls == lot->room) {
    int room = lot->room ? 2 * lot->room : 64;
    double *more = realloc(lot->took_ns, (size_t)room * sizeof *more);
    if (!more)
      return;
    lot->took_ns = more;
    lot->room = room;
  }
  lot->took_ns[lot->calls++] = (double)took_ns;
}

// Of a rank's plan: the index of its kind, -1: none, and the extent of the
// piece.
typedef struct share {
  int kind;
  int64_t own;
} share_t;

static share_t share_of(work_t *work, const json_t *plan) {
  const json_t *lead = cut_lead(plan);
  int kind = kind_get(work, plan);
  return (share_t){
      kind,
      kind < 0 ? 0 : cut_item(lead, "own", cut_dim(lead, work->cut->dim))};
}

static void rank_collect(work_t *work, int r) {
  const recorded_rank_t *rank = &work->cut->run->rank[r];
  share_t *share = calloc((size_t)rank->plans + 1, sizeof *share);
  for (int i = 0; i < rank->plans && share; i++)
    share[i] = share_of(work, rank->plan[i].line);
  for (int i = 0; i < rank->calls && share; i++) {
    const recorded_call_t *call = &rank->call[i];
    if (call->plan < 0 || !call->number || call->failed || call->real_ns <= 0)
      continue;
    const share_t *own = &share[call->plan];
    if (own->kind >= 0)
      lot_add(&work->kind[own->kind].lot[r], own->own, call->real_ns);
  }
  free(share);
}

static void collect(work_t *work) {
  for (int r = 0; r < work->cut->run->found; r++)
    rank_collect(work, r);
}

// ---- values ----------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  const double *p = a, *q = b;
  return (*p > *q) - (*p < *q);
}

// Sorts the times, and returns the one that `share` of them are below.
static double sorted_at(double *took_ns, int count, double share) {
  qsort(took_ns, (size_t)count, sizeof *took_ns, by_value);
  return took_ns[(int)(share * (count - 1))];
}

static void lot_values(lot_t *lot) {
  for (int q = 0; q < QUARTERS; q++) {
    int first = lot->calls * q / QUARTERS,
        end = lot->calls * (q + 1) / QUARTERS;
    lot->value[QUARTER + q] = sorted_at(lot->took_ns + first, end - first, 0.5);
  }
  lot->value[MEDIAN] = sorted_at(lot->took_ns, lot->calls, 0.5);
  lot->value[LOW] = sorted_at(lot->took_ns, lot->calls, 0.25);
  lot->value[HIGH] = sorted_at(lot->took_ns, lot->calls, 0.75);
  lot->value[DECILE] = sorted_at(lot->took_ns, lot->calls, 0.1);
}

static void values_find(work_t *work) {
  int ranks = work->cut->run->found;
  for (int k = 0; k < work->kinds; k++) {
    kind_t *kind = &work->kind[k];
    for (int r = 0; r < ranks; r++) {
      lot_t *lot = &kind->lot[r];
      kind->good &= lot->calls >= CALLS_LEAST && lot->own > 0;
      if (!kind->good)
        break;
      lot_values(lot);
      kind->good &= lot->value[MEDIAN] >= TIME_LEAST_NS;
    }
  }
}

// ---- comparing -------------------------------------------------------------

// How many times as long rank r takes as rank s would for the same work, at
// least: `of` of r's times over `to` of s's. 0: they are not compared.
static double ratio_of(const work_t *work, int r, int s, int of, int to) {
  double took = 0, other = 0;
  for (int k = 0; k < work->kinds; k++) {
    const lot_t *a = &work->kind[k].lot[r], *b = &work->kind[k].lot[s];
    if (!work->kind[k].good)
      continue;
    if (a->own > 2 * b->own || b->own > 2 * a->own)
      return 0;
    // Less work never takes longer.
    double more = a->own > b->own ? (double)a->own / (double)b->own : 1;
    took += a->calls * a->value[of];
    other += a->calls * b->value[to] * more;
  }
  return other > 0 ? took / other : 0;
}

// Rank r's time over rank s's, if it is slower beyond noise; 0: it is not.
static double slower(const work_t *work, int r, int s) {
  const bounds_t *bounds = &work->bounds;
  double ratio = ratio_of(work, r, s, MEDIAN, MEDIAN);
  if (ratio < bounds->median ||
      ratio_of(work, r, s, LOW, HIGH) < bounds->apart ||
      ratio_of(work, r, s, DECILE, DECILE) < bounds->each)
    return 0;
  for (int q = QUARTER; q < QUARTER + QUARTERS; q++)
    if (ratio_of(work, r, s, q, q) < bounds->each)
      return 0;
  return ratio;
}

// The factor of rank r: the median of those against the others that it differs
// from, if they are more than half of them.
static double factor_of(const work_t *work, int r) {
  double above[SDG_RANKS_MAX], below[SDG_RANKS_MAX];
  int slow = 0, fast = 0, others = work->cut->run->found - 1;
  for (int s = 0; s <= others; s++) {
    double ratio = s == r ? 0 : slower(work, r, s);
    if (ratio > 0)
      above[slow++] = ratio;
    ratio = s == r ? 0 : slower(work, s, r);
    if (ratio > 0)
      below[fast++] = ratio;
  }
  if (2 * slow > others)
    return sorted_at(above, slow, 0.5);
  // Of two ranks, one is slow, and the other one is not fast.
  return 2 * fast > others && others > 1 ? 1 / sorted_at(below, fast, 0.5) : 1;
}

static void work_fini(work_t *work) {
  for (int k = 0; k < work->kinds; k++) {
    for (int r = 0; r < work->cut->run->found; r++)
      free(work->kind[k].lot[r].took_ns);
    free(work->kind[k].lot);
  }
  free(work->kind);
  json_decref(work->index);
}

// Whether a rank computes on the host device, whose libraries have a folder of
// their own.
static bool is_host(const recorded_t *run) {
  for (int r = 0; r < run->found; r++) {
    size_t index;
    json_t *path;
    json_array_foreach(json_object_get(run->rank[r].totals, "libraries"), index,
                       path) {
      if (json_is_string(path) && strstr(json_string_value(path), "/host/"))
        return true;
    }
  }
  return false;
}

bool speed_find(const cut_t *cut, speed_t *out) {
  work_t work = {.cut = cut,
                 .bounds = is_host(cut->run) ? of_cores : of_gpus,
                 .index = json_object()};
  *out = (speed_t){.calls = 0};
  collect(&work);
  values_find(&work);
  for (int k = 0; k < work.kinds; k++) {
    if (!work.kind[k].good)
      continue;
    out->calls += work.kind[k].lot[0].calls;
    for (int r = 0; r < cut->run->found; r++)
      out->took_ns[r] +=
          work.kind[k].lot[r].calls * work.kind[k].lot[r].value[MEDIAN];
  }
  for (int r = 0; r < cut->run->found && out->calls; r++) {
    out->factor[r] = factor_of(&work, r);
    out->slow += out->factor[r] > 1;
    out->fast += out->factor[r] < 1;
  }
  work_fini(&work);
  return out->calls > 0;
}
