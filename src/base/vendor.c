// SPDX-License-Identifier: Apache-2.0
// Loads the tables of vendor functions through the installed finder.
#include "src/base/vendor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic(sdg_library_finder_t *) library_finder;

void sdg_library_set_finder(sdg_library_finder_t *finder) {
  atomic_store_explicit(&library_finder, finder, memory_order_release);
}

const char *sdg_library_name(sdg_library_t library) {
  static const char *const names[SDG_LIBRARY_COUNT] = {
      [SDG_LIBRARY_CUDART] = "libcudart",
      [SDG_LIBRARY_CUDNN] = "libcudnn",
      [SDG_LIBRARY_NCCL] = "libnccl",
      [SDG_LIBRARY_CUBLAS] = "libcublas.",
      [SDG_LIBRARY_CUBLASLT] = "libcublasLt.",
  };
  return names[library];
}

static atomic_bool brought[SDG_LIBRARY_COUNT];

void sdg_library_set_brought(sdg_library_t library) {
  atomic_store(&brought[library], true);
}

bool sdg_library_brought(sdg_library_t library) {
  return atomic_load(&brought[library]);
}

static char own_cudart[128];
static atomic_int own_cudart_state; // 0: none; 1: being written; 2: complete

void sdg_library_note_own_cudart(const char *file) {
  int none = 0;
  if (!atomic_compare_exchange_strong(&own_cudart_state, &none, 1))
    return;
  snprintf(own_cudart, sizeof own_cudart, "%s", file);
  atomic_store_explicit(&own_cudart_state, 2, memory_order_release);
}

const char *sdg_library_own_cudart(void) {
  return atomic_load_explicit(&own_cudart_state, memory_order_acquire) == 2
             ? own_cudart
             : NULL;
}

sdg_status_t sdg_library_fill(const sdg_library_row_t *rows, int count,
                              void *table) {
  sdg_library_finder_t *find =
      atomic_load_explicit(&library_finder, memory_order_acquire);
  for (int i = 0; i < count; i++) {
    void *address = find ? find(rows[i].library, rows[i].name) : NULL;
    if (!address)
      return sdg_fail(SDG_E_LIBRARY_MISSING, "%s of %s", rows[i].name,
                      sdg_library_name(rows[i].library));
    memcpy((char *)table + rows[i].offset_bytes, &address, sizeof address);
  }
  return SDG_OK;
}

static const sdg_library_row_t rows[] = {
#define SDG_VENDOR(library, name)                                              \
  {SDG_LIBRARY_##library, #name, offsetof(sdg_vendor_t, name)},
#include "src/base/vendor.def"
#undef SDG_VENDOR
};

const sdg_vendor_t *sdg_vendor_get(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static sdg_vendor_t table;
  static _Atomic(const sdg_vendor_t *) published;
  const sdg_vendor_t *vendor =
      atomic_load_explicit(&published, memory_order_acquire);
  if (vendor)
    return vendor;
  pthread_mutex_lock(&lock);
  vendor = atomic_load_explicit(&published, memory_order_relaxed);
  if (!vendor &&
      sdg_library_fill(rows, sizeof rows / sizeof rows[0], &table) == SDG_OK) {
    vendor = &table;
    atomic_store_explicit(&published, vendor, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return vendor;
}

sdg_status_t sdg_vendor_check(cudaError_t result, const char *what) {
  if (result == cudaSuccess)
    return SDG_OK;
  const sdg_vendor_t *vendor = sdg_vendor_get();
  return sdg_fail(SDG_E_CUDA, "%s: %s", what,
                  vendor ? vendor->cudaGetErrorString(result) : "?");
}
