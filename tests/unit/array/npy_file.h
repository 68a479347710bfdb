/* SPDX-License-Identifier: Apache-2.0 */
/* Array files in a folder of a test's own. */
#ifndef SDG_TESTS_UNIT_ARRAY_NPY_FILE_H
#define SDG_TESTS_UNIT_ARRAY_NPY_FILE_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tools/array/npy.h"

static char dir[] = "/tmp/sdg-npy-XXXXXX";

static inline void setup(void) {
  ck_assert_ptr_nonnull(mkdtemp(dir));
}

static inline void teardown(void) {
  ck_assert_int_eq(rmdir(dir), 0); /* fails if a test leaves a file behind */
}

static inline const char *in_dir(const char *name) {
  static char path[2][64];
  static int turn;
  turn ^= 1;
  snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
  return path[turn];
}

static inline void file_make(const char *path, const void *bytes,
                             size_t count) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq((int)fwrite(bytes, 1, count, file), (int)count);
  ck_assert_int_eq(fclose(file), 0);
}

/* Writes the header of a file to memory: magic, version, length, text. */
static inline size_t header_bytes(int version, const char *text, char *out) {
  size_t n = strlen(text), prefix = version == 1 ? 10 : 12;
  memcpy(out, "\x93NUMPY", 6);
  out[6] = (char)version;
  out[7] = 0;
  for (size_t i = 8; i < prefix; i++)
    out[i] = (char)(n >> 8 * (i - 8) & 0xff);
  memcpy(out + prefix, text, n);
  return prefix + n;
}

/* The text of a header. */
#define DICT(descr, order, shape)                                              \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

#endif
