// SPDX-License-Identifier: Apache-2.0
// Strips of equal extents as images of one tensor.
#include "rules/window/stack.h"

#include "tests/unit/harness.h"

enum { N = 2, C = 3, W = 5, ROWS = 12 };

static const int64_t nhwc[] = {ROWS * W * C, 1, W *C, C};
static const int64_t inside[] = {1, N *ROWS *W, N *W, N}; // N innermost

static sdg_box_t rows(int64_t lo, int64_t hi) {
  return (sdg_box_t){.dims = 4, .dim = {{0, N}, {0, C}, {lo, hi}, {0, W}}};
}

static sdg_window_piece_t strip(int64_t x, int64_t y, int count) {
  return (sdg_window_piece_t){.x = rows(x, x + count + 2),
                              .y = rows(y, y + count)};
}

static sdg_plan_t *plan_create(void) {
  sdg_plan_t *plan;
  REQUIRE(!sdg_plan_create("test", &plan));
  return plan;
}

START_TEST(strips_of_equal_extents_are_stacked) {
  sdg_window_piece_t s[] = {strip(-1, 0, 1), strip(3, 4, 2), strip(8, 9, 1),
                            strip(9, 10, 1)};
  const int64_t *like[] = {nhwc, nhwc};
  int lead[4];
  s[3].pad[3] = 1;
  sdg_window_stacks_find(s, 4, like, 2, lead);
  REQUIRE(lead[0] == 0 && lead[1] == 1 && lead[2] == 0 && lead[3] == 3);
  REQUIRE(sdg_window_stack_size(lead, 4, 0) == 2);
  REQUIRE(sdg_window_stack_size(lead, 4, 2) == 0);
}
END_TEST

START_TEST(images_inside_rows_are_not_stacked) {
  sdg_window_piece_t s[] = {strip(-1, 0, 1), strip(8, 9, 1)};
  const int64_t *like[] = {nhwc, inside};
  int lead[2];
  sdg_window_stacks_find(s, 2, like, 2, lead);
  REQUIRE(lead[1] == 1);
}
END_TEST

START_TEST(slabs_of_a_stack_lie_behind_one_another) {
  sdg_call_t call = {.operands = 1,
                     .operand[0] = {.elem_bytes = 2,
                                    .dims = 4,
                                    .stride = {nhwc[0], 1, nhwc[2], C}}};
  sdg_plan_t *plan = plan_create();
  sdg_box_t own = rows(0, ROWS);
  const sdg_window_piece_t piece[] = {{.x = rows(-1, 2)}, {.x = rows(8, 11)}};
  sdg_window_slabs_t like = {.y = -1, .z = -1}, all = {.y = 7}, slab[2];
  REQUIRE(!sdg_plan_operand(plan, &call, 0, &own, &like.x));
  REQUIRE(!sdg_window_stack_open(plan, piece, 2, &like, &all));
  for (int i = 0; i < 2; i++)
    REQUIRE(!sdg_window_stack_strip(plan, &all, i, &piece[i], &like, &slab[i]));
  REQUIRE(all.y == 7);
  const sdg_slab_t *a = &plan->slab[slab[0].x], *b = &plan->slab[slab[1].x];
  const sdg_slab_t *both = &plan->slab[all.x];
  REQUIRE(sdg_box_equal(&a->box, &piece[0].x));
  REQUIRE(sdg_box_equal(&b->box, &piece[1].x));
  REQUIRE(both->box.dim[0].hi - both->box.dim[0].lo == 2 * N);
  REQUIRE(both->offset_bytes == a->offset_bytes);
  REQUIRE(b->offset_bytes == a->offset_bytes + 2 * N * 3 * W * C);
  for (int d = 0; d < 4; d++)
    REQUIRE(a->stride[d] == both->stride[d] && b->stride[d] == a->stride[d]);
  sdg_plan_destroy(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stack");
  TCase *cases = tcase_create("stack");
  tcase_add_test(cases, strips_of_equal_extents_are_stacked);
  tcase_add_test(cases, images_inside_rows_are_not_stacked);
  tcase_add_test(cases, slabs_of_a_stack_lie_behind_one_another);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
