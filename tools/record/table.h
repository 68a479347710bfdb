/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `sundog run -v`: kinds of calls, over all ranks. */
#ifndef SDG_TOOLS_RECORD_TABLE_H
#define SDG_TOOLS_RECORD_TABLE_H

#include <stdint.h>

#include "src/geometry/mesh.h"
#include "src/plan/plan.h"

/* One kind of call over all ranks. */
typedef struct table_row {
  char *rule, *entry, *strategy;    /* owned */
  int64_t count;                    /* of the rank with the largest count */
  int64_t halo_bytes;               /* received by all ranks */
  int64_t sum_bytes;                /* bytes of sums' results, of all ranks */
  int64_t axis_bytes[SDG_AXES_MAX]; /* along each axis, of all ranks */
  int64_t copied_bytes[SDG_COPY_COUNT]; /* by kind, of all ranks */
  int64_t wait_ns;                      /* of the rank that waited longest */
} table_row_t;

typedef struct call_table {
  int rows, room;
  table_row_t *row;
  int axes;
  char axis[SDG_AXES_MAX][SDG_AXIS_NAME_MAX];
  int64_t matched; /* tagged calls of all ranks */
  int64_t refused; /* refused calls of all ranks */
  int64_t in_full; /* tagged calls that every rank carried out in full, of all
                      ranks */
  int missing;     /* the first rank without a report; -1: none */
  /* Comparisons of values: number, bytes and time; the largest of any rank. */
  int64_t compared, compared_bytes, compared_ns;
  int cut; /* the first rank whose report cannot be read */
} call_table_t;

/*
 * Prints to standard error, in lines of at most 80 columns: the calls with a
 * last row of sums; the bytes of sums and, if the mesh has several axes, the
 * bytes along each axis; copies in device memory, if any. Columns that are 0
 * in all rows are left out, except halos and waits. Names of entries and rules
 * are shortened if a line is too long.
 * */
void call_table_print(const call_table_t *table);

void call_table_free(call_table_t *table);

#endif
