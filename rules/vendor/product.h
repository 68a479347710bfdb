/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices in terms that do not depend on the entry: which
 * dimensions of the product its matrices have, and how they lie in memory.
 *
 * Dimensions are named as a rules file names them: C of M x N is op(A), M x K,
 * times op(B), K x N. A matrix is an operand of the call; its dimensions are in
 * the order [batch,] outer, inner, whatever op is, so that the same matrix is
 * the same tensor in every call: of a matrix stored by columns the columns are
 * outer. A vector is a row, 1 x K or 1 x M. */
#ifndef SDG_RULES_VENDOR_PRODUCT_H
#define SDG_RULES_VENDOR_PRODUCT_H

#include "rules/vendor/gemm.h"
#include "src/call/call.h"

enum { SDG_PRODUCT_DIMS = 4 }; /* M N K BATCH, as sdg_dim_at() orders them */
enum { SDG_M, SDG_N, SDG_K, SDG_BATCH };

/* The vendor's first and second factor; what C is read from, if that is not
 * where it is written; C; the vector that is added to each column. */
typedef enum sdg_matrix_index {
  SDG_FACTOR_1,
  SDG_FACTOR_2,
  SDG_SOURCE,
  SDG_RESULT,
  SDG_ADDEND,
  SDG_PRODUCT_MATRICES,
} sdg_matrix_index_t;

typedef struct sdg_matrix {
  bool there;
  sdg_role_t role; /* A or B as the rules file says it */
  int operand;     /* of the call */
  const void *data;
  int type; /* cudaDataType_t */
  int dims;
  int dim[3]; /* of the product */
  int64_t extent[3], stride[3];
  int outer, inner; /* index of that dimension; -1: what is added has none */
  bool by_rows;     /* cuBLASLt: stored by rows */
} sdg_matrix_t;

typedef struct sdg_product {
  sdg_gemm_kind_t kind;
  bool fits;      /* sundog can carry it out on parts of the matrices */
  bool sums;      /* and on parts of the sums */
  bool in_pieces; /* as in sdg_gemm_t */
  int dims; /* 4 where the entry is about several products; 0: not known */
  int64_t extent[SDG_PRODUCT_DIMS]; /* 1 of BATCH without */
  int rows, columns; /* the dimensions of the product that the vendor's function
                        calls m and n: of a gemv they are turned */
  int op[2];         /* cublasOperation_t of the factors */
  int compute;       /* cublasComputeType_t */
  int scale;         /* cudaDataType_t of alpha and beta */
  bool device_scalars; /* which are in device memory */
  bool keeps;          /* what was in C counts: beta is not known to be 0 */
  int epilogue;        /* cublasLtEpilogue_t */
  int addend_type;
  int64_t addend_stride; /* per product of the batch */
  sdg_matrix_t matrix[SDG_PRODUCT_MATRICES];
} sdg_product_t;

/* Reads a call's arguments. */
void sdg_product_make(const sdg_gemm_t *gemm, sdg_product_t *out);
/* cublasLtMatmul's part of that. */
void sdg_product_make_lt(const sdg_gemm_t *gemm, sdg_product_t *out);
/* Fills in args, op and operands: the product itself, then its matrices. Of a
 * product that no op can read the first one has no dimensions. */
void sdg_product_read(const sdg_gemm_t *gemm, sdg_call_t *call);

/* Helpers of the two readers: a matrix of rows x columns, dimensions of the
 * product, stored so that `rows` are `stride` apart where it is by_rows,
 * columns otherwise; with `batch` members `between` apart, which are left out
 * where they are 0 apart. */
sdg_matrix_t sdg_matrix_make(const sdg_product_t *product, sdg_role_t role,
                             const void *data, int type, int rows, int columns,
                             bool by_rows, int64_t stride, int64_t between);

/* Whether a matrix of this size fits its leading dimension. */
bool sdg_matrix_lies(const sdg_matrix_t *matrix, const int64_t *extent);

/* Names of a matrix's dimensions, for messages; out has SDG_DIMS_MAX. `index`
 * is that of the operand. */
void sdg_product_names(const sdg_call_t *call, int index, const char **out);

/* Bytes of a cudaDataType_t that is computed with, 0 of others; and the number
 * that cuDNN has for it. */
int sdg_product_type_bytes(int type);
sdg_type_t sdg_product_type(int type);

/* A host scalar of a cudaDataType_t, as a number. */
double sdg_product_scalar(const void *scalar, int type);

/* The elements of a matrix that a box of the product is about. */
sdg_box_t sdg_matrix_box(const sdg_matrix_t *matrix, const sdg_box_t *product);

#endif
