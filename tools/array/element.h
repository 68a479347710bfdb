/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of array files as numbers. */
#ifndef SDG_TOOLS_ARRAY_ELEMENT_H
#define SDG_TOOLS_ARRAY_ELEMENT_H

#include <stdbool.h>

/* The exact value of one element of any type. `im` is 0 except for complex
 * types. long double has the 64 bits that the largest integers need. */
typedef struct element {
  long double re, im;
} element_t;

/* Describes how the bytes of an element are read, from a dtype such as "<f4" or
 * "|V2". */
typedef struct element_type {
  char kind;    /* b i u f c, or B: bfloat16 */
  int bytes;    /* of one element */
  int digits;   /* decimal digits that distinguish any two values of the type */
  bool swapped; /* bytes of each number are in the other order: "<" and ">" */
} element_type_t;

/* Returns false if the type has no numeric value. V2 means bfloat16, because
 * NumPy has no type for it. */
bool element_type_of(const char *dtype, element_type_t *out_type);

/* Returns a relative tolerance: two results of one computation that add in
 * different orders may differ by this factor times the largest magnitude of the
 * result. It is some thousand times the type's rounding unit, a smaller
 * multiple for small types, and 0 for integers, which are exact. The bound
 * assumes that no term of a sum is larger than the largest sum; if terms
 * cancel, correct results may differ by more. */
double element_rounding(const element_type_t *type);

/* Reads the number at `bytes`, which need not be aligned. */
element_t element_read(const element_type_t *type, const void *bytes);

#endif
