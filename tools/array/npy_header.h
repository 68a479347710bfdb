/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the headers of NumPy's .npy files in memory. Every byte of
 * the input may be wrong.
 *
 * Format: NumPy Enhancement Proposal 1, versions 1.0, 2.0 and 3.0. */
#ifndef SDG_TOOLS_ARRAY_NPY_HEADER_H
#define SDG_TOOLS_ARRAY_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/box.h"

enum {
  SDG_NPY_READ_BYTES = 12 + 65535, /* longest header that is read */
  SDG_NPY_WRITE_BYTES = 512,       /* room for any header that is written */
  SDG_DTYPE_BYTES = 8,
};

typedef struct sdg_npy_header {
  char dtype[SDG_DTYPE_BYTES]; /* "<f4", ">f4": order, kind, bytes; "|u1" */
  int elem_bytes;
  bool fortran; /* the first dimension is innermost in the file; dims > 1 */
  int dims;     /* 0 (one number) .. SDG_DIMS_MAX */
  int64_t extent[SDG_DIMS_MAX];
  int64_t data_offset; /* bytes before the first element */
  int64_t data_bytes;  /* of all elements; data_offset + data_bytes does not
                          overflow */
} sdg_npy_header_t;

/* Reads "<f4", "f4", "|V2", "float32", "uint8", "bool" ... into the form of
 * sdg_npy_header_t.dtype. Kinds: b i u f c V. SDG_E_NPY_FORMAT for anything
 * else; `path` is for the message. */
sdg_status_t sdg_dtype_parse(const char *path, const char *text,
                             char out_dtype[SDG_DTYPE_BYTES],
                             int *out_elem_bytes) SDG_MUST_CHECK;

/* Makes the description of an array with this type and shape, in C order.
 * data_offset is 0, as in raw files. SDG_E_NPY_FORMAT if the number of bytes
 * does not fit 63 bits. */
sdg_status_t sdg_npy_header_init(const char *path, const char *dtype, int dims,
                                 const int64_t *extent,
                                 sdg_npy_header_t *out_header) SDG_MUST_CHECK;

/* Reads the header from the first `count` bytes of a file: the whole file or at
 * least SDG_NPY_READ_BYTES. SDG_E_NPY_FORMAT names the fault. */
sdg_status_t sdg_npy_header_parse(const char *path, const void *bytes,
                                  size_t count,
                                  sdg_npy_header_t *out_header) SDG_MUST_CHECK;

/* Writes the text (version 1.0) into out[SDG_NPY_WRITE_BYTES]. Sets data_offset
 * to the text's length, a multiple of 64, and returns it. */
int sdg_npy_header_format(sdg_npy_header_t *header, char *out);

#endif
