/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of bytes. They do not protect against deliberate collisions. */
#ifndef SDG_SRC_BASE_HASH_H
#define SDG_SRC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* ---- hash: to find equal keys, or to compare a few numbers of ranks ------ */

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
#define SDG_HASH_SEED UINT64_C(14695981039346656037)

/* Adds a word to a hash, which starts as SDG_HASH_SEED. */
uint64_t sdg_hash_word(uint64_t hash, uint64_t word);
uint64_t sdg_hash_bytes(uint64_t hash, const void *data, size_t bytes);
/* Without the terminating zero. */
uint64_t sdg_hash_text(uint64_t hash, const char *text);

/* ---- digest: to compare the values of ranks ------------------------------ */

/* XXH64 (by Yann Collet, after the public description of xxHash), some
 * 10 GB/s. */
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
