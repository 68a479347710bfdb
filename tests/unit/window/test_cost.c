// SPDX-License-Identifier: Apache-2.0
// Which of repair and extend `auto` takes, at the points where that changes.
#include "rules/window/cost.h"

#include <string.h>

#include "tests/unit/harness.h"

enum { RANKS = 4 };

// A convolution or pooling of rows that are split over four ranks, with a
// window of three rows and columns.
typedef struct problem {
  int64_t channels, rows, columns;
  int bytes;
  bool nhwc, pools;
  const char *parts;
  sdg_strategy_t strategy;
  sdg_cost_t cost;
} problem_t;

// In the order that the ranks agree on: that of the whole tensor.
static void strides_set(const problem_t *p, sdg_operand_t *operand) {
  const int64_t n[] = {1, p->channels, p->rows, p->columns};
  const int64_t packed[] = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
  const int64_t nhwc[] = {n[1] * n[2] * n[3], 1, n[3] * n[1], n[1]};
  memcpy(operand->stride, p->nhwc ? nhwc : packed, sizeof packed);
}

static void placement_make(const problem_t *p, const sdg_mesh_t *mesh,
                           sdg_placement_t *out) {
  const int64_t extent[] = {1, p->channels, p->rows, p->columns};
  const sdg_split_t split = {.axes = 1};
  sdg_part_t part;
  REQUIRE(!sdg_part_parse(p->parts, p->rows, RANKS, &part));
  REQUIRE(!sdg_placement_init(4, extent, out));
  REQUIRE(!sdg_placement_split(out, mesh, 2, &split, &part));
  sdg_part_fini(&part);
}

// What rank `rank` finds; whether it extends.
static sdg_price_t price_of(const problem_t *p, int rank, bool *out_extends) {
  sdg_mesh_t mesh;
  REQUIRE(!sdg_mesh_parse("y=4", RANKS, &mesh));
  const sdg_section_t section = {.strategy = p->strategy};
  sdg_tagging_t tagging = {.section = &section,
                           .mesh = &mesh,
                           .rank = rank,
                           .axes = 1,
                           .ranks = RANKS,
                           .me = rank,
                           .rank_list = {0, 1, 2, 3}};
  sdg_call_t call = {.entry_name = "test", .operands = 2};
  for (int i = 0; i < 2; i++) {
    placement_make(p, &mesh, &tagging.placement[i]);
    sdg_box_t box = sdg_placement_box(&tagging.placement[i], &mesh, rank);
    sdg_operand_t *operand = &call.operand[i];
    *operand = (sdg_operand_t){.elem_bytes = p->bytes, .dims = 4};
    for (int d = 0; d < 4; d++)
      operand->extent[d] = box.dim[d].hi - box.dim[d].lo;
    strides_set(p, operand);
  }
  const sdg_window_t one = {1, 1, 1, 0}, three = {3, 1, 1, 1};
  const sdg_window_spec_t spec = {.x = 0,
                                  .y = 1,
                                  .window = {one, one, three, three},
                                  .y_channels = p->pools ? 0 : p->channels,
                                  .own_border = p->pools};
  sdg_window_op_t op;
  sdg_cost_settle(&p->cost);
  REQUIRE(!sdg_window_op_init(&call, &tagging, &spec, &op));
  REQUIRE(!sdg_window_op_weigh_forward(&call, &tagging, &spec, &op));
  sdg_price_t price = op.price;
  *out_extends = sdg_window_op_extends(&op, p->strategy);
  sdg_window_op_fini(&op);
  for (int i = 0; i < 2; i++)
    sdg_placement_fini(&tagging.placement[i]);
  return price;
}

// All ranks find the same.
static bool extends(const problem_t *p, sdg_price_t *out) {
  bool first, other;
  sdg_price_t price = price_of(p, 0, &first);
  for (int rank = 1; rank < RANKS; rank++) {
    sdg_price_t theirs = price_of(p, rank, &other);
    REQUIRE(memcmp(&theirs, &price, sizeof price) == 0 && other == first);
  }
  if (out)
    *out = price;
  return first;
}

static bool near(double a, double b) {
  return a - b < 1e-6 && b - a < 1e-6;
}

// 64 channels of half numbers, 1024 x 1024.
static problem_t large(int major) {
  return (problem_t){.channels = 64,
                     .rows = 1024,
                     .columns = 1024,
                     .bytes = 2,
                     .nhwc = true,
                     .parts = "even",
                     .cost = sdg_cost_of(major, 0, 0)};
}

START_TEST(a_small_piece_of_a_fast_device_is_copied) {
  problem_t p = large(9);
  sdg_price_t price;
  const double row = 64 * 1024 * 2 / 1.3e6; // microseconds
  REQUIRE(extends(&p, &price));
  // 258 rows of x; two strips of three rows of x and one of y.
  REQUIRE(near(price.extend_us, 5 + 258 * row));
  REQUIRE(near(price.repair_us, 42 + 2 * 5 + 8 * row));
  p = large(10);
  REQUIRE(extends(&p, NULL));
  // Columns that an H100 copies in time, and an A100 does not.
  p = large(9);
  p.columns = 1280;
  REQUIRE(extends(&p, NULL));
  p = large(8);
  p.columns = 1280;
  REQUIRE(!extends(&p, &price));
  REQUIRE(near(price.extend_us, 5 + 258 * 64 * 1280 * 2 / 0.7e6));
}
END_TEST

