// SPDX-License-Identifier: Apache-2.0
// Advises `keep = x`: gradients of filters fetch halos that forward calls have
// had.
#include <stdlib.h>
#include <string.h>

#include "rules/memory/kept_slot.h"
#include "src/base/channel.h"
#include "tools/report/advice/sums.h"
#include "tools/report/advice/advisers.h"
#include "tools/report/advice/cut.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

static const char gradient[] = "cudnnConvolutionBackwardFilter";

static bool is_gradient(const json_t *plan) {
  return strcmp(recorded_text(plan, "entry"), gradient) == 0;
}

static bool is_forward(const json_t *plan) {
  const char *entry = recorded_text(plan, "entry");
  return strcmp(entry, "cudnnConvolutionForward") == 0 ||
         strcmp(entry, "cudnnConvolutionBiasActivationForward") == 0;
}

static const json_t *operand_of(const json_t *plan, const char *role) {
  size_t index;
  json_t *operand;
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    if (strcmp(recorded_text(operand, "role"), role) == 0)
      return operand;
  }
  return NULL;
}

static bool alike(const json_t *a, const json_t *b, const char *name) {
  return json_equal(json_object_get(a, name), json_object_get(b, name));
}

static bool same_place(const json_t *a, const json_t *b) {
  return a && b && alike(a, b, "whole") && alike(a, b, "first") &&
         alike(a, b, "own") && alike(a, b, "bytes") && alike(a, b, "split");
}

// Whether the gradient can use what the forward call fetched.
static bool fits(const json_t *forward, const json_t *plan) {
  return alike(forward, plan, "window") && alike(forward, plan, "section") &&
         same_place(operand_of(forward, "x"), operand_of(plan, "x")) &&
         same_place(operand_of(forward, "y"), operand_of(plan, "dy"));
}

// ---- what would be kept ----------------------------------------------------

// The halo of a tensor in memory, fetched by a forward call.
typedef struct kept {
  int64_t x, number; // address; which of the forward calls
  const json_t *forward;
} kept_t;

static kept_t *kept_find(kept_t *kept, int64_t x) {
  for (int i = 0; i < SDG_KEPT_SLOTS; i++)
    if (kept[i].number && kept[i].x == x)
      return &kept[i];
  return NULL;
}

static kept_t *kept_oldest(kept_t *kept) {
  kept_t *oldest = kept;
  for (int i = 1; i < SDG_KEPT_SLOTS; i++)
    if (kept[i].number < oldest->number)
      oldest = &kept[i];
  return oldest;
}

// Whether the plan sends or receives: then it leaves what is kept, even if that
// is nothing on this rank.
static bool exchanges(const json_t *plan) {
  return json_array_size(json_object_get(plan, "messages")) > 0;
}

// A convolution fetches the halo of x, or may use the one that was kept.
// Returns the bytes that it saves.
static int64_t conv_save(const recorded_call_t *call,
                         const recorded_plan_t *plan, kept_t *kept,
                         int64_t *number) {
  kept_t *known = kept_find(kept, call->x);
  if (is_forward(plan->line) && exchanges(plan->line)) {
    kept_t *slot = known ? known : kept_oldest(kept);
    *slot = (kept_t){call->x, ++*number, plan->line};
  } else if (is_gradient(plan->line) && known &&
             known->number + SDG_KEPT_SLOTS > *number &&
             fits(known->forward, plan->line)) {
    return plan->formula_bytes;
  }
  return 0;
}

// Returns the bytes that a rank would not receive: it goes through its calls as
// the promise would have them carried out. Each thread has its own halos. Where
// a call writes x, they are fetched again.
static int64_t rank_saves(const recorded_rank_t *rank, int thread,
                          kept_t *kept) {
  int64_t number = 0, saved = 0;
  memset(kept, 0, SDG_KEPT_SLOTS * sizeof *kept);
  for (int i = 0; i < rank->calls; i++) {
    const recorded_call_t *call = &rank->call[i];
    if (!call->number || call->failed)
      continue;
    if (call->plan >= 0 && call->thread == thread && call->x)
      saved += conv_save(call, &rank->plan[call->plan], kept, &number);
    kept_t *written = call->y ? kept_find(kept, call->y) : NULL;
    if (written)
      written->number = 0;
  }
  return saved;
}

// ---- the proof -------------------------------------------------------------

