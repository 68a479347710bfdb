// SPDX-License-Identifier: Apache-2.0
// The buffer table against a list of elements.
#include "src/geometry/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "src/geometry/transfer.h"
#include "tests/unit/random.h"

enum { ARENA = 512, TENSORS = 8, ELEMENTS = 4096, RANKS = 6 };

// Draws a layout with random extents, order of dimensions and gaps.
static sdg_layout_t layout_draw(int dims_max) {
  sdg_layout_t layout = {.elem_bytes = 1 << random_in(0, 3),
                         .dims = (int)random_in(1, dims_max)};
  int order[SDG_DIMS_MAX];
  for (int d = 0; d < layout.dims; d++) {
    int i = (int)random_in(0, d);
    order[d] = order[i];
    order[i] = d;
  }
  int64_t stride = 1;
  for (int i = 0; i < layout.dims; i++) {
    layout.extent[order[i]] = random_in(1, 6);
    layout.stride[order[i]] = stride;
    stride *= layout.extent[order[i]];
    if (random_in(0, 3) == 0)
      stride += random_in(1, 3);
  }
  return layout;
}

// Writes the offsets of all elements of a box to `out`; returns their number.
// Elements outside the domain are at its other end.
static int offsets_of(const sdg_layout_t *layout, const sdg_box_t *box,
                      int64_t *out) {
  int count = 0;
  int64_t at[SDG_DIMS_MAX];
  if (sdg_box_empty(box))
    return 0;
  for (int d = 0; d < box->dims; d++)
    at[d] = box->dim[d].lo;
  for (;;) {
    int64_t offset = 0;
    for (int d = 0; d < box->dims; d++) {
      int64_t turns = sdg_floor_div(at[d], layout->extent[d]);
      offset += (at[d] - turns * layout->extent[d]) * layout->stride[d];
    }
    out[count++] = offset;
    int d = box->dims - 1;
    for (; d >= 0 && ++at[d] == box->dim[d].hi; d--)
      at[d] = box->dim[d].lo;
    if (d < 0)
      return count;
  }
}

START_TEST(layouts_know_their_bytes_and_their_gaps) {
  static int64_t offset[ELEMENTS];
  static bool used[ELEMENTS];
  for (int64_t n = random_cases(20000); n > 0; n--) {
    sdg_layout_t layout = layout_draw(4);
    sdg_box_t all = sdg_layout_box(&layout);
    int count = offsets_of(&layout, &all, offset);
    int64_t last = 0, gaps = 0;
    memset(used, 0, sizeof used);
    for (int i = 0; i < count; i++) {
      used[offset[i]] = true;
      last = offset[i] > last ? offset[i] : last;
    }
    for (int64_t i = 0; i <= last; i++)
      gaps += !used[i];
    REQUIRE(sdg_layout_bytes(&layout) ==
            (size_t)((last + 1) * layout.elem_bytes));
    REQUIRE(sdg_layout_dense(&layout) == (gaps == 0));
  }
}
END_TEST

static sdg_mesh_t mesh_of(const char *text, int ranks) {
  sdg_mesh_t mesh;
  ck_assert_int_eq((int)sdg_mesh_parse(text, ranks, &mesh), SDG_OK);
  return mesh;
}

// Splits some dimensions over axes of the mesh, each axis at most once.
static sdg_placement_t placement_draw(const sdg_layout_t *layout,
                                      const sdg_mesh_t *mesh) {
  sdg_placement_t placement;
  ck_assert_int_eq(
      (int)sdg_placement_init(layout->dims, layout->extent, &placement),
      SDG_OK);
  for (int axis = 0; axis < mesh->axes; axis++) {
    int d = (int)random_in(0, layout->dims - 1);
    if (placement.split[d].axes || random_in(0, 3) == 0)
      continue;
    int64_t sizes[RANKS];
    sdg_split_t split = {.axes = 1, .axis = {axis}};
    sdg_part_t part;
    random_sizes(layout->extent[d], mesh->size[axis], sizes);
    ck_assert_int_eq((int)sdg_part_from_sizes(mesh->size[axis], sizes, &part),
                     SDG_OK);
    ck_assert_int_eq(
        (int)sdg_placement_split(&placement, mesh, d, &split, &part), SDG_OK);
    sdg_part_fini(&part);
  }
  return placement;
}

