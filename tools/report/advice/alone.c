// SPDX-License-Identifier: Apache-2.0
// Advises one rank, where all ranks together are busy for less than the run.
#include "tools/report/advice/advisers.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

// One rank may take longer for an element than several: caches hold less of
// its domain. So the sum has to be clearly less than the run.
#define CLEARLY 0.8

// Whether one thread made all of a rank's calls: others may compute while one
// waits.
static bool is_of_one_thread(const recorded_rank_t *rank) {
  for (int i = 0; i < rank->calls; i++)
    if (rank->call[i].thread != 0)
      return false;
  for (int i = 0; i < rank->phases; i++)
    if (rank->phase[i].thread != 0)
      return false;
  return true;
}

// The time in which phases of a kind run. `out_twice`: the time in which
// several of them run, or more.
static int64_t phases_ns(const recorded_rank_t *rank, sdg_phase_t kind,
                         int64_t *out_twice) {
  int64_t once = 0, until = INT64_MIN;
  *out_twice = 0;
  for (int i = 0; i < rank->phases; i++) {
    const recorded_phase_t *phase = &rank->phase[i];
    int64_t end_ns = phase->at_ns + phase->took_ns, again = 0;
    if (phase->phase != kind)
      continue;
    if (until > phase->at_ns)
      again = (end_ns < until ? end_ns : until) - phase->at_ns;
    *out_twice += again;
    once += phase->took_ns - again;
    until = end_ns > until ? end_ns : until;
  }
  return once;
}

// How long a rank is not waiting for others, as far as the record tells. Only
// its stream's waits count: a host that waits in an agreement may have given
// its stream work before. A stream may compute while another one waits, but
// only where calls overlap.
static double busy_ns(const recorded_t *run, const recorded_rank_t *rank) {
  int64_t all = run->end_ns - run->begin_ns, waits_twice, calls_twice;
  int64_t waits = phases_ns(rank, SDG_PHASE_WAIT, &waits_twice);
  (void)phases_ns(rank, SDG_PHASE_CALL, &calls_twice);
  waits = waits > calls_twice ? waits - calls_twice : 0;
  return waits < all ? (double)(all - waits) : 0;
}

// Whether the program has pieces: the extents of some operand are not those of
// the whole tensor.
static bool has_pieces(const recorded_t *run) {
  bool found = false;
  for (int i = 0; i < run->rank[0].plans; i++) {
    size_t index;
    json_t *operand;
    json_array_foreach(json_object_get(run->rank[0].plan[i].line, "operands"),
                       index, operand) {
      const json_t *whole = json_object_get(operand, "whole");
      found |= whole && !json_equal(whole, json_object_get(operand, "extent"));
    }
  }
  return found;
}

void advise_alone(const recorded_t *run, json_t *list) {
  place_t place;
  int64_t all_ns = run->end_ns - run->begin_ns;
  double sum_ns = 0;
  if (run->ranks < 2 || run->found < run->ranks || all_ns <= 0 ||
      !place_find_all(run, &place) || place_prescribes(&place))
    return;
  for (int r = 0; r < run->found; r++) {
    const recorded_rank_t *rank = &run->rank[r];
    if (rank->full || rank->broken || !rank->totals || !is_of_one_thread(rank))
      return;
    sum_ns += busy_ns(run, rank);
  }
  if (sum_ns > CLEARLY * (double)all_ns)
    return;
  json_t *advice = said_add(
      list,
      &(said_t){
          .about = "alone",
          .text = said_text(
              "The calls are too small to be shared: the ranks wait for each "
              "other longer than one rank would take for all their work. One "
              "rank alone is faster, if its device has room for the domain."),
          .line = place_ranks_line(run, 1),
          .where = place_ranks_where(
              run, has_pieces(run) ? ", with the whole input" : ""),
          .effect = said_text("One rank takes about %.3g s, if it computes as "
                              "fast for an element; this run takes %.3g s.",
                              sum_ns * 1e-9, (double)all_ns * 1e-9)});
  if (!advice)
    return;
  (void)json_object_set_new(advice, "run_ns", json_integer(all_ns));
  (void)json_object_set_new(advice, "predicted_ns",
                            json_integer((json_int_t)sum_ns));
}
