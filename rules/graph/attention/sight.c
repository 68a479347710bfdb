// SPDX-License-Identifier: Apache-2.0
// Intervals of keys that queries see, and of queries that see keys.
#include "rules/graph/attention/sight.h"

static int64_t max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static bool empty(sdg_range_t range) {
  return range.hi <= range.lo;
}

static sdg_range_t range_of(int64_t lo, int64_t hi) {
  return lo < hi ? (sdg_range_t){lo, hi} : (sdg_range_t){0, 0};
}

sdg_range_t sdg_sight_keys(const sdg_sight_t *sight, sdg_range_t queries,
                           sdg_range_t keys) {
  if (empty(queries) || empty(keys))
    return (sdg_range_t){0, 0};
  int64_t first = queries.lo + sight->shift;
  int64_t last = queries.hi - 1 + sight->shift;
  return range_of(
      sight->left ? max(keys.lo, first - sight->left_bound + 1) : keys.lo,
      sight->right ? min(keys.hi, last + sight->right_bound + 1) : keys.hi);
}

sdg_range_t sdg_sight_queries(const sdg_sight_t *sight, sdg_range_t queries,
                              sdg_range_t keys) {
  if (empty(queries) || empty(keys))
    return (sdg_range_t){0, 0};
  int64_t first = keys.lo - sight->shift, last = keys.hi - 1 - sight->shift;
  return range_of(
      sight->right ? max(queries.lo, first - sight->right_bound) : queries.lo,
      sight->left ? min(queries.hi, last + sight->left_bound) : queries.hi);
}

sdg_sight_block_t sdg_sight_block(const sdg_sight_t *sight, sdg_range_t queries,
                                  sdg_range_t keys) {
  sdg_sight_block_t block = {{0, 0}, {0, 0}, false, false, 0, 0};
  // With bounds that cross, a range of queries can contain some that see none.
  if (sight->right && sight->left && sight->right_bound + sight->left_bound < 1)
    return block;
  sdg_range_t rows = sdg_sight_queries(sight, queries, keys);
  sdg_range_t columns = sdg_sight_keys(sight, rows, keys);
  if (empty(columns))
    return block;
  int64_t offset = rows.lo + sight->shift - columns.lo;
  block.queries = rows;
  block.keys = columns;
  block.right_bound = sight->right_bound + offset;
  block.left_bound = sight->left_bound - offset;
  // The first row sees least to the right, the last one least to the left.
  block.right = sight->right && block.right_bound < columns.hi - columns.lo - 1;
  block.left = sight->left && block.left_bound <= rows.hi - rows.lo - 1;
  return block;
}
