/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the probe share: numbers that depend on family and case
 * alone. */
#ifndef SDG_TESTS_HOST_CUDNN_DESCRIPTOR_PROBE_H
#define SDG_TESTS_HOST_CUDNN_DESCRIPTOR_PROBE_H

#include <cudnn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts in the other files. */
void probe_library(void);
void probe_callbacks(void);
void probe_more(int cases);
void probe_folds(int cases);

static uint64_t seed = 88172645463325252u;
static inline unsigned draw(unsigned below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (unsigned)(seed >> 33) % below;
}
/* Every case has numbers of its own, whatever the ones before it drew. */
static inline void start(int family, int number) {
  seed = 88172645463325252u + 0x9E3779B97F4A7C15u * (uint64_t)family +
         0xD1B54A32D192ED03u * (uint64_t)number;
  for (int i = 0; i < 4; i++)
    draw(2);
}
static inline int range(int low, int high) {
  return low + (int)draw((unsigned)(high - low + 1));
}

/* Mostly small legal extents, sometimes the limits. */
static inline int extent(void) {
  static const int odd[] = {-1, 0, 1, 4, 32, 65535, 65536, 1 << 20, INT_MAX};
  return draw(8) ? range(1, 40) : odd[draw(sizeof odd / sizeof *odd)];
}
static inline int small(void) {
  return draw(12) ? range(1, 5) : range(-2, 9);
}
static inline int pad(void) {
  return draw(12) ? range(0, 4) : range(-2, 40);
}
static inline int stride_value(void) {
  static const int odd[] = {-3, -1, 0, 1, 65536, 1 << 24, INT_MAX};
  return draw(6) ? range(1, 4000) : odd[draw(sizeof odd / sizeof *odd)];
}
static inline cudnnDataType_t type(void) {
  return (cudnnDataType_t)(draw(3) ? range(0, 9) : range(-1, 23));
}
static inline cudnnTensorFormat_t format(void) {
  return (cudnnTensorFormat_t)(draw(12) ? range(0, 2) : range(-1, 4));
}

static inline void list(const char *label, const int *values, int count) {
  printf(" %s", label);
  for (int i = 0; i < count; i++)
    printf(",%d", values[i]);
}

static inline double real_value(void) {
  static const double odd[] = {-1, 0, 1e-6, 1e-5, 0.009, 0.01, 1, 6, 1e30};
  return odd[draw(sizeof odd / sizeof *odd)];
}

#endif
