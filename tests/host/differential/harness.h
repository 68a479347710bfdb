/* SPDX-License-Identifier: Apache-2.0 */
/* What the generated cases of the differential test draw their arguments
 * from. Everything depends on the function's name and the case's number alone.
 */
#ifndef SDG_TESTS_HOST_DIFFERENTIAL_HARNESS_H
#define SDG_TESTS_HOST_DIFFERENTIAL_HARNESS_H

#include <stddef.h>
#include <stdint.h>

typedef void (*function_t)(void);

typedef struct row {
  const char *name;
  const char *first; /* type of the first parameter */
  int parameters;
  int (*call)(function_t function);
} row_t;

typedef enum kind {
  RESULT,  /* written by the call: compared */
  ADDRESS, /* the call writes an address: only whether */
  NUMBERS, /* read by the call */
  FLOATS,
  TEXT,
} kind_t;

extern const row_t rows[];
extern const int row_count;

/* Each takes the number of its parameter: if that is the odd one of this case,
 * it draws a value at or beyond a limit, or NULL; otherwise an ordinary one. */
long number(int parameter, const char *name);
long choice(int parameter, const long *values, int count);
double real(int parameter);
void *memory(int parameter, kind_t kind, const char *name);
void *descriptor(const char *type, int parameter);
void *descriptors(const char *type, int parameter);

#endif
