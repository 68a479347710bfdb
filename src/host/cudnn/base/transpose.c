// SPDX-License-Identifier: Apache-2.0
// Transposition with the widest vectors that the processor has.
#include "src/host/cudnn/base/transpose.h"

void host_transpose(const float *from, int64_t from_stride, int64_t rows,
                    int64_t columns, float *to, int64_t to_stride) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) {
    host_transpose_avx512(from, from_stride, rows, columns, to, to_stride);
    return;
  }
  if (__builtin_cpu_supports("avx2")) {
    host_transpose_avx2(from, from_stride, rows, columns, to, to_stride);
    return;
  }
#endif
  host_transpose_base(from, from_stride, rows, columns, to, to_stride);
}
