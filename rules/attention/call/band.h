/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the queries of a rank see: the interval algebra of attention with
 * windows. Pure; in elements along the sequence. */
#ifndef SDG_RULES_ATTENTION_CALL_BAND_H
#define SDG_RULES_ATTENTION_CALL_BAND_H

#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/box.h"

/* Query t sees the keys from t - left to t + right, those that there are. */
typedef struct sdg_band {
  int64_t left, right; /* >= 0 */
} sdg_band_t;

/* Farther than any key: no bound on that side. */
#define SDG_BAND_UNBOUND (INT64_C(1) << 53)

/* The keys that query `row` sees, of `keys`; [0, 0) where it sees none. */
sdg_range_t sdg_band_row(const sdg_band_t *band, int64_t row, int64_t keys);
/* From the first to the last key that any of the queries sees; [0, 0) where
 * none sees any. Example: band 3,1, queries [10, 20), 20 keys: [7, 20). */
sdg_range_t sdg_band_need(const sdg_band_t *band, sdg_range_t queries,
                          int64_t keys);
/* Whether the band hides none of `keys` keys from any of `queries` queries. */
bool sdg_band_is_all(const sdg_band_t *band, int64_t queries, int64_t keys);

/* Windows as programs give them, of `count` queries: query t sees lo[t] <= j <
 * hi[t], which may reach over the keys that there are. */
typedef struct sdg_windows {
  const int *lo, *hi;
  int64_t count;
} sdg_windows_t;

/* What query t sees of `keys` keys; [0, 0) where that is none. */
sdg_range_t sdg_windows_row(const sdg_windows_t *windows, int64_t t,
                            int64_t keys);
/* As sdg_band_need, for queries [first, first + count) of these windows. */
sdg_range_t sdg_windows_need(const sdg_windows_t *windows, int64_t first,
                             int64_t count, int64_t keys);
/* What the band gives query `row` of the keys in `keys`, by their index among
 * these; [0, 0) where that is none. Example: band 3,1, query 10, keys [8, 20):
 * [0, 4). */
sdg_range_t sdg_band_among(const sdg_band_t *band, int64_t row,
                           sdg_range_t keys);
/* The first query whose window is not the one that the band gives it, of keys
 * `keys`, windows being of queries from `first` on; -1: there is none. */
int64_t sdg_windows_differ(const sdg_windows_t *windows, const sdg_band_t *band,
                           int64_t first, sdg_range_t keys);

/* The band that gives these windows, of `keys` keys, both counted from the same
 * element; SDG_BAND_UNBOUND on a side where they end with the keys only. False:
 * no band does. */
bool sdg_windows_band(const sdg_windows_t *windows, int64_t keys,
                      sdg_band_t *out_band);

/* A query's window `row` as one of keys that begin at need.lo. */
void sdg_band_shift(sdg_range_t row, sdg_range_t need, int *out_lo,
                    int *out_hi);

#endif
