// SPDX-License-Identifier: Apache-2.0
// Windows of neighbourhood attention against their definition, query by query;
// and transfers that fetch the keys of every rank's queries.
#include "rules/neighborhood/window.h"

#include <string.h>

#include "src/geometry/transfer.h"
#include "tests/unit/random.h"

enum { CASES = 100000, DIMS = 3, RANKS = 27, EXTENT_MAX = 60 };

// Writes the keys of a query by the definition, in order; returns their number.
static int window_naive(const sdg_neighborhood_window_t *w, int64_t i,
                        int64_t *out_keys) {
  int64_t member[EXTENT_MAX], n = 0, u = 0, count = 0;
  for (int64_t j = i % w->dilation; j < w->extent; j += w->dilation) {
    if (j == i)
      u = n;
    member[n++] = j;
  }
  int64_t start = w->causal ? u - w->kernel + 1 : u - w->kernel / 2;
  int64_t end = start + w->kernel;
  if (!w->causal && !w->cut) {
    while (start < 0)
      start++, end++;
    while (end > n)
      start--, end--;
  }
  for (int64_t p = start; p < end; p++)
    if (p >= 0 && p < n)
      out_keys[count++] = member[p];
  return (int)count;
}

static sdg_neighborhood_window_t random_window(void) {
  sdg_neighborhood_window_t w = {.extent = random_in(1, EXTENT_MAX),
                                 .kernel = random_in(1, 11),
                                 .dilation = random_in(1, 4),
                                 .causal = random_in(0, 2) == 0,
                                 .cut = random_in(0, 2) == 0};
  if (!w.cut)
    while (w.kernel * w.dilation > w.extent)
      *(random_in(0, 1) && w.kernel > 1 ? &w.kernel : &w.dilation) = 1;
  return w;
}

START_TEST(steps_reach_every_key_once) {
  for (int64_t c = random_cases(CASES); c > 0; c--) {
    sdg_neighborhood_window_t w = random_window();
    sdg_range_t steps = sdg_neighborhood_window_steps(&w);
    for (int64_t i = 0; i < w.extent; i++) {
      int64_t keys[EXTENT_MAX];
      int count = window_naive(&w, i, keys), found = 0;
      bool slots[16] = {false};
      for (int64_t step = steps.lo; step < steps.hi; step++) {
        sdg_range_t queries = sdg_neighborhood_window_queries(&w, step);
        int64_t slot = sdg_neighborhood_window_slot(&w, step);
        REQUIRE(slot >= 0 && slot < w.kernel);
        REQUIRE(queries.lo >= 0 && queries.hi <= w.extent);
        if (i < queries.lo || i >= queries.hi)
          continue;
        REQUIRE(found < count && keys[found++] == i + step * w.dilation);
        REQUIRE(!slots[slot]);
        slots[slot] = true;
      }
      REQUIRE(found == count);
      REQUIRE(w.causal || w.cut || count == w.kernel);
    }
  }
}
END_TEST

START_TEST(need_is_from_the_first_key_to_the_last) {
  for (int64_t c = random_cases(CASES); c > 0; c--) {
    sdg_neighborhood_window_t w = random_window();
    sdg_range_t q = {random_in(0, w.extent), 0};
    q.hi = random_in(q.lo, w.extent);
    int64_t lo = EXTENT_MAX, hi = -1, keys[EXTENT_MAX];
    for (int64_t i = q.lo; i < q.hi; i++) {
      int count = window_naive(&w, i, keys);
      lo = keys[0] < lo ? keys[0] : lo;
      hi = keys[count - 1] > hi ? keys[count - 1] : hi;
    }
    sdg_range_t need = sdg_neighborhood_window_need(&w, q);
    if (q.lo == q.hi)
      REQUIRE(need.lo == 0 && need.hi == 0);
    else
      REQUIRE(need.lo == lo && need.hi == hi + 1);
  }
}
END_TEST

// Returns the index of a box's element, row-major.
static int64_t place_of(const sdg_box_t *box, const int64_t *at) {
  int64_t place = 0;
  for (int d = 0; d < box->dims; d++)
    place = place * (box->dim[d].hi - box->dim[d].lo) + at[d] - box->dim[d].lo;
  return place;
}

static int64_t value_of(const int64_t *at) {
  return (at[0] * 100 + at[1]) * 100 + at[2];
}

static void fill(const sdg_box_t *to, const sdg_box_t *box, int64_t *memory) {
  int64_t at[DIMS];
  for (at[0] = box->dim[0].lo; at[0] < box->dim[0].hi; at[0]++)
    for (at[1] = box->dim[1].lo; at[1] < box->dim[1].hi; at[1]++)
      for (at[2] = box->dim[2].lo; at[2] < box->dim[2].hi; at[2]++)
        memory[place_of(to, at)] = value_of(at);
}

