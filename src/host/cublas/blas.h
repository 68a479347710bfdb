/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cuBLAS work-alike share: the handle, matrices and
 * vectors of any element type, and work in the handle's stream. */
#ifndef SDG_SRC_HOST_CUBLAS_BLAS_H
#define SDG_SRC_HOST_CUBLAS_BLAS_H

#include <cublas_api.h>
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/host/host.h"

/* The library's handle. NULL gives CUBLAS_STATUS_NOT_INITIALIZED. */
struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointer_mode;
  cublasAtomicsMode_t atomics_mode;
  cublasMath_t math_mode;
  int sm_count_target;
};

/* An element of any type. The imaginary part is 0 unless the type is complex.
 */
typedef double _Complex host_number_t;

/* A number in host memory or, in device pointer mode, in device memory. One in
 * device memory is read when the work runs. */
typedef struct host_scalar {
  host_number_t value;
  const void *device; /* readable address, or NULL */
  cudaDataType type;
} host_scalar_t;

/* A column-major matrix as it is stored. A vector is a matrix of one row with
 * ld = `increment`. `at` is a readable address, or that of an array of the
 * program's addresses, one per matrix of the batch. */
typedef struct host_matrix {
  void *at;
  bool by_address;
  cudaDataType type;
  int64_t ld;     /* elements from a column to the next */
  int64_t stride; /* elements from a matrix of the batch to the next */
} host_matrix_t;

/* A vector; `at` is the readable address of its first element, from which on a
 * negative increment leads back. */
typedef struct host_vector {
  void *at;
  cudaDataType type;
  int64_t increment;
} host_vector_t;

typedef struct host_gemm {
  cublasOperation_t op_a, op_b;
  int64_t m, n, k, batch;
  host_scalar_t alpha, beta;
  host_matrix_t a, b, c;
} host_gemm_t;

/* True if the operation transposes. */
static inline bool host_op_turns(cublasOperation_t op) {
  return op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

#pragma GCC visibility push(hidden)

/* Bytes of an element; 0 for an unsupported type. */
size_t host_type_bytes(cudaDataType type);
bool host_type_is_complex(cudaDataType type);
double host_element_load(const void *at, cudaDataType type, int64_t index);
void host_element_store(void *at, cudaDataType type, int64_t index,
                        double value);

host_number_t host_number_load(const void *at, cudaDataType type,
                               int64_t index);
void host_number_store(void *at, cudaDataType type, int64_t index,
                       host_number_t value);

/* False if a device address is not the program's. */
bool host_scalar_read(cublasHandle_t handle, const void *pointer,
                      cudaDataType type, host_scalar_t *out_scalar);
host_number_t host_scalar_get(const host_scalar_t *scalar);

/* Makes the address of n elements readable, as the program gives it; false if
 * it is not the program's, or of a type without elements. */
bool host_vector_resolve(int64_t n, const void *at, cudaDataType type,
                         int64_t increment, host_vector_t *out_vector);

/* Makes the addresses of `batch` matrices of rows x columns readable. With
 * by_address it makes the array of addresses readable, whose elements are read
 * when the work runs. An empty matrix needs no address. */
bool host_matrix_resolve(host_matrix_t *matrix, const void *at, int64_t rows,
                         int64_t columns, int64_t batch);
/* Matrix `index` of the batch, found when the work runs; NULL if the program's
 * address is invalid. */
void *host_matrix_at(const host_matrix_t *matrix, int64_t index, int64_t rows,
                     int64_t columns);

/* Queues run(copy of the job); the job is plain data. The copy is freed
 * afterwards. */
cublasStatus_t host_work_submit(cudaStream_t stream,
                                cudaError_t (*run)(void *job), const void *job,
                                size_t job_bytes);
cublasStatus_t host_blas_submit(cublasHandle_t handle,
                                cudaError_t (*run)(void *job), const void *job,
                                size_t job_bytes);

/* Carries out a product. The sizes have been checked, the addresses are
 * readable. */
cudaError_t host_gemm_run(void *gemm);

#pragma GCC visibility pop

#endif
