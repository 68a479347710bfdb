// SPDX-License-Identifier: Apache-2.0
// Reused memory of the thread that executes queued work.
#include "src/host/cudnn/base/scratch.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct {
  void *block[HOST_SCRATCH_COUNT];
  size_t bytes[HOST_SCRATCH_COUNT];
} arena_t;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;

static void arena_destroy(void *pointer) {
  arena_t *arena = pointer;
  for (int i = 0; i < HOST_SCRATCH_COUNT; i++)
    free(arena->block[i]);
  free(arena);
}

static void key_create(void) {
  key_failed = pthread_key_create(&key, arena_destroy);
}

void *host_scratch_get(host_scratch_t kind, size_t bytes) {
  pthread_once(&once, key_create);
  if (key_failed)
    return NULL;
  arena_t *arena = pthread_getspecific(key);
  if (!arena) {
    arena = calloc(1, sizeof *arena);
    if (!arena || pthread_setspecific(key, arena)) {
      free(arena);
      return NULL;
    }
  }
  if (arena->bytes[kind] < bytes) {
    free(arena->block[kind]);
    size_t whole = (bytes + 63) & ~(size_t)63;
    arena->block[kind] = aligned_alloc(64, whole);
    arena->bytes[kind] = arena->block[kind] ? whole : 0;
  }
  return arena->block[kind];
}
