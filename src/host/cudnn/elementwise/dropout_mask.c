// SPDX-License-Identifier: Apache-2.0
// The masks of dropout.
//
// XORWOW is Marsaglia's ("Xorshift RNGs", 2003): a linear shift register of 160
// bits, and a counter. Subsequences start 2^67 steps apart; after so many steps
// the counter has its old value.
#include "src/host/cudnn/elementwise/dropout_mask.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { WORDS = 5, BITS = 32 * WORDS, LOG_APART = 67 };

static void shift(uint32_t v[WORDS]) {
  uint32_t t = v[0] ^ v[0] >> 2;
  uint32_t last = v[4] ^ v[4] << 4 ^ t ^ t << 1;
  memmove(v, v + 1, (WORDS - 1) * sizeof *v);
  v[4] = last;
}

// The value of each bit of the register after some steps.
typedef uint32_t jump_t[BITS][WORDS];

static void leap(jump_t jump, const uint32_t from[WORDS], uint32_t to[WORDS]) {
  memset(to, 0, WORDS * sizeof *to);
  for (int bit = 0; bit < BITS; bit++)
    if (from[bit / 32] >> (bit % 32) & 1)
      for (int i = 0; i < WORDS; i++)
        to[i] ^= jump[bit][i];
}

// The step from one subsequence to the next, for each value of four bits.
static uint32_t to_next[BITS / 4][16][WORDS];

static void prepare(void) {
  jump_t jump = {{0}}, twice;
  for (int bit = 0; bit < BITS; bit++) {
    jump[bit][bit / 32] = 1U << (bit % 32);
    shift(jump[bit]);
  }
  for (int i = 0; i < LOG_APART; i++) {
    for (int bit = 0; bit < BITS; bit++)
      leap(jump, jump[bit], twice[bit]);
    memcpy(jump, twice, sizeof jump);
  }
  for (int four = 0; four < BITS / 4; four++)
    for (int value = 0; value < 16; value++) {
      uint32_t from[WORDS] = {0};
      from[four / 8] = (uint32_t)value << (four % 8 * 4);
      leap(jump, from, to_next[four][value]);
    }
}

static void to_next_subsequence(uint32_t v[WORDS]) {
  uint32_t next[WORDS] = {0};
  for (int four = 0; four < BITS / 4; four++) {
    const uint32_t *part = to_next[four][v[four / 8] >> (four % 8 * 4) & 15];
    for (int i = 0; i < WORDS; i++)
      next[i] ^= part[i];
  }
  memcpy(v, next, sizeof next);
}

void host_dropmask_seed(host_dropstates_t *states, uint64_t seed) {
  // How cuRAND makes register and counter from a seed (curand_kernel.h).
  uint32_t low = 1099087573U * ((uint32_t)seed ^ 0xaad26b49U);
  uint32_t high = 2591861531U * ((uint32_t)(seed >> 32) ^ 0xf7dcefddU);
  uint32_t v[WORDS] = {123456789U + low, 362436069U ^ low, 521288629U + high,
                       88675123U ^ high, 5783321U + low};
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
  memset(states, 0, sizeof *states);
  for (int g = 0; g < HOST_DROP_GENERATORS; g++) {
    states->generator[g].count = 6615241U + high + low;
    memcpy(states->generator[g].value, v, sizeof v);
    to_next_subsequence(v);
  }
}

// In (0, 1], as curand_uniform; both of its roundings are repeated.
static float uniform(uint32_t number) {
  volatile float scaled = (float)number * 0x1p-32F;
  return scaled + 0x1p-33F;
}

void host_dropmask_draw(host_dropstates_t *states, float probability,
                        int64_t count, uint32_t *mask) {
  memset(mask, 0, (size_t)(count + 31) / 32 * sizeof *mask);
  for (int64_t i = 0; i < count; i++) {
    bool kept = probability <= 0;
    if (states) {
      int64_t g = i % HOST_DROP_GENERATORS;
      shift(states->generator[g].value);
      states->generator[g].count += 362437U;
      kept = uniform(states->generator[g].count +
                     states->generator[g].value[4]) > probability;
    }
    if (kept)
      mask[i / 32] |= 1U << (i % 32);
  }
}
