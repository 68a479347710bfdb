/* SPDX-License-Identifier: Apache-2.0 */
/* A number made of bytes, to tell ranks' values apart: XXH64 (Yann Collet's, of
 * the public description of xxHash), some 10 GB/s. No protection against who
 * wants two inputs to look alike. */
#ifndef SDG_SRC_BASE_DIGEST_H
#define SDG_SRC_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { SDG_DIGEST_STRIPE = 32 };

typedef struct sdg_digest {
  uint64_t lane[4];
  uint64_t bytes;                        /* so far */
  unsigned char rest[SDG_DIGEST_STRIPE]; /* bytes % 32 of them are used */
} sdg_digest_t;

void sdg_digest_init(sdg_digest_t *digest);
/* The number depends on the bytes alone, not on how they are handed over. */
void sdg_digest_add(sdg_digest_t *digest, const void *data, size_t bytes);
uint64_t sdg_digest_value(const sdg_digest_t *digest);

#endif
