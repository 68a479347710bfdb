/* SPDX-License-Identifier: Apache-2.0 */
/* The object of the program's functions: a shared library that `sundog run`
 * writes and preloads beside libsundog.so. It defines each function that the
 * rules declare, as one jump through a slot of this table. `sundog inspect`
 * writes one for the functions that it watches. */
#ifndef SDG_SRC_CALL_FUNCTIONS_H
#define SDG_SRC_CALL_FUNCTIONS_H

#include <stdint.h>

enum {
  SDG_FUNCTIONS_VERSION = 1,
  /* Numbers of functions at sundog_resolve; smaller ones are entries. */
  SDG_FUNCTIONS_FIRST = 0x8000,
  SDG_FUNCTIONS_PROBED = 0xC000, /* calls of those that are declared */
};

typedef struct sdg_functions_row {
  const char *name;
  void *stub; /* what the object exports */
  void *slot; /* where the stub jumps to; at first, to sundog_resolve */
} sdg_functions_row_t;

typedef struct sdg_functions {
  uint64_t version, count;
  sdg_functions_row_t row[];
} sdg_functions_t;

/* The name of the table in the object, and of the routine of libsundog.so that
 * finds a slot's target. */
#define SDG_FUNCTIONS_TABLE   "sundog_functions"
#define SDG_FUNCTIONS_RESOLVE "sundog_resolve"

/* The same for watched functions: the slots keep their first targets, so that
 * every call goes to the routine. */
#define SDG_WATCHED_TABLE   "sundog_watched"
#define SDG_WATCHED_ROUTINE "sundog_watch"
enum { SDG_WATCHED_MAX = 4096 };

#endif
