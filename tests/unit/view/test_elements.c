// SPDX-License-Identifier: Apache-2.0
// Elementwise calls on tensors in pieces.
#include "rules/view/whole/elements.h"

#include <string.h>

#include "tests/unit/random.h"

enum { X = 0x1000, Y = 0x2000, COLUMNS = 6, ROWS = 4 };
static const sdg_mesh_t mesh = {.axes = 1, .name = {"y"}, .size = {2}};

// Adds a matrix of floats, stored by columns, in pieces of its dimension `cut`.
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

static sdg_memory_access_t axpy(uintptr_t x, uintptr_t y, size_t count) {
  return (sdg_memory_access_t){
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

static sdg_memory_access_t scal(uintptr_t x, size_t count) {
  sdg_memory_access_t memory = axpy(0, x, count);
  memory.access[1] = memory.access[2];
  memory.accesses = 2;
  return memory;
}

// `there` names the tensors: x, y in pieces of columns; X, Y in pieces of rows;
// z: x in other columns; h: x with a halo.
static bool stays(const char *there, const sdg_memory_access_t *memory) {
  sdg_buffers_t table = {.allocations = 0};
  for (; *there; there++)
    tensor_put(&table, strchr("yY", *there) ? Y : X,
               *there == 'X' || *there == 'Y', *there == 'z' ? 2 : 3);
  bool stay = sdg_elements_stay(&table, memory);
  sdg_buffers_fini(&table);
  return stay;
}

START_TEST(writes_in_pieces_stay_if_every_element_comes_from_valid_ones) {
  sdg_memory_access_t memory = axpy(X, Y, COLUMNS * ROWS);
  REQUIRE(stays("y", &memory) && stays("Y", &memory));
  REQUIRE(stays("xy", &memory) && stays("XY", &memory));
  REQUIRE(!stays("", &memory) && !stays("x", &memory));
  REQUIRE(!stays("Xy", &memory) && !stays("zy", &memory));
  memory = axpy(X, Y, COLUMNS * ROWS - 5);
  REQUIRE(stays("y", &memory) && stays("xy", &memory));
  memory = axpy(X + 4, Y, COLUMNS * ROWS - 1);
  REQUIRE(stays("y", &memory) && !stays("xy", &memory));
  memory = axpy(Y, Y, COLUMNS * ROWS);
  REQUIRE(stays("y", &memory));
  memory = scal(Y, COLUMNS * ROWS);
  REQUIRE(stays("y", &memory) && stays("xy", &memory) && !stays("x", &memory));
  memory.elementwise = 8; // elements of another size than the tensor's
  REQUIRE(!stays("y", &memory));
  memory.elementwise = 0;
  REQUIRE(!stays("y", &memory));
}
END_TEST

START_TEST(fetched_elements_are_invalid_after_a_write) {
  sdg_buffers_t table = {.allocations = 0};
  tensor_put(&table, Y, 0, 3);
  uint64_t number = table.buffer[0]->number;
  sdg_buffer_t *buffer = table.buffer[0];
  REQUIRE(sdg_buffer_lack(buffer, NULL, buffer->lack));
  sdg_buffer_grow(buffer, buffer->lack);
  REQUIRE(sdg_buffer_complete(buffer));
  sdg_memory_access_t memory = scal(Y, COLUMNS * ROWS);
  REQUIRE(sdg_elements_stay(&table, &memory));
  REQUIRE(!sdg_elements_note(&table, &memory, &mesh, 0));
  REQUIRE(table.buffers == 1 && table.buffer[0]->number > number);
  buffer = table.buffer[0];
  for (int r = 0; r < 2; r++)
    REQUIRE(sdg_box_equal(&buffer->valid[r], &buffer->owned[r]));
  sdg_buffers_fini(&table);
}
END_TEST

// Copies x to y, or exchanges them; sundog saw both allocations.
static int pieces_after(const char *there, sdg_memory_access_t *memory,
                        size_t count, sdg_elements_t elements,
                        uintptr_t *out_at) {
  sdg_buffers_t table = {.allocations = 0};
  int left = -1;
  *memory = axpy(X, Y, count);
  memory->elements = elements;
  memory->access[1].writes =
      elements != SDG_ELEMENTS_COPY && elements != SDG_ELEMENTS_BYTES;
  REQUIRE(!sdg_buffers_allocate(&table, X, 0x400));
  REQUIRE(!sdg_buffers_allocate(&table, Y, 0x400));
  for (; *there; there++)
    tensor_put(&table, strchr("yY", *there) ? Y : X, strchr("XY", *there) != 0,
               3);
  if (sdg_elements_stay(&table, memory)) {
    REQUIRE(!sdg_elements_note(&table, memory, &mesh, 0));
    left = table.buffers;
    *out_at = left ? table.buffer[0]->at : 0;
  }
  sdg_buffers_fini(&table);
  return left;
}

START_TEST(copied_and_exchanged_tensors_keep_their_pieces) {
  const size_t all = COLUMNS * ROWS;
  const sdg_elements_t copy = SDG_ELEMENTS_COPY, swap = SDG_ELEMENTS_SWAP;
  sdg_memory_access_t memory;
  uintptr_t at = 0;
  REQUIRE(pieces_after("x", &memory, all, copy, &at) == 2);
  REQUIRE(pieces_after("xY", &memory, all, copy, &at) == 2);
  REQUIRE(pieces_after("x", &memory, all, swap, &at) == 1 && at == Y);
  REQUIRE(pieces_after("y", &memory, all, swap, &at) == 1 && at == X);
  REQUIRE(pieces_after("xY", &memory, all, swap, &at) == 2);
  // A part of a tensor in pieces stays in pieces only in a tensor with the same
  // pieces.
  REQUIRE(pieces_after("x", &memory, all - 1, copy, &at) < 0);
  REQUIRE(pieces_after("xY", &memory, all - 1, copy, &at) < 0);
  REQUIRE(pieces_after("xy", &memory, all - 1, copy, &at) == 2);
  REQUIRE(pieces_after("y", &memory, all - 1, copy, &at) == 1);
  REQUIRE(pieces_after("y", &memory, all - 1, swap, &at) < 0);
  // A tensor that is overwritten with equal values is the same everywhere.
  REQUIRE(pieces_after("y", &memory, all, copy, &at) < 0);
  REQUIRE(pieces_after("", &memory, all, copy, &at) < 0);
}
END_TEST

START_TEST(bytes_move_whole_tensors_or_nothing) {
  const size_t all = COLUMNS * ROWS;
  const sdg_elements_t bytes = SDG_ELEMENTS_BYTES;
  sdg_memory_access_t memory;
  uintptr_t at = 0;
  REQUIRE(pieces_after("x", &memory, all, bytes, &at) == 2);
  REQUIRE(pieces_after("xY", &memory, all, bytes, &at) == 2);
  REQUIRE(pieces_after("x", &memory, all - 1, bytes, &at) < 0);
  REQUIRE(pieces_after("xy", &memory, all - 1, bytes, &at) < 0);
  REQUIRE(pieces_after("y", &memory, all - 1, bytes, &at) < 0);
  REQUIRE(pieces_after("y", &memory, all, bytes, &at) < 0);
}
END_TEST

START_TEST(rotations_stay_in_pieces_if_both_vectors_are) {
  const size_t all = COLUMNS * ROWS;
  const sdg_elements_t rotate = SDG_ELEMENTS_ROTATE;
  sdg_memory_access_t memory;
  uintptr_t at = 0;
  REQUIRE(pieces_after("xy", &memory, all, rotate, &at) == 2);
  REQUIRE(pieces_after("xy", &memory, all - 1, rotate, &at) == 2);
  REQUIRE(pieces_after("xY", &memory, all, rotate, &at) < 0);
  REQUIRE(pieces_after("x", &memory, all, rotate, &at) < 0);
  REQUIRE(pieces_after("y", &memory, all, rotate, &at) < 0);
  REQUIRE(pieces_after("", &memory, all, rotate, &at) < 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("elements");
  TCase *cases = tcase_create("elements");
  tcase_add_test(cases,
                 writes_in_pieces_stay_if_every_element_comes_from_valid_ones);
  tcase_add_test(cases, fetched_elements_are_invalid_after_a_write);
  tcase_add_test(cases, copied_and_exchanged_tensors_keep_their_pieces);
  tcase_add_test(cases, bytes_move_whole_tensors_or_nothing);
  tcase_add_test(cases, rotations_stay_in_pieces_if_both_vectors_are);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
