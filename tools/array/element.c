// SPDX-License-Identifier: Apache-2.0
// Reads elements of every type of array files as numbers.
#include "tools/array/element.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT_BYTES = 32 }; // of the largest type, c32

bool element_type_of(const char *dtype, element_type_t *out_type) {
  element_type_t type = {.kind = dtype[1],
                         .bytes = atoi(dtype + 2),
                         // Every machine with CUDA is little-endian.
                         .swapped = dtype[0] == '>'};
  if (type.kind == 'V' && type.bytes == 2)
    type.kind = 'B';
  int part = type.kind == 'c' ? type.bytes / 2 : type.bytes;
  type.digits = 20; // of integers of 64 bits
  if (type.kind == 'B')
    type.digits = 4;
  else if (type.kind == 'f' || type.kind == 'c')
    type.digits = part == 2   ? 5
                  : part == 4 ? FLT_DECIMAL_DIG
                  : part == 8 ? DBL_DECIMAL_DIG
                              : LDBL_DECIMAL_DIG;
  if (!type.kind || !strchr("biufcB", type.kind))
    return false;
  *out_type = type;
  return true;
}

double element_rounding(const element_type_t *type) {
  int part = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  if (type->kind == 'B')
    return ldexp(16, -7);
  if (type->kind != 'f' && type->kind != 'c')
    return 0;
  return part == 2   ? ldexp(16, -10)
         : part == 4 ? ldexp(1024, -FLT_MANT_DIG + 1)
         : part == 8 ? ldexp(1024, -DBL_MANT_DIG + 1)
                     : ldexp(1024, -LDBL_MANT_DIG + 1);
}

static long double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  long double value;
  if (exponent == 31)
    value = mantissa ? (long double)NAN : (long double)INFINITY;
  else if (exponent == 0)
    value = ldexpl(mantissa, -24);
  else
    value = ldexpl(1024 + mantissa, exponent - 25);
  return bits >> 15 ? -value : value;
}

static long double bfloat16_value(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

#define READ(type, name)                                                       \
  type name;                                                                   \
  memcpy(&name, bytes, sizeof name)

static long double real_value(int size, const void *bytes) {
  if (size == 2) {
    READ(uint16_t, half);
    return half_value(half);
  }
  if (size == 4) {
    READ(float, single);
    return single;
  }
  if (size == 8) {
    READ(double, twice);
    return twice;
  }
  READ(long double, widest);
  return widest;
}

static long double signed_value(int size, const void *bytes) {
  if (size == 1) {
    READ(int8_t, i1);
    return i1;
  }
  if (size == 2) {
    READ(int16_t, i2);
    return i2;
  }
  if (size == 4) {
    READ(int32_t, i4);
    return i4;
  }
  READ(int64_t, i8);
  return i8;
}

static long double unsigned_value(int size, const void *bytes) {
  uint64_t value = 0;
  memcpy(&value, bytes, (size_t)size);
  return value;
}

element_t element_read(const element_type_t *type, const void *at) {
  const void *bytes = at;
  char turned[ELEMENT_BYTES];
  if (type->swapped) {
    int size = type->kind == 'c' ? type->bytes / 2 : type->bytes;
    for (int i = 0; i < type->bytes; i++)
      turned[i / size * size + size - 1 - i % size] = ((const char *)at)[i];
    bytes = turned;
  }
  switch (type->kind) {
  case 'f':
    return (element_t){real_value(type->bytes, bytes), 0};
  case 'c': {
    int part = type->bytes / 2;
    return (element_t){real_value(part, bytes),
                       real_value(part, (const char *)bytes + part)};
  }
  case 'B': {
    READ(uint16_t, half);
    return (element_t){bfloat16_value(half), 0};
  }
  case 'i':
    return (element_t){signed_value(type->bytes, bytes), 0};
  default:
    return (element_t){unsigned_value(type->bytes, bytes), 0};
  }
}
