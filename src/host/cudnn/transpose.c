// SPDX-License-Identifier: Apache-2.0
// Transposition in blocks of 4 x 4 that stay in registers.
#include "src/host/cudnn/transpose.h"

typedef float quad_t __attribute__((vector_size(16), aligned(4), may_alias));

/* Pairs of the first halves of two vectors, and of the second halves. */
#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

static inline void block(const float *from, int64_t from_stride, float *to,
                         int64_t to_stride) {
  quad_t a = *(const quad_t *)from;
  quad_t b = *(const quad_t *)(from + from_stride);
  quad_t c = *(const quad_t *)(from + 2 * from_stride);
  quad_t d = *(const quad_t *)(from + 3 * from_stride);
  quad_t ac0 = LOW(a, c), ac1 = HIGH(a, c);
  quad_t bd0 = LOW(b, d), bd1 = HIGH(b, d);
  *(quad_t *)to = LOW(ac0, bd0);
  *(quad_t *)(to + to_stride) = HIGH(ac0, bd0);
  *(quad_t *)(to + 2 * to_stride) = LOW(ac1, bd1);
  *(quad_t *)(to + 3 * to_stride) = HIGH(ac1, bd1);
}

void host_transpose(const float *from, int64_t from_stride, int64_t rows,
                    int64_t columns, float *to, int64_t to_stride) {
  /* Strips of 16 columns: their 16 destination rows stay in the first cache
   * while the source is read in whole cache lines. */
  for (int64_t first = 0; first < columns; first += 16) {
    int64_t last = columns - first < 16 ? columns : first + 16;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      int64_t j = first;
      for (; j + 4 <= last; j += 4)
        block(from + i * from_stride + j, from_stride, to + j * to_stride + i,
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
