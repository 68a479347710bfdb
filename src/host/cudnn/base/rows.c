// SPDX-License-Identifier: Apache-2.0
// Sums and maps along rows with the widest vectors that the processor has.
#include "src/host/cudnn/base/rows.h"

const host_rows_t *host_rows(bool is_double) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f"))
    return is_double ? &host_rows_double_avx512 : &host_rows_float_avx512;
  if (__builtin_cpu_supports("avx2"))
    return is_double ? &host_rows_double_avx2 : &host_rows_float_avx2;
#endif
  return is_double ? &host_rows_double_base : &host_rows_float_base;
}
