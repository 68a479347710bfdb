/* SPDX-License-Identifier: Apache-2.0 */
/* A product of matrices in terms that do not depend on the entry: which
 * dimensions of the product its matrices have, and how they lie in memory.
 *
 * Dimensions have their names in a rules file: C (M x N) = op(A) (M x K) times
 * op(B) (K x N). A matrix is an operand of the call. Its dimensions are in the
 * order [batch,] outer, inner, independent of op, so that the same matrix is
 * the same tensor in every call: if it is stored by columns, the dimension of
 * its columns is the outer one. A vector is a row, 1 x K or 1 x M. */
#ifndef SDG_RULES_VENDOR_PRODUCT_H
#define SDG_RULES_VENDOR_PRODUCT_H

#include "rules/vendor/gemm.h"
#include "src/call/call.h"

enum { SDG_PRODUCT_DIMS = 4 }; /* M N K BATCH, as sdg_dim_at() orders them */
enum { SDG_M, SDG_N, SDG_K, SDG_BATCH };

/* The vendor's first and second factor; the matrix that is read as C, if it is
 * not the one that is written; C; the vector that is added to each column. */
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
  int outer, inner; /* index of that dimension; -1: the addend has none */
  bool by_rows;     /* cuBLASLt: stored by rows */
} sdg_matrix_t;

typedef struct sdg_product {
  sdg_gemm_kind_t kind;
  bool fits;      /* sundog can compute it from parts of the matrices */
  bool sums;      /* and from parts of the sums over K */
  bool in_pieces; /* as in sdg_gemm_t */
  int dims; /* 4 where the entry is about several products; 0: not known */
  int64_t extent[SDG_PRODUCT_DIMS]; /* 1 of BATCH without */
  int rows, columns;   /* which dimensions of the product the vendor's function
                          calls m and n: for a gemv they are exchanged */
  int op[2];           /* cublasOperation_t of the factors */
  int compute;         /* cublasComputeType_t */
  int scale;           /* cudaDataType_t of alpha and beta */
  bool device_scalars; /* alpha and beta are in device memory */
  bool keeps;          /* C's old values are used: beta is not known to be 0 */
  int epilogue;        /* cublasLtEpilogue_t */
  bool leaves;         /* cuBLASLt: it writes more than its result */
  int addend_type;
  int64_t addend_stride; /* per product of the batch */
  sdg_matrix_t matrix[SDG_PRODUCT_MATRICES];
} sdg_product_t;

/* Fills in the product from a call's arguments. A product that sundog cannot
 * read has fits false. */
void sdg_product_make(const sdg_gemm_t *gemm, sdg_product_t *out);
/* The same for cublasLtMatmul; called by sdg_product_make. */
void sdg_product_make_lt(const sdg_gemm_t *gemm, sdg_product_t *out);
/* Fills in the call's args, op and operands: the product itself, then its
 * matrices. If no op can read the product, operand 0 has no dimensions. */
void sdg_product_read(const sdg_gemm_t *gemm, sdg_call_t *call);

/* For the two readers: a matrix with the dimensions `rows` and `columns` of the
 * product. Neighbouring rows (by_rows) or columns are `stride` elements apart.
 * The members of a batch are `between` elements apart; if that is 0, the matrix
 * has no dimension BATCH. */
sdg_matrix_t sdg_matrix_make(const sdg_product_t *product, sdg_role_t role,
                             const void *data, int type, int rows, int columns,
                             bool by_rows, int64_t stride, int64_t between);

/* Whether a matrix of this size fits its leading dimension. */
bool sdg_matrix_lies(const sdg_matrix_t *matrix, const int64_t *extent);

/* Names of the dimensions of operand `index`, for messages; out has
 * SDG_DIMS_MAX elements. */
void sdg_product_names(const sdg_call_t *call, int index, const char **out);

/* The same for a tensor of a graph, [BATCH, .., rows, columns]. */
void sdg_product_tensor_names(sdg_role_t role, int dims, const char **out);

/* Bytes of an element of this cudaDataType_t, 0 for types that no op computes
 * with. */
int sdg_product_type_bytes(int type);

/* A host scalar of a cudaDataType_t, as a number. */
double sdg_product_scalar(const void *scalar, int type);

/* The box of a matrix's elements that a box of the product (M N K BATCH)
 * covers. */
sdg_box_t sdg_matrix_box(const sdg_matrix_t *matrix, const sdg_box_t *product);

#endif
