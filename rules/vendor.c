// SPDX-License-Identifier: Apache-2.0
// Loads the table of cuDNN's functions through the installed finder.
#include "rules/vendor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/vendor.h"

static const sdg_library_row_t rows[] = {
#define SDG_VENDOR(name)                                                       \
  {SDG_LIBRARY_CUDNN, #name, offsetof(sdg_cudnn_t, name)},
#include "rules/vendor.def"
#undef SDG_VENDOR
};

const sdg_cudnn_t *sdg_cudnn_get(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static sdg_cudnn_t table;
  static _Atomic(const sdg_cudnn_t *) published;
  const sdg_cudnn_t *cudnn =
      atomic_load_explicit(&published, memory_order_acquire);
  if (cudnn)
    return cudnn;
  pthread_mutex_lock(&lock);
  cudnn = atomic_load_explicit(&published, memory_order_relaxed);
  if (!cudnn &&
      sdg_library_fill(rows, sizeof rows / sizeof rows[0], &table) == SDG_OK) {
    cudnn = &table;
    atomic_store_explicit(&published, cudnn, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return cudnn;
}

const sdg_cublas_t *sdg_cublas_get(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static const sdg_library_row_t row = {
      SDG_LIBRARY_CUBLAS, "cublasGetStream_v2",
      offsetof(sdg_cublas_t, cublasGetStream_v2)};
  static sdg_cublas_t table;
  pthread_mutex_lock(&lock);
  bool there =
      table.cublasGetStream_v2 || sdg_library_fill(&row, 1, &table) == SDG_OK;
  pthread_mutex_unlock(&lock);
  return there ? &table : NULL;
}
