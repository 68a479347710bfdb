// SPDX-License-Identifier: Apache-2.0
// Intervals of keys that queries see.
#include "rules/attention/call/band.h"

static sdg_range_t range_cut(int64_t lo, int64_t hi, int64_t keys) {
  sdg_range_t cut = {lo < 0 ? 0 : lo, hi > keys ? keys : hi};
  return cut.lo < cut.hi ? cut : (sdg_range_t){0, 0};
}

sdg_range_t sdg_band_row(const sdg_band_t *band, int64_t row, int64_t keys) {
  return range_cut(row - band->left, row + band->right + 1, keys);
}

sdg_range_t sdg_band_need(const sdg_band_t *band, sdg_range_t queries,
                          int64_t keys) {
  if (queries.hi <= queries.lo)
    return (sdg_range_t){0, 0};
  return range_cut(queries.lo - band->left, queries.hi + band->right, keys);
}

bool sdg_band_is_all(const sdg_band_t *band, int64_t queries, int64_t keys) {
  return band->left >= queries - 1 && band->right >= keys - 1;
}

sdg_range_t sdg_windows_row(const sdg_windows_t *windows, int64_t t,
                            int64_t keys) {
  return range_cut(windows->lo[t], windows->hi[t], keys);
}

sdg_range_t sdg_windows_need(const sdg_windows_t *windows, int64_t first,
                             int64_t count, int64_t keys) {
  sdg_range_t need = {0, 0};
  for (int64_t t = first; t < first + count; t++) {
    sdg_range_t row = sdg_windows_row(windows, t, keys);
    if (row.lo == row.hi)
      continue;
    bool none = need.lo == need.hi;
    need.lo = none || row.lo < need.lo ? row.lo : need.lo;
    need.hi = none || row.hi > need.hi ? row.hi : need.hi;
  }
  return need;
}

sdg_range_t sdg_band_among(const sdg_band_t *band, int64_t row,
                           sdg_range_t keys) {
  return range_cut(row - band->left - keys.lo, row + band->right + 1 - keys.lo,
                   keys.hi - keys.lo);
}

int64_t sdg_windows_differ(const sdg_windows_t *windows, const sdg_band_t *band,
                           int64_t first, sdg_range_t keys) {
  for (int64_t t = 0; t < windows->count; t++) {
    sdg_range_t has = sdg_windows_row(windows, t, keys.hi - keys.lo);
    sdg_range_t should = sdg_band_among(band, first + t, keys);
    if (has.lo != should.lo || has.hi != should.hi)
      return t;
  }
  return -1;
}

bool sdg_windows_band(const sdg_windows_t *windows, int64_t keys,
                      sdg_band_t *out_band) {
  sdg_band_t band = {SDG_BAND_UNBOUND, SDG_BAND_UNBOUND};
  for (int64_t t = 0; t < windows->count; t++) {
    sdg_range_t row = sdg_windows_row(windows, t, keys);
    if (row.hi <= row.lo || row.lo > t || row.hi <= t)
      return false; // a band has each query's own key
    if (row.lo > 0)
      band.left = t - row.lo;
    if (row.hi < keys)
      band.right = row.hi - 1 - t;
  }
  if (sdg_windows_differ(windows, &band, 0, (sdg_range_t){0, keys}) >= 0)
    return false;
  *out_band = band;
  return true;
}

void sdg_band_shift(sdg_range_t row, sdg_range_t need, int *out_lo,
                    int *out_hi) {
  bool none = row.lo == row.hi;
  *out_lo = none ? 0 : (int)(row.lo - need.lo);
  *out_hi = none ? 0 : (int)(row.hi - need.lo);
}
