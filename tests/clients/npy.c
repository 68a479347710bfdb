/* SPDX-License-Identifier: Apache-2.0 */
/* Two-dimensional .npy files, format version 1.0, little-endian machines. */
#include "npy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, const char *why) {
  fprintf(stderr, "%s: %s\n", path, why);
  exit(EXIT_FAILURE);
}

npy_field_t npy_zeros(int rows, int columns) {
  npy_field_t field = {rows, columns, NULL};
  field.at = calloc((size_t)rows * (size_t)columns, sizeof *field.at);
  if (!field.at)
    fail("field", "out of memory");
  return field;
}

/* Turns element `i` of `raw`, of the type `code`, into a float. */
static float element(const void *raw, char code, size_t i) {
  switch (code) {
  case 'h':
    return ((const int16_t *)raw)[i];
  case 'd':
    return (float)((const double *)raw)[i];
  default:
    return ((const float *)raw)[i];
  }
}

npy_field_t npy_read(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    fail(path, "cannot be opened");
  unsigned char prefix[10];
  if (fread(prefix, 1, sizeof prefix, file) != sizeof prefix ||
      memcmp(prefix, "\x93NUMPY\x01", 7) != 0)
    fail(path, "is no .npy file of version 1");
  size_t length = prefix[8] + 256u * prefix[9];
  char *header = calloc(length + 1, 1);
  if (!header || fread(header, 1, length, file) != length)
    fail(path, "ends in its header");
  char code = strstr(header, "'<f4'")   ? 'f'
              : strstr(header, "'<f8'") ? 'd'
              : strstr(header, "'<i2'") ? 'h'
                                        : 0;
  const char *shape = strstr(header, "'shape':");
  int rows = 0, columns = 0;
  if (!code || !strstr(header, "'fortran_order': False") || !shape ||
      sscanf(shape, "'shape': (%d, %d)", &rows, &columns) != 2 || rows < 1 ||
      columns < 1)
    fail(path, "is not two-dimensional float32, float64 or int16 in C order");
  free(header);

  size_t count = (size_t)rows * (size_t)columns;
  size_t size = code == 'd' ? 8 : code == 'f' ? 4 : 2;
  void *raw = malloc(count * size);
  if (!raw || fread(raw, size, count, file) != count)
    fail(path, "is too short");
  fclose(file);
  npy_field_t field = npy_zeros(rows, columns);
  for (size_t i = 0; i < count; i++)
    field.at[i] = element(raw, code, i);
  free(raw);
  return field;
}

void npy_write(const char *path, npy_field_t field) {
  FILE *file = fopen(path, "wb");
  if (!file)
    fail(path, "cannot be created");
  /* The header is padded so that the data begins at a multiple of 64. */
  char header[119];
  int used = snprintf(header, sizeof header,
                      "{'descr': '<f4', 'fortran_order': False, "
                      "'shape': (%d, %d), }",
                      field.rows, field.columns);
  memset(header + used, ' ', sizeof header - (size_t)used);
  header[117] = '\n';
  size_t count = (size_t)field.rows * (size_t)field.columns;
  if (fwrite("\x93NUMPY\x01\0v\0", 1, 10, file) != 10 ||
      fwrite(header, 1, 118, file) != 118 ||
      fwrite(field.at, sizeof *field.at, count, file) != count ||
      fclose(file) != 0)
    fail(path, "cannot be written");
}
