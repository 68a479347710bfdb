// SPDX-License-Identifier: Apache-2.0
// The table of the program's allocations and distributed tensors.
#include "rules/memory/memory.h"

#include <pthread.h>

#include "rules/file/setup.h"
#include "rules/memory/kept_slot.h"
#include "rules/memory/uploads.h"
#include "src/base/vendor.h"
#include "src/job/job.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sdg_buffers_t table;
static sdg_buffers_t hosted; // allocations alone

static sdg_loaded_find_t *loaded_find;

void sdg_memory_set_loaded(sdg_loaded_find_t *find) {
  loaded_find = find;
}

// Call with the lock held.
static bool library_find(char *out_name, size_t bytes) {
  // The prefixes include libcufftw, libcusolverMg, libcusparseLt, libnppc ...
  // libcurand is not listed: it reads no tensor and writes the same on every
  // rank.
  static const char *const unseen[] = {"libcufft",      "libcusparse",
                                       "libcusolver",   "libnpp",
                                       "libnvjpeg",     "libcutensor",
                                       "libcudss",      "libnvshmem",
                                       "libcufile",     "libnvcomp",
                                       "libnvinfer",    "libnvtiff",
                                       "libcustatevec", "libcudensitymat",
                                       "libnvimgcodec", "libcublasMp",
                                       "libcvcuda",     "libcudla",
                                       "libcuvs",       "libcudf",
                                       "libcal",        NULL};
  static unsigned long long seen;
  return loaded_find && loaded_find(unseen, &seen, out_name, bytes);
}

sdg_status_t sdg_memory_survey(const char *entry_name) {
  char name[128];
  if (!library_find(name, sizeof name))
    return SDG_OK;
  return sdg_fail(SDG_E_UNSEEN_LIBRARY, "%s is loaded, at %s", name,
                  entry_name);
}

bool sdg_memory_unseen_library(void) {
  char name[128];
  pthread_mutex_lock(&lock);
  bool found = library_find(name, sizeof name);
  pthread_mutex_unlock(&lock);
  return found;
}

bool sdg_memory_unseen_writes(void) {
  static const char *const writers[] = {"libcurand", NULL};
  static unsigned long long seen;
  char name[128];
  return loaded_find && loaded_find(writers, &seen, name, sizeof name);
}

// Whether sdg_memory_lock() has locked it for this thread.
static _Thread_local bool locked __attribute__((tls_model("initial-exec")));

sdg_buffers_t *sdg_memory_lock(void) {
  pthread_mutex_lock(&lock);
  locked = true;
  return &table;
}

sdg_buffers_t *sdg_memory_table(void) {
  return &table;
}

void sdg_memory_unlock(void) {
  locked = false;
  pthread_mutex_unlock(&lock);
}

static const char *lent; // guarded by the lock
static _Thread_local bool lends __attribute__((tls_model("initial-exec")));

void sdg_memory_lend(const char *function) {
  if (!locked)
    return;
  lent = function;
  lends = true;
  sdg_memory_unlock();
}

void sdg_memory_take_back(void) {
  if (!lends)
    return;
  (void)sdg_memory_lock();
  lent = NULL;
  lends = false;
}

const char *sdg_memory_lent(void) {
  return lends ? NULL : lent;
}

void sdg_memory_leave(void) {
  sdg_memory_take_back();
  if (locked)
    sdg_memory_unlock();
}

// Only in the whole view: in the shard view ranks have different pieces.
bool sdg_memory_notes_inputs(void) {
  return sdg_options_comparing() != SDG_COMPARING_OFF && sdg_setup_is_whole();
}

void sdg_memory_allocated(const void *at, size_t bytes) {
  pthread_mutex_lock(&lock);
  // After a failure the memory counts as not seen: no tensor is shared there.
  (void)!sdg_buffers_allocate(&table, (uintptr_t)at, bytes);
  pthread_mutex_unlock(&lock);
  sdg_hint_put(at, bytes, false, 0);
  if (sdg_memory_notes_inputs())
    sdg_uploads_allocated((sdg_span_t){(uintptr_t)at, bytes});
}

