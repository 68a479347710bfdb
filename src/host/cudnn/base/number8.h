/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point of 8 bits, rounded to nearest even. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_NUMBER8_H
#define SDG_SRC_HOST_CUDNN_BASE_NUMBER8_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Exponents from `lowest` on; below 2^lowest, multiples of 2^(lowest - digits).
 */
typedef struct {
  int digits, lowest;
  double largest;
  uint8_t nan;
  bool infinite; /* has infinities */
} host_number8_t;

static const host_number8_t host_e4m3 = {3, -6, 448, 0x7f, false};
static const host_number8_t host_e5m2 = {2, -14, 57344, 0x7e, true};

static inline double host_number8_load(const host_number8_t *type,
                                       uint8_t bits) {
  int exponent = (bits & 0x7f) >> type->digits;
  int rest = bits & ((1 << type->digits) - 1);
  double size = exponent == 0
                    ? ldexp(rest, type->lowest - type->digits)
                    : ldexp(rest + (1 << type->digits),
                            exponent - 1 + type->lowest - type->digits);
  if (size > type->largest)
    size = type->infinite && rest == 0 ? INFINITY : NAN;
  return bits & 0x80 ? -size : size;
}

/* Saturates, as conversions on GPUs do for deep learning: what is larger than
 * the largest number, infinities included, becomes that number. */
static inline uint8_t host_number8_round(const host_number8_t *type,
                                         double value) {
  uint8_t sign = signbit(value) ? 0x80 : 0;
  double size = fabs(value);
  if (size != size)
    return sign | type->nan;
  if (size > type->largest)
    size = type->largest;
  if (size == 0)
    return sign;
  int exponent = ilogb(size) < type->lowest ? type->lowest : ilogb(size);
  /* Carries into the next exponent by themselves. */
  int units = (int)nearbyint(ldexp(size, type->digits - exponent));
  return (uint8_t)(sign |
                   (units + ((exponent - type->lowest) << type->digits)));
}

#endif
