/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loop of the direct engine, one build per instruction set. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_KERNEL_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ENGINE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Output channels computed in one pass over x; `w` is packed for this. */
enum { HOST_KERNEL_K = 6 };

/* Elements that the kernel may read behind the last one needed. */
enum { HOST_KERNEL_SLACK = 16 };

/* One row of outputs of `k` channels:
 * sums[j * sums_stride + i] = sum over c, t of
 *     x[c * x_stride + tap[t] + i] * w[block of j][c][t][j in block]
 * for 0 <= i < width, added in the order c, t from zero. Channels come in
 * `blocks` blocks of at most HOST_KERNEL_K, block b holding
 * k * (b + 1) / blocks - k * b / blocks of them. x is read and sums are
 * written up to the next multiple of HOST_KERNEL_SLACK. */
typedef struct {
  const void *x, *w;
  const int64_t *tap;
  int taps, c, k, blocks;
  int64_t x_stride, width, sums_stride;
  void *sums;
} host_kernel_row_t;

typedef void (*host_kernel_fn)(const host_kernel_row_t *row);

/* The build with the widest vectors that the processor has. */
host_kernel_fn host_kernel(bool is_double);

void host_kernel_float_base(const host_kernel_row_t *row);
void host_kernel_double_base(const host_kernel_row_t *row);
#ifdef __x86_64__
void host_kernel_float_avx2(const host_kernel_row_t *row);
void host_kernel_double_avx2(const host_kernel_row_t *row);
void host_kernel_float_avx512(const host_kernel_row_t *row);
void host_kernel_double_avx512(const host_kernel_row_t *row);
#endif

#endif
