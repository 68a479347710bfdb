// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the kernel of the direct engine, block by block.
#include "src/host/cudnn/compute/product.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/convolution/engine/kernel.h"

// Blocks of a and of the sums stay in the second cache. The extents of a block
// of c do not change bits; that of k does.
enum { BLOCK_M = 64 * HOST_KERNEL_K, BLOCK_N = 240, BLOCK_K = 192 };

typedef struct {
  void *a, *b, *sums; // floats or doubles
} room_t;

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Elements from row to row in a block: an odd multiple of the kernel's unit, as
// rows that are a power of two apart share lines of the first cache.
static int64_t width_of(int64_t columns) {
  return ((columns + HOST_KERNEL_SLACK - 1) / HOST_KERNEL_SLACK | 1) *
         HOST_KERNEL_SLACK;
}

static int blocks_of(int64_t rows) {
  return (int)((rows + HOST_KERNEL_K - 1) / HOST_KERNEL_K);
}

#define TYPED(T)                                                               \
  /* Rows [row, row + m) of columns [from, from + k), as the kernel wants its  \
   * weights. */                                                               \
  static void pack_a_##T(const host_product_t *p, int64_t row, int64_t m,      \
                         int64_t from, int64_t k, T *to) {                     \
    int blocks = blocks_of(m);                                                 \
    for (int b = 0; b < blocks; b++) {                                         \
      int64_t first = m * b / blocks, count = m * (b + 1) / blocks - first;    \
      for (int64_t i = 0; i < count; i++) {                                    \
        const double *values = p->a + (row + first + i) * p->lda + from;       \
        for (int64_t c = 0; c < k; c++)                                        \
          to[c * count + i] = (T)values[c];                                    \
      }                                                                        \
      to += count * k;                                                         \
    }                                                                          \
  }                                                                            \
                                                                               \
  /* Rows [row, row + k) of columns [from, from + n), and zeros behind. */     \
  static void pack_b_##T(const host_product_t *p, int64_t row, int64_t k,      \
                         int64_t from, int64_t n, T *to) {                     \
    int64_t width = width_of(n);                                               \
    for (int64_t c = 0; c < k; c++, to += width) {                             \
      const double *values = p->b + (row + c) * p->ldb + from;                 \
      for (int64_t j = 0; j < n; j++)                                          \
        to[j] = (T)values[j];                                                  \
      for (int64_t j = n; j < width; j++)                                      \
        to[j] = 0;                                                             \
    }                                                                          \
  }                                                                            \
                                                                               \
  static void add_##T(const T *sums, int64_t m, int64_t n, double *to,         \
                      int64_t pitch) {                                         \
    int64_t width = width_of(n);                                               \
    for (int64_t i = 0; i < m; i++)                                            \
      for (int64_t j = 0; j < n; j++)                                          \
        to[i * pitch + j] += (double)sums[i * width + j];                      \
  }                                                                            \
                                                                               \
  static void run_##T(const host_product_t *p, const room_t *room) {           \
    int64_t tap[BLOCK_K];                                                      \
    host_kernel_fn kernel = host_kernel(sizeof(T) == sizeof(double));          \
    for (int64_t i = 0; i < p->m; i += BLOCK_M)                                \
      for (int64_t l = 0; l < p->k; l += BLOCK_K) {                            \
        int64_t m = lesser(p->m - i, BLOCK_M), k = lesser(p->k - l, BLOCK_K);  \
        pack_a_##T(p, i, m, l, k, room->a);                                    \
        for (int64_t j = 0; j < p->n; j += BLOCK_N) {                          \
          int64_t n = lesser(p->n - j, BLOCK_N), width = width_of(n);          \
          pack_b_##T(p, l, k, j, n, room->b);                                  \
          for (int64_t c = 0; c < k; c++)                                      \
            tap[c] = c * width;                                                \
          host_kernel_row_t row = {.x = room->b,                               \
                                   .w = room->a,                               \
                                   .tap = tap,                                 \
                                   .taps = (int)k,                             \
                                   .c = 1,                                     \
                                   .k = (int)m,                                \
                                   .blocks = blocks_of(m),                     \
                                   .x_stride = width,                          \
                                   .width = n,                                 \
                                   .sums_stride = width,                       \
                                   .sums = room->sums};                        \
          kernel(&row);                                                        \
          add_##T(room->sums, m, n, p->c + i * p->n + j, p->n);                \
        }                                                                      \
      }                                                                        \
  }

TYPED(float)
TYPED(double)

bool host_product_run(const host_product_t *p) {
  int64_t m = lesser(p->m, BLOCK_M), k = lesser(p->k, BLOCK_K);
  int64_t width = width_of(lesser(p->n, BLOCK_N));
  size_t unit = p->is_double ? sizeof(double) : sizeof(float);
  if (p->m > 0 && p->n > 0)
    memset(p->c, 0, (size_t)(p->m * p->n) * sizeof *p->c);
  if (p->m == 0 || p->n == 0 || p->k == 0)
    return true;
  char *block = malloc((size_t)(m * k + k * width + m * width) * unit);
  if (!block)
    return false;
  room_t room = {.a = block};
  room.b = block + (size_t)(m * k) * unit;
  room.sums = block + (size_t)(m * k + k * width) * unit;
  if (p->is_double)
    run_double(p, &room);
  else
    run_float(p, &room);
  free(block);
  return true;
}
