/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of array files as numbers. */
#ifndef SDG_TOOLS_ARRAY_ELEMENT_H
#define SDG_TOOLS_ARRAY_ELEMENT_H

#include <stdbool.h>

/* A number of any type of array files, exactly; im is 0 but for complex ones.
 * long double has the 64 bits that the largest integers need. */
typedef struct element {
  long double re, im;
} element_t;

/* How elements of `dtype` ("<f4", "|V2" ...) become numbers. */
typedef struct element_type {
  char kind;    /* b i u f c, or B: bfloat16 */
  int bytes;    /* of one element */
  int digits;   /* that tell two values of the type apart */
  bool swapped; /* bytes of each number are in the other order: "<" and ">" */
} element_type_t;

/* False for bytes that are no number. V2 is bfloat16, which NumPy has no type
 * for. */
bool element_type_of(const char *dtype, element_type_t *out_type);

/* How far apart two results of one computation may be by rounding alone, its
 * sums being made in another order: so much times the largest magnitude of the
 * result. Some thousand times the type's unit, less of small types; 0 of
 * integers, which are exact. That is DESIGN's bound where terms of a sum are as
 * large as the largest sum; where they cancel, more may be right. */
double element_rounding(const element_type_t *type);

/* The number at `bytes`, which need not be aligned. */
element_t element_read(const element_type_t *type, const void *bytes);

#endif
