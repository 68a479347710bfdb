/* SPDX-License-Identifier: Apache-2.0 */
/* The secret that the ranks of one job share, and what they prove with it.
 *
 * It says who belongs to the job. It does not hide what the ranks say to each
 * other from who can read the network. */
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

/* From the options SUNDOG_SECRET, or SUNDOG_SECRET_FILE: a file of this user
 * alone; blanks and line ends at its end do not count. SDG_E_SECRET. */
sdg_status_t sdg_secret_find(const char *text, const char *file,
                             sdg_secret_t *out_secret) SDG_MUST_CHECK;

/* Random bytes of the kernel. SDG_E_SECRET. */
sdg_status_t sdg_secret_random(void *out, size_t bytes) SDG_MUST_CHECK;

/* The proof of who plays `role` that it knows the secret: of both nonces, its
 * own first, and of what it says. */
void sdg_secret_prove(const sdg_secret_t *secret, const char *role,
                      const unsigned char own[SDG_NONCE_BYTES],
                      const unsigned char others[SDG_NONCE_BYTES],
                      const void *said, size_t bytes,
                      unsigned char out[SDG_SHA256_BYTES]);

#endif
