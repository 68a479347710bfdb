/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the queries of a rank see: interval arithmetic for attention with
 * windows. Pure functions; the unit is elements along the sequence. */
#ifndef SDG_RULES_ATTENTION_CALL_BAND_H
#define SDG_RULES_ATTENTION_CALL_BAND_H

#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/box.h"

/* Query t sees the existing keys from t - left to t + right. */
typedef struct sdg_band {
  int64_t left, right; /* >= 0 */
} sdg_band_t;

/* A bound beyond any key: unbounded on that side. */
#define SDG_BAND_UNBOUND (INT64_C(1) << 53)

/* The keys that query `row` sees out of `keys` keys; [0, 0) if it sees none. */
sdg_range_t sdg_band_row(const sdg_band_t *band, int64_t row, int64_t keys);
/* The range from the first to the last key that any of the queries sees; [0, 0)
 * if no query sees any. Example: band 3,1, queries [10, 20), 20 keys: [7,
 * 20). */
sdg_range_t sdg_band_need(const sdg_band_t *band, sdg_range_t queries,
                          int64_t keys);
/* Whether each of `queries` queries sees all of `keys` keys. */
bool sdg_band_is_all(const sdg_band_t *band, int64_t queries, int64_t keys);

/* Windows of `count` queries as programs give them: query t sees the existing
 * keys j with lo[t] <= j < hi[t]. The bounds may lie beyond the keys. */
typedef struct sdg_windows {
  const int *lo, *hi;
  int64_t count;
} sdg_windows_t;

/* The keys that query t sees out of `keys` keys; [0, 0) if it sees none. */
sdg_range_t sdg_windows_row(const sdg_windows_t *windows, int64_t t,
                            int64_t keys);
/* Like sdg_band_need, for queries [first, first + count) of these windows. */
sdg_range_t sdg_windows_need(const sdg_windows_t *windows, int64_t first,
                             int64_t count, int64_t keys);
/* The keys in `keys` that query `row` sees, counted from keys.lo; [0, 0) if it
 * sees none of them. Example: band 3,1, query 10, keys [8, 20): [0, 4). */
sdg_range_t sdg_band_among(const sdg_band_t *band, int64_t row,
                           sdg_range_t keys);
/* Compares windows with those of a band, for the keys in `keys`. windows->lo[0]
 * belongs to query `first` of the band. Returns the index of the first window
 * that differs, counted from 0; -1 if none differs. */
int64_t sdg_windows_differ(const sdg_windows_t *windows, const sdg_band_t *band,
                           int64_t first, sdg_range_t keys);

/* Finds the band that yields these windows for `keys` keys. Queries and keys
 * are counted from the same element. If no window ends before the first or the
 * last key, that side of the band is SDG_BAND_UNBOUND. False if no band yields
 * these windows. */
bool sdg_windows_band(const sdg_windows_t *windows, int64_t keys,
                      sdg_band_t *out_band);

/* Converts a query's window `row` to indices counted from need.lo; an empty
 * window becomes [0, 0). */
void sdg_band_shift(sdg_range_t row, sdg_range_t need, int *out_lo,
                    int *out_hi);

#endif
