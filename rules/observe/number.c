// SPDX-License-Identifier: Apache-2.0
// Converts between doubles and the floating types of elements.
#include "rules/observe/number.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

bool sdg_number_floats(sdg_number_t type) {
  return type.kind == 'f' || type.kind == 'h' || type.kind == 'b';
}

// number * 2^power
static double scaled(int number, int power) {
  double result = number;
  for (; power < 0; power++)
    result /= 2;
  for (; power > 0; power--)
    result *= 2;
  return result;
}

static double half_read(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31 ? fraction ? (double)NAN : HUGE_VAL
                : exponent > 0 ? scaled(1024 + fraction, exponent - 25)
                               : scaled(fraction, -24);
  return bits >> 15 ? -size : size;
}

// What is too small becomes 0, what is too large the largest number.
static uint16_t half_of(uint32_t single) {
  enum { LARGEST = 0x7bff };
  int exponent = (int)(single >> 23 & 255) - 127 + 15;
  uint32_t size = exponent < 1 ? 0
                  : exponent > 30
                      ? LARGEST
                      : (uint32_t)exponent << 10 | (single >> 13 & 1023);
  return (uint16_t)(single >> 31 << 15 | size);
}

double sdg_number_read(sdg_number_t type, const char *at) {
  uint16_t half;
  float single;
  double number;
  if (type.bytes == sizeof number) {
    memcpy(&number, at, sizeof number);
    return number;
  }
  if (type.bytes == sizeof single) {
    memcpy(&single, at, sizeof single);
    return (double)single;
  }
  memcpy(&half, at, sizeof half);
  if (type.kind == 'h')
    return half_read(half);
  uint32_t bits = (uint32_t)half << 16; // of a float
  memcpy(&single, &bits, sizeof single);
  return (double)single;
}

void sdg_number_write(sdg_number_t type, double number, char *at) {
  float single = (float)number;
  uint32_t bits;
  if (type.bytes == sizeof number) {
    memcpy(at, &number, sizeof number);
    return;
  }
  if (type.bytes == sizeof single) {
    memcpy(at, &single, sizeof single);
    return;
  }
  memcpy(&bits, &single, sizeof bits);
  uint16_t half = type.kind == 'h' ? half_of(bits) : (uint16_t)(bits >> 16);
  memcpy(at, &half, sizeof half);
}
