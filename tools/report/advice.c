// SPDX-License-Identifier: Apache-2.0
// Compares the run with what formulas say of other ways to split it.
#include "tools/report/advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/formula.h"
#include "tools/report/kinds.h"
#include "tools/report/ranks.h"

// The one way in which all windowed calls of the run are split.
typedef struct cut {
  const json_t *operand; // of the plan with the most bytes
  int dim;               // split
  bool shard;            // the program's extents are those of pieces
  // Of all ranks in the run: all; of tensors fetched for a copy; by formula.
  int64_t received_bytes, fetched_bytes, formula_bytes;
} cut_t;

static int64_t item(const json_t *object, const char *name, int index) {
  return (int64_t)json_integer_value(
      json_array_get(json_object_get(object, name), (size_t)index));
}

// Returns the only dimension that is split; -1: none, or several.
static int split_dim(const json_t *operand) {
  int dims = (int)json_array_size(json_object_get(operand, "whole")), dim = -1;
  for (int d = 0; d < dims; d++)
    if (item(operand, "own", d) != item(operand, "whole", d)) {
      if (dim >= 0)
        return -1;
      dim = d;
    }
  return dim;
}

// Adds up what the ranks received: tensors fetched whole, and all else; returns
// whether the latter is what the formula says. In the whole view it may be
// less, because halos that are there do not travel.
static bool is_formula(const recorded_t *run, cut_t *cut) {
  for (int r = 0; r < run->found; r++) {
    for (int k = 0; k < run->kinds; k++) {
      int64_t bytes = kinds_rank(run, &run->rank[r], k).received_bytes;
      cut->received_bytes += bytes;
      cut->fetched_bytes +=
          strcmp(run->kind[k].strategy, "update") == 0 ? bytes : 0;
    }
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      if (plan->formula_bytes > 0)
        cut->formula_bytes += plan->formula_bytes * plan->calls;
    }
  }
  int64_t halo = cut->received_bytes - cut->fetched_bytes;
  return halo > 0 &&
         (cut->shard ? halo == cut->formula_bytes : halo <= cut->formula_bytes);
}

static bool cut_find(const recorded_t *run, cut_t *out) {
  int64_t most = 0;
  *out = (cut_t){.dim = -1};
  if (run->found < run->ranks || run->ranks < 2)
    return false;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      formula_need_t f;
      if (plan->formula_bytes <= 0 || !formula_need(plan->line, &f))
        continue;
      int dim = split_dim(f.operand);
      if (dim < 0 || (out->dim >= 0 && dim != out->dim))
        return false;
      out->dim = dim;
      if (plan->formula_bytes * plan->calls <= most)
        continue;
      most = plan->formula_bytes * plan->calls;
      out->operand = f.operand;
      out->shard = json_equal(json_object_get(f.operand, "own"),
                              json_object_get(f.operand, "extent"));
    }
  // One axis with all ranks: other axes are the program's own.
  return out->dim >= 0 &&
         json_array_size(json_object_get(run->rank[0].facts, "mesh")) == 1 &&
         is_formula(run, out);
}

// Bytes of the run if `dim` alone were split over as many ranks, `ranks`: -1:
// not known. All ranks make the same calls, so that those of one count. Where
// some halos do not travel, all windows must need less in the same ratio.
static int64_t run_predict(const recorded_t *run, const cut_t *cut, int dim,
                           int ranks) {
  int64_t bytes = 0, now = 0, first = -1, first_now = 0;
  int64_t halo = cut->received_bytes - cut->fetched_bytes;
  for (int i = 0; i < run->rank[0].plans; i++) {
    const recorded_plan_t *plan = &run->rank[0].plan[i];
    if (plan->formula_bytes < 0 || plan->calls == 0)
      continue;
    int64_t one = formula_predict(plan->line, dim, ranks),
            one_now = formula_predict(plan->line, cut->dim, run->ranks);
    if (one < 0)
      return -1;
    if (first < 0) {
      first = one;
      first_now = one_now;
    }
    if (halo < cut->formula_bytes &&
        (one_now < 0 ||
         (double)one * (double)first_now != (double)first * (double)one_now))
      return -1;
    bytes += one * plan->calls;
    now += one_now * plan->calls;
  }
  if (halo == cut->formula_bytes)
    return bytes + cut->fetched_bytes;
  // Uneven parts have other halos than `now`.
  return now == cut->formula_bytes
             ? (int64_t)((double)halo * (double)bytes / (double)now) +
                   cut->fetched_bytes
             : -1;
}

