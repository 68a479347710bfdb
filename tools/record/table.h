/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `sundog run -v`: kinds of calls, over all ranks. */
#ifndef SDG_TOOLS_RECORD_TABLE_H
#define SDG_TOOLS_RECORD_TABLE_H

#include <stdint.h>

#include "src/geometry/mesh.h"
#include "src/plan/plan.h"

/* One kind of call over all ranks. */
typedef struct table_row {
  char *rule, *entry, *strategy;        /* owned */
  int64_t count;                        /* of the rank with most */
  int64_t halo_bytes;                   /* received by all ranks */
  int64_t sum_bytes;                    /* of sums' results, of all ranks */
  int64_t axis_bytes[SDG_AXES_MAX];     /* along each axis, of all ranks */
  int64_t copied_bytes[SDG_COPY_COUNT]; /* by kind, of all ranks */
  int64_t wait_ns;                      /* of the rank that waited longest */
} table_row_t;

typedef struct call_table {
  int rows, room;
  table_row_t *row;
  int axes;
  char axis[SDG_AXES_MAX][SDG_AXIS_NAME_MAX];
  int64_t matched; /* tagged calls of all ranks */
  int64_t refused; /* calls, of all ranks */
  int64_t in_full; /* tagged calls of which every rank did all, of all ranks */
  int missing;     /* the first rank without a report, -1: none */
  /* Comparisons of values, of the rank with most of each. */
  int64_t compared, compared_bytes, compared_ns;
  int cut; /* the first one whose report is there and cannot be read */
} call_table_t;

/* To standard error, in lines of up to 80 columns: the calls with a last row of
 * sums; what sums are and, where there are several axes, bytes along each;
 * copies in device memory, where there were some. What is 0 in all rows has no
 * column, but for halos and waits. Names of entries and rules are cut where a
 * line is too long.
 */
void call_table_print(const call_table_t *table);

void call_table_free(call_table_t *table);

#endif
