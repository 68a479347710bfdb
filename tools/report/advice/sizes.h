/* SPDX-License-Identifier: Apache-2.0 */
/* How the tensors of a run would be cut if the largest ones were cut otherwise:
 * windows with strides, and those that change the extents, give their results
 * other parts than their inputs have. */
#ifndef SDG_TOOLS_REPORT_ADVICE_SIZES_H
#define SDG_TOOLS_REPORT_ADVICE_SIZES_H

#include "src/geometry/part.h"
#include "tools/report/advice/cut.h"

enum { SIZES_EXTENTS = 64 };

/* One part for each extent. */
typedef struct sizes {
  int count;
  sdg_part_t part[SIZES_EXTENTS];
} sizes_t;

/* Finds the part of each extent of dimension `dim` over `ranks`, if tensors
 * that no window makes are cut evenly. Returns false if it is not known: in the
 * shard view, if a program that asks for the sizes of its results gets others
 * than one that computes them of its piece, and the record does not tell which
 * of the two it is; in the whole view, if tensors that windows make, and those
 * that the program fills, are not cut alike; or if a rank would have nothing.
 * 91 rows over 2, a window of 3 with stride 2: 46+45 rows, and of the 46 rows
 * of the result 23+23. */
bool sizes_find(const cut_t *cut, const char *dim, int ranks, sizes_t *out);

/* Finds the parts that the extents of the windows have now. Returns false if an
 * extent has several. */
bool sizes_now(const cut_t *cut, sizes_t *out);
void sizes_fini(sizes_t *sizes);

/* The part of an extent; NULL: it has none. */
const sdg_part_t *sizes_part(const sizes_t *sizes, int64_t extent);

#endif
