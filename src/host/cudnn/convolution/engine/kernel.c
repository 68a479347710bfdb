// SPDX-License-Identifier: Apache-2.0
// The inner loop of the direct engine. Built once per instruction set with
// HOST_KERNEL_SUFFIX and HOST_KERNEL_BYTES (of one vector) defined.
#include "src/host/cudnn/convolution/engine/kernel.h"

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c)  PASTE_(a, b, c)

// KB x VB accumulators stay in registers: all loops over them are unrolled.
#define BLOCK(T, KB, VB)                                                       \
  static inline __attribute__((always_inline)) void block_##T##_##KB##_##VB(   \
      const host_kernel_row_t *row, const T *x, const T *w, T *sums) {         \
    vec_##T acc[KB][VB];                                                       \
    _Pragma("GCC unroll 8") for (int j = 0; j < KB; j++)                       \
        _Pragma("GCC unroll 8") for (int v = 0; v < VB; v++) acc[j][v] =       \
            (vec_##T){0};                                                      \
    for (int c = 0; c < row->c; c++, x += row->x_stride)                       \
      for (int t = 0; t < row->taps; t++, w += KB) {                           \
        const T *from = x + row->tap[t];                                       \
        vec_##T in[VB];                                                        \
        _Pragma("GCC unroll 8") for (int v = 0; v < VB; v++) in[v] =           \
            *(const vec_##T *)(from + v * LANES(T));                           \
        _Pragma("GCC unroll 8") for (int j = 0; j < KB; j++)                   \
            _Pragma("GCC unroll 8") for (int v = 0; v < VB; v++) acc[j][v] +=  \
            in[v] * w[j];                                                      \
      }                                                                        \
    _Pragma("GCC unroll 8") for (int j = 0; j < KB; j++)                       \
            _Pragma("GCC unroll 8") for (int v = 0; v < VB; v++) *             \
        (vec_##T *)(sums + j * row->sums_stride + v * LANES(T)) = acc[j][v];   \
  }

#define LANES(T) ((int64_t)(HOST_KERNEL_BYTES / sizeof(T)))

// The accumulators that registers have room for beside the operands: there are
// 32 registers of 64 bytes, and 16 of those that are smaller.
#define ROOM (HOST_KERNEL_BYTES == 64 ? 24 : 12)

// All widths for one number of channels. Uses as many vectors at once as are
// left, because each addition waits only for its own predecessor.
#define CHANNELS(T, KB, WIDE)                                                  \
  BLOCK(T, KB, WIDE)                                                           \
  BLOCK(T, KB, 3)                                                              \
  BLOCK(T, KB, 2)                                                              \
  BLOCK(T, KB, 1)                                                              \
  static __attribute__((noinline))                                             \
  int64_t wide_##T##_##KB(const host_kernel_row_t *row, const T *x,            \
                          const T *w, T *sums, int64_t left) {                 \
    if (left > (WIDE - 1) * LANES(T) && KB * WIDE <= ROOM) {                   \
      block_##T##_##KB##_##WIDE(row, x, w, sums);                              \
      return (WIDE)*LANES(T);                                                  \
    }                                                                          \
    if (left > 2 * LANES(T) && KB * 3 <= ROOM) {                               \
      block_##T##_##KB##_3(row, x, w, sums);                                   \
      return 3 * LANES(T);                                                     \
    }                                                                          \
    if (left > LANES(T)) {                                                     \
      block_##T##_##KB##_2(row, x, w, sums);                                   \
      return 2 * LANES(T);                                                     \
    }                                                                          \
    block_##T##_##KB##_1(row, x, w, sums);                                     \
    return LANES(T);                                                           \
  }

// The x of a strip stays in the first cache for all blocks of channels.
#define ROW(T)                                                                 \
  typedef T vec_##T __attribute__((vector_size(HOST_KERNEL_BYTES),             \
                                   aligned(sizeof(T)), may_alias));            \
  CHANNELS(T, 1, 8)                                                            \
  CHANNELS(T, 2, 4)                                                            \
  CHANNELS(T, 3, 4)                                                            \
  CHANNELS(T, 4, 4)                                                            \
  CHANNELS(T, 5, 4)                                                            \
  CHANNELS(T, 6, 4)                                                            \
  void PASTE(host_kernel_##T, _,                                               \
             HOST_KERNEL_SUFFIX)(const host_kernel_row_t *row) {               \
    static int64_t (*const by_k[])(const host_kernel_row_t *, const T *,       \
                                   const T *, T *, int64_t) = {                \
        wide_##T##_1, wide_##T##_2, wide_##T##_3,                              \
        wide_##T##_4, wide_##T##_5, wide_##T##_6};                             \
    const int64_t strip = (row->k == 1 ? 8 : 4) * LANES(T);                    \
    for (int64_t at = 0; at < row->width; at += strip) {                       \
      int64_t width = row->width - at < strip ? row->width - at : strip;       \
      for (int b = 0; b < row->blocks; b++) {                                  \
        int first = row->k * b / row->blocks;                                  \
        int kb = row->k * (b + 1) / row->blocks - first;                       \
        const T *x = (const T *)row->x + at;                                   \
        const T *w = (const T *)row->w + (int64_t)first * row->c * row->taps;  \
        T *sums = (T *)row->sums + first * row->sums_stride + at;              \
        for (int64_t i = 0; i < width;)                                        \
          i += by_k[kb - 1](row, x + i, w, sums + i, width - i);               \
      }                                                                        \
    }                                                                          \
  }

ROW(float)
ROW(double)
