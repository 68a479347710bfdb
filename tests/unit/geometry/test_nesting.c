// SPDX-License-Identifier: Apache-2.0
// The nesting of dimensions, against tensors whose order is known.
#include "src/geometry/layout.h"

#include <string.h>

#include "tests/unit/random.h"

enum { DIMS = 4, RANKS = 3, CASES = 20000 };
enum { N, C, H, W };

static const unsigned char nchw[] = {N, C, H, W}, nhwc[] = {N, H, W, C};

// A piece in memory that nests in `order`. Dimensions of extent 1 have strides
// of their own if `odd`: any that fits no other dimension.
static sdg_nest_t piece_make(const unsigned char *order, const int64_t *extent,
                             bool is_image, bool odd) {
  int64_t stride[DIMS], packed = 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    int d = order[i];
    stride[d] = odd && extent[d] == 1 ? random_in(1, 200) : packed;
    packed *= extent[d];
  }
  sdg_nest_t nest;
  sdg_nest_make(DIMS, is_image, extent, stride, &nest);
  return nest;
}

static void extents_choose(int64_t *extent) {
  for (int d = 0; d < DIMS; d++)
    extent[d] = random_in(0, 1) ? 1 : random_in(2, 5);
}

static void order_choose(unsigned char *order) {
  memcpy(order, nchw, DIMS);
  for (int i = DIMS - 1; i > 0; i--) {
    int j = (int)random_in(0, i);
    unsigned char d = order[i];
    order[i] = order[j];
    order[j] = d;
  }
}

static bool is_outside(const unsigned char *order, int a, int b) {
  for (int i = 0; i < DIMS; i++)
    if (order[i] == a || order[i] == b)
      return order[i] == a;
  return false;
}

static bool nests_as(const int64_t *nesting, const unsigned char *order) {
  for (int i = 1; i < DIMS; i++)
    if (nesting[order[i - 1]] <= nesting[order[i]])
      return false;
  return true;
}

START_TEST(every_rank_that_sees_two_dimensions_is_obeyed) {
  for (int n = 0; n < CASES; n++) {
    unsigned char order[DIMS];
    sdg_nest_t nest[RANKS];
    int64_t nesting[DIMS];
    order_choose(order);
    bool is_image = random_in(0, 1);
    for (int r = 0; r < RANKS; r++) {
      int64_t extent[DIMS];
      extents_choose(extent);
      nest[r] = piece_make(order, extent, is_image, random_in(0, 1));
      ck_assert(r == 0 || sdg_nest_match(DIMS, &nest[r - 1], &nest[r]));
    }
    sdg_nesting_find(DIMS, is_image, RANKS, nest, nesting);
    for (int r = 0; r < RANKS; r++)
      for (int a = 0; a < DIMS; a++)
        for (int b = 0; b < DIMS; b++)
          if (a != b && nest[r].extent[a] > 1 && nest[r].extent[b] > 1)
            ck_assert_int_eq(nesting[a] > nesting[b], is_outside(order, a, b));
  }
}
END_TEST

// A stride of a dimension of extent 1 gives no other order to an image.
START_TEST(an_image_that_can_be_nchw_or_nhwc_is) {
  for (int n = 0; n < CASES; n++) {
    const unsigned char *order = random_in(0, 1) ? nchw : nhwc;
    sdg_nest_t nest[RANKS];
    int64_t nesting[DIMS];
    for (int r = 0; r < RANKS; r++) {
      int64_t extent[DIMS];
      extents_choose(extent);
      nest[r] = piece_make(order, extent, true, true);
    }
    sdg_nesting_find(DIMS, true, RANKS, nest, nesting);
    ck_assert(nests_as(nesting, nchw) || nests_as(nesting, nhwc));
  }
}
END_TEST

// Pieces of one channel: the vendor's library packs them as its format says.
START_TEST(one_channel_is_innermost_in_packed_nhwc) {
  for (int n = 0; n < CASES; n++) {
    int64_t extent[DIMS], nesting[DIMS];
    extents_choose(extent);
    extent[C] = 1;
    extent[H] = 2;
    sdg_nest_t nest = piece_make(nhwc, extent, true, false);
    sdg_nesting_find(DIMS, true, 1, &nest, nesting);
    ck_assert(nests_as(nesting, nhwc));
    nest = piece_make(nchw, extent, true, false);
    sdg_nesting_find(DIMS, true, 1, &nest, nesting);
    ck_assert(nests_as(nesting, nchw));
  }
}
END_TEST

START_TEST(other_tensors_nest_by_their_strides) {
  int64_t nesting[DIMS];
  sdg_nest_t nest;
  sdg_nest_make(DIMS, false, (int64_t[]){1, 1, 2, 1}, (int64_t[]){2, 4, 1, 8},
                &nest);
  sdg_nesting_find(DIMS, false, 1, &nest, nesting);
  ck_assert(nests_as(nesting, (unsigned char[]){W, C, N, H}));
}
END_TEST

START_TEST(orders_that_contradict_do_not_match) {
  const int64_t extent[] = {2, 3, 4, 5};
  sdg_nest_t a = piece_make(nchw, extent, true, false);
  sdg_nest_t b = piece_make(nhwc, extent, true, false);
  ck_assert(!sdg_nest_match(DIMS, &a, &b));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("nesting");
  TCase *cases = tcase_create("nesting");
  tcase_add_test(cases, every_rank_that_sees_two_dimensions_is_obeyed);
  tcase_add_test(cases, an_image_that_can_be_nchw_or_nhwc_is);
  tcase_add_test(cases, one_channel_is_innermost_in_packed_nhwc);
  tcase_add_test(cases, other_tensors_nest_by_their_strides);
  tcase_add_test(cases, orders_that_contradict_do_not_match);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