void sdg_memory_hosted(const void *at, size_t bytes) {
  pthread_mutex_lock(&lock);
  (void)!sdg_buffers_allocate(&hosted, (uintptr_t)at, bytes);
  pthread_mutex_unlock(&lock);
  sdg_hint_put(at, bytes, false, 0);
}

// Removes the allocation that begins there.
static bool removed(sdg_buffers_t *from, const void *at, sdg_span_t *out) {
  if (!sdg_buffers_allocation(from, (uintptr_t)at, out) ||
      out->at != (uintptr_t)at)
    return false;
  sdg_buffers_release(from, (uintptr_t)at);
  return true;
}

void sdg_memory_freed(const void *at) {
  sdg_span_t span;
  pthread_mutex_lock(&lock);
  bool known = removed(&table, at, &span) || removed(&hosted, at, &span);
  pthread_mutex_unlock(&lock);
  if (known) {
    sdg_hint_put(at, span.bytes, false, 0);
    sdg_kept_slot_drop(span);
  }
  if (known && sdg_memory_notes_inputs())
    sdg_uploads_freed(span);
}

bool sdg_memory_holds(const void *at) {
  sdg_span_t span;
  pthread_mutex_lock(&lock);
  bool holds = sdg_buffers_allocation(&table, (uintptr_t)at, &span);
  pthread_mutex_unlock(&lock);
  return holds;
}

bool sdg_memory_room(const void *at, size_t *out_bytes) {
  sdg_span_t span;
  pthread_mutex_lock(&lock);
  bool known = at && sdg_buffers_allocation(&table, (uintptr_t)at, &span);
  pthread_mutex_unlock(&lock);
  if (known)
    *out_bytes = (size_t)(span.at + span.bytes - (uintptr_t)at);
  return known;
}

void sdg_memory_forget(void) {
  pthread_mutex_lock(&lock);
  uint64_t last_number = table.last_number;
  sdg_buffers_fini(&table);
  table.last_number = last_number;
  sdg_buffers_fini(&hosted);
  pthread_mutex_unlock(&lock);
  sdg_hint_forget();
  sdg_uploads_forget();
}

sdg_status_t sdg_memory_fits(const sdg_call_t *call,
                             const sdg_operand_t *operand, bool *out_seen) {
  sdg_layout_t layout = sdg_operand_layout(operand);
  sdg_span_t allocation,
      tensor = {(uintptr_t)operand->data, sdg_layout_bytes(&layout)};
  bool seen = sdg_buffers_allocation(&table, tensor.at, &allocation);
  if (out_seen)
    *out_seen = seen;
  if (!seen || sdg_span_contain(allocation, tensor))
    return SDG_OK;
  return sdg_fail(SDG_E_SMALL_MEMORY,
                  "%s of %s needs %zu bytes from %p, where %zu are allocated",
                  sdg_role_name(operand->role), call->entry_name, tensor.bytes,
                  operand->data,
                  (size_t)(allocation.at + allocation.bytes - tensor.at));
}

sdg_status_t sdg_memory_fits_all(const sdg_call_t *call) {
  sdg_status_t status = SDG_OK;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < call->operands && status == SDG_OK; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (operand->data && operand->elem_bytes > 0 &&
        (operand->kind == SDG_OPERAND_TENSOR ||
         operand->kind == SDG_OPERAND_FILTER ||
         operand->kind == SDG_OPERAND_COORDINATES))
      status = sdg_memory_fits(call, operand, NULL);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

sdg_status_t sdg_memory_sendable(const sdg_call_t *call, int index) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  const sdg_operand_t *operand = &call->operand[index];
  struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  for (int d = 0; d < operand->dims; d++)
    if (operand->extent[d] == 0)
      return SDG_OK;
  if (cuda->cudaPointerGetAttributes(&is, operand->data) != cudaSuccess)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  if (is.type != cudaMemoryTypeUnregistered)
    return SDG_OK;
  return sdg_job_fail(
      sdg_fail(SDG_E_HALO,
               "%s: %s is at %p, in memory that the CUDA runtime did not "
               "allocate",
               call->entry_name, sdg_role_name(operand->role), operand->data));
}