// Grids of three dimensions over meshes of ranks, with pieces of any size:
// messages bring the keys that the queries see, in each dimension.
START_TEST(messages_bring_all_keys) {
  for (int64_t c = random_cases(CASES / 100); c > 0; c--) {
    sdg_neighborhood_window_t w[DIMS];
    int pieces[DIMS], ranks = 1;
    int64_t first[DIMS][4];
    for (int d = 0; d < DIMS; d++) {
      w[d] = random_window();
      if (w[d].extent > 12) {
        w[d].extent = 12;
        w[d].kernel = w[d].kernel > 4 ? 4 : w[d].kernel;
        w[d].dilation = w[d].dilation > 3 ? 3 : w[d].dilation;
      }
      pieces[d] = (int)random_in(1, 3);
      ranks *= pieces[d];
      int64_t sizes[3];
      random_sizes(w[d].extent, pieces[d], sizes);
      first[d][0] = 0;
      for (int p = 0; p < pieces[d]; p++)
        first[d][p + 1] = first[d][p] + sizes[p];
    }
    sdg_box_t owned[RANKS], need[RANKS];
    for (int r = 0; r < ranks; r++) {
      int at = r;
      owned[r].dims = need[r].dims = DIMS;
      for (int d = DIMS - 1; d >= 0; d--) {
        int piece = at % pieces[d];
        at /= pieces[d];
        owned[r].dim[d] = (sdg_range_t){first[d][piece], first[d][piece + 1]};
        need[r].dim[d] = sdg_neighborhood_window_need(&w[d], owned[r].dim[d]);
      }
    }
    for (int r = 0; r < ranks; r++) {
      static int64_t memory[12 * 12 * 12];
      sdg_transfer_t transfer;
      memset(memory, 0xff, sizeof memory);
      REQUIRE(sdg_transfer_plan(owned, need, ranks, r, NULL, &transfer) ==
              SDG_OK);
      int64_t received = 0;
      for (int m = 0; m < transfer.recvs; m++) {
        fill(&need[r], &transfer.recv[m].box, memory);
        received += sdg_box_count(&transfer.recv[m].box);
      }
      for (int m = 0; m < transfer.locals; m++)
        fill(&need[r], &transfer.local[m].box, memory);
      if (!sdg_box_empty(&owned[r]))
        REQUIRE(sdg_box_count(&need[r]) ==
                received + (transfer.locals
                                ? sdg_box_count(&transfer.local[0].box)
                                : 0));
      sdg_transfer_fini(&transfer);
      for (int64_t q = sdg_box_count(&owned[r]) - 1; q >= 0; q--) {
        int64_t at[DIMS], rest = q, keys[DIMS][EXTENT_MAX];
        int counts[DIMS];
        for (int d = DIMS - 1; d >= 0; d--) {
          int64_t n = owned[r].dim[d].hi - owned[r].dim[d].lo;
          at[d] = owned[r].dim[d].lo + rest % n;
          rest /= n;
          counts[d] = window_naive(&w[d], at[d], keys[d]);
        }
        for (int64_t t = (int64_t)counts[0] * counts[1] * counts[2] - 1; t >= 0;
             t--) {
          int64_t key[DIMS] = {keys[0][t / counts[2] / counts[1]],
                               keys[1][t / counts[2] % counts[1]],
                               keys[2][t % counts[2]]};
          REQUIRE(memory[place_of(&need[r], key)] == value_of(key));
        }
      }
    }
  }
}
END_TEST

START_TEST(examples_of_the_header_hold) {
  const sdg_neighborhood_window_t w = {
      .extent = 10, .kernel = 3, .dilation = 2};
  int64_t keys[EXTENT_MAX];
  REQUIRE(window_naive(&w, 8, keys) == 3 && keys[0] == 4 && keys[2] == 8);
  const sdg_neighborhood_window_t even = {
      .extent = 10, .kernel = 4, .dilation = 1};
  sdg_neighborhood_window_t other = even;
  REQUIRE(sdg_neighborhood_window_steps(&even).lo == -3);
  REQUIRE(sdg_neighborhood_window_steps(&even).hi == 4);
  other.cut = true;
  REQUIRE(sdg_neighborhood_window_steps(&other).lo == -2);
  REQUIRE(sdg_neighborhood_window_steps(&other).hi == 2);
  other.causal = true;
  REQUIRE(sdg_neighborhood_window_steps(&other).lo == -3);
  REQUIRE(sdg_neighborhood_window_steps(&other).hi == 1);
  const sdg_neighborhood_window_t near = {
      .extent = 10, .kernel = 3, .dilation = 1};
  REQUIRE(sdg_neighborhood_window_queries(&near, 1).hi == 9);
  REQUIRE(sdg_neighborhood_window_queries(&near, 2).hi == 1);
  REQUIRE(sdg_neighborhood_window_queries(&near, -2).lo == 9);
  REQUIRE(sdg_neighborhood_window_need(&near, (sdg_range_t){0, 1}).hi == 3);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("neighbor");
  TCase *cases = tcase_create("neighbor");
  tcase_set_timeout(cases, 300);
  tcase_add_test(cases, examples_of_the_header_hold);
  tcase_add_test(cases, steps_reach_every_key_once);
  tcase_add_test(cases, need_is_from_the_first_key_to_the_last);
  tcase_add_test(cases, messages_bring_all_keys);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
