// SPDX-License-Identifier: Apache-2.0
// Predicts what a run would receive if it were cut otherwise.
#include <stdlib.h>
#include <string.h>

#include "tools/record/formula.h"
#include "tools/report/advice/cut.h"
#include "tools/report/advice/sizes.h"

static int64_t channels_of(const json_t *plan, const char *role) {
  size_t index;
  json_t *operand;
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    if (strcmp(recorded_text(operand, "role"), role) == 0)
      return cut_item(operand, "whole", 1);
  }
  return 0;
}

// Whether `auto` may send sums of dx instead of rows of dy where these are
// more.
static bool may_be_adjoint(const json_t *plan) {
  return strcmp(recorded_text(plan, "entry"), "cudnnConvolutionBackwardData") ==
             0 &&
         channels_of(plan, "dy") > channels_of(plan, "dx");
}

static bool has_all(const sdg_part_t *part, int64_t extent) {
  for (int r = 0; r < part->pieces; r++)
    if (sdg_part_size(part, r) == extent)
      return true;
  return extent == sdg_part_extent(part);
}

// Whether the window of a pooling is as large as a piece, or as the domain: it
// may be set by the program's extents, and change with them.
static bool may_be_global(const cut_t *cut, const json_t *plan,
                          const formula_ends_t *ends, const sdg_part_t *x) {
  return cut->shard && strcmp(recorded_text(plan, "family"), "pool") == 0 &&
         ends->window.kernel > 1 && has_all(x, ends->window.kernel);
}

static bool plan_predict(const cut_t *cut, const sizes_t *sizes,
                         const json_t *plan, const char *dim,
                         formula_then_t *out) {
  formula_ends_t ends;
  const sdg_part_t *x, *y;
  return formula_ends(plan, dim, &ends) &&
         (x = sizes_part(sizes, ends.x)) != NULL &&
         (y = sizes_part(sizes, ends.y)) != NULL &&
         formula_predict(plan, dim, x, y, out) &&
         !may_be_global(cut, plan, &ends, x) &&
         (out->bytes == 0 || !may_be_adjoint(plan));
}

// ---- what each window needs ------------------------------------------------

// What the windows of a plan of the first rank need, and would need. Both 0: it
// has no window.
typedef struct need {
  formula_then_t now, then;
  int64_t at; // what is read; 0: not known
  bool many;  // several tensors
} need_t;

typedef struct needs {
  const cut_t *cut;
  need_t *plan; // of the first rank's plans; owned
  int64_t now, then;
  bool anywhere; // a window may read any tensor
} needs_t;

static bool is_none(const need_t *need) {
  return need->now.bytes == 0 && need->then.bytes == 0;
}

static bool needs_find(needs_t *needs, const sizes_t *sizes_now,
                       const sizes_t *sizes_then, const char *dim) {
  const cut_t *cut = needs->cut;
  const recorded_rank_t *rank = &cut->run->rank[0];
  needs->plan = calloc((size_t)rank->plans + 1, sizeof *needs->plan);
  // All ranks make the same calls, so that those of one count.
  for (int i = 0; i < rank->plans; i++) {
    const recorded_plan_t *plan = &rank->plan[i];
    if (plan->formula_bytes < 0 || plan->calls == 0)
      continue;
    if (!needs->plan ||
        !plan_predict(cut, sizes_then, plan->line, dim, &needs->plan[i].then) ||
        !plan_predict(cut, sizes_now, plan->line, cut->dim,
                      &needs->plan[i].now))
      return false;
    needs->now += needs->plan[i].now.bytes * plan->calls;
    needs->then += needs->plan[i].then.bytes * plan->calls;
  }
  return needs->plan && needs->now > 0 && needs->now == cut->formula_bytes;
}

// ---- halos that serve several windows ---------------------------------------

static bool alike(const need_t *a, const need_t *b) {
  return a->now.bytes == b->now.bytes && a->then.bytes == b->then.bytes &&
         a->now.low == b->now.low && a->now.high == b->now.high &&
         a->then.low == b->then.low && a->then.high == b->then.high;
}

// Whether windows need nothing where they need nothing now.
static bool apart(const need_t *need) {
  return (need->now.all_low || !need->then.low) &&
         (need->now.all_high || !need->then.high);
}

// Whether another kind of window reads what this call reads.
static bool is_shared(const needs_t *needs, const recorded_call_t *call) {
  const recorded_rank_t *rank = &needs->cut->run->rank[0];
  for (int i = 0; i < rank->plans; i++) {
    const need_t *other = &needs->plan[i];
    if (i != call->plan && !is_none(other) &&
        (needs->anywhere || other->many || other->at == call->x) &&
        !alike(other, &needs->plan[call->plan]))
      return true;
  }
  return false;
}

