/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's element types for tests: searches tables of all values, which is slow
 * but independent of the tested code. */
#ifndef SDG_TESTS_HOST_NCCL_TYPES_H
#define SDG_TESTS_HOST_NCCL_TYPES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nccl.h>

static inline size_t types_bytes(ncclDataType_t type) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return bytes[type];
}

static inline int types_is_small_float(ncclDataType_t type) {
  return type == ncclFloat16 || type == ncclBfloat16 ||
         type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

static inline int types_is_integer(ncclDataType_t type) {
  return type <= ncclUint64;
}

/* The value of a code of a small floating type. */
static inline double types_decode(ncclDataType_t type, unsigned code) {
  int exponent_bits = type == ncclFloat16      ? 5
                      : type == ncclBfloat16   ? 8
                      : type == ncclFloat8e4m3 ? 4
                                               : 5;
  int width = types_bytes(type) == 2 ? 16 : 8;
  int fraction_bits = width - 1 - exponent_bits;
  int sign = code >> (width - 1) ? -1 : 1;
  int exponent = (int)(code >> fraction_bits) & ((1 << exponent_bits) - 1);
  int fraction = (int)(code & ((1u << fraction_bits) - 1));
  int bias = (1 << (exponent_bits - 1)) - 1;
  if (type == ncclFloat8e4m3) {
    if (exponent == 15 && fraction == 7)
      return NAN;
  } else if (exponent == (1 << exponent_bits) - 1) {
    return fraction ? NAN : sign * INFINITY;
  }
  if (exponent == 0)
    return sign * ldexp(fraction, 1 - bias - fraction_bits);
  return sign * ldexp((1 << fraction_bits) + fraction,
                      exponent - bias - fraction_bits);
}

/* The code whose value is nearest, of two the even one; too large: infinity,
 * the largest number for 8-bit types. */
static inline unsigned types_encode(ncclDataType_t type, double value) {
  int width = types_bytes(type) == 2 ? 16 : 8;
  unsigned sign = signbit(value) ? 1u << (width - 1) : 0;
  static unsigned largest_of[ncclNumTypes];
  unsigned largest = largest_of[type]; /* codes of positive numbers ascend */
  while (isfinite(types_decode(type, largest + 1)) &&
         largest + 1 < 1u << (width - 1))
    largest++;
  largest_of[type] = largest;
  if (isnan(value)) {
    unsigned code = largest + 1;
    while (!isnan(types_decode(type, code)))
      code++;
    return code;
  }
  double size = fabs(value);
  double top = types_decode(type, largest);
  double step = top - types_decode(type, largest - 1);
  if (size > top)
    return sign |
           (width == 16 && size >= top + step / 2 ? largest + 1 : largest);
  unsigned low = 0, high = largest;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (types_decode(type, middle) <= size)
      low = middle;
    else
      high = middle;
  }
  double under = size - types_decode(type, low);
  double over = types_decode(type, high) - size;
  if (under < over || (under == over && low % 2 == 0))
    return sign | low;
  return sign | high;
}

static inline double types_get(ncclDataType_t type, const void *from,
                               size_t i) {
  switch (type) {
  case ncclInt8:
    return ((const int8_t *)from)[i];
  case ncclUint8:
    return ((const uint8_t *)from)[i];
  case ncclInt32:
    return ((const int32_t *)from)[i];
  case ncclUint32:
    return ((const uint32_t *)from)[i];
  case ncclInt64:
    return (double)((const int64_t *)from)[i];
  case ncclUint64:
    return (double)((const uint64_t *)from)[i];
  case ncclFloat32:
    return ((const float *)from)[i];
  case ncclFloat64:
    return ((const double *)from)[i];
  case ncclFloat16:
  case ncclBfloat16:
    return types_decode(type, ((const uint16_t *)from)[i]);
  default:
    return types_decode(type, ((const uint8_t *)from)[i]);
  }
}

static inline void types_put(ncclDataType_t type, void *to, size_t i,
                             double value) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    ((uint8_t *)to)[i] = (uint8_t)(int64_t)value;
    break;
  case ncclInt32:
  case ncclUint32:
    ((uint32_t *)to)[i] = (uint32_t)(int64_t)value;
    break;
  case ncclInt64:
  case ncclUint64:
    ((uint64_t *)to)[i] = (uint64_t)(int64_t)value;
    break;
  case ncclFloat32:
    ((float *)to)[i] = (float)value;
    break;
  case ncclFloat64:
    ((double *)to)[i] = value;
    break;
  case ncclFloat16:
  case ncclBfloat16:
    ((uint16_t *)to)[i] = (uint16_t)types_encode(type, value);
    break;
  default:
    ((uint8_t *)to)[i] = (uint8_t)types_encode(type, value);
  }
}

/* Returns the expected element i of `ranks` inputs: combined in the order of
 * ranks, in double for double, in float for other floating types. */
static inline double types_combine(ncclDataType_t type, ncclRedOp_t op,
                                   int ranks, const double *value) {
  double result = value[0];
  int narrow = type != ncclFloat64 && !types_is_integer(type);
  for (int r = 1; r < ranks; r++) {
    double v = value[r];
    if (op == ncclSum || op == ncclAvg)
      result = result + v;
    else if (op == ncclProd)
      result = result * v;
    else if (op == ncclMax)
      result = fmax(result, v);
    else
      result = fmin(result, v);
    if (narrow)
      result = (float)result;
  }
  if (op == ncclAvg)
    result = types_is_integer(type) ? trunc(result / ranks)
             : narrow               ? (double)((float)result / (float)ranks)
                                    : result / ranks;
  return result;
}

#endif
