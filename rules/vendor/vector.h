/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a call of cuBLAS on vectors. */
#ifndef SDG_RULES_VENDOR_VECTOR_H
#define SDG_RULES_VENDOR_VECTOR_H

#include <stddef.h>
#include <stdint.h>

typedef enum sdg_vector_op {
  SDG_VECTOR_NRM2, /* to INDEX: one value is made of all elements */
  SDG_VECTOR_ASUM,
  SDG_VECTOR_DOT,
  SDG_VECTOR_INDEX, /* of the largest or the smallest */
  SDG_VECTOR_COPY,  /* y = x */
  SDG_VECTOR_AXPY,  /* y = a x + y */
  SDG_VECTOR_SCAL,  /* x = a x */
  SDG_VECTOR_SWAP,
  SDG_VECTOR_ROT, /* x and y are computed from both */
} sdg_vector_op_t;

/* Types are cudaDataType_t; -1: the entry has no such vector or result. */
typedef struct sdg_vector {
  sdg_vector_op_t op;
  const char *entry_name;
  const void *handle;
  int64_t n, incx, incy; /* elements */
  const void *x, *y;     /* y NULL: the entry has none */
  int type_x, type_y;
  void *result; /* host or device memory, by the handle's pointer mode */
  int type_result;
  int type_execution; /* 0: the entry has no such argument */
  /* Of AXPY, SCAL and ROT, in host or device memory, too: one scalar, or
   * `scalars` of them, and perhaps another. */
  const void *scalar, *scalar2;
  int type_scalar, type_scalar2, scalars;
} sdg_vector_t;

/* A call of the program, to be made with other vectors: run(args, vector) calls
 * its real function with n, vectors, increments and result of `vector`, and
 * returns the status. */
typedef struct sdg_vector_call {
  int (*run)(const void *args, const sdg_vector_t *vector);
  const void *args;
} sdg_vector_call_t;

/* Returns the bytes of an element of this cudaDataType_t; 0 for types that
 * vectors cannot have. */
size_t sdg_vector_type_bytes(int type);

#endif
