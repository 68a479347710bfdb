// SPDX-License-Identifier: Apache-2.0
// The blocks of vectors in pieces that each rank computes, against memory byte
// by byte.
#include "rules/view/whole/vector_share.h"

#include <library_types.h>
#include <string.h>

#include "tests/unit/random.h"

enum { ARENA = 2048, RANKS = 12, AT = 0x10000, TYPES = 4 };
static const int types[TYPES] = {CUDA_R_16F, CUDA_R_32F, CUDA_R_64F,
                                 CUDA_C_64F};

// Whether a rank has the right value of this byte.
static bool has[RANKS][ARENA];

typedef struct tensor {
  int64_t at; // offset in the arena
  sdg_layout_t layout;
  sdg_placement_t placement;
  bool nested; // each stride is a multiple of the next one
} tensor_t;

// Draws a layout, mostly with nested strides, with or without gaps.
static void layout_draw(tensor_t *tensor, int elem_bytes) {
  sdg_layout_t *layout = &tensor->layout;
  *layout =
      (sdg_layout_t){.elem_bytes = elem_bytes, .dims = (int)random_in(1, 4)};
  int order[SDG_DIMS_MAX];
  for (int d = 0; d < layout->dims; d++) {
    int i = (int)random_in(0, d);
    order[d] = order[i];
    order[i] = d;
  }
  tensor->nested = true;
  int64_t stride = random_in(0, 7) ? 1 : random_in(2, 3);
  for (int i = 0; i < layout->dims; i++) {
    layout->extent[order[i]] = random_in(1, i == 0 ? 6 : 4);
    layout->stride[order[i]] = stride;
    stride *= layout->extent[order[i]] + (random_in(0, 3) ? 0 : 2);
    if (random_in(0, 19) == 0) {
      tensor->nested = false;
      stride++;
    }
  }
}

static void placement_draw(tensor_t *tensor, const sdg_mesh_t *mesh) {
  const sdg_layout_t *layout = &tensor->layout;
  REQUIRE(
      !sdg_placement_init(layout->dims, layout->extent, &tensor->placement));
  for (int a = 0; a < mesh->axes; a++) {
    int d = (int)random_in(0, layout->dims - 1);
    int64_t size[RANKS];
    sdg_part_t part;
    if (tensor->placement.split[d].axes || (a > 0 && random_in(0, 2) == 0))
      continue;
    const sdg_split_t split = {.axes = 1, .axis = {a}};
    random_sizes(layout->extent[d], mesh->size[a], size);
    REQUIRE(!sdg_part_from_sizes(mesh->size[a], size, &part));
    REQUIRE(!sdg_placement_split(&tensor->placement, mesh, d, &split, &part));
    sdg_part_fini(&part);
  }
}

static bool in_box(const sdg_box_t *box, const int64_t *index) {
  for (int d = 0; d < box->dims; d++)
    if (index[d] < box->dim[d].lo || index[d] >= box->dim[d].hi)
      return false;
  return true;
}

static void tensor_note(const tensor_t *tensor, const sdg_mesh_t *mesh,
                        sdg_buffers_t *table) {
  const sdg_layout_t *layout = &tensor->layout;
  int ranks = sdg_mesh_ranks(mesh);
  int64_t index[SDG_DIMS_MAX] = {0}, elements = 1;
  for (int d = 0; d < layout->dims; d++)
    elements *= layout->extent[d];
  for (int64_t i = 0; i < elements; i++) {
    int64_t at = tensor->at, rest = i;
    for (int d = 0; d < layout->dims; d++) {
      index[d] = rest % layout->extent[d];
      rest /= layout->extent[d];
      at += index[d] * layout->stride[d] * layout->elem_bytes;
    }
    for (int r = 0; r < ranks; r++) {
      sdg_box_t own = sdg_placement_box(&tensor->placement, mesh, r);
      memset(&has[r][at], in_box(&own, index), (size_t)layout->elem_bytes);
    }
  }
  REQUIRE(!sdg_buffers_put(table, AT + (uintptr_t)tensor->at, layout,
                           &tensor->placement, mesh, 0));
}

static bool element_there(int rank, const void *at, int64_t inc, int type,
                          int64_t index) {
  int64_t bytes = (int64_t)sdg_vector_type_bytes(type);
  int64_t from =
      (int64_t)((uintptr_t)at - AT) + index * (inc < 0 ? -inc : inc) * bytes;
  for (int64_t i = from; i < from + bytes; i++)
    if (!has[rank][i])
      return false;
  return true;
}

// Counts how often each element is in a rank's blocks; the rank must have them.
static void blocks_count(const sdg_vector_t *vector, int rank,
                         const sdg_vector_share_t *share, int *out_count) {
  int64_t all = 0;
  for (int b = 0; b < share->blocks; b++) {
    const sdg_vector_block_t *block = &share->block[b];
    int64_t elements = 1;
    REQUIRE(block->dims >= 1 && block->step[block->dims - 1] == 1);
    for (int d = 0; d < block->dims; d++)
      elements *= block->extent[d];
    all += elements;
    for (int64_t i = 0; i < elements; i++) {
      int64_t index = block->first, rest = i;
      for (int d = 0; d < block->dims; d++) {
        index += rest % block->extent[d] * block->step[d];
        rest /= block->extent[d];
      }
      REQUIRE(index >= 0 && index < vector->n);
      out_count[index]++;
      REQUIRE(
          element_there(rank, vector->x, vector->incx, vector->type_x, index));
      REQUIRE(!vector->y || element_there(rank, vector->y, vector->incy,
                                          vector->type_y, index));
    }
  }
  REQUIRE(all == share->count);
}

