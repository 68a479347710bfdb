// SPDX-License-Identifier: Apache-2.0
// Windows over sequences in pieces, against the definition: every key that a
// query sees reaches its rank once, and the gradients that go back add up.
#include "rules/attention/call/band.h"

#include <string.h>

#include "src/geometry/transfer.h"
#include "tests/unit/random.h"

enum { CASES = 100000, RANKS = 8, LONGEST = 24 };

typedef struct world {
  int ranks;
  int64_t queries, keys;
  sdg_range_t q[RANKS], k[RANKS]; // what each rank owns
  sdg_range_t need[RANKS];
  sdg_band_t band;
  bool banded;
  int lo[LONGEST], hi[LONGEST];
  sdg_windows_t windows;
  sdg_transfer_t plan[RANKS];
} world_t;

static void cut(int64_t extent, int ranks, sdg_range_t *out) {
  int64_t sizes[RANKS], at = 0;
  random_sizes(extent, ranks, sizes);
  for (int r = 0; r < ranks; r++) {
    out[r] = (sdg_range_t){at, at + sizes[r]};
    at += sizes[r];
  }
}

static void windows_draw(world_t *w) {
  int64_t most = random_in(0, 3) ? 4 : LONGEST + 3;
  w->band = (sdg_band_t){random_in(0, most), random_in(0, most)};
  if (random_in(0, 9) == 0)
    w->band.left = SDG_BAND_UNBOUND;
  w->banded = random_in(0, 2) > 0;
  for (int64_t t = 0; t < w->queries; t++) {
    sdg_range_t row = sdg_band_row(&w->band, t, w->keys);
    w->lo[t] = (int)row.lo;
    w->hi[t] = (int)row.hi;
    if (!w->banded) {
      w->lo[t] = (int)random_in(-2, w->keys + 1);
      w->hi[t] = w->lo[t] + (int)random_in(-1, most);
    }
  }
  w->windows = (sdg_windows_t){w->lo, w->hi, w->queries};
}

static void world_init(world_t *w) {
  memset(w, 0, sizeof *w);
  w->ranks = (int)random_in(1, RANKS);
  w->queries = random_in(1, LONGEST);
  w->keys = random_in(0, 2) ? w->queries : random_in(1, LONGEST);
  cut(w->queries, w->ranks, w->q);
  if (w->keys == w->queries && random_in(0, 1))
    memcpy(w->k, w->q, sizeof w->k);
  else
    cut(w->keys, w->ranks, w->k);
  windows_draw(w);
  sdg_box_t owned[RANKS], need[RANKS];
  for (int r = 0; r < w->ranks; r++) {
    w->need[r] = w->banded ? sdg_band_need(&w->band, w->q[r], w->keys)
                           : sdg_windows_need(&w->windows, w->q[r].lo,
                                              w->q[r].hi - w->q[r].lo, w->keys);
    owned[r] = (sdg_box_t){.dims = 1, .dim = {w->k[r]}};
    need[r] = (sdg_box_t){.dims = 1, .dim = {w->need[r]}};
  }
  for (int r = 0; r < w->ranks; r++)
    REQUIRE(sdg_transfer_plan(owned, need, w->ranks, r, NULL, &w->plan[r]) ==
            SDG_OK);
}

static void world_fini(world_t *w) {
  for (int r = 0; r < w->ranks; r++)
    sdg_transfer_fini(&w->plan[r]);
}

// The definition, without functions under test.
static bool sees(const world_t *w, int64_t t, int64_t j) {
  return w->banded ? t - w->band.left <= j && j <= t + w->band.right
                   : w->lo[t] <= j && j < w->hi[t];
}

static void arrivals(const sdg_message_t *message, int count, int *arrived) {
  for (int i = 0; i < count; i++)
    for (int64_t j = message[i].box.dim[0].lo; j < message[i].box.dim[0].hi;
         j++)
      arrived[j]++;
}

