// SPDX-License-Identifier: Apache-2.0
// Hints of memory that the program's own calls write.
#include "rules/outside.h"

#include <library_types.h>

#include "rules/memory.h"
#include "src/hint.h"

static size_t span_of(const sdg_access_t *access) {
  size_t rows = access->height ? access->height - 1 : 0;
  return rows * access->pitch + access->width;
}

void sdg_outside_touch(const sdg_touch_t *touch) {
  sdg_hint_t from = 0;
  bool rows = false;
  for (int i = 0; i < touch->accesses; i++) {
    const sdg_access_t *access = &touch->access[i];
    if (!touch->copies || !access->reads)
      continue;
    from = sdg_hint_around((const void *)access->at, span_of(access));
    rows |= access->height > 1 && access->pitch != access->width;
  }
  for (int i = 0; i < touch->accesses; i++) {
    const sdg_access_t *access = &touch->access[i];
    const void *at = (const void *)access->at;
    if (!access->writes)
      continue;
    bool gaps = rows || (access->height > 1 && access->pitch != access->width);
    // What the program does to host memory is not seen.
    sdg_hint_put(at, span_of(access), gaps,
                 from && sdg_memory_holds(at) ? from : 0);
  }
  if (touch->everything)
    sdg_hint_forget();
}

// ---- vectors ---------------------------------------------------------------

static size_t type_bytes(int type) {
  switch (type) {
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_64F:
  case CUDA_C_32F:
    return 8;
  case CUDA_C_64F:
    return 16;
  default:
    return 4;
  }
}

// The memory of a vector, from its first byte to its last.
typedef struct strip {
  const void *at;
  size_t bytes;
  bool gaps;
} strip_t;

static strip_t strip_of(const void *at, int64_t n, int64_t inc, int type) {
  int64_t step = inc < 0 ? -inc : inc;
  size_t each = type_bytes(type);
  if (n < 1 || !at)
    return (strip_t){NULL, 0, false};
  return (strip_t){at, (size_t)((n - 1) * step + 1) * each, step != 1};
}

static void put(const strip_t *strip, sdg_hint_t hint) {
  sdg_hint_put(strip->at, strip->bytes, strip->gaps, hint);
}

// Of sums of two vectors: in pieces where one of them is.
static sdg_hint_t sum_of(sdg_hint_t a, sdg_hint_t b) {
  bool pieces = (a | b) & SDG_HINT_AXES;
  return pieces || (a && b) ? a | b : 0;
}

void sdg_outside_vector(const sdg_vector_t *vector) {
  strip_t x = strip_of(vector->x, vector->n, vector->incx, vector->type_x);
  strip_t y = strip_of(vector->y, vector->n, vector->incy, vector->type_y);
  sdg_hint_t of_x = sdg_hint_around(x.at, x.bytes);
  sdg_hint_t of_y = sdg_hint_around(y.at, y.bytes);
  switch (vector->op) {
  case SDG_VECTOR_COPY:
    put(&y, of_x);
    break;
  case SDG_VECTOR_AXPY:
    if (of_x != of_y)
      put(&y, sum_of(of_x, of_y));
    break;
  case SDG_VECTOR_SWAP:
    if (of_x != of_y) {
      put(&x, of_y);
      put(&y, of_x);
    }
    break;
  case SDG_VECTOR_ROT:
    if (of_x != of_y) {
      put(&x, sum_of(of_x, of_y));
      put(&y, sum_of(of_x, of_y));
    }
    break;
  case SDG_VECTOR_SCAL:
  case SDG_VECTOR_NRM2:
  case SDG_VECTOR_ASUM:
  case SDG_VECTOR_DOT:
  case SDG_VECTOR_INDEX:
    break;
  }
}