static sdg_box_t box_draw(const sdg_layout_t *layout) {
  sdg_box_t box = {.dims = layout->dims};
  for (int d = 0; d < layout->dims; d++) {
    int64_t around = random_in(0, 3) == 0 ? layout->extent[d] / 2 : 0;
    box.dim[d].lo = random_in(0, layout->extent[d]) - around;
    box.dim[d].hi = random_in(0, layout->extent[d]) + around;
  }
  return box;
}

// Which elements each rank has right, by offset.
typedef struct truth {
  bool right[RANKS][ELEMENTS];
} truth_t;

static void truth_add(truth_t *truth, int rank, const sdg_layout_t *layout,
                      const sdg_box_t *box) {
  static int64_t offset[ELEMENTS];
  int count = offsets_of(layout, box, offset);
  for (int i = 0; i < count; i++)
    truth->right[rank][offset[i]] = true;
}

static bool truth_has(const truth_t *truth, int rank,
                      const sdg_layout_t *layout, const sdg_box_t *box) {
  static int64_t offset[ELEMENTS];
  int count = offsets_of(layout, box, offset);
  for (int i = 0; i < count; i++)
    if (!truth->right[rank][offset[i]])
      return false;
  return true;
}

// Rank r receives the elements of out[r], which ranks of its group own.
static void exchange(truth_t *truth, const sdg_buffer_t *buffer,
                     const sdg_box_t *sent) {
  for (int r = 0; r < buffer->ranks; r++)
    for (int p = 0; p < buffer->ranks; p++) {
      sdg_box_t box[] = {buffer->owned[p], sent[r]};
      sdg_transfer_t transfer;
      REQUIRE(!sdg_transfer_plan(box, box + 1, 1, 0, buffer->layout.extent,
                                 &transfer));
      for (int i = 0; i < transfer.locals; i++) {
        const sdg_box_t *common = &transfer.local[i].box;
        REQUIRE(truth_has(truth, buffer->rank[p], &buffer->layout, common));
        truth_add(truth, buffer->rank[r], &buffer->layout, common);
      }
      sdg_transfer_fini(&transfer);
    }
}

START_TEST(missing_elements_are_sent_once) {
  static truth_t truth;
  static const char *const meshes[] = {"y=6", "y=2,x=3"};
  for (int64_t n = random_cases(2000); n > 0; n--) {
    sdg_mesh_t mesh = mesh_of(meshes[n % 2], RANKS);
    sdg_layout_t layout = layout_draw(3);
    sdg_placement_t placement = placement_draw(&layout, &mesh);
    sdg_buffers_t table[RANKS];
    memset(table, 0, sizeof table);
    memset(&truth, 0, sizeof truth);
    for (int r = 0; r < RANKS; r++) {
      ck_assert_int_eq(
          (int)sdg_buffers_put(&table[r], 4096, &layout, &placement, &mesh, r),
          SDG_OK);
      sdg_box_t own = sdg_placement_box(&placement, &mesh, r);
      truth_add(&truth, r, &layout, &own);
    }
    for (int step = 0; step < 4; step++) {
      sdg_box_t need[RANKS], sent[RANKS], again[RANKS];
      bool everything = step == 3 && random_in(0, 1);
      for (int r = 0; r < RANKS; r++)
        need[r] = random_in(0, 2) ? box_draw(&layout)
                                  : (sdg_box_t){.dims = layout.dims};
      // Every rank uses its own table and sends what its group needs; either
      // all ranks send or none.
      bool all_send = false;
      for (int r = 0; r < RANKS; r++) {
        sdg_buffer_t *b = sdg_buffers_find(&table[r], 4096, &layout);
        REQUIRE(b && b->rank[b->me] == r);
        bool sends = sdg_buffer_lack(b, everything ? NULL : need, sent);
        REQUIRE(r == 0 || sends == all_send);
        all_send = sends;
        if (!sends)
          continue;
        for (int k = 0; k < b->ranks; k++)
          REQUIRE(sdg_box_empty(&sent[k]) ||
                  sdg_ring_contains(&sent[k], &b->valid[k], layout.extent));
        exchange(&truth, b, sent);
        sdg_buffer_grow(b, sent);
        REQUIRE(!sdg_buffer_lack(b, everything ? NULL : need, again));
        REQUIRE(!everything || sdg_buffer_complete(b));
      }
      for (int r = 0; r < RANKS; r++) {
        sdg_buffer_t *b = sdg_buffers_find(&table[r], 4096, &layout);
        sdg_box_t all = sdg_layout_box(&layout);
        REQUIRE(truth_has(&truth, r, &layout, everything ? &all : &need[r]));
        for (int k = 0; k < b->ranks; k++)
          REQUIRE(truth_has(&truth, b->rank[k], &layout, &b->valid[k]));
      }
    }
    for (int r = 0; r < RANKS; r++)
      sdg_buffers_fini(&table[r]);
    sdg_placement_fini(&placement);
  }
}
END_TEST