START_TEST(every_key_that_a_query_sees_is_received_once) {
  for (int64_t i = 0; i < random_cases(CASES); i++) {
    world_t w;
    world_init(&w);
    for (int r = 0; r < w.ranks; r++) {
      int arrived[LONGEST] = {0};
      arrivals(w.plan[r].local, w.plan[r].locals, arrived);
      arrivals(w.plan[r].recv, w.plan[r].recvs, arrived);
      int64_t first = LONGEST, last = -1;
      for (int64_t t = w.q[r].lo; t < w.q[r].hi; t++) {
        sdg_range_t row = w.banded ? sdg_band_row(&w.band, t, w.keys)
                                   : sdg_windows_row(&w.windows, t, w.keys);
        int lo, hi;
        sdg_band_shift(row, w.need[r], &lo, &hi);
        for (int64_t j = 0; j < w.keys; j++) {
          int64_t at = j - w.need[r].lo;
          REQUIRE(sees(&w, t, j) == (at >= lo && at < hi));
          if (!sees(&w, t, j))
            continue;
          REQUIRE(arrived[j] == 1);
          first = j < first ? j : first;
          last = j > last ? j : last;
        }
      }
      // Only the keys from the first to the last that are seen.
      for (int64_t j = 0; j < w.keys; j++)
        REQUIRE(arrived[j] == (j >= first && j <= last));
    }
    world_fini(&w);
  }
}
END_TEST

START_TEST(gradients_that_go_back_add_up) {
  for (int64_t i = 0; i < random_cases(CASES); i++) {
    world_t w;
    int64_t weight[LONGEST][LONGEST], right[LONGEST] = {0}, sum[LONGEST] = {0};
    int64_t part[RANKS][LONGEST] = {{0}};
    world_init(&w);
    for (int r = 0; r < w.ranks; r++)
      for (int64_t t = w.q[r].lo; t < w.q[r].hi; t++)
        for (int64_t j = 0; j < w.keys; j++) {
          weight[t][j] = sees(&w, t, j) ? random_in(-99, 99) : 0;
          right[j] += weight[t][j];
          part[r][j] += weight[t][j];
        }
    for (int r = 0; r < w.ranks; r++) {
      sdg_transfer_reverse(&w.plan[r]);
      for (int m = 0; m < w.plan[r].locals; m++) {
        sdg_range_t own = w.plan[r].local[m].box.dim[0];
        for (int64_t j = own.lo; j < own.hi; j++)
          sum[j] += part[r][j];
      }
      for (int m = 0; m < w.plan[r].recvs; m++) {
        const sdg_message_t *message = &w.plan[r].recv[m];
        for (int64_t j = message->box.dim[0].lo; j < message->box.dim[0].hi;
             j++) {
          REQUIRE(j >= w.k[r].lo && j < w.k[r].hi);
          sum[j] += part[message->peer][j];
        }
      }
    }
    for (int64_t j = 0; j < w.keys; j++)
      REQUIRE(sum[j] == right[j]);
    world_fini(&w);
  }
}
END_TEST

START_TEST(a_band_needs_the_halo_of_the_formula) {
  for (int64_t i = 0; i < random_cases(CASES); i++) {
    int64_t keys = random_in(1, 60), s = random_in(0, keys - 1);
    int64_t e = random_in(s + 1, keys);
    sdg_band_t band = {random_in(0, 70), random_in(0, 70)};
    sdg_range_t need = sdg_band_need(&band, (sdg_range_t){s, e}, keys);
    REQUIRE(s - need.lo == (band.left < s ? band.left : s));
    REQUIRE(need.hi - e == (band.right < keys - e ? band.right : keys - e));
  }
}
END_TEST

START_TEST(windows_inside_a_shard_are_compared_with_the_band) {
  const sdg_band_t band = {2, 1};
  int lo[] = {0, 0, 0, 1, 2}, hi[] = {2, 3, 4, 5, 5};
  sdg_windows_t windows = {lo, hi, 5};
  sdg_range_t keys = {7, 12}; // keys on the rank of the queries
  ck_assert_int_eq(sdg_windows_differ(&windows, &band, 7, keys), -1);
  lo[0] = -2; // windows that reach beyond the shard are cut like the band
  hi[4] = 1 << 30;
  ck_assert_int_eq(sdg_windows_differ(&windows, &band, 7, keys), -1);
  hi[2] = 5;
  ck_assert_int_eq(sdg_windows_differ(&windows, &band, 7, keys), 2);
  lo[1] = 1;
  ck_assert_int_eq(sdg_windows_differ(&windows, &band, 7, keys), 1);
}
END_TEST

