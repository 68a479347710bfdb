/* SPDX-License-Identifier: Apache-2.0 */
/* A digest of bytes, to compare the values of ranks: XXH64 (by Yann Collet,
 * after the public description of xxHash), some 10 GB/s. It does not protect
 * against deliberate collisions. */
#ifndef SDG_SRC_BASE_DIGEST_H
#define SDG_SRC_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { SDG_DIGEST_STRIPE = 32 };

typedef struct sdg_digest {
  uint64_t lane[4];
  uint64_t bytes;                        /* bytes added so far */
  unsigned char rest[SDG_DIGEST_STRIPE]; /* the first bytes % 32 are in use */
} sdg_digest_t;

void sdg_digest_init(sdg_digest_t *digest);
/* The digest depends only on the bytes, not on how they are divided between
 * calls. */
void sdg_digest_add(sdg_digest_t *digest, const void *data, size_t bytes);
uint64_t sdg_digest_value(const sdg_digest_t *digest);

#endif
