// SPDX-License-Identifier: Apache-2.0
// FNV-1a; and XXH64 with seed 0, computed incrementally.
#include "src/base/hash.h"

#include <string.h>

uint64_t sdg_hash_word(uint64_t hash, uint64_t word) {
  return (hash ^ word) * UINT64_C(1099511628211);
}

uint64_t sdg_hash_bytes(uint64_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    hash = sdg_hash_word(hash, ((const unsigned char *)data)[i]);
  return hash;
}

uint64_t sdg_hash_text(uint64_t hash, const char *text) {
  for (; *text; text++)
    hash = sdg_hash_word(hash, (unsigned char)*text);
  return hash;
}

// ---- digest -----------------------------------------------------------------

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME_3 UINT64_C(0x165667b19e3779f9)
#define PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME_5 UINT64_C(0x27d4eb2f165667c5)

static uint64_t rotate(uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}

static uint64_t read_64(const unsigned char *from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

static uint64_t mix(uint64_t lane, uint64_t input) {
  return rotate(lane + input * PRIME_2, 31) * PRIME_1;
}

static void stripe(uint64_t *lane, const unsigned char *from) {
  for (int i = 0; i < 4; i++)
    lane[i] = mix(lane[i], read_64(from + 8 * i));
}

void sdg_digest_init(sdg_digest_t *digest) {
  *digest = (sdg_digest_t){
      .lane = {PRIME_1 + PRIME_2, PRIME_2, 0, UINT64_C(0) - PRIME_1}};
}

void sdg_digest_add(sdg_digest_t *digest, const void *data, size_t bytes) {
  const unsigned char *from = data;
  size_t held = digest->bytes % SDG_DIGEST_STRIPE;
  digest->bytes += bytes;
  if (held > 0) {
    size_t more = SDG_DIGEST_STRIPE - held;
    more = more < bytes ? more : bytes;
    memcpy(digest->rest + held, from, more);
    from += more;
    bytes -= more;
    if (held + more < SDG_DIGEST_STRIPE)
      return;
    stripe(digest->lane, digest->rest);
  }
  for (; bytes >= SDG_DIGEST_STRIPE; bytes -= SDG_DIGEST_STRIPE) {
    stripe(digest->lane, from);
    from += SDG_DIGEST_STRIPE;
  }
  if (bytes > 0)
    memcpy(digest->rest, from, bytes);
}

static uint64_t lanes_merge(const uint64_t *lane) {
  uint64_t hash = rotate(lane[0], 1) + rotate(lane[1], 7) +
                  rotate(lane[2], 12) + rotate(lane[3], 18);
  for (int i = 0; i < 4; i++)
    hash = (hash ^ mix(0, lane[i])) * PRIME_1 + PRIME_4;
  return hash;
}

uint64_t sdg_digest_value(const sdg_digest_t *digest) {
  uint64_t hash =
      digest->bytes >= SDG_DIGEST_STRIPE ? lanes_merge(digest->lane) : PRIME_5;
  const unsigned char *at = digest->rest,
                      *end = at + digest->bytes % SDG_DIGEST_STRIPE;
  hash += digest->bytes;
  for (; end - at >= 8; at += 8)
    hash = rotate(hash ^ mix(0, read_64(at)), 27) * PRIME_1 + PRIME_4;
  if (end - at >= 4) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    hash = rotate(hash ^ word * PRIME_1, 23) * PRIME_2 + PRIME_3;
    at += 4;
  }
  for (; at < end; at++)
    hash = rotate(hash ^ *at * PRIME_5, 11) * PRIME_1;
  hash = (hash ^ hash >> 33) * PRIME_2;
  hash = (hash ^ hash >> 29) * PRIME_3;
  return hash ^ hash >> 32;
}
