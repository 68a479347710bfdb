// SPDX-License-Identifier: Apache-2.0
// Advises one rank, where all ranks together are busy for less than the run.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/report/advice/advisers.h"
#include "tools/report/advice/place.h"
#include "tools/report/advice/said.h"

// One rank may take longer for an element than several: caches hold less of
// its domain. So the sum has to be clearly less than the run.
#define CLEARLY 0.8

// How long a rank is not waiting for others: neither its stream nor the host
// is, as far as the record tells.
static int64_t busy_ns(const recorded_t *run, const recorded_rank_t *rank) {
  int64_t all = run->end_ns - run->begin_ns, stream = 0, host = 0, until = 0;
  for (int i = 0; i < rank->phases; i++) {
    const recorded_phase_t *phase = &rank->phase[i];
    int64_t end_ns = phase->at_ns + phase->took_ns;
    if (phase->phase != SDG_PHASE_WAIT || end_ns <= until)
      continue; // several streams may wait at once
    stream += end_ns - (phase->at_ns > until ? phase->at_ns : until);
    until = end_ns;
  }
  for (int i = 0; i < rank->calls; i++)
    host += rank->call[i].agreed_ns;
  // The host may wait while its stream does.
  int64_t waits = stream > host ? stream : host;
  return waits < all ? all - waits : 0;
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

// "-n 1", and a mesh of one rank if a mesh was said.
static char *line_make(const recorded_t *run) {
  const char *text = recorded_text(run->rank[0].facts, "rules_text");
  char mesh[256] = "";
  size_t index;
  json_t *axis;
  if (!place_option(run, "SUNDOG_MESH") && !place_has(text, "mesh"))
    return said_text("-n 1");
  json_array_foreach(json_object_get(run->rank[0].facts, "mesh"), index, axis) {
    size_t used = strlen(mesh);
    snprintf(mesh + used, sizeof mesh - used, "%s%s=1", index ? "," : "",
             recorded_text(axis, "axis"));
  }
  return said_text("-n 1 --mesh %s", mesh);
}

void advise_alone(const recorded_t *run, json_t *list) {
  place_t place;
  int64_t all_ns = run->end_ns - run->begin_ns, sum_ns = 0;
  if (run->ranks < 2 || run->found < run->ranks ||
      !place_find_all(run, &place) || place_prescribes(&place))
    return;
  for (int r = 0; r < run->found; r++) {
    if (run->rank[r].full || run->rank[r].broken || !run->rank[r].totals)
      return;
    sum_ns += busy_ns(run, &run->rank[r]);
  }
  if ((double)sum_ns > CLEARLY * (double)all_ns)
    return;
  json_t *advice = said_add(
      list,
      &(said_t){
          .about = "alone",
          .text = said_text(
              "The calls are too small to be shared: the ranks wait for each "
              "other longer than one rank would take for all their work. One "
              "rank alone is faster, if its device has room for the domain."),
          .line = line_make(run),
          .where = said_text(
              "On the command line of `sundog run`, in place of -n "
              "%d%s.",
              run->ranks, has_pieces(run) ? ", with the whole input" : ""),
          .effect = said_text("One rank is busy for %.3g s at most in this "
                              "run, which takes %.3g s.",
                              (double)sum_ns * 1e-9, (double)all_ns * 1e-9)});
  if (!advice)
    return;
  (void)json_object_set_new(advice, "run_ns", json_integer(all_ns));
  (void)json_object_set_new(advice, "predicted_ns", json_integer(sum_ns));
}
