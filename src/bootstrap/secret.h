/* SPDX-License-Identifier: Apache-2.0 */
/* The secret that the ranks of one job share, and the proofs made with it.
 *
 * It decides which processes belong to the job. It does not encrypt what the
 * ranks send: anyone who can read the network can read that. */
#ifndef SDG_SRC_BOOTSTRAP_SECRET_H
#define SDG_SRC_BOOTSTRAP_SECRET_H

#include "src/base/sha256.h"
#include "src/base/status.h"

enum {
  SDG_NONCE_BYTES = 32,
  SDG_SECRET_BYTES_MIN = 16,
  SDG_SECRET_BYTES_MAX = 1024,
};

typedef struct sdg_secret {
  unsigned char key[SDG_SHA256_BYTES];
} sdg_secret_t;

/* Reads the secret from the option SUNDOG_SECRET, or from SUNDOG_SECRET_FILE:
 * a file that only this user can access. Blanks and line ends at its end are
 * ignored. SDG_E_SECRET. */
sdg_status_t sdg_secret_find(const char *text, const char *file,
                             sdg_secret_t *out_secret) SDG_MUST_CHECK;

/* Gets random bytes from the kernel. SDG_E_SECRET. */
sdg_status_t sdg_secret_random(void *out, size_t bytes) SDG_MUST_CHECK;

/* Computes the proof that the party in `role` knows the secret: an HMAC over
 * the role, both nonces (its own first) and the `bytes` bytes `said`. */
void sdg_secret_prove(const sdg_secret_t *secret, const char *role,
                      const unsigned char own[SDG_NONCE_BYTES],
                      const unsigned char others[SDG_NONCE_BYTES],
                      const void *said, size_t bytes,
                      unsigned char out[SDG_SHA256_BYTES]);

#endif
