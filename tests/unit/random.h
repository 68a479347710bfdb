/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducible random numbers for brute-force tests. */
#ifndef SDG_TESTS_UNIT_RANDOM_H
#define SDG_TESTS_UNIT_RANDOM_H

#include <stdint.h>

#include "tests/unit/harness.h"

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static inline uint64_t random_bits(void) {
  random_state ^= random_state << 13; /* xorshift64 */
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* Returns a number from lo to hi, both included. */
static inline int64_t random_in(int64_t lo, int64_t hi) {
  return lo + (int64_t)(random_bits() % (uint64_t)(hi - lo + 1));
}

/* Draws `pieces` numbers of 0 or more that add up to the extent; many are 0. */
static inline void random_sizes(int64_t extent, int pieces, int64_t *sizes) {
  for (int i = 0; i < pieces; i++)
    sizes[i] = 0;
  int blocks = (int)random_in(1, 2 * pieces);
  for (int i = 0; i < blocks; i++) {
    int64_t take = i == blocks - 1 ? extent : random_in(0, extent);
    sizes[random_in(0, pieces - 1)] += take;
    extent -= take;
  }
}

#endif