static bool has_window(const needs_t *needs, const recorded_call_t *call) {
  return call->number && call->plan >= 0 && !is_none(&needs->plan[call->plan]);
}

static void tensors_note(needs_t *needs) {
  const recorded_rank_t *rank = &needs->cut->run->rank[0];
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    if (!has_window(needs, call))
      continue;
    need_t *need = &needs->plan[call->plan];
    needs->anywhere |= call->x == 0;
    need->many |= need->at && need->at != call->x;
    need->at = call->x;
  }
}

// What all ranks received for a call of the first one; -1: not known.
static int64_t call_bytes(const recorded_t *run, const recorded_call_t *call,
                          int *at) {
  int64_t bytes = call->received_bytes;
  for (int r = 1; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    while (at[r] < rank->calls && rank->call[at[r]].number != call->number)
      at[r]++;
    if (at[r] == rank->calls)
      return -1;
    bytes += rank->call[at[r]].received_bytes;
  }
  return bytes;
}

// The whole view: what windows would receive, if each call now received either
// all that it needs or nothing, because what it reads has not been written
// since; -1: not known. Where windows of several kinds read the same, one may
// bring a part of what another one needs, unless all need the same, or none
// finds anything, nor will.
static int64_t calls_bytes(needs_t *needs) {
  const recorded_t *run = needs->cut->run;
  int at[SDG_RANKS_MAX] = {0};
  int64_t bytes = 0;
  tensors_note(needs);
  for (int i = 0; i < run->rank[0].calls; i++) {
    const recorded_call_t *call = &run->rank[0].call[i];
    if (call->thread != 0)
      return -1;
    if (!has_window(needs, call))
      continue;
    const need_t *need = &needs->plan[call->plan];
    int64_t now = call_bytes(run, call, at);
    bool all = now == need->now.bytes;
    if ((!all && now != 0) || need->now.bytes == 0 ||
        (is_shared(needs, call) && !(all && apart(need))))
      return -1;
    bytes += all ? need->then.bytes : 0;
  }
  return bytes;
}

// The same, if all windows need less in the same ratio.
static int64_t ratio_bytes(const needs_t *needs) {
  const cut_t *cut = needs->cut;
  double exact =
      (double)cut->halo_bytes * (double)needs->then / (double)needs->now;
  for (int i = 0; i < cut->run->rank[0].plans; i++)
    if ((double)needs->plan[i].then.bytes * (double)needs->now !=
        (double)needs->plan[i].now.bytes * (double)needs->then)
      return -1;
  return exact < 1e15 && (double)(int64_t)exact == exact ? (int64_t)exact : -1;
}

static int64_t halo_bytes(needs_t *needs) {
  if (needs->cut->shard)
    return needs->then;
  int64_t bytes = ratio_bytes(needs);
  return bytes < 0 ? calls_bytes(needs) : bytes;
}

// Whether all tensors have so many images that the ranks get as many each.
static bool divides_images(const cut_t *cut, int ranks) {
  const recorded_rank_t *rank = &cut->run->rank[0];
  for (int i = 0; i < rank->plans; i++) {
    size_t index;
    json_t *operand;
    json_array_foreach(json_object_get(rank->plan[i].line, "operands"), index,
                       operand) {
      if (json_object_get(operand, "whole") &&
          (cut_dim(operand, "N") != 0 ||
           cut_item(operand, "whole", 0) % ranks != 0))
        return false;
    }
  }
  return true;
}

static int64_t windows_predict(const cut_t *cut, const char *dim, int ranks) {
  sizes_t now = {.count = 0}, then = {.count = 0};
  needs_t needs = {.cut = cut};
  int64_t bytes = -1;
  if (sizes_find(cut, dim, ranks, &then) && sizes_now(cut, &now) &&
      needs_find(&needs, &now, &then, dim))
    bytes = halo_bytes(&needs);
  sizes_fini(&now);
  sizes_fini(&then);
  free(needs.plan);
  return bytes;
}

int64_t cut_predict(const cut_t *cut, const char *dim, int ranks) {
  int64_t rest = cut->fetched_bytes + cut->first_bytes, bytes;
  // No window sees another image.
  if (strcmp(dim, "N") == 0)
    bytes = divides_images(cut, ranks) ? 0 : -1;
  else
    bytes = windows_predict(cut, dim, ranks);
  return bytes < 0 ? -1 : bytes + rest / (cut->run->ranks - 1) * (ranks - 1);
}
