// SPDX-License-Identifier: Apache-2.0
// Layouts of tensors in memory: their bytes, and the order in which their
// dimensions nest.
#include "src/geometry/layout.h"

#include <string.h>

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

// ---- the order of dimensions ------------------------------------------------

typedef enum format { NCHW, NHWC, FORMATS } format_t;

static void format_order(format_t format, int dims, unsigned char *out_order) {
  for (int i = 0; i < dims; i++)
    out_order[i] = (unsigned char)i;
  for (int i = 1; i < dims && format == NHWC; i++)
    out_order[i] = (unsigned char)(i < dims - 1 ? i + 1 : 1);
}

// Whether each dimension in `order` is at least as far out as the next one. If
// `ones`, dimensions of extent 1 count.
static bool order_fits(const unsigned char *order, int dims,
                       const int64_t *extent, const int64_t *stride,
                       bool ones) {
  int64_t least = 0; // the stride that the next dimension outwards needs
  for (int i = dims - 1; i >= 0; i--) {
    int d = order[i];
    if (extent[d] <= 1 && !ones)
      continue;
    if (stride[d] < least)
      return false;
    least = stride[d] * (extent[d] > 1 ? extent[d] : 1);
  }
  return true;
}

// Whether dimension a lies inside b. Of equal strides the one of a dimension
// of extent 1 is the inner one.
static bool is_inside(const int64_t *extent, const int64_t *stride, int a,
                      int b) {
  if (stride[a] != stride[b])
    return stride[a] < stride[b];
  return extent[a] <= 1 && extent[b] > 1;
}

void sdg_nest_make(int dims, bool is_image, const int64_t *extent,
                   const int64_t *stride, sdg_nest_t *out) {
  memset(out, 0, sizeof *out);
  memcpy(out->extent, extent, (size_t)dims * sizeof *extent);
  for (int ones = 1; is_image && ones >= 0; ones--)
    for (format_t format = NCHW; format < FORMATS; format++) {
      format_order(format, dims, out->order);
      if (order_fits(out->order, dims, extent, stride, ones))
        return;
    }
  for (int d = 0; d < dims; d++) {
    int i = d;
    for (; i > 0 && is_inside(extent, stride, out->order[i - 1], d); i--)
      out->order[i] = out->order[i - 1];
    out->order[i] = (unsigned char)d;
  }
}

bool sdg_nest_match(int dims, const sdg_nest_t *a, const sdg_nest_t *b) {
  int i = 0, j = 0;
  for (;;) {
    while (i < dims &&
           (a->extent[a->order[i]] <= 1 || b->extent[a->order[i]] <= 1))
      i++;
    while (j < dims &&
           (a->extent[b->order[j]] <= 1 || b->extent[b->order[j]] <= 1))
      j++;
    if (i == dims || j == dims)
      return i == dims && j == dims;
    if (a->order[i++] != b->order[j++])
      return false;
  }
}

// Whether a lies inside b on some rank that has more than one index of both.
static bool lies_inside(int dims, int ranks, const sdg_nest_t *nest, int a,
                        int b) {
  for (int r = 0; r < ranks; r++) {
    if (nest[r].extent[a] <= 1 || nest[r].extent[b] <= 1)
      continue;
    for (int i = 0; i < dims; i++)
      if (nest[r].order[i] == a || nest[r].order[i] == b)
        return nest[r].order[i] == b;
  }
  return false;
}

static bool order_fits_all(const unsigned char *order, int dims, int ranks,
                           const sdg_nest_t *nest) {
  for (int i = 0; i < dims; i++)
    for (int j = i + 1; j < dims; j++)
      if (lies_inside(dims, ranks, nest, order[i], order[j]))
        return false;
  return true;
}

// Takes, again and again, the first dimension in nest[0]'s order that lies
// inside no other one that is left.
static void order_find(int dims, int ranks, const sdg_nest_t *nest,
                       unsigned char *out_order) {
  bool placed[SDG_DIMS_MAX] = {false};
  for (int at = 0; at < dims; at++) {
    int next = -1, any = -1;
    for (int i = dims - 1; i >= 0; i--) {
      int a = nest->order[i];
      bool inside = false;
      for (int b = 0; b < dims; b++)
        inside |= !placed[b] && b != a && lies_inside(dims, ranks, nest, a, b);
      if (placed[a])
        continue;
      any = a;
      if (!inside)
        next = a;
    }
    if (next < 0)
      next = any; // the ranks' orders contradict each other
    placed[next] = true;
    out_order[at] = (unsigned char)next;
  }
}

void sdg_nesting_find(int dims, bool is_image, int ranks,
                      const sdg_nest_t *nest, int64_t *out_nesting) {
  unsigned char order[SDG_DIMS_MAX];
  memcpy(order, nest->order, sizeof order);
  bool fits = order_fits_all(order, dims, ranks, nest);
  for (format_t format = NCHW; is_image && !fits && format < FORMATS;
       format++) {
    format_order(format, dims, order);
    fits = order_fits_all(order, dims, ranks, nest);
  }
  if (!fits)
    order_find(dims, ranks, nest, order);
  for (int i = 0; i < dims; i++)
    out_nesting[order[i]] = dims - i;
}
