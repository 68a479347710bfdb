/* SPDX-License-Identifier: Apache-2.0 */
/* Half and bfloat16 as bits, rounded to nearest even. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_NUMBER_H
#define SDG_SRC_HOST_CUDNN_BASE_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float host_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t host_bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* The float next to `value` whose last bit says whether anything was cut off.
 * Rounding it again to fewer bits gives the same as rounding `value`. */
static inline float host_round_to_odd(double value) {
  float near = (float)value;
  uint32_t bits = host_bits_of_float(near);
  if ((double)near == value || isnan(value) || isinf(near) || (bits & 1))
    return near;
  bool up = fabs((double)near) < fabs(value);
  return host_float_of_bits(up ? bits + 1 : bits - 1);
}

static inline float host_bfloat_load(uint16_t bits) {
  return host_float_of_bits((uint32_t)bits << 16);
}

static inline uint16_t host_bfloat_round(float value) {
  uint32_t bits = host_bits_of_float(value);
  if (value != value)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Exponents are changed by multiplication with a power of two, which also
 * handles subnormal numbers. */
static inline float host_half_load(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t rest = (uint32_t)(bits & 0x7fff);
  float size = rest >= 0x7c00 ? host_float_of_bits(0x7f800000 | rest << 13)
                              : host_float_of_bits(rest << 13) * 0x1p112f;
  return host_float_of_bits(host_bits_of_float(size) | sign);
}

static inline uint16_t host_half_round(float value) {
  uint32_t bits = host_bits_of_float(value), sign = bits >> 16 & 0x8000;
  uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000)
    return (uint16_t)(sign | 0x7e00);
  if (size >= 0x477ff000) /* 65520 and more */
    return (uint16_t)(sign | 0x7c00);
  if (size < 0x38800000) { /* below 2^-14: multiples of 2^-24 */
    float units = host_float_of_bits(size) * 0x1p24f;
    return (uint16_t)(sign | (uint32_t)nearbyintf(units));
  }
  size += 0xfff + (size >> 13 & 1);
  return (uint16_t)(sign | (size - 0x38000000) >> 13);
}

#endif
