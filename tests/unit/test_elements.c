// SPDX-License-Identifier: Apache-2.0
// Calls that compute element by element what lies in pieces.
#include "rules/elements.h"

#include <string.h>

#include "tests/unit/brute.h"

enum { X = 0x1000, Y = 0x2000, COLUMNS = 6, ROWS = 4 };
static const sdg_mesh_t mesh = {.axes = 1, .name = {"y"}, .size = {2}};

// A matrix of floats, by columns, in pieces of its dimension `cut`.
static void tensor_put(sdg_buffers_t *table, uintptr_t at, int cut,
                       int64_t first) {
  sdg_layout_t layout = {.elem_bytes = 4,
                         .dims = 2,
                         .extent = {COLUMNS, ROWS},
                         .stride = {ROWS, 1}};
  sdg_placement_t placement;
  sdg_part_t part;
  const int64_t size[] = {first, layout.extent[cut] - first};
  const sdg_split_t split = {.axes = 1};
  REQUIRE(!sdg_placement_init(2, layout.extent, &placement));
  REQUIRE(!sdg_part_from_sizes(2, size, &part));
  REQUIRE(!sdg_placement_split(&placement, &mesh, cut, &split, &part));
  REQUIRE(!sdg_buffers_put(table, at, &layout, &placement, &mesh, 0));
  sdg_part_fini(&part);
  sdg_placement_fini(&placement);
}

static sdg_touch_t axpy(uintptr_t x, uintptr_t y, size_t count) {
  return (sdg_touch_t){
      .elementwise = 4,
      .accesses = 3,
      .access = {{.at = 0x9000, .reads = true},
                 {.at = x, .reads = true, .width = count * 4, .height = 1},
                 {.at = y,
                  .reads = true,
                  .writes = true,
                  .width = count * 4,
                  .height = 1}}};
}

static sdg_touch_t scal(uintptr_t x, size_t count) {
  sdg_touch_t touch = axpy(0, x, count);
  touch.access[1] = touch.access[2];
  touch.accesses = 2;
  return touch;
}

// What is there: 'x' and 'y' in columns, 'X' and 'Y' in rows, 'z' x in other
// columns; 'h' x has a halo.
static bool stays(const char *there, const sdg_touch_t *touch) {
  sdg_buffers_t table = {.allocations = 0};
  for (; *there; there++)
    tensor_put(&table, strchr("yY", *there) ? Y : X,
               *there == 'X' || *there == 'Y', *there == 'z' ? 2 : 3);
  bool stay = sdg_elements_stay(&table, touch);
  sdg_buffers_fini(&table);
  return stay;
}

START_TEST(what_is_written_stays_where_every_element_is_made_of_right_ones) {
  sdg_touch_t touch = axpy(X, Y, COLUMNS * ROWS);
  REQUIRE(stays("y", &touch) && stays("Y", &touch));
  REQUIRE(stays("xy", &touch) && stays("XY", &touch));
  REQUIRE(!stays("", &touch) && !stays("x", &touch));
  REQUIRE(!stays("Xy", &touch) && !stays("zy", &touch));
  touch = axpy(X, Y, COLUMNS * ROWS - 5);
  REQUIRE(stays("y", &touch) && stays("xy", &touch));
  touch = axpy(X + 4, Y, COLUMNS * ROWS - 1);
  REQUIRE(stays("y", &touch) && !stays("xy", &touch));
  touch = axpy(Y, Y, COLUMNS * ROWS);
  REQUIRE(stays("y", &touch));
  touch = scal(Y, COLUMNS * ROWS);
  REQUIRE(stays("y", &touch) && stays("xy", &touch) && !stays("x", &touch));
  touch.elementwise = 8; // other elements than the tensor's
  REQUIRE(!stays("y", &touch));
  touch.elementwise = 0;
  REQUIRE(!stays("y", &touch));
}
END_TEST

START_TEST(what_was_brought_is_the_owners_again) {
  sdg_buffers_t table = {.allocations = 0};
  tensor_put(&table, Y, 0, 3);
  uint64_t number = table.buffer[0]->number;
  sdg_buffer_t *buffer = table.buffer[0];
  REQUIRE(sdg_buffer_lack(buffer, NULL, buffer->lack));
  sdg_buffer_grow(buffer, buffer->lack);
  REQUIRE(sdg_buffer_complete(buffer));
  sdg_touch_t touch = scal(Y, COLUMNS * ROWS);
  REQUIRE(sdg_elements_stay(&table, &touch));
  REQUIRE(!sdg_elements_note(&table, &touch, &mesh, 0));
  REQUIRE(table.buffers == 1 && table.buffer[0]->number > number);
  buffer = table.buffer[0];
  for (int r = 0; r < 2; r++)
    REQUIRE(sdg_box_equal(&buffer->valid[r], &buffer->owned[r]));
  sdg_buffers_fini(&table);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("elements");
  TCase *cases = tcase_create("elements");
  tcase_add_test(
      cases, what_is_written_stays_where_every_element_is_made_of_right_ones);
  tcase_add_test(cases, what_was_brought_is_the_owners_again);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
