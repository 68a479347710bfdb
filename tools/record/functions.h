/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a program's libraries that got addresses in device memory,
 * as rules/observe/arguments.h recorded them. */
#ifndef SDG_TOOLS_RECORD_FUNCTIONS_H
#define SDG_TOOLS_RECORD_FUNCTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules/file/function/function.h"

enum { SEEN_PLACES_MAX = 24 };

/* What was seen at one place of the arguments: a register, or the stack. */
typedef struct seen_place {
  int64_t device; /* calls with an address in device memory */
  int64_t room;   /* from there to the end of its allocation, in bytes */
  int type;       /* of the recorded tensor that lies there */
  int dims;       /* its extents; 0: no recorded tensor lies there */
  int64_t extent[SDG_DIMS_MAX];
  bool has_value; /* an integer that is the same in all calls */
  int64_t value;
  bool is_wide;    /* some call had more than an integer of 32 bits */
  bool has_behind; /* an address of such an integer */
  int64_t behind;
} seen_place_t;

typedef struct seen_function {
  char name[2 * SDG_FUNCTION_SYMBOL_BYTES];
  char library[SDG_FUNCTION_NAME_BYTES];
  bool is_kernel; /* then all arguments are places, with these types */
  char type[SEEN_PLACES_MAX][12]; /* in C; "*": an address; "?": unknown */
  int64_t calls;
  int64_t
      noted; /* calls with an address in device memory that were looked at */
  int registers, places; /* the first places are registers */
  seen_place_t place[SEEN_PLACES_MAX];
} seen_function_t;

/* Reads a record. */
void seen_function_read(const json_t *from, seen_function_t *out);

#endif
