/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace for small convolutions: a Hopper GPU wants room for copies of
 * their tensors. */
#ifndef SDG_TESTS_WORKSPACE_H
#define SDG_TESTS_WORKSPACE_H

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { WORKSPACE_BYTES = 1 << 20 };

/* Device memory of the calling thread, which keeps it. */
static inline void *workspace(void) {
  static _Thread_local void *memory;
  if (!memory && cudaMalloc(&memory, WORKSPACE_BYTES) != cudaSuccess)
    abort();
  return memory;
}

#endif
