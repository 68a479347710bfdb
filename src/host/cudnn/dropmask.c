// SPDX-License-Identifier: Apache-2.0
// The masks of dropout.
#include "src/host/cudnn/dropmask.h"

#include <stdbool.h>
#include <string.h>

/* Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy
 * as 1, 2, 3", 2011): four numbers for each counter. */
static void philox(uint64_t seed, uint64_t counter, uint32_t out[4]) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)0xD2511F53u * c[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
                        (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
    memcpy(c, next, sizeof c);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  memcpy(out, c, sizeof c);
}

void host_dropmask_draw(host_dropstates_t *states, double probability,
                        int64_t count, uint32_t *mask) {
  uint32_t number[4];
  uint64_t at = states ? states->drawn : 0;
  memset(mask, 0, (size_t)(count + 31) / 32 * sizeof *mask);
  for (int64_t i = 0; i < count; i++, at++) {
    bool kept = probability <= 0;
    if (states && probability > 0 && probability < 1) {
      if (i == 0 || at % 4 == 0)
        philox(states->seed, at / 4, number);
      kept = (double)number[at % 4] * 0x1p-32 >= probability;
    }
    if (kept)
      mask[i / 32] |= 1U << (i % 32);
  }
  if (states)
    states->drawn = at;
}
