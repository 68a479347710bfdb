// SPDX-License-Identifier: Apache-2.0
// Keeps hints as a list of ranges in ascending order.
#include "src/geometry/hint.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct range {
  uintptr_t at, end;
  sdg_hint_t hint;
} range_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range_t *ranges;
static int count, room;
static atomic_int watched; // 1 after sdg_hint_watch
atomic_int sdg_hint_count;

// Returns the first range that ends after `at`. This and all functions below
// need the lock.
static int first_behind(uintptr_t at) {
  int lo = 0, hi = count;
  while (lo < hi) {
    int mid = lo + (hi - lo) / 2;
    if (ranges[mid].end > at)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

static bool room_make(void) {
  if (count < room)
    return true;
  int more = room ? 2 * room : 64;
  range_t *grown = realloc(ranges, (size_t)more * sizeof *grown);
  if (!grown)
    return false;
  ranges = grown;
  room = more;
  return true;
}

// Replaces ranges [from, to) by `put`, or removes them (NULL).
static void replace(int from, int to, const range_t *put) {
  int puts = put != NULL;
  if (to - from < puts && !room_make())
    return;
  memmove(ranges + from + puts, ranges + to,
          (size_t)(count - to) * sizeof *ranges);
  if (put)
    ranges[from] = *put;
  count += puts - (to - from);
  atomic_store_explicit(&sdg_hint_count, count + watched, memory_order_release);
}

static void put(uintptr_t at, size_t bytes, bool gaps, sdg_hint_t hint) {
  range_t now = {at, at + bytes, hint};
  int from = first_behind(at), to = from;
  for (; to < count && ranges[to].at < at + bytes; to++)
    if (gaps && ranges[to].hint == hint) {
      now.at = ranges[to].at < now.at ? ranges[to].at : now.at;
      now.end = ranges[to].end > now.end ? ranges[to].end : now.end;
    }
  if (to - from == 1 && memcmp(&ranges[from], &now, sizeof now) == 0)
    return;
  if (hint || to > from)
    replace(from, to, hint ? &now : NULL);
}

void sdg_hint_put(const void *at, size_t bytes, bool gaps, sdg_hint_t hint) {
  if (!at || bytes == 0 || (!hint && !sdg_hint_any()))
    return;
  pthread_mutex_lock(&lock);
  put((uintptr_t)at, bytes, gaps, hint);
  pthread_mutex_unlock(&lock);
}

sdg_hint_t sdg_hint_of(const void *at, size_t bytes) {
  if (!at || bytes == 0 || !sdg_hint_any())
    return 0;
  pthread_mutex_lock(&lock);
  uintptr_t from = (uintptr_t)at;
  int i = first_behind(from);
  bool same =
      i < count && ranges[i].at == from && ranges[i].end == from + bytes;
  sdg_hint_t hint = same ? ranges[i].hint : 0;
  pthread_mutex_unlock(&lock);
  return hint;
}

sdg_hint_t sdg_hint_within(const void *at, size_t bytes) {
  sdg_hint_t pieces = 0;
  if (!at || bytes == 0 || !sdg_hint_any())
    return 0;
  pthread_mutex_lock(&lock);
  for (int i = first_behind((uintptr_t)at);
       i < count && ranges[i].at < (uintptr_t)at + bytes; i++)
    if (ranges[i].hint & SDG_HINT_AXES)
      pieces = sdg_hint_join(pieces, ranges[i].hint);
  pthread_mutex_unlock(&lock);
  return pieces;
}

sdg_hint_t sdg_hint_around(const void *at, size_t bytes) {
  if (!at || bytes == 0 || !sdg_hint_any())
    return 0;
  pthread_mutex_lock(&lock);
  uintptr_t from = (uintptr_t)at;
  int i = first_behind(from);
  bool all = i < count && ranges[i].at <= from && ranges[i].end >= from + bytes;
  sdg_hint_t hint = all ? ranges[i].hint : 0;
  pthread_mutex_unlock(&lock);
  return hint;
}

void sdg_hint_watch(void) {
  pthread_mutex_lock(&lock);
  watched = 1;
  atomic_store_explicit(&sdg_hint_count, count + 1, memory_order_release);
  pthread_mutex_unlock(&lock);
}

bool sdg_hint_watched(void) {
  return atomic_load_explicit(&watched, memory_order_acquire) != 0;
}

void sdg_hint_forget(void) {
  pthread_mutex_lock(&lock);
  count = 0;
  atomic_store_explicit(&sdg_hint_count, watched, memory_order_release);
  pthread_mutex_unlock(&lock);
}