static bool share_check(const sdg_buffers_t *table, const sdg_vector_t *vector,
                        const sdg_mesh_t *mesh) {
  static sdg_vector_share_t share[RANKS];
  int ranks = sdg_mesh_ranks(mesh), group[SDG_RANKS_MAX], made = 0;
  for (int r = 0; r < ranks; r++)
    made += sdg_vector_share_make(table, vector, mesh, r, &share[r]);
  REQUIRE(made == 0 || made == ranks);
  for (int r = 0; made && r < ranks; r++) {
    int count[ARENA] = {0};
    int members = sdg_mesh_group(mesh, r, share[0].axes, group);
    REQUIRE(share[r].axes == share[0].axes && share[r].axes);
    for (int m = 0; m < members; m++)
      blocks_count(vector, group[m], &share[group[m]], count);
    for (int64_t i = 0; i < vector->n; i++)
      REQUIRE(count[i] == 1);
  }
  return made > 0;
}

static sdg_mesh_t mesh_draw(void) {
  static const char *const text[] = {
      "y=2",     "y=3",     "y=8",         "y=5",
      "y=2,x=2", "y=3,x=4", "a=2,b=2,c=2", "a=2,b=1,c=2,d=3"};
  static const int ranks[] = {2, 3, 8, 5, 4, 12, 8, 12};
  int64_t i = random_in(0, 7);
  sdg_mesh_t mesh;
  REQUIRE(!sdg_mesh_parse(text[i], ranks[i], &mesh));
  return mesh;
}

static int64_t elements_to(int64_t from, int64_t to, int64_t inc, int type) {
  int64_t bytes = (int64_t)sdg_vector_type_bytes(type);
  int64_t step = (inc < 0 ? -inc : inc) * bytes;
  return to - from < bytes ? 0 : (to - from - bytes) / step + 1;
}

START_TEST(each_element_belongs_to_one_rank_that_has_it) {
  int made = 0, of_two = 0;
  for (int64_t cases = random_cases(60000); cases > 0; cases--) {
    sdg_mesh_t mesh = mesh_draw();
    sdg_buffers_t table = {.allocations = 0};
    tensor_t tensor[2];
    int elem_bytes = 2 << random_in(0, 2), tensors = (int)random_in(1, 2);
    bool same = tensors == 2 && random_in(0, 1);
    memset(has, true, sizeof has);
    for (int t = 0; t < tensors; t++) {
      if (t == 1 && same) {
        tensor[1] = tensor[0];
        REQUIRE(
            !sdg_placement_copy(&tensor[0].placement, &tensor[1].placement));
      } else {
        layout_draw(&tensor[t], elem_bytes);
        placement_draw(&tensor[t], &mesh);
      }
      tensor[t].at = t * (ARENA / 2) + elem_bytes * random_in(0, 9);
      if (tensor[t].at + (int64_t)sdg_layout_bytes(&tensor[t].layout) >
          (t + 1) * (ARENA / 2)) {
        tensor[t].layout.dims = 1; // too large: use one dimension
        tensor[t].layout.stride[0] = 1;
        tensor[t].nested = true;
        sdg_placement_fini(&tensor[t].placement);
        placement_draw(&tensor[t], &mesh);
      }
      tensor_note(&tensor[t], &mesh, &table);
    }
    int type = random_in(0, 5) ? types[elem_bytes / 4 - (elem_bytes == 8)]
                               : types[random_in(0, TYPES - 1)];
    type = random_in(0, 5) ? (elem_bytes == 2   ? CUDA_R_16F
                              : elem_bytes == 4 ? CUDA_R_32F
                                                : CUDA_R_64F)
                           : type;
    static const int64_t incs[] = {1, 1, 1, 2, 3, -1, -2};
    sdg_vector_t vector = {.op = random_in(0, 1) ? SDG_VECTOR_DOT
                                                 : SDG_VECTOR_NRM2,
                           .incx = incs[random_in(0, 6)],
                           .incy = incs[random_in(0, 6)],
                           .type_x = type,
                           .type_y = type};
    if (random_in(0, 1))
      vector.incy = vector.incx;
    int64_t off = random_in(0, 2) ? 0 : elem_bytes * random_in(-9, 9);
    int64_t x = tensor[0].at + off > 0 ? tensor[0].at + off : 0, y = x;
    vector.x = (const void *)(uintptr_t)(AT + x);
    // All of the arena, half of it, or less; or two tensors at a fixed
    // distance.
    int64_t end = random_in(0, 3) ? ARENA / 2 : ARENA;
    vector.n = elements_to(x, end, vector.incx, type);
    if (vector.op == SDG_VECTOR_DOT) {
      y = tensors == 2 && random_in(0, 2) ? tensor[1].at + (x - tensor[0].at)
                                          : random_in(0, ARENA / 2);
      y = y < 0 ? 0 : y;
      vector.y = (const void *)(uintptr_t)(AT + y);
      int64_t n = elements_to(y, ARENA, vector.incy, type);
      vector.n = n < vector.n ? n : vector.n;
    }
    if (random_in(0, 1) && vector.n > 0)
      vector.n = random_in(0, vector.n);
    bool done = share_check(&table, &vector, &mesh);
    made += done;
    of_two += done && vector.y && x != y;
    for (int t = 0; t < tensors; t++)
      sdg_placement_fini(&tensor[t].placement);
    sdg_buffers_fini(&table);
  }
  REQUIRE(made * 8 > random_cases(60000) && of_two > 0);
}
END_TEST

