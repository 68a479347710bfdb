/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a (Fowler, Noll, Vo), 64 bits: to find equal keys quickly, or to compare
 * a few numbers between ranks. src/base/digest.h is faster for long data. */
#ifndef SDG_SRC_BASE_HASH_H
#define SDG_SRC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SDG_HASH_SEED UINT64_C(14695981039346656037)

/* Adds a word to a hash, which starts as SDG_HASH_SEED. */
static inline uint64_t sdg_hash_word(uint64_t hash, uint64_t word) {
  return (hash ^ word) * UINT64_C(1099511628211);
}

static inline uint64_t sdg_hash_bytes(uint64_t hash, const void *data,
                                      size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    hash = sdg_hash_word(hash, ((const unsigned char *)data)[i]);
  return hash;
}

/* Without the terminating zero. */
static inline uint64_t sdg_hash_text(uint64_t hash, const char *text) {
  for (; *text; text++)
    hash = sdg_hash_word(hash, (unsigned char)*text);
  return hash;
}

#endif