// The same elements in dimensions of another order, some of extent 1 gone and
// some added.
static sdg_layout_t layout_again(const sdg_layout_t *layout) {
  sdg_layout_t again = {.elem_bytes = layout->elem_bytes};
  for (int d = 0; d < layout->dims; d++) {
    if (layout->extent[d] == 1)
      continue;
    int at = (int)random_in(0, again.dims), from = again.dims++;
    again.extent[from] = again.extent[at];
    again.stride[from] = again.stride[at];
    again.extent[at] = layout->extent[d];
    again.stride[at] = layout->stride[d];
  }
  do {
    again.extent[again.dims] = 1;
    again.stride[again.dims++] = random_in(1, 50);
  } while (again.dims < 4 && random_in(0, 1));
  return again;
}

static int offsets_compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static bool same_elements(const sdg_layout_t *a, const sdg_box_t *in_a,
                          const sdg_layout_t *b, const sdg_box_t *in_b) {
  static int64_t of_a[ELEMENTS], of_b[ELEMENTS];
  int count = offsets_of(a, in_a, of_a);
  if (offsets_of(b, in_b, of_b) != count)
    return false;
  qsort(of_a, (size_t)count, sizeof *of_a, offsets_compare);
  qsort(of_b, (size_t)count, sizeof *of_b, offsets_compare);
  return memcmp(of_a, of_b, (size_t)count * sizeof *of_a) == 0;
}

START_TEST(a_tensor_is_found_by_each_description_of_its_elements) {
  int found = 0;
  for (int64_t n = random_cases(5000); n > 0; n--) {
    sdg_mesh_t mesh = mesh_of("y=2,x=3", RANKS);
    sdg_layout_t layout = layout_draw(3), again = layout_again(&layout);
    sdg_placement_t placement = placement_draw(&layout, &mesh);
    sdg_buffers_t table = {0};
    sdg_box_t need[RANKS], was[RANKS], sent[RANKS];
    bool split_one = false;
    for (int d = 0; d < layout.dims; d++)
      split_one |= layout.extent[d] == 1 && placement.split[d].axes > 0;
    REQUIRE(!sdg_buffers_put(&table, 64, &layout, &placement, &mesh, 1));
    sdg_buffer_t *buffer = sdg_buffers_find(&table, 64, &layout);
    for (int r = 0; r < RANKS; r++)
      need[r] = box_draw(&layout);
    if (sdg_buffer_lack(buffer, need, sent))
      sdg_buffer_grow(buffer, sent);
    memcpy(was, buffer->valid, (size_t)buffer->ranks * sizeof *was);
    sdg_layout_t other = again;
    other.elem_bytes *= 2;
    REQUIRE(!sdg_buffers_find(&table, 64, &other));
    REQUIRE(!sdg_buffers_find(&table, 72, &again));
    other = again;
    other.extent[0]++;
    REQUIRE(!sdg_buffers_find(&table, 64, &other));
    sdg_buffer_t *same = sdg_buffers_find(&table, 64, &again);
    split_one &= !sdg_layout_equal(&layout, &again);
    REQUIRE((same == NULL) == split_one);
    for (int r = 0; same && r < same->ranks; r++) {
      sdg_box_t own = sdg_placement_box(&placement, &mesh, same->rank[r]);
      REQUIRE(same_elements(&layout, &own, &again, &same->owned[r]));
      REQUIRE(same_elements(&layout, &was[r], &again, &same->valid[r]));
      own = sdg_placement_box(&same->placement, &mesh, same->rank[r]);
      REQUIRE(same_elements(&again, &own, &again, &same->owned[r]));
    }
    found += same != NULL;
    sdg_buffers_fini(&table);
    sdg_placement_fini(&placement);
  }
  REQUIRE(found > 0);
}
END_TEST