START_TEST(a_large_piece_is_not_copied) {
  for (int major = 8; major <= 10; major++) {
    problem_t p = large(major);
    p.rows = p.columns = 4096;
    REQUIRE(!extends(&p, NULL));
  }
}
END_TEST

START_TEST(a_tiny_piece_is_copied_on_any_device) {
  for (int major = 8; major <= 11; major++) {
    problem_t p = large(major);
    p.rows = p.columns = 32;
    REQUIRE(extends(&p, NULL));
  }
  problem_t p = large(9);
  p.rows = 12;
  p.columns = 8;
  p.channels = 1;
  p.cost = sdg_cost_of(9, 0, 64); // the host device
  REQUIRE(extends(&p, NULL));
  p.rows = p.columns = 512;
  p.channels = 8;
  REQUIRE(!extends(&p, NULL));
}
END_TEST

// One byte takes one microsecond, a launch one.
static problem_t slow(int64_t strip_us) {
  return (problem_t){.channels = 2,
                     .rows = 40,
                     .columns = 8,
                     .bytes = 1,
                     .parts = "even",
                     .cost = {1e6, 1, (double)strip_us}};
}

START_TEST(the_choice_changes_where_both_cost_the_same) {
  // Rows of 16 bytes. Inner ranks extend to 12 of them with one copy, or copy 8
  // for two strips: with two copies in NHWC, with four in NCHW.
  for (int nhwc = 0; nhwc < 2; nhwc++)
    for (int64_t more = -1; more <= 1; more++) {
      const int64_t copies = nhwc ? 2 : 4;
      const int64_t even = 12 * 16 + 1 - (8 * 16 + copies);
      problem_t p = slow(even + more);
      p.nhwc = nhwc;
      sdg_price_t price;
      REQUIRE(extends(&p, &price) == (more > 0));
      REQUIRE(near(price.extend_us, 12 * 16 + 1));
      REQUIRE(near(price.repair_us, (double)(8 * 16 + copies + even + more)));
    }
}
END_TEST

START_TEST(pooling_costs_a_launch) {
  problem_t p = slow(1000000); // is not looked at
  // Inner ranks copy 8 rows for two strips: a pooling and two copies. Ranks at
  // an end pool with the op's padding, so that they extend 10 rows to 11 and
  // copy 10 results: two copies.
  const int64_t even = (11 + 10 - 8) * 16;
  p.pools = p.nhwc = true;
  for (int64_t more = -1; more <= 1; more++) {
    p.cost.launch_us = (double)(even + more);
    REQUIRE(extends(&p, NULL) == (more > 0));
  }
}
END_TEST

START_TEST(the_slowest_rank_decides) {
  problem_t p = slow(100);
  sdg_price_t price;
  p.parts = "4,4,28,4";
  REQUIRE(!extends(&p, &price));
  REQUIRE(near(price.extend_us, 30 * 16 + 1));
  // A rank that can compute nothing in place extends in either case.
  p.parts = "1,37,1,1";
  p.cost.strip_us = 38 * 16 + 1;
  REQUIRE(extends(&p, &price));
  p.cost.strip_us = 300;
  bool first, second;
  (void)price_of(&p, 0, &first);
  price = price_of(&p, 1, &second);
  REQUIRE(first && !second && price.repair_us < price.extend_us);
}
END_TEST

START_TEST(a_strategy_that_was_asked_for_is_not_weighed) {
  problem_t p = slow(1000000);
  sdg_price_t price;
  p.strategy = SDG_STRATEGY_REPAIR;
  REQUIRE(!extends(&p, &price));
  REQUIRE(price.repair_us == 0 && price.extend_us == 0);
  p.strategy = SDG_STRATEGY_EXTEND;
  REQUIRE(extends(&p, &price));
  REQUIRE(price.repair_us == 0 && price.extend_us == 0);
}
END_TEST

START_TEST(without_numbers_nothing_is_weighed) {
  problem_t p = slow(1000000);
  p.cost = (sdg_cost_t){0};
  sdg_price_t price;
  REQUIRE(!extends(&p, &price));
  REQUIRE(price.repair_us == 0 && price.extend_us == 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("windowcost");
  TCase *cases = tcase_create("windowcost");
  tcase_add_test(cases, a_small_piece_of_a_fast_device_is_copied);
  tcase_add_test(cases, a_large_piece_is_not_copied);
  tcase_add_test(cases, a_tiny_piece_is_copied_on_any_device);
  tcase_add_test(cases, the_choice_changes_where_both_cost_the_same);
  tcase_add_test(cases, pooling_costs_a_launch);
  tcase_add_test(cases, the_slowest_rank_decides);
  tcase_add_test(cases, a_strategy_that_was_asked_for_is_not_weighed);
  tcase_add_test(cases, without_numbers_nothing_is_weighed);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
