// SPDX-License-Identifier: Apache-2.0
// Element types and reductions over them.
#include "src/host/nccl/reduce.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// A binary format of sign, exponent and fraction in at most 16 bits.
typedef struct format {
  int exponent_bits;
  int fraction_bits;
  int finite; // no infinities: all ones is NaN, the other values of the top
              //                  exponent are numbers; values too large become
              //                  the largest number
} format_t;

static const format_t format_f16 = {5, 10, 0};
static const format_t format_e4m3 = {4, 3, 1};
static const format_t format_e5m2 = {5, 2, 0};

static float decode(uint32_t bits, format_t f) {
  uint32_t sign = bits >> (f.exponent_bits + f.fraction_bits) & 1;
  uint32_t exponent = bits >> f.fraction_bits & ((1u << f.exponent_bits) - 1);
  uint32_t fraction = bits & ((1u << f.fraction_bits) - 1);
  uint32_t top = (1u << f.exponent_bits) - 1;
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  uint32_t nan_fraction = f.finite ? (1u << f.fraction_bits) - 1 : fraction;
  if (exponent == top && (!f.finite || fraction == nan_fraction))
    return float_of_bits(sign << 31 | 0x7f800000u |
                         (fraction == 0 ? 0 : 0x400000u) |
                         fraction << (23 - f.fraction_bits));
  if (exponent == 0) {
    float scale = float_of_bits((uint32_t)(128 - bias - f.fraction_bits) << 23);
    float value = (float)fraction * scale;
    return sign ? -value : value;
  }
  return float_of_bits(sign << 31 | (exponent + 127 - (uint32_t)bias) << 23 |
                       fraction << (23 - f.fraction_bits));
}

// Rounds to nearest, ties to even. `saturate`: too large becomes the largest
// number instead of infinity.
static uint32_t encode(float value, format_t f, int saturate) {
  uint32_t bits = bits_of_float(value);
  int width = f.exponent_bits + f.fraction_bits;
  uint32_t sign = bits >> 31 << width;
  uint32_t top = (1u << f.exponent_bits) - 1;
  uint32_t infinity = top << f.fraction_bits;
  uint32_t nan = f.finite ? infinity | ((1u << f.fraction_bits) - 1)
                          : infinity | 1u << (f.fraction_bits - 1);
  uint32_t largest = f.finite ? nan - 1 : infinity - 1;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | nan;
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  int exponent = (int)(magnitude >> 23) - 127 + bias;
  uint32_t result;
  if (exponent <= 0) {
    // Adding a number whose last place is the smallest subnormal makes the
    // hardware round.
    uint32_t unit = (uint32_t)(127 - bias + 1 - f.fraction_bits + 23) << 23;
    float sum = float_of_bits(magnitude) + float_of_bits(unit);
    result = bits_of_float(sum) - unit;
  } else if (exponent > (int)top) {
    result = saturate ? largest : infinity;
  } else {
    int drop = 23 - f.fraction_bits;
    uint32_t rebased = magnitude - ((uint32_t)(127 - bias) << 23);
    uint32_t odd = rebased >> drop & 1;
    result = (rebased + (1u << (drop - 1)) - 1 + odd) >> drop;
    if (result > largest)
      result = saturate ? largest : infinity;
  }
  return sign | result;
}

static float load_f16(uint16_t bits) {
  return decode(bits, format_f16);
}

static uint16_t store_f16(float value) {
  return (uint16_t)encode(value, format_f16, 0);
}

static float load_bf16(uint16_t bits) {
  return float_of_bits((uint32_t)bits << 16);
}