START_TEST(dimensions_of_one_stride_are_not_told_apart) {
  const sdg_layout_t matrix = {4, 2, {5, 3}, {10, 1}};
  const sdg_layout_t twice = {4, 2, {5, 5}, {10, 10}};
  const sdg_layout_t turned = {4, 3, {3, 1, 5}, {1, 7, 10}};
  int dim[SDG_DIMS_MAX];
  REQUIRE(!sdg_layout_map(&matrix, &twice, dim));
  REQUIRE(!sdg_layout_map(&twice, &matrix, dim));
  REQUIRE(!sdg_layout_map(&twice, &twice, dim));
  REQUIRE(sdg_layout_map(&matrix, &turned, dim));
  REQUIRE(dim[0] == 1 && dim[1] == -1 && dim[2] == 0);
}
END_TEST

// Memory byte by byte: which allocation, and which tensors by bits.
typedef struct memory {
  int allocation[ARENA];
  struct {
    uintptr_t at;
    sdg_layout_t layout;
    bool there;
  } tensor[TENSORS];
} memory_t;

static sdg_span_t span_of(const memory_t *m, int tensor) {
  return (sdg_span_t){m->tensor[tensor].at,
                      sdg_layout_bytes(&m->tensor[tensor].layout)};
}

static void memory_free(memory_t *m, int at) {
  int id = m->allocation[at];
  for (int i = 0; i < ARENA; i++) {
    if (!id || m->allocation[i] != id)
      continue;
    m->allocation[i] = 0;
    for (int t = 0; t < TENSORS; t++) {
      sdg_span_t span = span_of(m, t);
      if (m->tensor[t].there && (uintptr_t)i >= span.at &&
          (uintptr_t)i < span.at + span.bytes)
        m->tensor[t].there = false;
    }
  }
}

static void memory_compare(const memory_t *m, sdg_buffers_t *table) {
  int there = 0;
  for (int t = 0; t < TENSORS; t++) {
    there += m->tensor[t].there;
    REQUIRE(m->tensor[t].there ==
            (sdg_buffers_find(table, m->tensor[t].at, &m->tensor[t].layout) !=
             NULL));
  }
  REQUIRE(table->buffers == there);
  for (int i = 0; i < ARENA; i++) {
    sdg_span_t span;
    bool known = sdg_buffers_allocation(table, (uintptr_t)i, &span);
    REQUIRE(known == (m->allocation[i] != 0));
    if (!known)
      continue;
    REQUIRE(m->allocation[span.at] == m->allocation[i]);
    REQUIRE(m->allocation[span.at + span.bytes - 1] == m->allocation[i]);
    REQUIRE(span.at == 0 || m->allocation[span.at - 1] != m->allocation[i]);
  }
}

START_TEST(the_table_follows_allocations_and_frees) {
  sdg_mesh_t mesh = mesh_of("y=2", 2);
  for (int64_t n = random_cases(300); n > 0; n--) {
    sdg_buffers_t table = {0};
    memory_t m;
    memset(&m, 0, sizeof m);
    for (int step = 1; step < 60; step++) {
      int at = (int)random_in(0, ARENA - 1), t = (int)random_in(0, TENSORS - 1);
      int bytes = (int)random_in(1, ARENA - at < 150 ? ARENA - at : 150);
      switch (random_in(0, 3)) {
      case 0: // what was there before is gone
        for (int i = at; i < at + bytes; i++)
          memory_free(&m, i);
        for (int i = at; i < at + bytes; i++)
          m.allocation[i] = step;
        REQUIRE(sdg_buffers_allocate(&table, (uintptr_t)at, (size_t)bytes) ==
                SDG_OK);
        break;
      case 1: // only at its first byte
        if (m.allocation[at] &&
            (at == 0 || m.allocation[at - 1] != m.allocation[at]))
          memory_free(&m, at);
        sdg_buffers_release(&table, (uintptr_t)at);
        break;
      case 2: { // a tensor is written, inside one allocation
        if (m.tensor[t].there)
          break;
        m.tensor[t].at = (uintptr_t)at;
        m.tensor[t].layout = layout_draw(3);
        sdg_span_t span, tensor = span_of(&m, t);
        if (!sdg_buffers_allocation(&table, (uintptr_t)at, &span) ||
            !sdg_span_contain(span, tensor) ||
            sdg_buffers_overlap(&table, tensor, NULL)) {
          m.tensor[t].layout.elem_bytes = 64; // is nowhere
          break;
        }
        sdg_placement_t placement = placement_draw(&m.tensor[t].layout, &mesh);
        REQUIRE(sdg_buffers_put(&table, tensor.at, &m.tensor[t].layout,
                                &placement, &mesh, 0) == SDG_OK);
        sdg_placement_fini(&placement);
        m.tensor[t].there = true;
        break;
      }
      default: { // something touches these bytes
        sdg_span_t span = {(uintptr_t)at, (size_t)bytes};
        for (sdg_buffer_t *b; (b = sdg_buffers_overlap(&table, span, NULL));)
          sdg_buffers_drop(&table, b);
        for (int k = 0; k < TENSORS; k++) {
          sdg_span_t tensor = span_of(&m, k);
          if ((int)tensor.at < at + bytes &&
              (int)(tensor.at + tensor.bytes) > at)
            m.tensor[k].there = false;
        }
      }
      }
      memory_compare(&m, &table);
    }
    sdg_buffers_fini(&table);
  }
}
END_TEST

