// SPDX-License-Identifier: Apache-2.0
// Advises parts that balance what the ranks compute: even ones, or, where a
// rank's device or core is slow or fast beyond noise, parts by speed.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/formula.h"
#include "tools/report/advice/advisers.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"
#include "tools/report/advice/speed.h"

typedef struct balance {
  const cut_t *cut;
  speed_t speed;
  int64_t whole; // the largest extent of the dimension that is cut
  int64_t grain; // borders of parts are multiples, so that smaller extents
                 // have the same parts
  int64_t reach; // the largest halo of the whole extent
  int64_t own[SDG_RANKS_MAX], then[SDG_RANKS_MAX];
  double now_ns, then_ns; // of the rank that computes longest
} balance_t;

// ---- the parts of now ------------------------------------------------------

static int64_t multiple_of(int64_t a, int64_t b) {
  int64_t n = a, rest = b;
  while (rest) {
    int64_t next = n % rest;
    n = rest;
    rest = next;
  }
  return a / n * b;
}

// Notes a tensor's part; false if it is no fraction of the whole's.
static bool part_note(balance_t *b, int rank, const json_t *operand, int dim) {
  int64_t whole = cut_item(operand, "whole", dim),
          own = cut_item(operand, "own", dim);
  if (whole <= 0 || own < 0 || own > whole || b->whole % whole != 0)
    return false;
  int64_t times = b->whole / whole;
  b->grain = multiple_of(b->grain, times);
  if (b->own[rank] < 0)
    b->own[rank] = own * times;
  return b->own[rank] == own * times;
}

static void reach_note(balance_t *b, const json_t *plan) {
  formula_need_t f;
  if (!formula_need(plan, &f))
    return;
  int dim = cut_dim(f.operand, b->cut->dim);
  int64_t whole = dim < 0 ? 0 : cut_item(f.operand, "whole", dim);
  if (whole <= 0)
    return;
  int64_t times = b->whole / whole,
          low = f.own.dim[dim].lo - f.need.dim[dim].lo,
          high = f.need.dim[dim].hi - f.own.dim[dim].hi;
  b->reach = low * times > b->reach ? low * times : b->reach;
  b->reach = high * times > b->reach ? high * times : b->reach;
}

static bool is_cut(const json_t *operand, int dim) {
  return cut_item(operand, "own", dim) != cut_item(operand, "whole", dim);
}

typedef bool note_t(balance_t *b, int rank, const json_t *operand, int dim);

static bool largest_note(balance_t *b, int rank, const json_t *operand,
                         int dim) {
  int64_t whole = cut_item(operand, "whole", dim);
  (void)rank;
  b->whole = whole > b->whole ? whole : b->whole;
  return true;
}

// Notes all tensors that are cut.
static bool all_note(balance_t *b, note_t *note) {
  const recorded_t *run = b->cut->run;
  for (int r = 0; r < run->found; r++)
    for (int i = 0; i < run->rank[r].plans; i++) {
      const json_t *plan = run->rank[r].plan[i].line;
      size_t index;
      json_t *operand;
      if (!json_object_get(plan, "strategy"))
        continue;
      json_array_foreach(json_object_get(plan, "operands"), index, operand) {
        int dim = cut_dim(operand, b->cut->dim);
        if (dim >= 0 && is_cut(operand, dim) && !note(b, r, operand, dim))
          return false;
      }
      if (note == part_note)
        reach_note(b, plan);
    }
  return true;
}

static bool parts_read(balance_t *b) {
  int64_t sum = 0;
  for (int r = 0; r < b->cut->run->found; r++)
    b->own[r] = -1;
  b->grain = 1;
  (void)all_note(b, largest_note);
  if (!all_note(b, part_note) || b->whole % b->grain != 0)
    return false;
  for (int r = 0; r < b->cut->run->found; r++)
    sum += b->own[r] > 0 ? b->own[r] : b->whole + 1;
  return sum == b->whole;
}

// ---- the parts of then -----------------------------------------------------