static char *format(const char *text, ...)
    __attribute__((format(printf, 1, 2)));
static char *format(const char *text, ...) {
  char *out = NULL;
  va_list args;
  va_start(args, text);
  int n = vasprintf(&out, text, args);
  va_end(args);
  return n < 0 ? NULL : out;
}

// Takes the texts, which are owned.
static void advice_add(json_t *list, const char *about, char *text, char *line,
                       char *effect, int64_t received, int64_t predicted) {
  if (text && line && effect) {
    json_t *advice = json_pack("{s:s,s:s,s:s,s:s}", "about", about, "text",
                               text, "line", line, "effect", effect);
    if (received >= 0) {
      (void)json_object_set_new(advice, "received_bytes",
                                json_integer(received));
      (void)json_object_set_new(advice, "predicted_bytes",
                                json_integer(predicted));
    }
    (void)json_array_append_new(list, advice);
  }
  free(text);
  free(line);
  free(effect);
}

static const char *name_of(const cut_t *cut, int dim) {
  const char *name = json_string_value(
      json_array_get(json_object_get(cut->operand, "names"), (size_t)dim));
  return name ? name : "";
}

static char *bytes_effect(int64_t now, int64_t then) {
  return format("All ranks receive %" PRId64 " bytes in this run instead of "
                "%" PRId64 ".",
                then, now);
}

// Another dimension of which windows need less.
static void axis_advise(const recorded_t *run, const cut_t *cut, json_t *list) {
  int dims = (int)json_array_size(json_object_get(cut->operand, "whole")),
      best = -1;
  int64_t least = 0;
  for (int d = 2; d < dims; d++) {
    int64_t bytes = d == cut->dim ? -1 : run_predict(run, cut, d, run->ranks);
    if (bytes >= 0 && (best < 0 || bytes < least)) {
      best = d;
      least = bytes;
    }
  }
  // A tenth is not worth new pieces.
  if (best < 0 ||
      10 * (least - cut->fetched_bytes) >
          9 * (cut->received_bytes - cut->fetched_bytes) ||
      !*name_of(cut, best))
    return;
  advice_add(
      list, "axis",
      format("Split %s instead of %s%s: less of it lies at the borders.",
             name_of(cut, best), name_of(cut, cut->dim),
             cut->shard ? ", and cut the input in the same way" : ""),
      format(cut->shard ? "split = %s      # sundog split --dim %s -n %d FILE"
                        : "split = %s",
             name_of(cut, best), name_of(cut, best), run->ranks),
      bytes_effect(cut->received_bytes, least), cut->received_bytes, least);
}

// Pieces of which half is needed by neighbours, too.
static void ranks_advise(const recorded_t *run, const cut_t *cut,
                         json_t *list) {
  int fewer = run->ranks / 2;
  int64_t now, own = 0, halo = 0;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      formula_need_t f;
      if (plan->formula_bytes <= 0 || !formula_need(plan->line, &f))
        continue;
      halo += plan->formula_bytes * plan->calls;
      own += sdg_box_count(&f.own) * plan->calls *
             recorded_number(f.operand, "bytes");
    }
  now = fewer > 1 ? run_predict(run, cut, cut->dim, fewer) : 0;
  // Fewer ranks fetch less of whole tensors, too, by another formula.
  if (cut->fetched_bytes > 0 || 2 * halo < own || now < 0 ||
      now >= cut->received_bytes)
    return;
  advice_add(list, "ranks",
             format("The pieces are small: of each 100 bytes that a rank owns, "
                    "windows need %" PRId64 " more of its neighbours.",
                    100 * halo / (own > 0 ? own : 1)),
             format("-n %d", fewer), bytes_effect(cut->received_bytes, now),
             cut->received_bytes, now);
}