START_TEST(windows_are_compared_if_keys_begin_at_another_row) {
  const sdg_band_t band = {3, 1};
  // Queries 9, 10 and 20 see keys of [8, 20).
  const int lo[] = {0, 0, 9}, hi[] = {3, 4, 12};
  sdg_windows_t first = {lo, hi, 2}, last = {lo + 2, hi + 2, 1};
  sdg_range_t keys = {8, 20}, row = sdg_band_among(&band, 10, keys);
  ck_assert(row.lo == 0 && row.hi == 4);
  ck_assert_int_eq(sdg_windows_differ(&first, &band, 9, keys), -1);
  ck_assert_int_eq(sdg_windows_differ(&first, &band, 10, keys), 0);
  ck_assert_int_eq(sdg_windows_differ(&last, &band, 20, keys), -1);
  // Query 4 sees no key of them.
  row = sdg_band_among(&band, 4, keys);
  ck_assert(row.lo == 0 && row.hi == 0);
  const int none[] = {3};
  ck_assert_int_eq(
      sdg_windows_differ(&(sdg_windows_t){none, none, 1}, &band, 4, keys), -1);
}
END_TEST

START_TEST(a_band_without_bounds_hides_nothing) {
  const sdg_band_t all = {SDG_BAND_UNBOUND, SDG_BAND_UNBOUND};
  const sdg_band_t causal = {SDG_BAND_UNBOUND, 0};
  ck_assert(sdg_band_is_all(&all, 7, 9));
  ck_assert(sdg_band_is_all(&(sdg_band_t){6, 8}, 7, 9));
  ck_assert(!sdg_band_is_all(&(sdg_band_t){5, 8}, 7, 9));
  ck_assert(!sdg_band_is_all(&(sdg_band_t){6, 7}, 7, 9));
  ck_assert(!sdg_band_is_all(&causal, 7, 9));
  sdg_range_t need = sdg_band_need(&causal, (sdg_range_t){3, 5}, 9);
  ck_assert(need.lo == 0 && need.hi == 5);
}
END_TEST

// Returns, by the definition, whether some band gives each query's window.
static bool some_band(const sdg_windows_t *windows, int64_t keys) {
  for (int64_t left = 0; left <= keys; left++)
    for (int64_t right = 0; right <= keys; right++) {
      bool fits = true;
      for (int64_t t = 0; t < windows->count && fits; t++)
        for (int64_t j = 0; j < keys && fits; j++)
          fits = (t - left <= j && j <= t + right) ==
                 (windows->lo[t] <= j && j < windows->hi[t]);
      if (fits)
        return true;
    }
  return false;
}

START_TEST(the_band_of_given_windows_is_found) {
  int64_t told = 0, cases = random_cases(CASES / 20);
  for (int64_t i = 0; i < cases; i++) {
    int lo[LONGEST], hi[LONGEST];
    int64_t keys = random_in(1, 12);
    sdg_windows_t windows = {lo, hi, keys};
    sdg_band_t drawn = {random_in(0, keys), random_in(0, keys)}, band;
    bool open = random_in(0, 1); // windows go beyond the keys
    for (int64_t t = 0; t < keys; t++) {
      lo[t] = (int)(t - drawn.left);
      hi[t] = (int)(t + drawn.right + 1);
      if (!open && lo[t] < 0)
        lo[t] = 0;
      if (!open && hi[t] > keys)
        hi[t] = (int)keys;
    }
    if (random_in(0, 1)) // one window differs, or is empty
      *(random_in(0, 1) ? &lo[random_in(0, keys - 1)]
                        : &hi[random_in(0, keys - 1)]) +=
          random_in(0, 1) ? 1 : -1;
    bool is_one = sdg_windows_band(&windows, keys, &band);
    REQUIRE(is_one == some_band(&windows, keys));
    told += is_one;
    for (int64_t t = 0; t < keys && is_one; t++)
      for (int64_t j = 0; j < keys; j++)
        REQUIRE((t - band.left <= j && j <= t + band.right) ==
                (lo[t] <= j && j < hi[t]));
  }
  ck_assert(told > cases / 4 && told < cases);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("band");
  TCase *cases = tcase_create("band");
  tcase_set_timeout(cases, 600);
  tcase_add_test(cases, every_key_that_a_query_sees_is_received_once);
  tcase_add_test(cases, gradients_that_go_back_add_up);
  tcase_add_test(cases, a_band_needs_the_halo_of_the_formula);
  tcase_add_test(cases, windows_inside_a_shard_are_compared_with_the_band);
  tcase_add_test(cases, windows_are_compared_if_keys_begin_at_another_row);
  tcase_add_test(cases, a_band_without_bounds_hides_nothing);
  tcase_add_test(cases, the_band_of_given_windows_is_found);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
