// SPDX-License-Identifier: Apache-2.0
// A list of copies from the host, each with a hash of what it carried.
#include "rules/uploads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/memory.h"
#include "src/vendor.h"

typedef struct upload {
  sdg_span_t span;
  uint64_t hash;
} upload_t;

static struct {
  pthread_mutex_t lock;
  upload_t *upload; // in the order in which they were made
  size_t count, room;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct runtime {
  __typeof__(&cudaPointerGetAttributes) cudaPointerGetAttributes;
} runtime_t;

static const runtime_t *runtime_get(void) {
  static const sdg_library_row_t row = {
      SDG_LIBRARY_CUDART, "cudaPointerGetAttributes",
      offsetof(runtime_t, cudaPointerGetAttributes)};
  static runtime_t runtime;
  if (!runtime.cudaPointerGetAttributes &&
      sdg_library_fill(&row, 1, &runtime) != SDG_OK)
    return NULL;
  return &runtime;
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *byte = data;
  for (size_t i = 0; i < bytes; i++) // FNV-1a
    hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
  return hash;
}
#define BASIS UINT64_C(14695981039346656037)

static sdg_span_t span_of(const sdg_access_t *access) {
  size_t rows = access->height ? access->height - 1 : 0;
  return (sdg_span_t){access->at, rows * access->pitch + access->width};
}

// Lock held.
static void overwritten_drop(sdg_span_t span) {
  size_t kept = 0;
  for (size_t i = 0; i < list.count; i++)
    if (!sdg_span_contain(span, list.upload[i].span))
      list.upload[kept++] = list.upload[i];
  list.count = kept;
}

// Without memory the copy is not compared. Lock held.
static void upload_add(sdg_span_t span, uint64_t hash) {
  if (list.count == list.room) {
    size_t room = list.room ? 2 * list.room : 64;
    upload_t *grown = realloc(list.upload, room * sizeof *grown);
    if (!grown)
      return;
    list.upload = grown;
    list.room = room;
  }
  list.upload[list.count++] = (upload_t){span, hash};
}

// What a copy that does not wait will find in pinned memory is not known yet.
static bool readable(const sdg_touch_t *touch, const sdg_access_t *from) {
  struct cudaPointerAttributes attributes;
  const runtime_t *runtime = runtime_get();
  if (from->width == 0 || !runtime ||
      runtime->cudaPointerGetAttributes(&attributes, (const void *)from->at) !=
          cudaSuccess)
    return false;
  return attributes.type == cudaMemoryTypeUnregistered ||
         (attributes.type == cudaMemoryTypeHost &&
          !strstr(touch->name, "Async"));
}

void sdg_uploads_note(const sdg_touch_t *touch) {
  const sdg_access_t *from = NULL;
  for (int i = 0; i < touch->accesses; i++)
    if (touch->access[i].reads && !touch->access[i].writes)
      from = &touch->access[i];
  uint64_t hash = BASIS;
  bool known = touch->copies && from && !sdg_memory_holds((void *)from->at) &&
               readable(touch, from);
  for (size_t row = 0; known && row < (from->height ? from->height : 1); row++)
    hash = mix(hash, (const char *)from->at + row * from->pitch, from->width);
  pthread_mutex_lock(&list.lock);
  for (int i = 0; i < touch->accesses; i++) {
    const sdg_access_t *to = &touch->access[i];
    if (!to->writes || to->reads || to->width == 0)
      continue;
    if (to->height <= 1 || to->pitch == to->width)
      overwritten_drop(span_of(to));
    if (known)
      upload_add(span_of(to), hash);
  }
  pthread_mutex_unlock(&list.lock);
}

void sdg_uploads_drop(const void *at, size_t bytes) {
  pthread_mutex_lock(&list.lock);
  overwritten_drop((sdg_span_t){(uintptr_t)at, bytes});
  pthread_mutex_unlock(&list.lock);
}

void sdg_uploads_forget(void) {
  pthread_mutex_lock(&list.lock);
  list.count = 0;
  pthread_mutex_unlock(&list.lock);
}

void sdg_uploads_describe(const sdg_call_t *call, char *text, size_t bytes) {
  pthread_mutex_lock(&list.lock);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_layout_t layout = sdg_memory_layout(operand);
    sdg_span_t tensor = {(uintptr_t)operand->data, sdg_layout_bytes(&layout)};
    uint64_t hash = BASIS;
    size_t kept = 0;
    for (size_t k = 0; k < list.count; k++) {
      upload_t upload = list.upload[k];
      if (operand->is_output || !operand->data ||
          !sdg_span_overlap(upload.span, tensor)) {
        list.upload[kept++] = upload;
        continue;
      }
      // Addresses differ between ranks, places in the tensor do not.
      uint64_t place[3] = {upload.span.at - tensor.at, upload.span.bytes,
                           upload.hash};
      hash = mix(hash, place, sizeof place);
    }
    size_t used = strlen(text);
    if (kept < list.count)
      snprintf(text + used, bytes - used, " values of %s %016llx",
               sdg_role_name(operand->role), (unsigned long long)hash);
    list.count = kept;
  }
  pthread_mutex_unlock(&list.lock);
}