// Uneven pieces, if the largest one computes longest.
static void parts_advise(const recorded_t *run, const cut_t *cut,
                         json_t *list) {
  int64_t whole = item(cut->operand, "whole", cut->dim), most = 0, longest = 0;
  int largest = -1, slowest = -1;
  for (int r = 0; r < run->found; r++) {
    int64_t real_ns = ranks_times(&run->rank[r]).phase_ns[SDG_PHASE_REAL];
    for (int i = 0; i < run->rank[r].plans; i++) {
      formula_need_t f;
      if (!formula_need(run->rank[r].plan[i].line, &f) ||
          item(f.operand, "whole", cut->dim) != whole)
        continue;
      int64_t rows = item(f.operand, "own", cut->dim);
      if (rows > most) {
        most = rows;
        largest = r;
      }
    }
    if (real_ns > longest) {
      longest = real_ns;
      slowest = r;
    }
  }
  int64_t even = (whole + run->ranks - 1) / run->ranks;
  if (largest < 0 || largest != slowest || 4 * most < 5 * even)
    return;
  advice_add(list, "parts",
             format("Rank %d has %" PRId64 " of %" PRId64
                    " in %s, and computes "
                    "longest; even parts have at most %" PRId64 ".",
                    run->rank[largest].rank, most, whole,
                    name_of(cut, cut->dim), even),
             cut->shard ? format("sundog split --dim %s -n %d FILE",
                                 name_of(cut, cut->dim), run->ranks)
                        : format("parts = even"),
             format("The largest piece shrinks to %" PRId64 " %% of its size.",
                    100 * even / most),
             -1, 0);
}

// Whether the program's extents are those of pieces.
static bool is_shard(const recorded_t *run) {
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      formula_need_t f;
      if (formula_need(run->rank[r].plan[i].line, &f) &&
          !json_equal(json_object_get(f.operand, "whole"),
                      json_object_get(f.operand, "extent")))
        return true;
    }
  return false;
}

// Bytes of the formula in all calls of an entry.
static int64_t entry_formula(const recorded_t *run, const char *entry) {
  int64_t bytes = 0;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const recorded_plan_t *plan = &run->rank[r].plan[i];
      if (plan->formula_bytes > 0 &&
          strcmp(recorded_text(plan->line, "entry"), entry) == 0)
        bytes += plan->formula_bytes * plan->calls;
    }
  return bytes;
}

static int64_t entry_received(const recorded_t *run, const char *entry) {
  int64_t bytes = 0;
  for (int r = 0; r < run->found; r++)
    for (int k = 0; k < run->kinds; k++)
      if (strcmp(run->kind[k].entry, entry) == 0)
        bytes += kinds_rank(run, &run->rank[r], k).received_bytes;
  return bytes;
}

// Gradients of filters fetch the halo of x that the forward call has had.
static void keep_advise(const recorded_t *run, json_t *list) {
  static const char gradient[] = "cudnnConvolutionBackwardFilter";
  int64_t saved = entry_formula(run, gradient), received = 0;
  // Calls that have the promise already receive less than the formula.
  if (saved == 0 || saved != entry_received(run, gradient) || !is_shard(run) ||
      saved > entry_formula(run, "cudnnConvolutionForward"))
    return;
  for (int r = 0; r < run->found; r++)
    received += kinds_rank(run, &run->rank[r], -1).received_bytes;
  advice_add(list, "keep",
             format("Gradients of filters fetch halos of x that the forward "
                    "calls have fetched. If the program does not write x "
                    "between the two, promise it in the section."),
             format("keep = x"), bytes_effect(received, received - saved),
             received, received - saved);
}

json_t *advice_make(const recorded_t *run) {
  json_t *list = json_array();
  cut_t cut;
  if (list && cut_find(run, &cut)) {
    axis_advise(run, &cut, list);
    ranks_advise(run, &cut, list);
    parts_advise(run, &cut, list);
  }
  if (list)
    keep_advise(run, list);
  return list;
}