static uint16_t store_bf16(float value) {
  uint32_t bits = bits_of_float(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float load_e4m3(uint8_t bits) {
  return decode(bits, format_e4m3);
}

static uint8_t store_e4m3(float value) {
  return (uint8_t)encode(value, format_e4m3, 1);
}

static float load_e5m2(uint8_t bits) {
  return decode(bits, format_e5m2);
}

static uint8_t store_e5m2(float value) {
  return (uint8_t)encode(value, format_e5m2, 1);
}

#define SAME(value)             (value)
#define DIVIDE_FLOAT(sum, n)    ((sum) / (float)(n))
#define DIVIDE_DOUBLE(sum, n)   ((sum) / (double)(n))
#define DIVIDE_SIGNED(sum, n)   ((sum) / (n))
#define DIVIDE_UNSIGNED(sum, n) ((sum) / (unsigned)(n))

// name, in memory, in arithmetic (unsigned where integers wrap), in
// comparisons and divisions, load, store, divide
#define TYPES(X)                                                               \
  X(int8, uint8_t, uint32_t, int8_t, SAME, SAME, DIVIDE_SIGNED)                \
  X(uint8, uint8_t, uint32_t, uint8_t, SAME, SAME, DIVIDE_UNSIGNED)            \
  X(int32, uint32_t, uint32_t, int32_t, SAME, SAME, DIVIDE_SIGNED)             \
  X(uint32, uint32_t, uint32_t, uint32_t, SAME, SAME, DIVIDE_UNSIGNED)         \
  X(int64, uint64_t, uint64_t, int64_t, SAME, SAME, DIVIDE_SIGNED)             \
  X(uint64, uint64_t, uint64_t, uint64_t, SAME, SAME, DIVIDE_UNSIGNED)         \
  X(f16, uint16_t, float, float, load_f16, store_f16, DIVIDE_FLOAT)            \
  X(f32, float, float, float, SAME, SAME, DIVIDE_FLOAT)                        \
  X(f64, double, double, double, SAME, SAME, DIVIDE_DOUBLE)                    \
  X(bf16, uint16_t, float, float, load_bf16, store_bf16, DIVIDE_FLOAT)         \
  X(e4m3, uint8_t, float, float, load_e4m3, store_e4m3, DIVIDE_FLOAT)          \
  X(e5m2, uint8_t, float, float, load_e5m2, store_e5m2, DIVIDE_FLOAT)

enum { TILE = 512 }; // elements; the accumulators stay in the first cache

// One function per type. `b != b` is NaN; false for every integer.
#define REDUCE(name, memory, work, value, load, store, divide)                 \
  static void reduce_##name(ncclRedOp_t op, int ranks,                         \
                            const void *const *input, void *out, size_t from,  \
                            int n) {                                           \
    work a[TILE];                                                              \
    const memory *first = (const memory *)input[0] + from;                     \
    for (int i = 0; i < n; i++)                                                \
      a[i] = (work)load(first[i]);                                             \
    for (int r = 1; r < ranks; r++) {                                          \
      const memory *in = (const memory *)input[r] + from;                      \
      switch (op) {                                                            \
      case ncclProd:                                                           \
        for (int i = 0; i < n; i++)                                            \
          a[i] = a[i] * (work)load(in[i]);                                     \
        break;                                                                 \
      case ncclMax:                                                            \
        for (int i = 0; i < n; i++) {                                          \
          value b = (value)load(in[i]);                                        \
          a[i] = (value)a[i] > b || b != b ? a[i] : (work)b;                   \
        }                                                                      \
        break;                                                                 \
      case ncclMin:                                                            \
        for (int i = 0; i < n; i++) {                                          \
          value b = (value)load(in[i]);                                        \
          a[i] = (value)a[i] < b || b != b ? a[i] : (work)b;                   \
        }                                                                      \
        break;                                                                 \
      default:                                                                 \
        for (int i = 0; i < n; i++)                                            \
          a[i] = a[i] + (work)load(in[i]);                                     \
      }                                                                        \
    }                                                                          \
    memory *result = (memory *)out + from;                                     \
    for (int i = 0; i < n; i++)                                                \
      result[i] = (memory)store(                                               \
          (work)(op == ncclAvg ? divide((value)a[i], ranks) : (value)a[i]));   \
  }
TYPES(REDUCE)
#undef REDUCE

size_t host_type_bytes(ncclDataType_t type) {
#define BYTES(name, memory, work, value, load, store, divide) sizeof(memory),
  static const size_t bytes[] = {TYPES(BYTES)};
#undef BYTES
  return (unsigned)type < ncclNumTypes ? bytes[type] : 0;
}

void host_reduce(ncclDataType_t type, ncclRedOp_t op, int ranks,
                 const void *const *input, void *out, size_t count) {
#define POINTER(name, memory, work, value, load, store, divide) reduce_##name,
  static void (*const reduce[])(ncclRedOp_t, int, const void *const *, void *,
                                size_t, int) = {TYPES(POINTER)};
#undef POINTER
  for (size_t from = 0; from < count; from += TILE) {
    size_t rest = count - from;
    reduce[type](op, ranks, input, out, from, rest < TILE ? (int)rest : TILE);
  }
}

#define SCALE(name, memory, work, value, load, store, divide)                  \
  static void scale_##name(const void *factor, const void *input, void *out,   \
                           size_t count) {                                     \
    work by = (work)load(*(const memory *)factor);                             \
    for (size_t i = 0; i < count; i++)                                         \
      ((memory *)out)[i] = (memory)store(                                      \
          (work)((value)((work)load(((const memory *)input)[i]) * by)));       \
  }
TYPES(SCALE)
#undef SCALE

void host_scale(ncclDataType_t type, const void *factor, const void *input,
                void *out, size_t count) {
#define POINTER(name, memory, work, value, load, store, divide) scale_##name,
  static void (*const scale[])(const void *, const void *, void *,
                               size_t) = {TYPES(POINTER)};
#undef POINTER
  scale[type](factor, input, out, count);
}
