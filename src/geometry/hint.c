// SPDX-License-Identifier: Apache-2.0
// Keeps hints as a list of ranges in ascending order.
#include "src/geometry/hint.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct range {
  uintptr_t at, end;
  sdg_hint_t hint;
  uint32_t gaps; // 1: one tensor with gaps, and nothing known between
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

static bool room_make(int more) {
  int wanted = room ? room : 64;
  while (wanted < count + more)
    wanted *= 2;
  if (wanted == room)
    return true;
  range_t *grown = realloc(ranges, (size_t)wanted * sizeof *grown);
  if (!grown)
    return false;
  ranges = grown;
  room = wanted;
  return true;
}

// Replaces ranges [from, to) by `puts` others.
static void replace(int from, int to, int puts, const range_t *put) {
  if (puts > to - from && !room_make(puts - (to - from)))
    puts = 0;
  memmove(ranges + from + puts, ranges + to,
          (size_t)(count - to) * sizeof *ranges);
  memcpy(ranges + from, put, (size_t)puts * sizeof *put);
  count += puts - (to - from);
  atomic_store_explicit(&sdg_hint_count, count + watched, memory_order_release);
}

// What is known where unknown bytes lie between those of these kinds.
static sdg_hint_t mixed(sdg_hint_t a, sdg_hint_t b) {
  sdg_hint_t pieces = sdg_hint_join(a, b);
  return pieces & SDG_HINT_AXES ? pieces | SDG_HINT_MIXED : 0;
}

static void put(uintptr_t at, size_t bytes, bool gaps, sdg_hint_t hint) {
  range_t now = {at, at + bytes, hint, gaps}, all[3];
  int from = first_behind(at), to = from, puts = 0;
  for (; to < count && ranges[to].at < at + bytes; to++) {
    const range_t *old = &ranges[to];
    bool same = old->gaps && old->at == at && old->end == at + bytes;
    if (gaps && old->hint == hint) {
      now.at = old->at < now.at ? old->at : now.at;
      now.end = old->end > now.end ? old->end : now.end;
      now.gaps = same;
    } else if (gaps && !hint && !same) {
      now.hint = mixed(now.hint, old->hint);
      now.gaps = false;
    }
  }
  if (to - from == 1 && memcmp(&ranges[from], &now, sizeof now) == 0)
    return;
  if (to > from && ranges[from].at < now.at)
    all[puts++] = (range_t){ranges[from].at, now.at, ranges[from].hint, 0};
  if (now.hint)
    all[puts++] = now;
  if (to > from && ranges[to - 1].end > now.end)
    all[puts++] =
        (range_t){now.end, ranges[to - 1].end, ranges[to - 1].hint, 0};
  if (puts || to > from)
    replace(from, to, puts, all);
}

void sdg_hint_put(const void *at, size_t bytes, bool gaps, sdg_hint_t hint) {
  if (!at || bytes == 0 || (!hint && !sdg_hint_any()))
    return;
  pthread_mutex_lock(&lock);
  put((uintptr_t)at, bytes, gaps, hint);
  pthread_mutex_unlock(&lock);
}

// The ranges of [from, from + bytes), cut there. Returns how many; -1 if memory
// runs out.
static int cut(uintptr_t from, size_t bytes, range_t *few, int some,
               range_t **out) {
  int first = first_behind(from), n = 0;
  while (first + n < count && ranges[first + n].at < from + bytes)
    n++;
  *out = n > some ? malloc((size_t)n * sizeof **out) : few;
  for (int i = 0; *out && i < n; i++) {
    range_t *range = &(*out)[i];
    *range = ranges[first + i];
    range->at = range->at < from ? from : range->at;
    range->end = range->end > from + bytes ? from + bytes : range->end;
    range->gaps &= range->at == ranges[first + i].at &&
                   range->end == ranges[first + i].end;
  }
  return *out ? n : -1;
}

void sdg_hint_copy(const void *from, const void *at, size_t bytes) {
  enum { FEW = 16 };
  range_t few[FEW], *copied;
  if (!from || !at || bytes == 0 || !sdg_hint_any())
    return;
  pthread_mutex_lock(&lock);
  int n = cut((uintptr_t)from, bytes, few, FEW, &copied);
  put((uintptr_t)at, bytes, false, 0);
  for (int i = 0; i < n; i++)
    put((uintptr_t)at + (copied[i].at - (uintptr_t)from),
        copied[i].end - copied[i].at, copied[i].gaps, copied[i].hint);
  pthread_mutex_unlock(&lock);
  if (copied != few)
    free(copied);
}

sdg_hint_t sdg_hint_of(const void *at, size_t bytes) {
  if (!at || bytes == 0 || !sdg_hint_any())
    return 0;
  pthread_mutex_lock(&lock);
  uintptr_t from = (uintptr_t)at;
  int i = first_behind(from);
  bool same =
      i < count && ranges[i].at == from && ranges[i].end == from + bytes;
  sdg_hint_t hint =
      same && !(ranges[i].hint & SDG_HINT_MIXED) ? ranges[i].hint : 0;
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

static sdg_hint_t doubted(sdg_hint_t hint) {
  return hint & SDG_HINT_AXES ? (hint | SDG_HINT_MIXED) & ~SDG_HINT_GLOBAL
                              : SDG_HINT_KNOWN | SDG_HINT_MIXED;
}

void sdg_hint_doubt(const void *at, size_t bytes) {
  uintptr_t from = (uintptr_t)at;
  uintptr_t end = bytes > UINTPTR_MAX - from ? UINTPTR_MAX : from + bytes;
  if (!sdg_hint_any())
    return;
  pthread_mutex_lock(&lock);
  while (from < end) {
    int i = first_behind(from);
    if (i == count || ranges[i].at >= end)
      break;
    range_t in = ranges[i]; // cut to [from, end)
    in.at = in.at < from ? from : in.at;
    in.end = in.end > end ? end : in.end;
    put(in.at, in.end - in.at, false, doubted(in.hint));
    from = in.end;
  }
  pthread_mutex_unlock(&lock);
}

void sdg_hint_forget(void) {
  pthread_mutex_lock(&lock);
  count = 0;
  atomic_store_explicit(&sdg_hint_count, watched, memory_order_release);
  pthread_mutex_unlock(&lock);
}
