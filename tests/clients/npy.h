/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes two-dimensional .npy files for the sample programs. */
#ifndef CLIENTS_NPY_H
#define CLIENTS_NPY_H

#include <stddef.h>

/* A field of rows * columns numbers, row after row; the caller frees `at`. */
typedef struct {
  int rows;
  int columns;
  float *at;
} npy_field_t;

/* Reads float32, float64 or int16 in C order. Ends the program with a message
 * where the file cannot be read or is something else. */
npy_field_t npy_read(const char *path);

/* Writes float32. Ends the program with a message on failure. */
void npy_write(const char *path, npy_field_t field);

/* A field of zeros. */
npy_field_t npy_zeros(int rows, int columns);

#endif
