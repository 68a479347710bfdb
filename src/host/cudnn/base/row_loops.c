// SPDX-License-Identifier: Apache-2.0
// Sums and maps along rows. Built once per instruction set with
// HOST_KERNEL_SUFFIX and HOST_KERNEL_BYTES (of one vector) defined, and without
// contraction of a * b + c. The number of partial sums is the same for all
// vector lengths.
#include "src/host/cudnn/base/rows.h"

#include <stddef.h>

#include "src/host/cudnn/base/independent.h"

#if HOST_KERNEL_BYTES == 64
#include <immintrin.h>
#endif

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c)  PASTE_(a, b, c)

// Partial sums: element i of a row belongs to sum i % STEP.
enum {
  STEP = 32,
  LANES = HOST_KERNEL_BYTES / (int)sizeof(double),
  PARTS = STEP / LANES,
};
typedef double wide_t __attribute__((vector_size(HOST_KERNEL_BYTES)));
typedef int64_t mask_t __attribute__((vector_size(HOST_KERNEL_BYTES)));

static inline __attribute__((always_inline)) double
fold(const wide_t part[PARTS]) {
  double all[STEP];
  for (int i = 0; i < STEP; i++)
    all[i] = part[i / LANES][i % LANES];
  for (int left = STEP / 2; left > 0; left /= 2)
    for (int i = 0; i < left; i++)
      all[i] += all[i + left];
  return all[0];
}

// The vector of the values from `p` on. Compilers split conversions of the
// widest vectors.
static inline __attribute__((always_inline)) wide_t wide_float(const float *p) {
#if HOST_KERNEL_BYTES == 64
  return (wide_t)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#else
  typedef float pack_t __attribute__((vector_size(LANES * sizeof(float)),
                                      aligned(sizeof(float)), may_alias));
  return __builtin_convertvector(*(const pack_t *)p, wide_t);
#endif
}

static inline __attribute__((always_inline)) wide_t
wide_double(const double *p) {
  typedef double pack_t __attribute__((vector_size(LANES * sizeof(double)),
                                       aligned(sizeof(double)), may_alias));
  return *(const pack_t *)p;
}

// x - mean, or x if the mean is part of the constant; for floats always x.
#define FROM(T, x)                                                             \
  (sizeof(T) < sizeof(double) ? (double)(x) : (double)(x)-shift)
#define SHIFTS(T)                                                              \
  const bool left = sizeof(T) < sizeof(double) || !row->subtract;              \
  const double shift = left ? 0 : row->mean;                                   \
  const double mean = left ? row->mean : 0;                                    \
  (void)shift

// Memory is prefetched this many bytes ahead, because processors stop
// prefetching at the end of a page.
enum { AHEAD = 2048, LINE = 64, BLOCK = 128 };

static inline __attribute__((always_inline)) void ask(const void *from,
                                                      size_t bytes) {
  for (size_t at = 0; at < bytes; at += LINE)
    __builtin_prefetch((const char *)from + AHEAD + at);
}

static inline int64_t least(int64_t block, int64_t count) {
  return count - block < BLOCK ? count : block + BLOCK;
}

// Maps vectorise by themselves, because no element reads what another writes.
#define EACH                                                                   \
  HOST_INDEPENDENT for (int64_t i = block, end = least(block, count); i < end; \
                        i++)

