// SPDX-License-Identifier: Apache-2.0
// A list of disjoint tagged memory ranges.
#include "src/call/range.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct range {
  uintptr_t at;
  size_t bytes;
  const sdg_tag_label_t *label;
} range_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range_t *ranges;
static int count;
static atomic_bool any;

// Makes room for one more range. This function and the next one need the lock.
static sdg_status_t room_make(void) {
  range_t *grown = realloc(ranges, (size_t)(count + 1) * sizeof *grown);
  if (!grown)
    return sdg_fail(SDG_E_NO_MEMORY, "a tag");
  ranges = grown;
  return SDG_OK;
}

static void overlapping_drop(uintptr_t at, size_t bytes) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (ranges[i].at + ranges[i].bytes <= at || at + bytes <= ranges[i].at)
      ranges[kept++] = ranges[i];
  count = kept;
}

sdg_status_t sdg_range_set(const void *at, size_t bytes,
                           const sdg_tag_label_t *label) {
  if (!at || bytes == 0 || (uintptr_t)at + bytes < (uintptr_t)at)
    return sdg_fail(SDG_E_TAG, "%zu bytes at %p cannot be tagged", bytes, at);
  pthread_mutex_lock(&lock);
  sdg_status_t status = label ? room_make() : SDG_OK;
  if (status == SDG_OK)
    overlapping_drop((uintptr_t)at, bytes);
  if (status == SDG_OK && label) {
    ranges[count++] = (range_t){(uintptr_t)at, bytes, label};
    atomic_store(&any, true);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

const sdg_tag_label_t *sdg_range_label(const void *at) {
  const sdg_tag_label_t *label = NULL;
  if (!sdg_range_any())
    return NULL;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count && !label; i++)
    if ((uintptr_t)at - ranges[i].at < ranges[i].bytes)
      label = ranges[i].label;
  pthread_mutex_unlock(&lock);
  return label;
}

bool sdg_range_any(void) {
  return atomic_load_explicit(&any, memory_order_acquire);
}
