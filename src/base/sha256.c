// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104).
#include "src/base/sha256.h"

#include <string.h>

// The first 32 bits of the fractional parts of the cube roots of the first 64
// primes (FIPS 180-4, 4.2.2).
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t word, int bits) {
  return word >> bits | word << (32 - bits);
}

static void block_take(uint32_t state[8], const unsigned char *block) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
           (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                   ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
    uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                   ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; i++)
    state[i] += s[i];
}

void sdg_sha256_init(sdg_sha256_t *sha) {
  *sha =
      (sdg_sha256_t){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sdg_sha256_add(sdg_sha256_t *sha, const void *data, size_t bytes) {
  const unsigned char *from = data;
  while (bytes > 0) {
    size_t at = (size_t)(sha->bytes % SDG_SHA256_BLOCK);
    size_t n = SDG_SHA256_BLOCK - at < bytes ? SDG_SHA256_BLOCK - at : bytes;
    memcpy(sha->block + at, from, n);
    sha->bytes += n;
    from += n;
    bytes -= n;
    if (at + n == SDG_SHA256_BLOCK)
      block_take(sha->state, sha->block);
  }
}

void sdg_sha256_end(sdg_sha256_t *sha, unsigned char out[SDG_SHA256_BYTES]) {
  static const unsigned char padding[SDG_SHA256_BLOCK] = {0x80};
  unsigned char length[8];
  uint64_t bits = sha->bytes * 8;
  for (int i = 0; i < 8; i++)
    length[i] = (unsigned char)(bits >> (56 - 8 * i));
  // Pads to 56 bytes of a block; the last 8 bytes are the length.
  size_t at = (size_t)(sha->bytes % SDG_SHA256_BLOCK);
  sdg_sha256_add(sha, padding, (at < 56 ? 56 : 120) - at);
  sdg_sha256_add(sha, length, sizeof length);
  for (int i = 0; i < SDG_SHA256_BYTES; i++)
    out[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sdg_hmac_init(sdg_hmac_t *hmac, const void *key, size_t key_bytes) {
  unsigned char block[SDG_SHA256_BLOCK] = {0};
  if (key_bytes > sizeof block) {
    sdg_sha256_t sha;
    sdg_sha256_init(&sha);
    sdg_sha256_add(&sha, key, key_bytes);
    sdg_sha256_end(&sha, block);
  } else if (key_bytes > 0) {
    memcpy(block, key, key_bytes);
  }
  for (size_t i = 0; i < sizeof block; i++)
    block[i] ^= 0x36;
  sdg_sha256_init(&hmac->inner);
  sdg_sha256_add(&hmac->inner, block, sizeof block);
  for (size_t i = 0; i < sizeof block; i++)
    block[i] ^= 0x36 ^ 0x5c;
  sdg_sha256_init(&hmac->outer);
  sdg_sha256_add(&hmac->outer, block, sizeof block);
}

void sdg_hmac_add(sdg_hmac_t *hmac, const void *data, size_t bytes) {
  sdg_sha256_add(&hmac->inner, data, bytes);
}

void sdg_hmac_end(sdg_hmac_t *hmac, unsigned char out[SDG_SHA256_BYTES]) {
  sdg_sha256_end(&hmac->inner, out);
  sdg_sha256_add(&hmac->outer, out, SDG_SHA256_BYTES);
  sdg_sha256_end(&hmac->outer, out);
}

int sdg_digest_equal(const unsigned char a[SDG_SHA256_BYTES],
                     const unsigned char b[SDG_SHA256_BYTES]) {
  unsigned difference = 0;
  for (int i = 0; i < SDG_SHA256_BYTES; i++)
    difference |= (unsigned)(a[i] ^ b[i]);
  return difference == 0;
}
