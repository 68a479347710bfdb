/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition of float matrices, for conversion between channels-last and
 * rows. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_TRANSPOSE_H
#define SDG_SRC_HOST_CUDNN_BASE_TRANSPOSE_H

#include <stdint.h>

/* to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns;
 * the two do not overlap. */
void host_transpose(const float *from, int64_t from_stride, int64_t rows,
                    int64_t columns, float *to, int64_t to_stride);

/* One build per instruction set; host_transpose calls the best one for the
 * processor. */
void host_transpose_base(const float *from, int64_t from_stride, int64_t rows,
                         int64_t columns, float *to, int64_t to_stride);
#ifdef __x86_64__
void host_transpose_avx2(const float *from, int64_t from_stride, int64_t rows,
                         int64_t columns, float *to, int64_t to_stride);
void host_transpose_avx512(const float *from, int64_t from_stride, int64_t rows,
                           int64_t columns, float *to, int64_t to_stride);
#endif

#endif
