// SPDX-License-Identifier: Apache-2.0
// Transfers against a naive copy: what every rank gets, how often, from whom,
// and what goes back.
#include "src/geometry/transfer.h"

#include <string.h>

#include "tests/unit/random.h"

enum { CASES = 100000, RANKS = 8, POINTS = 40 * 40 * 40 };

typedef struct world {
  int dims, ranks;
  int64_t extent[SDG_DIMS_MAX], period[SDG_DIMS_MAX];
  sdg_box_t owned[RANKS], need[RANKS];
  sdg_transfer_t plan[RANKS];
} world_t;

// Cuts the domain at random, so that owners are no grid; some pieces are
// nobody's, some ranks own nothing.
static void world_init(world_t *w) {
  memset(w, 0, sizeof *w);
  w->dims = (int)random_in(1, 3);
  w->ranks = (int)random_in(1, RANKS);
  int64_t side = w->dims == 1 ? 40 : w->dims == 2 ? 9 : 5;
  sdg_box_t domain = {.dims = w->dims};
  for (int d = 0; d < w->dims; d++) {
    w->extent[d] = domain.dim[d].hi = random_in(1, side);
    w->period[d] = random_in(0, 2) ? 0 : w->extent[d];
  }
  w->owned[0] = domain;
  for (int r = 1; r < w->ranks; r++) {
    int from = (int)random_in(0, r - 1), d = (int)random_in(0, w->dims - 1);
    sdg_range_t *range = &w->owned[from].dim[d];
    w->owned[r] = w->owned[from];
    w->owned[r].dim[d].lo = range->hi = random_in(range->lo, range->hi);
  }
  if (w->ranks > 1 && random_in(0, 3) == 0)
    w->owned[random_in(0, w->ranks - 1)] = (sdg_box_t){.dims = w->dims};
  for (int r = 0; r < w->ranks; r++) {
    w->need[r].dims = w->dims;
    for (int d = 0; d < w->dims; d++) {
      // Halos on both sides; with wraps, over several periods.
      int64_t reach = random_in(0, 1) ? 2 : w->extent[d] * 2;
      sdg_range_t *need = &w->need[r].dim[d];
      *need = w->owned[r].dim[d];
      need->lo -= random_in(0, reach);
      need->hi += random_in(-1, reach);
    }
  }
  for (int r = 0; r < w->ranks; r++)
    REQUIRE(sdg_transfer_plan(w->owned, w->need, w->ranks, r, w->period,
                              &w->plan[r]) == SDG_OK);
}

static void world_fini(world_t *w) {
  for (int r = 0; r < w->ranks; r++)
    sdg_transfer_fini(&w->plan[r]);
}

static bool first_point(const sdg_box_t *box, int64_t *at) {
  for (int d = 0; d < box->dims; d++)
    at[d] = box->dim[d].lo;
  return !sdg_box_empty(box);
}

static bool next_point(const sdg_box_t *box, int64_t *at) {
  for (int d = box->dims - 1; d >= 0; d--) {
    if (++at[d] < box->dim[d].hi)
      return true;
    at[d] = box->dim[d].lo;
  }
  return false;
}

static int64_t index_in(const sdg_box_t *box, const int64_t *at) {
  int64_t index = 0;
  for (int d = 0; d < box->dims; d++) {
    REQUIRE(at[d] >= box->dim[d].lo && at[d] < box->dim[d].hi);
    index = index * (box->dim[d].hi - box->dim[d].lo) + at[d] - box->dim[d].lo;
  }
  REQUIRE(index < POINTS);
  return index;
}

// Who owns the element whose image lies at `at`, -1 if nobody; out: the
// element's own coordinates.
static int owner_of(const world_t *w, const int64_t *at, int64_t *out) {
  for (int d = 0; d < w->dims; d++) {
    out[d] = at[d];
    while (w->period[d] && out[d] < 0)
      out[d] += w->period[d];
    while (w->period[d] && out[d] >= w->period[d])
      out[d] -= w->period[d];
  }
  for (int r = 0; r < w->ranks; r++) {
    bool inside = true;
    for (int d = 0; d < w->dims; d++)
      inside &=
          out[d] >= w->owned[r].dim[d].lo && out[d] < w->owned[r].dim[d].hi;
    if (inside)
      return r;
  }
  return -1;
}

