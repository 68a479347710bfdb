// SPDX-License-Identifier: Apache-2.0
// Byte counts of tensors, and which layouts describe the same elements.
#include "src/geometry/layout.h"

size_t sdg_layout_bytes(const sdg_layout_t *layout) {
  int64_t last = 0;
  for (int d = 0; d < layout->dims; d++) {
    if (layout->extent[d] < 1)
      return 0;
    last += (layout->extent[d] - 1) * layout->stride[d];
  }
  return (size_t)(last + 1) * (size_t)layout->elem_bytes;
}

bool sdg_layout_dense(const sdg_layout_t *layout) {
  int64_t count = 1;
  for (int d = 0; d < layout->dims; d++)
    count *= layout->extent[d];
  return (size_t)count * (size_t)layout->elem_bytes == sdg_layout_bytes(layout);
}

bool sdg_layout_equal(const sdg_layout_t *a, const sdg_layout_t *b) {
  if (a->elem_bytes != b->elem_bytes || a->dims != b->dims)
    return false;
  for (int d = 0; d < a->dims; d++)
    if (a->extent[d] != b->extent[d] ||
        (a->extent[d] > 1 && a->stride[d] != b->stride[d]))
      return false;
  return true;
}

sdg_box_t sdg_layout_box(const sdg_layout_t *layout) {
  return sdg_box_whole(layout->dims, layout->extent);
}

static int dims_counted(const sdg_layout_t *layout) {
  int count = 0;
  for (int d = 0; d < layout->dims; d++)
    count += layout->extent[d] != 1;
  return count;
}

bool sdg_layout_map(const sdg_layout_t *from, const sdg_layout_t *to,
                    int *out_dim) {
  if (from->elem_bytes != to->elem_bytes ||
      dims_counted(from) != dims_counted(to))
    return false;
  for (int d = 0; d < to->dims; d++) {
    int same = -1, matches = 0;
    for (int i = 0; to->extent[d] != 1 && i < from->dims; i++)
      if (from->extent[i] == to->extent[d] &&
          from->stride[i] == to->stride[d]) {
        same = i;
        matches++;
      }
    for (int i = 0; same >= 0 && i < d; i++)
      matches += out_dim[i] == same;
    // Two dimensions with the same stride cannot be told apart.
    if (to->extent[d] != 1 && matches != 1)
      return false;
    out_dim[d] = same;
  }
  return true;
}
