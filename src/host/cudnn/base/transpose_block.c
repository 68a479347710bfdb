// SPDX-License-Identifier: Apache-2.0
// Transposition in square blocks that stay in registers. Built once per
// instruction set with HOST_KERNEL_SUFFIX and HOST_KERNEL_BYTES (of one vector)
// defined.
#include "src/host/cudnn/base/transpose.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

// Columns read before those of the next rows.
enum { STRIP = 64 };

typedef float quad_t __attribute__((vector_size(16), aligned(4), may_alias));

// Interleave the first halves, and the second halves, of two vectors.
#define QUAD_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define QUAD_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

#if HOST_KERNEL_BYTES == 16
enum { LANES = 4, STAGES = 2 };
#define LOW(a, b)  QUAD_LOW(a, b)
#define HIGH(a, b) QUAD_HIGH(a, b)
#elif HOST_KERNEL_BYTES == 32
enum { LANES = 8, STAGES = 3 };
#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
enum { LANES = 16, STAGES = 4 };
#define LOW(a, b)                                                              \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,   \
                          22, 7, 23)
#define HIGH(a, b)                                                             \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,  \
                          14, 30, 15, 31)
#endif

typedef float vec_t
    __attribute__((vector_size(HOST_KERNEL_BYTES), aligned(4), may_alias));
// A vector that is not part of a tensor. On the stack it needs full alignment.
typedef float held_t __attribute__((vector_size(HOST_KERNEL_BYTES)));

// One stage interleaves the vectors of both halves. After log2(LANES) stages
// rows are columns.
static inline __attribute__((always_inline)) void
block(const float *from, int64_t from_stride, float *to, int64_t to_stride) {
  held_t v[LANES], dealt[LANES];
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++)
    v[i] = *(const vec_t *)(from + i * from_stride);
#pragma GCC unroll 4
  for (int stage = 0; stage < STAGES; stage++) {
#pragma GCC unroll 8
    for (int i = 0; i < LANES / 2; i++) {
      dealt[2 * i] = LOW(v[i], v[i + LANES / 2]);
      dealt[2 * i + 1] = HIGH(v[i], v[i + LANES / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      v[i] = dealt[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++)
    *(vec_t *)(to + i * to_stride) = v[i];
}

static inline void quad(const float *from, int64_t from_stride, float *to,
                        int64_t to_stride) {
  quad_t a = *(const quad_t *)from;
  quad_t b = *(const quad_t *)(from + from_stride);
  quad_t c = *(const quad_t *)(from + 2 * from_stride);
  quad_t d = *(const quad_t *)(from + 3 * from_stride);
  quad_t ac0 = QUAD_LOW(a, c), ac1 = QUAD_HIGH(a, c);
  quad_t bd0 = QUAD_LOW(b, d), bd1 = QUAD_HIGH(b, d);
  *(quad_t *)to = QUAD_LOW(ac0, bd0);
  *(quad_t *)(to + to_stride) = QUAD_HIGH(ac0, bd0);
  *(quad_t *)(to + 2 * to_stride) = QUAD_LOW(ac1, bd1);
  *(quad_t *)(to + 3 * to_stride) = QUAD_HIGH(ac1, bd1);
}

// Transposes what whole blocks leave. In strips of 16 columns the 16
// destination rows stay in the first cache while whole cache lines of the
// source are read.
static void rest(const float *from, int64_t from_stride, int64_t rows,
                 int64_t columns, float *to, int64_t to_stride) {
  for (int64_t first = 0; first < columns; first += 16) {
    int64_t last = columns - first < 16 ? columns : first + 16;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      int64_t j = first;
      for (; j + 4 <= last; j += 4)
        quad(from + i * from_stride + j, from_stride, to + j * to_stride + i,
             to_stride);
      for (; j < last; j++)
        for (int64_t r = i; r < i + 4; r++)
          to[j * to_stride + r] = from[r * from_stride + j];
    }
    for (; i < rows; i++)
      for (int64_t j = first; j < last; j++)
        to[j * to_stride + i] = from[i * from_stride + j];
  }
}

void PASTE(host_transpose_, HOST_KERNEL_SUFFIX)(const float *from,
                                                int64_t from_stride,
                                                int64_t rows, int64_t columns,
                                                float *to, int64_t to_stride) {
  int64_t whole_rows = rows / LANES * LANES;
  int64_t whole_columns = columns / LANES * LANES;
  // Walks along the side whose rows lie farther apart, because a cache line
  // left half done there would be lost. Walks in strips, so that the other
  // side's lines are not lost meanwhile.
  if (from_stride > to_stride) {
    for (int64_t first = 0; first < whole_columns; first += STRIP)
      for (int64_t i = 0; i < whole_rows; i += LANES)
        for (int64_t j = first; j < whole_columns && j < first + STRIP;
             j += LANES)
          block(from + i * from_stride + j, from_stride, to + j * to_stride + i,
                to_stride);
  } else {
    for (int64_t j = 0; j < whole_columns; j += LANES)
      for (int64_t i = 0; i < whole_rows; i += LANES)
        block(from + i * from_stride + j, from_stride, to + j * to_stride + i,
              to_stride);
  }
  rest(from + whole_columns, from_stride, whole_rows, columns - whole_columns,
       to + whole_columns * to_stride, to_stride);
  rest(from + whole_rows * from_stride, from_stride, rows - whole_rows, columns,
       to + whole_rows, to_stride);
}
