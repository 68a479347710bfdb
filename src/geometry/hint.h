/* SPDX-License-Identifier: Apache-2.0 */
/* Hints: for memory that a plan wrote, the mesh axes along which its ranks
 * hold different pieces (shard view), and which tensor is there (both views).
 *
 * A hint lasts until sundog sees a write to, or a free of, its bytes; if that
 * is a part of them, the others keep it, as ranges of their own. A hint alone
 * decides nothing: before ranks have to act alike because of it, they agree on
 * it. Ranges are disjoint; any thread. If a program writes the same tensors in
 * each step, nothing is allocated. */
#ifndef SDG_SRC_GEOMETRY_HINT_H
#define SDG_SRC_GEOMETRY_HINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/geometry/mesh.h"

/* 0: unknown. Otherwise SDG_HINT_KNOWN and the axes along which the ranks hold
 * pieces; no axes: every rank holds the same. */
typedef uint32_t sdg_hint_t;
#define SDG_HINT_KNOWN (UINT32_C(1) << 31)
#define SDG_HINT_AXES  ((UINT32_C(1) << SDG_AXES_MAX) - 1)
/* What values computed from pieces mean: LOCAL: each rank has its own value;
 * GLOBAL: one value over all ranks; neither: computing one is an error. */
#define SDG_HINT_LOCAL  (UINT32_C(1) << 8)
#define SDG_HINT_GLOBAL (UINT32_C(1) << 9)
/* Some bytes of the range are in pieces, others may not be: values are made of
 * pieces, but the tensor's extents cannot be derived from it. */
#define SDG_HINT_MIXED (UINT32_C(1) << 10)

/* Returns the hint of a result that is computed from two inputs: it is in
 * pieces if either input is. */
static inline sdg_hint_t sdg_hint_join(sdg_hint_t a, sdg_hint_t b) {
  if (!(a & SDG_HINT_AXES) || !(b & SDG_HINT_AXES))
    return a & SDG_HINT_AXES ? a : b & SDG_HINT_AXES ? b : a && b ? a : 0;
  return SDG_HINT_KNOWN | ((a | b) & (SDG_HINT_AXES | SDG_HINT_MIXED)) |
         (a & b & (SDG_HINT_LOCAL | SDG_HINT_GLOBAL));
}

/* The number of hints, and 1 more after sdg_hint_watch; can be read without the
 * lock. */
extern atomic_int sdg_hint_count;
static inline bool sdg_hint_any(void) {
  return atomic_load_explicit(&sdg_hint_count, memory_order_acquire) > 0;
}

/* Records that [at, at + bytes) was written. If `hint` is 0, or memory runs
 * out, the bytes become unknown. `gaps`: not all of these bytes were written;
 * the range is merged with ranges of the same hint that it overlaps; without a
 * hint it is mixed with those in pieces, but not with one of exactly those
 * bytes and with gaps, which is the same tensor. */
void sdg_hint_put(const void *at, size_t bytes, bool gaps, sdg_hint_t hint);
/* The same; `contents` identifies what was written, equal on every rank; 0:
 * unknown, as for sdg_hint_put. */
void sdg_hint_put_contents(const void *at, size_t bytes, bool gaps,
                           sdg_hint_t hint, uint64_t contents);
/* How many elements each element of a sum is the sum of: on this rank, and on
 * all ranks together. */
typedef struct sdg_counts {
  int64_t own, all; /* 0: not known */
} sdg_counts_t;

/* Says this of exactly the bytes that were put last at `at`; it is lost when
 * they are put again. */
void sdg_hint_set_counts(const void *at, size_t bytes, sdg_counts_t counts);
/* Returns the counts of all of these bytes; zeros if they are unknown in one
 * place, or several. */
sdg_counts_t sdg_hint_counts(const void *at, size_t bytes);
/* Records that bytes were copied: what is known of each goes along. */
void sdg_hint_copy(const void *from, const void *at, size_t bytes);
/* Returns the hint of exactly these bytes; 0 if they are mixed. */
sdg_hint_t sdg_hint_of(const void *at, size_t bytes);
/* Returns the axes along which any of these bytes is known to be in pieces; 0
 * if none is. */
sdg_hint_t sdg_hint_within(const void *at, size_t bytes);
/* Whether nothing is known of any byte of these `count` ranges, and nobody
 * watches what is written. */
bool sdg_hint_none(int count, const void *const *at, const size_t *bytes);
/* Returns the hint of one range that contains all of these bytes. */
sdg_hint_t sdg_hint_around(const void *at, size_t bytes);
/* Returns a number of what these bytes contain, which is the same on every rank
 * that has put the same contents there, whatever the addresses are; 0 if they
 * are unknown in one place. From now on they are `contents`. */
uint64_t sdg_hint_renew_contents(const void *at, size_t bytes,
                                 uint64_t contents);
/* Returns the contents of all pieces among these bytes; 0 if they are unknown
 * or several. */
uint64_t sdg_hint_pieces_contents(const void *at, size_t bytes);
/* Returns the hint of what is computed from these bytes: that of pieces if any
 * is in pieces, MIXED if not all are. */
static inline sdg_hint_t sdg_hint_read(const void *at, size_t bytes) {
  sdg_hint_t pieces = sdg_hint_within(at, bytes);
  sdg_hint_t around = sdg_hint_around(at, bytes);
  return !pieces || pieces == around ? around : pieces | SDG_HINT_MIXED;
}
/* From now on sdg_hint_any() is true even without hints, so that the program's
 * writes are looked at: something else depends on them. */
void sdg_hint_watch(void);
/* Returns true after sdg_hint_watch. */
bool sdg_hint_watched(void);
/* Anything may have been written in these bytes (NULL, SIZE_MAX: anywhere):
 * they tell no extents any more, and of those in pieces no values of all pieces
 * together can be made. */
void sdg_hint_doubt(const void *at, size_t bytes);
/* Removes all hints: all memory was freed. */
void sdg_hint_forget(void);

#endif