static bool message_equal(const sdg_message_t *a, const sdg_message_t *b,
                          int dims) {
  return sdg_box_equal(&a->box, &b->box) &&
         memcmp(a->shift, b->shift, (size_t)dims * sizeof a->shift[0]) == 0;
}

// Sends of p to q and receives of q from p, in list order, are the same.
static void pairs_match(const world_t *w) {
  for (int p = 0; p < w->ranks; p++)
    for (int q = 0; q < w->ranks; q++) {
      int i = 0, k = 0;
      const sdg_transfer_t *from = &w->plan[p], *to = &w->plan[q];
      for (;; i++, k++) {
        while (i < from->sends && from->send[i].peer != q)
          i++;
        while (k < to->recvs && to->recv[k].peer != p)
          k++;
        if (i == from->sends || k == to->recvs)
          break;
        REQUIRE(message_equal(&from->send[i], &to->recv[k], w->dims));
      }
      REQUIRE(i == from->sends && k == to->recvs);
    }
}

static void lists_are_ordered(const sdg_message_t *list, int count, int me) {
  for (int i = 0; i < count; i++) {
    REQUIRE(list[i].peer != me);
    REQUIRE(i == 0 || list[i - 1].peer <= list[i].peer);
    REQUIRE(!sdg_box_empty(&list[i].box));
  }
}

START_TEST(every_need_is_filled_once_by_the_owner) {
  static int source[POINTS], times[POINTS];
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    world_t w;
    world_init(&w);
    pairs_match(&w);
    for (int r = 0; r < w.ranks; r++) {
      const sdg_transfer_t *plan = &w.plan[r];
      lists_are_ordered(plan->send, plan->sends, r);
      lists_are_ordered(plan->recv, plan->recvs, r);
      int64_t at[SDG_DIMS_MAX], to[SDG_DIMS_MAX], own[SDG_DIMS_MAX];
      int64_t halo = 0;
      memset(times, 0, (size_t)sdg_box_count(&w.need[r]) * sizeof times[0]);
      for (int k = 0; k < plan->recvs + plan->locals; k++) {
        const sdg_message_t *m =
            k < plan->recvs ? &plan->recv[k] : &plan->local[k - plan->recvs];
        REQUIRE(k < plan->recvs || m->peer == r);
        first_point(&m->box, at);
        do {
          for (int d = 0; d < w.dims; d++)
            to[d] = at[d] + m->shift[d];
          int64_t index = index_in(&w.need[r], to);
          times[index]++;
          source[index] = m->peer;
          REQUIRE(owner_of(&w, to, own) == m->peer);
          REQUIRE(memcmp(own, at, (size_t)w.dims * sizeof at[0]) == 0);
        } while (next_point(&m->box, at));
      }
      if (first_point(&w.need[r], at))
        do {
          int owner = owner_of(&w, at, own);
          int64_t index = index_in(&w.need[r], at);
          REQUIRE(times[index] == (owner >= 0));
          REQUIRE(owner < 0 || source[index] == owner);
          halo += owner >= 0 && owner != r;
        } while (next_point(&w.need[r], at));
      int64_t received = 0;
      for (int k = 0; k < plan->recvs; k++)
        received += sdg_box_count(&plan->recv[k].box);
      REQUIRE(received == halo);
    }
    world_fini(&w);
  }
}
END_TEST

// Every rank has a value at each place of its need; the owners get the sums.
static uint64_t value_at(int rank, const int64_t *at, int dims) {
  uint64_t value = (uint64_t)rank + 1;
  for (int d = 0; d < dims; d++)
    value = value * 1000003u + (uint64_t)(at[d] + 1000);
  return value;
}

