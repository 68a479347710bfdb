/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one product of matrices, whatever the entry: interpose/
 * fills them in by the names of its parameters, rules/ reads them. */
#ifndef SDG_RULES_VENDOR_GEMM_H
#define SDG_RULES_VENDOR_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sdg_gemm_kind {
  SDG_GEMM_MATRIX, /* cublas*gemm*: c = alpha op(a) op(b) + beta c */
  SDG_GEMM_VECTOR, /* cublas*gemv*: b and c are vectors, ldb and ldc their
                      increments */
  SDG_GEMM_LT,     /* cublasLtMatmul: sizes are in its descriptors */
} sdg_gemm_kind_t;

/* Types are numbers of cudaDataType_t (-1: a type that no op reads), ops are
 * numbers of cublasOperation_t. */
typedef struct sdg_gemm {
  sdg_gemm_kind_t kind;
  const void *handle;
  int op_a, op_b;
  int64_t m, n, k; /* gemv: m and n are the extents of a as it is stored */
  bool batched;    /* the entry computes several products, `batch` of them */
  bool in_pieces; /* shard view: the batch may be split, so that other ranks may
                     have several products if this one has one */
  bool addresses; /* a, b and c are arrays of addresses */
  int64_t batch;
  const void *alpha, *beta;
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc, stride_a, stride_b, stride_c; /* elements */
  int type_a, type_b, type_c;
  int compute; /* cublasComputeType_t; -1: what the types imply */
  /* cublasLtMatmul only. c is its D. */
  const void *c_in;
  const void *desc, *layout_a, *layout_b, *layout_c, *layout_d;
  void *workspace;
  size_t workspace_bytes;
} sdg_gemm_t;

#endif