static bool is_of(const char *entry, bool data) {
  return strcmp(entry, gradient) == 0 ||
         (data && strcmp(entry, "cudnnConvolutionBackwardData") == 0);
}

// Whether calls were captured into a CUDA graph: they fetch at its launches,
// of which the record has no lines.
static bool captures(const recorded_rank_t *rank) {
  for (int i = 0; i < rank->calls; i++)
    if (rank->call[i].captured)
      return true;
  return false;
}

// Whether gradients receive what the formula says: calls that have the promise
// do not. `data`: with gradients of the data, whose halos `keep = dy` brings
// before.
static bool is_formula(const recorded_t *run, bool data) {
  int64_t formula = 0, received = 0;
  for (int r = 0; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    if (!rank->totals || rank->full || rank->broken || captures(rank))
      return false;
    for (int i = 0; i < rank->plans; i++) {
      const recorded_plan_t *plan = &rank->plan[i];
      if (!is_of(recorded_text(plan->line, "entry"), data) || plan->calls == 0)
        continue;
      if (plan->formula_bytes < 0)
        return false;
      formula += plan->formula_bytes * plan->calls;
    }
    for (int k = 0; k < run->kinds; k++)
      received += is_of(run->kind[k].entry, data)
                      ? sums_rank(run, rank, k).received_bytes
                      : 0;
  }
  return formula > 0 && formula == received;
}

// Whether the program's extents are those of pieces: the whole view needs no
// promise.
static bool is_shard(const recorded_t *run) {
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const json_t *x = operand_of(run->rank[r].plan[i].line, "x");
      if (x && is_gradient(run->rank[r].plan[i].line) &&
          !json_equal(json_object_get(x, "whole"),
                      json_object_get(x, "extent")))
        return true;
    }
  return false;
}

// Notes which threads make convolutions.
static void threads_note(const recorded_rank_t *rank,
                         bool out_seen[SDG_CHANNEL_THREADS]) {
  memset(out_seen, 0, SDG_CHANNEL_THREADS * sizeof *out_seen);
  for (int i = 0; i < rank->calls; i++) {
    int thread = rank->call[i].thread;
    if (rank->call[i].x && thread >= 0 && thread < SDG_CHANNEL_THREADS)
      out_seen[thread] = true;
  }
}

static int64_t run_saves(const recorded_t *run) {
  kept_t *kept = calloc(SDG_KEPT_SLOTS, sizeof *kept);
  int64_t saved = 0;
  for (int r = 0; r < run->found && kept; r++) {
    bool seen[SDG_CHANNEL_THREADS];
    threads_note(&run->rank[r], seen);
    for (int thread = 0; thread < SDG_CHANNEL_THREADS; thread++)
      saved += seen[thread] ? rank_saves(&run->rank[r], thread, kept) : 0;
  }
  free(kept);
  return saved;
}

// "x", or "x dy" where all sections promise dy already; NULL: some do.
static const char *value_of(const place_t *place) {
  int sections = place->option ? 1 : place->sections, promised = 0;
  for (int i = 0; i < sections; i++) {
    char *old = place_value(place, i, "keep");
    promised += old && strcmp(old, "no") != 0;
    free(old);
  }
  return promised == 0 ? "x" : promised == sections ? "x dy" : NULL;
}

void advise_keep(const recorded_t *run, json_t *list) {
  place_t place;
  int64_t received = 0, saved;
  if (run->found < run->ranks || !is_shard(run) ||
      !(is_formula(run, false) || is_formula(run, true)) ||
      !place_find(run, is_gradient, &place) || !value_of(&place) ||
      (saved = run_saves(run)) == 0)
    return;
  for (int r = 0; r < run->found; r++)
    received += sums_rank(run, &run->rank[r], -1).received_bytes;
  json_t *advice = said_add(
      list,
      &(said_t){.about = "keep",
                .text = said_text(
                    "Gradients of filters fetch halos of x that the forward "
                    "calls have fetched. If the program does not write x "
                    "between the two, promise it; a run with --check finds a "
                    "promise that is not kept (SDG-617)."),
                .line = place_line(&place, "keep", value_of(&place)),
                .where = place_where(&place, "keep"),
                .effect = said_bytes_effect(received, received - saved),
                .sections = place_sections(&place)});
  if (advice)
    said_bytes(advice, received, received - saved);
}