START_TEST(reversed_transfer_adds_every_image_at_its_owner) {
  static uint64_t sum[POINTS], want[POINTS];
  for (int64_t i = random_cases(CASES / 10); i > 0; i--) {
    world_t w;
    world_init(&w);
    sdg_box_t domain = {.dims = w.dims};
    for (int d = 0; d < w.dims; d++)
      domain.dim[d].hi = w.extent[d];
    size_t bytes = (size_t)sdg_box_count(&domain) * sizeof sum[0];
    memset(sum, 0, bytes);
    memset(want, 0, bytes);
    int64_t at[SDG_DIMS_MAX], from[SDG_DIMS_MAX], own[SDG_DIMS_MAX];
    for (int r = 0; r < w.ranks; r++) {
      if (first_point(&w.need[r], at))
        do
          if (owner_of(&w, at, own) >= 0)
            want[index_in(&domain, own)] += value_at(r, at, w.dims);
        while (next_point(&w.need[r], at));
      sdg_transfer_reverse(&w.plan[r]);
    }
    pairs_match(&w);
    for (int r = 0; r < w.ranks; r++)
      for (int k = 0; k < w.plan[r].recvs + w.plan[r].locals; k++) {
        const sdg_message_t *m = k < w.plan[r].recvs
                                     ? &w.plan[r].recv[k]
                                     : &w.plan[r].local[k - w.plan[r].recvs];
        REQUIRE(sdg_box_contains(&w.owned[r], &m->box));
        first_point(&m->box, at);
        do {
          for (int d = 0; d < w.dims; d++)
            from[d] = at[d] + m->shift[d];
          index_in(&w.need[m->peer], from); // is in the sender's need
          sum[index_in(&domain, at)] += value_at(m->peer, from, w.dims);
        } while (next_point(&m->box, at));
      }
    REQUIRE(memcmp(sum, want, bytes) == 0);
    world_fini(&w);
  }
}
END_TEST

START_TEST(a_need_over_two_neighbours_takes_three_messages) {
  sdg_box_t owned[4], need[4];
  for (int r = 0; r < 4; r++) {
    owned[r] = (sdg_box_t){.dims = 1, .dim = {{2 * r, 2 * r + 2}}};
    need[r] = owned[r];
  }
  need[3].dim[0].lo = 1;
  sdg_transfer_t plan;
  ck_assert(sdg_transfer_plan(owned, need, 4, 3, NULL, &plan) == SDG_OK);
  ck_assert_int_eq(plan.recvs, 3);
  ck_assert_int_eq(plan.sends, 0);
  ck_assert_int_eq(plan.locals, 1);
  sdg_transfer_fini(&plan);
  sdg_transfer_fini(&plan); // again is fine
}
END_TEST

START_TEST(one_periodic_rank_copies_its_own_images) {
  sdg_box_t owned = {.dims = 1, .dim = {{0, 10}}};
  sdg_box_t need = {.dims = 1, .dim = {{-1, 11}}};
  sdg_transfer_t plan;
  ck_assert(sdg_transfer_plan(&owned, &need, 1, 0, (int64_t[]){10}, &plan) ==
            SDG_OK);
  ck_assert_int_eq(plan.locals, 3);
  ck_assert_int_eq(plan.sends + plan.recvs, 0);
  ck_assert_int_eq(plan.local[0].shift[0], -10);
  ck_assert_int_eq(plan.local[0].box.dim[0].lo, 9);
  ck_assert_int_eq(plan.local[2].shift[0], 10);
  ck_assert_int_eq(plan.local[2].box.dim[0].hi, 1);
  sdg_transfer_fini(&plan);
}
END_TEST

START_TEST(boxes_of_different_dimensions_are_an_error) {
  sdg_box_t owned[2] = {{.dims = 1}, {.dims = 2}}, need[2] = {{.dims = 1}};
  need[1].dims = 1;
  sdg_transfer_t plan;
  ck_assert(sdg_transfer_plan(owned, need, 2, 0, NULL, &plan) ==
            SDG_E_INTERNAL);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("transfer");
  TCase *cases = tcase_create("transfer");
  tcase_set_timeout(cases, 600);
  tcase_add_test(cases, every_need_is_filled_once_by_the_owner);
  tcase_add_test(cases, reversed_transfer_adds_every_image_at_its_owner);
  tcase_add_test(cases, a_need_over_two_neighbours_takes_three_messages);
  tcase_add_test(cases, one_periodic_rank_copies_its_own_images);
  tcase_add_test(cases, boxes_of_different_dimensions_are_an_error);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