// Sizes in the ratio of 1 / factor, in grains; what is left over goes to the
// ranks that lack most.
static bool parts_make(balance_t *b) {
  int ranks = b->cut->run->found;
  int64_t grains = b->whole / b->grain, left = grains;
  double sum = 0, exact[SDG_RANKS_MAX];
  for (int r = 0; r < ranks; r++)
    sum += 1 / b->speed.factor[r];
  for (int r = 0; r < ranks; r++) {
    exact[r] = (double)grains / b->speed.factor[r] / sum;
    b->then[r] = (int64_t)exact[r];
    left -= b->then[r];
  }
  for (; left > 0; left--) {
    int most = 0;
    for (int r = 1; r < ranks; r++)
      if (exact[r] - (double)b->then[r] >
          exact[most] - (double)b->then[most] + 1e-9)
        most = r;
    b->then[most]++;
  }
  for (int r = 0; r < ranks; r++) {
    b->then[r] *= b->grain;
    if (b->then[r] <= b->reach || b->then[r] == 0)
      return false;
  }
  return true;
}

// The extent of what the program cuts, or reads from a file: of the first
// tensor that it uses.
static int64_t input_of(const cut_t *cut) {
  const recorded_rank_t *rank = &cut->run->rank[0];
  for (int i = 0; i < rank->plans; i++) {
    const json_t *plan = rank->plan[i].line;
    size_t index;
    json_t *operand;
    json_array_foreach(json_object_get(plan, "operands"), index, operand) {
      int dim = cut_dim(operand, cut->dim);
      if (json_object_get(plan, "strategy") && dim >= 0 &&
          is_cut(operand, dim) &&
          !json_is_true(json_object_get(operand, "output")))
        return cut_item(operand, "whole", dim);
    }
  }
  return 0;
}

// Counts in the input's elements. 648 rows are made of 108: parts of 324 are 54
// of the input.
static bool input_count(balance_t *b) {
  int64_t input = input_of(b->cut);
  if (input <= 0 || b->whole % input != 0)
    return false;
  int64_t times = b->whole / input;
  for (int r = 0; r < b->cut->run->found; r++) {
    b->own[r] /= times;
    b->then[r] /= times;
  }
  b->whole = input;
  b->grain /= times;
  return true;
}

static void times_find(balance_t *b) {
  b->now_ns = b->then_ns = 0;
  for (int r = 0; r < b->cut->run->found; r++) {
    double now_ns = b->speed.took_ns[r],
           then_ns = now_ns * (double)b->then[r] / (double)b->own[r];
    b->now_ns = now_ns > b->now_ns ? now_ns : b->now_ns;
    b->then_ns = then_ns > b->then_ns ? then_ns : b->then_ns;
  }
}

// ---- saying it -------------------------------------------------------------

static char *list_of(const balance_t *b) {
  char *text = calloc((size_t)b->cut->run->found, 24);
  for (int r = 0; r < b->cut->run->found && text; r++)
    sprintf(text + strlen(text), "%s%" PRId64, r ? "," : "", b->then[r]);
  return text;
}

static int largest_of(const balance_t *b) {
  int largest = 0;
  for (int r = 1; r < b->cut->run->found; r++)
    if (b->own[r] > b->own[largest])
      largest = r;
  return largest;
}

// The rank that differs most from the others.
static int outlier_of(const balance_t *b) {
  const double *factor = b->speed.factor;
  int out = 0;
  for (int r = 1; r < b->cut->run->found; r++) {
    double far = factor[r] > 1 ? factor[r] : 1 / factor[r],
           most = factor[out] > 1 ? factor[out] : 1 / factor[out];
    if (far > most)
      out = r;
  }
  return out;
}

static char *even_text(const balance_t *b) {
  int rank = largest_of(b);
  return said_text("Rank %d has %" PRId64 " of %" PRId64
                   " in %s, and the ranks compute equally fast; even parts "
                   "have at most %" PRId64 ".",
                   b->cut->run->rank[rank].rank, b->own[rank], b->whole,
                   b->cut->dim, b->then[0]);
}

