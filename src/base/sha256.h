/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for the proofs that ranks
 * on several machines exchange.
 *
 * sundog has its own because a preloaded library may depend only on libc, and
 * some containers do not offer the kernel's AF_ALG. */
#ifndef SDG_SRC_BASE_SHA256_H
#define SDG_SRC_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SDG_SHA256_BYTES = 32, SDG_SHA256_BLOCK = 64 };

typedef struct sdg_sha256 {
  uint32_t state[8];
  uint64_t bytes; /* bytes added so far */
  unsigned char block[SDG_SHA256_BLOCK];
} sdg_sha256_t;

void sdg_sha256_init(sdg_sha256_t *sha);
void sdg_sha256_add(sdg_sha256_t *sha, const void *data, size_t bytes);
void sdg_sha256_end(sdg_sha256_t *sha, unsigned char out[SDG_SHA256_BYTES]);

typedef struct sdg_hmac {
  sdg_sha256_t inner, outer;
} sdg_hmac_t;

void sdg_hmac_init(sdg_hmac_t *hmac, const void *key, size_t key_bytes);
void sdg_hmac_add(sdg_hmac_t *hmac, const void *data, size_t bytes);
void sdg_hmac_end(sdg_hmac_t *hmac, unsigned char out[SDG_SHA256_BYTES]);

/* Returns true if two digests are equal, in a time that does not depend on
 * where they differ. */
int sdg_digest_equal(const unsigned char a[SDG_SHA256_BYTES],
                     const unsigned char b[SDG_SHA256_BYTES]);

#endif