// The norm of a tensor's memory, and its dot products with itself and with
// memory that is the same on every rank.
START_TEST(tensors_in_pieces_are_shared_whatever_their_gaps) {
  for (int64_t cases = random_cases(20000); cases > 0; cases--) {
    sdg_mesh_t mesh = mesh_draw();
    sdg_buffers_t table = {.allocations = 0};
    tensor_t tensor = {.at = 16};
    do {
      layout_draw(&tensor, 4);
    } while (!tensor.nested || sdg_layout_bytes(&tensor.layout) > ARENA / 4);
    placement_draw(&tensor, &mesh);
    memset(has, true, sizeof has);
    tensor_note(&tensor, &mesh, &table);
    int64_t n = (int64_t)sdg_layout_bytes(&tensor.layout) / 4;
    int64_t before = random_in(0, 1) ? 0 : random_in(0, 3);
    sdg_vector_t vector = {.op = SDG_VECTOR_NRM2,
                           .n = n + before,
                           .x = (const void *)(uintptr_t)(AT + 16 - 4 * before),
                           .incx = 1,
                           .incy = 1,
                           .type_x = CUDA_R_32F,
                           .type_y = CUDA_R_32F};
    REQUIRE(share_check(&table, &vector, &mesh));
    vector.op = SDG_VECTOR_DOT;
    vector.y = vector.x;
    REQUIRE(share_check(&table, &vector, &mesh));
    vector.incx = vector.incy = -1;
    REQUIRE(share_check(&table, &vector, &mesh));
    vector.incy = 1; // with x and y exchanged
    REQUIRE(n + before == 1 || !share_check(&table, &vector, &mesh));
    vector.incx = 1;
    vector.y = (const void *)(uintptr_t)(AT + ARENA / 2 + 16);
    REQUIRE(share_check(&table, &vector, &mesh));
    const void *swap = vector.x;
    vector.x = vector.y;
    vector.y = swap;
    REQUIRE(share_check(&table, &vector, &mesh));
    vector.op = SDG_VECTOR_NRM2; // of memory that is the same everywhere
    vector.y = NULL;
    REQUIRE(!share_check(&table, &vector, &mesh));
    sdg_placement_fini(&tensor.placement);
    sdg_buffers_fini(&table);
  }
}
END_TEST

// Rows of two elements with gaps of two; the other tensor's rows are in the
// gaps.
START_TEST(tensors_in_the_gaps_of_others_are_not_shared) {
  const sdg_mesh_t mesh = {.axes = 1, .name = {"y"}, .size = {2}};
  const sdg_split_t split = {.axes = 1};
  const int64_t size[] = {4, 2};
  sdg_buffers_t table = {.allocations = 0};
  memset(has, true, sizeof has);
  for (int t = 0; t < 2; t++) {
    tensor_t tensor = {.at = 16 + 8 * t, .layout = {4, 2, {6, 2}, {4, 1}}};
    sdg_part_t part;
    REQUIRE(!sdg_placement_init(2, tensor.layout.extent, &tensor.placement));
    REQUIRE(!sdg_part_from_sizes(2, size, &part));
    REQUIRE(!sdg_placement_split(&tensor.placement, &mesh, 0, &split, &part));
    tensor_note(&tensor, &mesh, &table);
    sdg_part_fini(&part);
    sdg_placement_fini(&tensor.placement);
  }
  sdg_vector_t vector = {.op = SDG_VECTOR_NRM2,
                         .n = 24,
                         .x = (const void *)(uintptr_t)(AT + 16),
                         .incx = 1,
                         .type_x = CUDA_R_32F};
  REQUIRE(!share_check(&table, &vector, &mesh));
  vector.n = 2; // all elements in one of the tensors
  REQUIRE(share_check(&table, &vector, &mesh));
  sdg_buffers_fini(&table);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("vector_share");
  TCase *cases = tcase_create("vector_share");
  tcase_add_test(cases, each_element_belongs_to_one_rank_that_has_it);
  tcase_add_test(cases, tensors_in_pieces_are_shared_whatever_their_gaps);
  tcase_add_test(cases, tensors_in_the_gaps_of_others_are_not_shared);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