static char *speed_text(const balance_t *b) {
  int rank = outlier_of(b);
  double factor = b->speed.factor[rank];
  return said_text(
      "Rank %d takes %.2f times as long as %s for as many elements (medians of "
      "%" PRId64 " calls): its device or core is %s, or its values take %s "
      "time%s. These parts are by speed.",
      b->cut->run->rank[rank].rank, factor,
      b->cut->run->found > 2 ? "most others" : "the other one", b->speed.calls,
      factor > 1 ? "slow" : "fast", factor > 1 ? "more" : "less",
      b->speed.slow + b->speed.fast > 1 ? ", and further ranks differ, too"
                                        : "");
}

static char *command_of(const balance_t *b, bool even) {
  char *list = list_of(b);
  char *text = !list ? NULL
               : even && b->grain == 1
                   ? said_text("sundog split --dim %s -n %d FILE", b->cut->dim,
                               b->cut->run->ranks)
                   : said_text("sundog split --dim %s --parts %s FILE",
                               b->cut->dim, list);
  free(list);
  return text;
}

// In the shard view the input is cut again; rules that prescribe other parts
// take those that the ranks then have.
static void shard_line(const balance_t *b, const place_t *place, bool even,
                       said_t *said) {
  if (place_prescribes(place)) {
    said->line = place_line(place, "parts", "agree");
    said->where = place_where(place, "parts");
    said->command = command_of(b, even);
    said->sections = place_sections(place);
    return;
  }
  said->line = command_of(b, even);
  said->where = said_text("In a shell, for each input file. The rules stay as "
                          "they are.");
}

static void whole_line(const balance_t *b, const place_t *place, bool even,
                       said_t *said) {
  char *list = list_of(b);
  said->line = list ? place_line(place, "parts", even ? "even" : list) : NULL;
  said->where = place_where(place, "parts");
  said->sections = place_sections(place);
  free(list);
}

static void say(const balance_t *b, const place_t *place, bool even,
                json_t *list) {
  int rank = even ? largest_of(b) : outlier_of(b);
  said_t said = {.about = even ? "parts" : "slow",
                 .text = even ? even_text(b) : speed_text(b)};
  if (b->cut->shard)
    shard_line(b, place, even, &said);
  else
    whole_line(b, place, even, &said);
  said.effect = said_text("The longest time that a rank computes in these "
                          "calls falls from %.3g ms to about %.3g ms.",
                          b->now_ns / 1e6, b->then_ns / 1e6);
  json_t *advice = said_add(list, &said);
  if (!advice)
    return;
  (void)json_object_set_new(advice, "rank",
                            json_integer(b->cut->run->rank[rank].rank));
  if (!even)
    (void)json_object_set_new(advice, "factor",
                              json_real(b->speed.factor[rank]));
  (void)json_object_set_new(advice, "compute_ns",
                            json_integer((json_int_t)b->now_ns));
  (void)json_object_set_new(advice, "predicted_ns",
                            json_integer((json_int_t)b->then_ns));
}

// Whether `sundog split` knows the dimension.
static bool is_known(const char *dim) {
  return strlen(dim) == 1 && strchr("NDHW", *dim);
}

void advise_parts(const recorded_t *run, json_t *list) {
  cut_t cut;
  place_t place;
  balance_t b = {.cut = &cut};
  if (!cut_find(run, &cut) || !is_known(cut.dim) ||
      !speed_find(&cut, &b.speed) || !parts_read(&b) ||
      (!cut.shard && b.grain > 1) || !place_find_all(run, &place) ||
      !parts_make(&b) || !input_count(&b))
    return;
  bool even = b.speed.slow + b.speed.fast == 0;
  int64_t now = b.own[largest_of(&b)], then = b.then[largest_of(&b)];
  times_find(&b);
  // Small gains are not worth new parts.
  if (even ? 4 * now < 5 * then || b.then_ns > 0.85 * b.now_ns
           : b.then_ns > 0.95 * b.now_ns)
    return;
  say(&b, &place, even, list);
}
