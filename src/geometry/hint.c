// SPDX-License-Identifier: Apache-2.0
// Keeps hints as a list of ranges in ascending order.
#include "src/geometry/hint.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"

typedef struct range {
  uintptr_t at, end;
  sdg_hint_t hint;
  uint32_t gaps;     // 1: one tensor with gaps, and nothing known between
  uint64_t contents; // of the tensor at `base`, of which this is a part
  uintptr_t base;
  sdg_counts_t counts;
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

// The hint of a range in which unknown bytes are between bytes with these
// hints.
static sdg_hint_t mixed(sdg_hint_t a, sdg_hint_t b) {
  sdg_hint_t pieces = sdg_hint_join(a, b);
  return pieces & SDG_HINT_AXES ? pieces | SDG_HINT_MIXED : 0;
}

static bool counts_equal(const sdg_counts_t *a, const sdg_counts_t *b) {
  return a->own == b->own && a->all == b->all;
}

static bool range_equal(const range_t *a, const range_t *b) {
  return a->at == b->at && a->end == b->end && a->hint == b->hint &&
         a->gaps == b->gaps && a->contents == b->contents &&
         a->base == b->base && counts_equal(&a->counts, &b->counts);
}

// The bytes of a range in [at, end), which it shares some with.
static range_t clipped(const range_t *range, uintptr_t at, uintptr_t end) {
  range_t part = *range;
  part.at = part.at < at ? at : part.at;
  part.end = part.end > end ? end : part.end;
  part.gaps &= part.at == range->at && part.end == range->end;
  return part;
}

static void put(range_t now, bool gaps) {
  uintptr_t at = now.at, end = now.end;
  sdg_hint_t hint = now.hint;
  range_t all[3];
  now.gaps = gaps;
  int from = first_behind(at), to = from, puts = 0;
  for (; to < count && ranges[to].at < end; to++) {
    const range_t *old = &ranges[to];
    bool same = old->gaps && old->at == at && old->end == end;
    bool inside = old->at >= at && old->end <= end;
    if (gaps && old->hint == hint) {
      now.at = old->at < now.at ? old->at : now.at;
      now.end = old->end > now.end ? old->end : now.end;
      now.gaps = same;
      now.contents = inside ? now.contents : 0; // of several tensors
    } else if (gaps && !hint && !same) {
      now.hint = mixed(now.hint, old->hint);
      now.gaps = false;
    }
  }
  if (to - from == 1 && range_equal(&ranges[from], &now))
    return;
  if (to > from && ranges[from].at < now.at)
    all[puts++] = clipped(&ranges[from], 0, now.at);
  if (now.hint)
    all[puts++] = now;
  if (to > from && ranges[to - 1].end > now.end)
    all[puts++] = clipped(&ranges[to - 1], now.end, UINTPTR_MAX);
  if (puts || to > from)
    replace(from, to, puts, all);
}

static range_t range_of(const void *at, size_t bytes, sdg_hint_t hint,
                        uint64_t contents) {
  uintptr_t from = (uintptr_t)at;
  return (range_t){from, from + bytes, hint, 0, contents, from, {0, 0}};
}

void sdg_hint_put_contents(const void *at, size_t bytes, bool gaps,
                           sdg_hint_t hint, uint64_t contents) {
  if (!at || bytes == 0 || (!hint && !sdg_hint_any()))
    return;
  pthread_mutex_lock(&lock);
  put(range_of(at, bytes, hint, contents), gaps);
  pthread_mutex_unlock(&lock);
}

void sdg_hint_put(const void *at, size_t bytes, bool gaps, sdg_hint_t hint) {
  sdg_hint_put_contents(at, bytes, gaps, hint, 0);
}

void sdg_hint_set_counts(const void *at, size_t bytes, sdg_counts_t counts) {
  uintptr_t from = (uintptr_t)at;
  if (!at || bytes == 0 || !sdg_hint_any())
    return;
  pthread_mutex_lock(&lock);
  int i = first_behind(from);
  if (i < count && ranges[i].at == from && ranges[i].end == from + bytes)
    ranges[i].counts = counts;
  pthread_mutex_unlock(&lock);
}

sdg_counts_t sdg_hint_counts(const void *at, size_t bytes) {
  uintptr_t from = (uintptr_t)at, end = from + bytes;
  sdg_counts_t counts = {0, 0};
  if (!at || bytes == 0 || !sdg_hint_any())
    return counts;
  pthread_mutex_lock(&lock);
  for (int i = first_behind(from); from < end; i++) {
    bool known =
        i < count && ranges[i].at <= from &&
        (from == (uintptr_t)at || counts_equal(&ranges[i].counts, &counts));
    counts = known ? ranges[i].counts : (sdg_counts_t){0, 0};
    from = counts.all ? ranges[i].end : end;
  }
  pthread_mutex_unlock(&lock);
  return counts;
}

// The ranges of [from, from + bytes), cut there. Returns how many; -1 if memory
// runs out.
static int cut(uintptr_t from, size_t bytes, range_t *few, int some,
               range_t **out) {
  int first = first_behind(from), n = 0;
  while (first + n < count && ranges[first + n].at < from + bytes)
    n++;
  *out = n > some ? malloc((size_t)n * sizeof **out) : few;
  for (int i = 0; *out && i < n; i++)
    (*out)[i] = clipped(&ranges[first + i], from, from + bytes);
  return *out ? n : -1;
}

void sdg_hint_copy(const void *from, const void *at, size_t bytes) {
  enum { FEW = 16 };
  range_t few[FEW], *copied;
  if (!from || !at || bytes == 0 || !sdg_hint_any())
    return;
  pthread_mutex_lock(&lock);
  int n = cut((uintptr_t)from, bytes, few, FEW, &copied);
  put(range_of(at, bytes, 0, 0), false);
  for (int i = 0; i < n; i++) {
    uintptr_t by = (uintptr_t)at - (uintptr_t)from; // may wrap around
    copied[i].at += by;
    copied[i].end += by;
    copied[i].base += by;
    put(copied[i], copied[i].gaps);
  }
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

bool sdg_hint_none(int spans, const void *const *at, const size_t *bytes) {
  bool none = true;
  if (sdg_hint_watched())
    return false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < spans && none; i++) {
    uintptr_t from = (uintptr_t)at[i];
    int first = first_behind(from);
    none = first == count || ranges[first].at >= from + bytes[i];
  }
  pthread_mutex_unlock(&lock);
  return none;
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

// The contents of [from, end): what they are parts of, and which; 0 if they are
// unknown in one place.
static uint64_t contents_of(uintptr_t from, uintptr_t end) {
  uint64_t hash = SDG_HASH_SEED;
  uintptr_t at = from;
  for (int i = first_behind(from); at < end; i++) {
    if (i == count || ranges[i].at > at || !ranges[i].contents)
      return 0;
    range_t part = clipped(&ranges[i], from, end);
    hash = sdg_hash_word(hash, part.contents);
    hash = sdg_hash_word(hash, part.at - part.base);
    hash = sdg_hash_word(hash, part.end - part.at);
    at = part.end;
  }
  return hash;
}

uint64_t sdg_hint_renew_contents(const void *at, size_t bytes,
                                 uint64_t contents) {
  if (!at || bytes == 0)
    return 0;
  pthread_mutex_lock(&lock);
  uint64_t old = contents_of((uintptr_t)at, (uintptr_t)at + bytes);
  put(range_of(at, bytes, SDG_HINT_KNOWN, contents), false);
  pthread_mutex_unlock(&lock);
  return old;
}

uint64_t sdg_hint_pieces_contents(const void *at, size_t bytes) {
  uint64_t contents = 0;
  bool one = true;
  if (!at || bytes == 0 || !sdg_hint_any())
    return 0;
  pthread_mutex_lock(&lock);
  for (int i = first_behind((uintptr_t)at);
       i < count && ranges[i].at < (uintptr_t)at + bytes; i++) {
    if (!(ranges[i].hint & SDG_HINT_AXES))
      continue;
    one &= !contents || ranges[i].contents == contents;
    contents = ranges[i].contents;
    one &= contents != 0;
  }
  pthread_mutex_unlock(&lock);
  return one ? contents : 0;
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
    range_t in = clipped(&ranges[i], from, end);
    in.hint = doubted(in.hint);
    in.contents = 0;
    in.counts = (sdg_counts_t){0, 0};
    put(in, false);
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
