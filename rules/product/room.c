// SPDX-License-Identifier: Apache-2.0
// Shard view: what the ranks tell each other about the memory of a product's
// matrices, and what fits in it.
#include <string.h>

#include "rules/file/setup.h"
#include "rules/memory/memory.h"
#include "rules/product/check.h"
#include "rules/product/kept.h"
#include "src/job/job.h"

// The number of elements of a buffer that holds the matrix in any placement,
// because no extent exceeds the one in the call times the number of ranks.
static int64_t plenty(const sdg_matrix_t *matrix) {
  int64_t ranks = sdg_job_group()->count, all = 1, line;
  for (int d = 0; d < matrix->dims; d++)
    if (__builtin_mul_overflow(matrix->extent[d], matrix->stride[d], &line) ||
        __builtin_add_overflow(all, line, &all))
      return INT32_MAX;
  if (__builtin_mul_overflow(all, ranks * ranks, &all) || all > INT32_MAX)
    return INT32_MAX;
  return all;
}

static void room_fill(const sdg_matrix_t *matrix, int64_t *out) {
  size_t bytes;
  for (int d = 0; d < matrix->dims; d++)
    if (matrix->stride[d] >= INT32_MAX)
      return;
  out[1] = matrix->stride[matrix->outer];
  out[2] = matrix->outer > 0 ? matrix->stride[0] : 0;
  if (!sdg_memory_room(matrix->data, &bytes))
    return;
  int64_t elements =
      (int64_t)(bytes / (size_t)sdg_product_type_bytes(matrix->type));
  if (elements < plenty(matrix))
    out[0] = elements + 1;
}

int sdg_product_rooms(const sdg_call_t *call, int64_t *out) {
  sdg_product_t product;
  if (sdg_setup_is_whole())
    return 0;
  sdg_product_make(call->args, &product);
  memset(out, 0, SDG_ROOMS * sizeof *out);
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    if (product.matrix[i].there)
      room_fill(&product.matrix[i], out + i * SDG_ROOM_NUMBERS);
  sdg_product_kept_look(&product, out + SDG_ROOMS);
  return SDG_ROOMS + SDG_PRODUCT_KEPTS;
}

sdg_product_room_t sdg_product_room_of(const sdg_product_parts_t *m, int matrix,
                                       int member) {
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(m->call->op_descriptor, m->call->op_generation);
  const sdg_matrix_t *of = &m->product.matrix[matrix];
  sdg_product_room_t room = {.elements = -1};
  if (!vector || vector->dims < SDG_ROOMS)
    return room;
  const int64_t *said =
      vector->extent + member * vector->dims + matrix * SDG_ROOM_NUMBERS;
  room.elements = said[0] - 1;
  if (of->outer > 0)
    room.stride[0] = said[2];
  room.stride[of->outer] = said[1];
  if (of->inner >= 0)
    room.stride[of->inner] = 1;
  return room;
}

bool sdg_product_room_holds(const sdg_product_room_t *room,
                            const sdg_matrix_t *matrix, const int64_t *extent,
                            bool apart) {
  int order[3] = {0, 1, 2};
  int64_t span = 1;
  if (room->elements < 0)
    return true;
  for (int d = 0; d < matrix->dims; d++)
    if (extent[d] == 0)
      return true;
  for (int i = 1; i < matrix->dims; i++)
    for (int k = i;
         k > 0 && room->stride[order[k]] < room->stride[order[k - 1]]; k--) {
      int other = order[k];
      order[k] = order[k - 1];
      order[k - 1] = other;
    }
  for (int i = 0; i < matrix->dims; i++) {
    int d = order[i];
    if (extent[d] > 1 && apart && room->stride[d] < span)
      return false;
    span += (extent[d] - 1) * room->stride[d];
  }
  return span <= room->elements;
}