#define ROWS(T)                                                                \
  static double sum_##T(const void *from, int64_t count) {                     \
    const T *x = from;                                                         \
    wide_t part[PARTS] = {{0}};                                                \
    double rest = 0;                                                           \
    int64_t i = 0;                                                             \
    for (; i + STEP <= count; i += STEP) {                                     \
      ask(x + i, STEP * sizeof(T));                                            \
      _Pragma("GCC unroll 16") for (int p = 0; p < PARTS; p++) part[p] +=      \
          wide_##T(x + i + p * LANES);                                         \
    }                                                                          \
    for (; i < count; i++)                                                     \
      rest += (double)x[i];                                                    \
    return fold(part) + rest;                                                  \
  }                                                                            \
  static double squares_##T(const void *from, int64_t count, double mean) {    \
    const T *x = from;                                                         \
    wide_t part[PARTS] = {{0}};                                                \
    double rest = 0;                                                           \
    int64_t i = 0;                                                             \
    for (; i + STEP <= count; i += STEP)                                       \
      _Pragma("GCC unroll 16") for (int p = 0; p < PARTS; p++) {               \
        wide_t away = wide_##T(x + i + p * LANES) - mean;                      \
        part[p] += away * away;                                                \
      }                                                                        \
    for (; i < count; i++)                                                     \
      rest += ((double)x[i] - mean) * ((double)x[i] - mean);                   \
    return fold(part) + rest;                                                  \
  }                                                                            \
  static inline __attribute__((always_inline)) void map_how_##T(               \
      const host_row_t *row, bool adds, bool relu, bool blend) {               \
    const int64_t count = row->count;                                          \
    const T *x = row->x, *with = adds ? row->with : row->x;                    \
    T *out = row->out;                                                         \
    SHIFTS(T);                                                                 \
    const double alpha = row->alpha, beta = row->beta, slope = row->slope;     \
    const double offset = row->offset - slope * mean;                          \
    for (int64_t block = 0; block < count; block += BLOCK) {                   \
      ask(x + block, BLOCK * sizeof(T));                                       \
      ask(out + block, BLOCK * sizeof(T));                                     \
      if (adds)                                                                \
        ask(with + block, BLOCK * sizeof(T));                                  \
      EACH {                                                                   \
        double value = slope * FROM(T, x[i]) + offset;                         \
        value = adds ? value + (double)with[i] : value;                        \
        value = alpha * (relu && value < 0 ? 0 : value);                       \
        out[i] = (T)(blend ? value + beta * (double)out[i] : value);           \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  static void map_##T(const host_row_t *row) {                                 \
    bool blend = row->beta != 0;                                               \
    if (row->with && row->relu)                                                \
      (blend ? map_how_##T(row, true, true, true)                              \
             : map_how_##T(row, true, true, false));                           \
    else if (row->with)                                                        \
      (blend ? map_how_##T(row, true, false, true)                             \
             : map_how_##T(row, true, false, false));                          \
    else if (row->relu)                                                        \
      (blend ? map_how_##T(row, false, true, true)                             \
             : map_how_##T(row, false, true, false));                          \
    else                                                                       \
      (blend ? map_how_##T(row, false, false, true)                            \
             : map_how_##T(row, false, false, false));                         \
  }                                                                            \
  static void gate_##T(const host_row_t *row) {                                \
    const int64_t count = row->count;                                          \
    const T *dy = row->with, *gate = row->gate;                                \
    T *through = row->through;                                                 \
    for (int64_t block = 0; block < count; block += BLOCK)                     \
      EACH through[i] = !gate || gate[i] > 0 ? dy[i] : 0;                      \
  }                                                                            \
  static inline __attribute__((always_inline)) void sums_how_##T(              \
      const host_row_t *row, bool gated, double *io_sum, double *io_product) { \
    const T *x = row->x, *with = row->with;                                    \
    const T *gate = gated ? row->gate : row->x;                                \
    const int64_t count = row->count;                                          \
    SHIFTS(T);                                                                 \
    wide_t sum[PARTS] = {{0}}, product[PARTS] = {{0}};                         \
    double rest = 0, rest_product = 0;                                         \
    int64_t i = 0;                                                             \
    for (; i + STEP <= count; i += STEP) {                                     \
      ask(x + i, STEP * sizeof(T));                                            \
      ask(with + i, STEP * sizeof(T));                                         \
      if (gated)                                                               \
        ask(gate + i, STEP * sizeof(T));                                       \
      _Pragma("GCC unroll 16") for (int p = 0; p < PARTS; p++) {               \
        wide_t dy = wide_##T(with + i + p * LANES);                            \
        if (gated)                                                             \
          dy = (wide_t)((wide_##T(gate + i + p * LANES) > 0) & (mask_t)dy);    \
        sum[p] += dy;                                                          \
        wide_t from = wide_##T(x + i + p * LANES);                             \
        product[p] += dy * (sizeof(T) < sizeof(double) ? from : from - shift); \
      }                                                                        \
    }                                                                          \
    for (; i < count; i++) {                                                   \
      double dy = !gated || gate[i] > 0 ? (double)with[i] : 0;                 \
      rest += dy;                                                              \
      rest_product += dy * FROM(T, x[i]);                                      \
    }                                                                          \
    rest += fold(sum);                                                         \
    rest_product += fold(product);                                             \
    *io_sum += rest;                                                           \
    *io_product += rest_product - mean * rest;                                 \
  }                                                                            \
  static void sums_##T(const host_row_t *row, double *io_sum,                  \
                       double *io_product) {                                   \
    if (row->gate)                                                             \
      sums_how_##T(row, true, io_sum, io_product);                             \
    else                                                                       \
      sums_how_##T(row, false, io_sum, io_product);                            \
    if (row->through)                                                          \
      gate_##T(row);                                                           \
  }                                                                            \
  static inline __attribute__((always_inline)) void gradient_how_##T(          \
      const host_row_t *row, bool gated, bool blend) {                         \
    const int64_t count = row->count;                                          \
    const T *x = row->x, *with = row->with;                                    \
    const T *gate = gated ? row->gate : row->x;                                \
    T *out = row->out;                                                         \
    SHIFTS(T);                                                                 \
    const double alpha = row->alpha, beta = row->beta, slope = row->slope;     \
    const double curve = slope * row->curve;                                   \
    const double offset = slope * row->offset - curve * mean;                  \
    for (int64_t block = 0; block < count; block += BLOCK) {                   \
      ask(x + block, BLOCK * sizeof(T));                                       \
      ask(with + block, BLOCK * sizeof(T));                                    \
      ask(out + block, BLOCK * sizeof(T));                                     \
      if (gated)                                                               \
        ask(gate + block, BLOCK * sizeof(T));                                  \
      EACH {                                                                   \
        double dy = !gated || gate[i] > 0 ? (double)with[i] : 0;               \
        double value = alpha * (slope * dy - offset - curve * FROM(T, x[i]));  \
        out[i] = (T)(blend ? value + beta * (double)out[i] : value);           \
      }                                                                        \
    }                                                                          \
  }                                                                            \
  static void gradient_##T(const host_row_t *row) {                            \
    bool blend = row->beta != 0;                                               \
    if (row->gate)                                                             \
      (blend ? gradient_how_##T(row, true, true)                               \
             : gradient_how_##T(row, true, false));                            \
    else                                                                       \
      (blend ? gradient_how_##T(row, false, true)                              \
             : gradient_how_##T(row, false, false));                           \
  }                                                                            \
  const host_rows_t PASTE(host_rows_##T, _, HOST_KERNEL_SUFFIX) = {            \
      sum_##T, squares_##T, map_##T, sums_##T, gradient_##T};

ROWS(float)
ROWS(double)
