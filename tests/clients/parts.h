/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the ranks' extents, as 5,4,7; for programs in C and C++. */
#ifndef SDG_TESTS_CLIENTS_PARTS_H
#define SDG_TESTS_CLIENTS_PARTS_H

#include <stdlib.h>
#include <string.h>

/* The extent of part `index` of a list, and where it begins; -1: all. */
static inline int part_of(const char *list, int index, int *out_first) {
  int all = 0, mine = 0;
  *out_first = 0;
  for (int at = 0; list; at++) {
    int extent = atoi(list);
    if (at == index)
      *out_first = all, mine = extent;
    all += extent;
    list = strchr(list, ',');
    list = list ? list + 1 : NULL;
  }
  return index < 0 ? all : mine;
}

static inline int parts_of(const char *list) {
  int count = 1;
  for (; *list; list++)
    count += *list == ',';
  return count;
}

#endif
