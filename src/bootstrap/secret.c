// SPDX-License-Identifier: Apache-2.0
// Reads the job's secret, and computes proofs of knowing it.
#include "src/bootstrap/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"

static sdg_status_t key_make(const char *text, size_t bytes, const char *name,
                             sdg_secret_t *out_secret) {
  if (bytes < SDG_SECRET_BYTES_MIN)
    return sdg_fail(SDG_E_SECRET,
                    "%s has %zu characters; a secret needs at least %d", name,
                    bytes, SDG_SECRET_BYTES_MIN);
  sdg_sha256_t sha;
  sdg_sha256_init(&sha);
  sdg_sha256_add(&sha, text, bytes);
  sdg_sha256_end(&sha, out_secret->key);
  return SDG_OK;
}

static sdg_status_t file_read(const char *path, char *out, size_t out_bytes,
                              size_t *out_got) {
  struct stat found;
  // O_NONBLOCK: if a FIFO has that name, open must not block the program.
  int fd =
      sdg_fd_raise(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd < 0)
    return sdg_fail(SDG_E_SECRET, "cannot read %s: %s", path, strerror(errno));
  sdg_status_t status = SDG_OK;
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) ||
      found.st_uid != geteuid() || (found.st_mode & 077)) {
    status = sdg_fail(SDG_E_SECRET,
                      "%s is not a file of mode 0600 that belongs to this user",
                      path);
  } else {
    ssize_t n = read(fd, out, out_bytes);
    *out_got = n < 0 ? 0 : (size_t)n;
    if (n < 0)
      status =
          sdg_fail(SDG_E_SECRET, "cannot read %s: %s", path, strerror(errno));
    else if ((size_t)n == out_bytes)
      status = sdg_fail(SDG_E_SECRET, "%s has more than %d bytes", path,
                        SDG_SECRET_BYTES_MAX);
  }
  close(fd);
  return status;
}

sdg_status_t sdg_secret_find(const char *text, const char *file,
                             sdg_secret_t *out_secret) {
  char read_text[SDG_SECRET_BYTES_MAX + 1];
  size_t bytes = 0;
  if (*text)
    return key_make(text, strlen(text), "SUNDOG_SECRET", out_secret);
  if (!*file)
    return sdg_fail(SDG_E_SECRET,
                    "ranks that connect over TCP need a secret, the same on "
                    "each: SUNDOG_SECRET or SUNDOG_SECRET_FILE");
  SDG_TRY(file_read(file, read_text, sizeof read_text, &bytes));
  while (bytes > 0 && strchr(" \t\r\n", read_text[bytes - 1]))
    bytes--;
  return key_make(read_text, bytes, file, out_secret);
}

sdg_status_t sdg_secret_random(void *out, size_t bytes) {
  // The kernel returns fewer than 256 bytes in one piece once it has any.
  ssize_t n;
  do
    n = getrandom(out, bytes, 0);
  while (n < 0 && errno == EINTR);
  return n == (ssize_t)bytes
             ? SDG_OK
             : sdg_fail(SDG_E_SECRET, "no random numbers: %s", strerror(errno));
}

void sdg_secret_prove(const sdg_secret_t *secret, const char *role,
                      const unsigned char own[SDG_NONCE_BYTES],
                      const unsigned char others[SDG_NONCE_BYTES],
                      const void *said, size_t bytes,
                      unsigned char out[SDG_SHA256_BYTES]) {
  sdg_hmac_t hmac;
  sdg_hmac_init(&hmac, secret->key, sizeof secret->key);
  sdg_hmac_add(&hmac, role, strlen(role) + 1);
  sdg_hmac_add(&hmac, own, SDG_NONCE_BYTES);
  sdg_hmac_add(&hmac, others, SDG_NONCE_BYTES);
  sdg_hmac_add(&hmac, said, bytes);
  sdg_hmac_end(&hmac, out);
}