START_TEST(the_same_tensor_is_found_whatever_the_stride_of_one_element) {
  sdg_mesh_t mesh = mesh_of("y=2", 2);
  sdg_buffers_t table = {0};
  sdg_layout_t layout = {4, 3, {1, 6, 5}, {30, 5, 1}};
  sdg_placement_t placement = placement_draw(&layout, &mesh);
  ck_assert_int_eq(
      (int)sdg_buffers_put(&table, 256, &layout, &placement, &mesh, 1), SDG_OK);
  sdg_layout_t same = layout, other = layout;
  same.stride[0] = 7;
  other.stride[1] = 6;
  ck_assert_ptr_nonnull(sdg_buffers_find(&table, 256, &same));
  ck_assert_ptr_null(sdg_buffers_find(&table, 256, &other));
  ck_assert_ptr_null(sdg_buffers_find(&table, 260, &layout));
  // Written again: one buffer, with a new number.
  uint64_t number = sdg_buffers_find(&table, 256, &layout)->number;
  ck_assert_int_eq(
      (int)sdg_buffers_put(&table, 256, &layout, &placement, &mesh, 1), SDG_OK);
  ck_assert_int_eq(table.buffers, 1);
  ck_assert(sdg_buffers_find(&table, 256, &layout)->number > number);
  sdg_buffers_fini(&table);
  sdg_placement_fini(&placement);
}
END_TEST

START_TEST(a_tensor_that_is_written_again_is_valid_again) {
  sdg_mesh_t mesh = mesh_of("y=2", 2);
  sdg_buffers_t table = {0};
  sdg_layout_t layout = {4, 2, {6, 5}, {5, 1}};
  sdg_placement_t placement = placement_draw(&layout, &mesh);
  for (int time = 0; time < 3 * SDG_BUFFERS_SPARE; time++) {
    REQUIRE(!sdg_buffers_put(&table, 256, &layout, &placement, &mesh, 1));
    sdg_buffer_t *buffer = sdg_buffers_find(&table, 256, &layout);
    ck_assert_ptr_nonnull(buffer);
    for (int r = 0; r < buffer->ranks; r++) {
      sdg_box_t own = sdg_placement_box(&placement, &mesh, buffer->rank[r]);
      ck_assert(sdg_box_equal(&buffer->valid[r], &own));
    }
    // What is brought makes it right everywhere, and it is dropped; or another
    // tensor takes its place.
    if (sdg_buffer_lack(buffer, NULL, buffer->lack))
      sdg_buffer_grow(buffer, buffer->lack);
    ck_assert(sdg_buffer_complete(buffer));
    if (time % 3)
      sdg_buffers_drop(&table, buffer);
  }
  ck_assert_int_le(table.buffers, 1);
  sdg_buffers_fini(&table);
  sdg_placement_fini(&placement);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("buffer");
  TCase *tcase = tcase_create("buffer");
  tcase_add_test(tcase, layouts_know_their_bytes_and_their_gaps);
  tcase_add_test(tcase, missing_elements_are_sent_once);
  tcase_add_test(tcase, the_table_follows_allocations_and_frees);
  tcase_add_test(tcase,
                 the_same_tensor_is_found_whatever_the_stride_of_one_element);
  tcase_add_test(tcase, a_tensor_is_found_by_each_description_of_its_elements);
  tcase_add_test(tcase, dimensions_of_one_stride_are_not_told_apart);
  tcase_add_test(tcase, a_tensor_that_is_written_again_is_valid_again);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
