// SPDX-License-Identifier: Apache-2.0
// Where calls write, by their arguments and descriptors.
#include "rules/vendor/writes.h"

#include <string.h>

#include "rules/vendor/product.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "src/call/tag.h"

size_t sdg_cublas_type_bytes(int type) {
  switch (type) {
  case CUDA_R_8I:
  case CUDA_R_8U:
  case CUDA_R_8F_E4M3:
  case CUDA_R_8F_E5M2:
    return 1;
  case CUDA_R_16F:
  case CUDA_R_16BF:
  case CUDA_R_16I:
  case CUDA_R_16U:
  case CUDA_C_8I:
  case CUDA_C_8U:
    return 2;
  case CUDA_R_32F:
  case CUDA_R_32I:
  case CUDA_R_32U:
  case CUDA_C_16F:
  case CUDA_C_16BF:
  case CUDA_C_16I:
  case CUDA_C_16U:
    return 4;
  case CUDA_R_64F:
  case CUDA_R_64I:
  case CUDA_R_64U:
  case CUDA_C_32F:
  case CUDA_C_32I:
  case CUDA_C_32U:
    return 8;
  case CUDA_C_64F:
    return 16;
  default:
    return 0;
  }
}

static sdg_footprint_t unknown(const void *at) {
  return (sdg_footprint_t){at, at ? SIZE_MAX : 0, false};
}

sdg_footprint_t sdg_footprint(const void *at, size_t each, int64_t rows,
                              int64_t columns, int64_t ld) {
  if (!at || rows < 1 || columns < 1)
    return (sdg_footprint_t){NULL, 0, false};
  if (each == 0)
    return unknown(at);
  int64_t step = ld < 0 ? -ld : ld;
  return (sdg_footprint_t){at, (size_t)((columns - 1) * step + rows) * each,
                           columns > 1 && step > rows};
}

void sdg_writes_add(sdg_writes_t *writes, sdg_write_t write) {
  if (write.to.bytes == SIZE_MAX)
    writes->everything = true;
  else if (write.to.bytes > 0)
    writes->write[writes->writes++] = write;
}

void sdg_writes_read(sdg_writes_t *writes, sdg_footprint_t from) {
  if (from.bytes > 0 && from.bytes < SIZE_MAX)
    writes->read[writes->reads++] = from;
}

// ---- scaling factors --------------------------------------------------------

// The numbers of a scaling factor of these types, and the bytes of each; 0: it
// cannot be read.
static int numbers_of(int type, size_t *out_bytes) {
  switch (type) {
  case CUDA_C_32F:
    *out_bytes = sizeof(float);
    return 2;
  case CUDA_C_64F:
    *out_bytes = sizeof(double);
    return 2;
  case CUDA_R_16F:
  case CUDA_R_16BF:
  case CUDA_R_32F:
  case CUDA_R_64F:
  case CUDA_R_32I:
    *out_bytes = sdg_cublas_type_bytes(type);
    return 1;
  default:
    return 0;
  }
}

static bool is_on_host(const void *cublas_handle) {
  const sdg_cublas_t *cublas = sdg_cublas_get();
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_DEVICE;
  return cublas && cublas_handle &&
         cublas->cublasGetPointerMode_v2(
             (cublasHandle_t)(uintptr_t)cublas_handle, &mode) ==
             CUBLAS_STATUS_SUCCESS &&
         mode == CUBLAS_POINTER_MODE_HOST;
}

// Of all these types 0 has no bit but perhaps the sign's, which is the last
// byte's first: these are machines with the least byte first.
static bool reads_zero(const void *scalar, int type) {
  size_t bytes = 0;
  int numbers = scalar ? numbers_of(type, &bytes) : 0;
  for (int i = 0; i < numbers; i++) {
    const unsigned char *number =
        (const unsigned char *)scalar + (size_t)i * bytes;
    unsigned any = 0;
    for (size_t k = 0; k < bytes; k++)
      any |= k + 1 < bytes || type == CUDA_R_32I ? number[k] : number[k] & 127U;
    if (any)
      return false;
  }
  return numbers > 0;
}

bool sdg_scalar_is_zero(const void *cublas_handle, const void *scalar,
                        int type) {
  return is_on_host(cublas_handle) && reads_zero(scalar, type);
}

// ---- products of matrices ---------------------------------------------------

static bool is_complex(int type) {
  return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F ||
         type == CUDA_C_16BF || type == CUDA_C_8I;
}

// The type of beta; -1: not known.
static int scale_of(const sdg_gemm_t *gemm, const sdg_product_t *product) {
  if (product->scale == CUDA_R_32F && is_complex(gemm->type_c))
    return CUDA_C_32F;
  if (product->scale == CUDA_R_64F && is_complex(gemm->type_c))
    return CUDA_C_64F;
  return gemm->compute < 0 && product->kind != SDG_GEMM_LT ? gemm->type_c
                                                           : product->scale;
}

static bool keeps(const sdg_gemm_t *gemm, const sdg_product_t *product) {
  if (product->kind != SDG_GEMM_LT)
    return !sdg_scalar_is_zero(gemm->handle, gemm->beta,
                               scale_of(gemm, product));
  return product->device_scalars || !reads_zero(gemm->beta, product->scale);
}

// From the first to the last element, as all strides are positive.
static sdg_footprint_t footprint_of(const sdg_matrix_t *matrix) {
  size_t each = sdg_cublas_type_bytes(matrix->type);
  int64_t last = 0, elements = 1;
  for (int d = 0; d < matrix->dims; d++) {
    last += (matrix->extent[d] - 1) * matrix->stride[d];
    elements *= matrix->extent[d];
  }
  if (!matrix->data || elements < 1)
    return (sdg_footprint_t){NULL, 0, false};
  if (each == 0 || last < 0)
    return unknown(matrix->data);
  return (sdg_footprint_t){matrix->data, (size_t)(last + 1) * each,
                           last + 1 != elements};
}

void sdg_writes_of_product(const sdg_gemm_t *gemm, sdg_writes_t *out) {
  sdg_product_t product;
  sdg_product_make(gemm, &product);
  const sdg_matrix_t *result = &product.matrix[SDG_RESULT];
  *out = (sdg_writes_t){.everything = gemm->addresses || !result->there ||
                                      product.leaves};
  if (!out->everything || product.leaves)
    sdg_writes_add(out, (sdg_write_t){.to = footprint_of(result),
                                      .kept = keeps(gemm, &product)});
}

// ---- descriptors ------------------------------------------------------------

sdg_footprint_t sdg_footprint_of_tensor(const void *at,
                                        const void *descriptor) {
  sdg_operand_t operand = {.descriptor = descriptor, .data = (void *)at};
  if (!at)
    return unknown(NULL);
  if (!descriptor || !sdg_tensor_get(&operand) || operand.elem_bytes < 1)
    return unknown(at);
  sdg_layout_t layout = sdg_operand_layout(&operand);
  return (sdg_footprint_t){at, sdg_layout_bytes(&layout),
                           !sdg_layout_dense(&layout)};
}

sdg_footprint_t sdg_footprint_of_rnn(const void *at, const void *descriptor) {
  const sdg_cudnn_t *cudnn = at && descriptor ? sdg_cudnn_get() : NULL;
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int steps, batch, vector, length[1];
  double fill; // of any type
  if (!cudnn ||
      cudnn->cudnnGetRNNDataDescriptor(
          (cudnnRNNDataDescriptor_t)(uintptr_t)descriptor, &type, &layout,
          &steps, &batch, &vector, 0, length, &fill) != CUDNN_STATUS_SUCCESS)
    return unknown(at);
  return sdg_footprint(at, (size_t)sdg_type_bytes((int)type),
                       (int64_t)steps * batch * vector, 1, 1);
}

sdg_footprint_t sdg_footprint_of_grid(const void *at, const void *descriptor) {
  enum { TYPE = 1, DIMS, EXTENT, COUNT = EXTENT + 4 };
  int said[COUNT];
  uint64_t generation = sdg_tag_generation(descriptor);
  if (!at || !sdg_tag_said(descriptor, generation, COUNT, said) ||
      said[DIMS] != 4)
    return unknown(at);
  // N H W coordinates of two numbers.
  return sdg_footprint(
      at, (size_t)sdg_type_bytes(said[TYPE]),
      (int64_t)said[EXTENT] * said[EXTENT + 2] * said[EXTENT + 3] * 2, 1, 1);
}

int64_t sdg_ctc_sequences(const void *descriptor) {
  sdg_operand_t operand = {.descriptor = descriptor};
  return descriptor && sdg_tensor_get(&operand) && operand.dims > 1
             ? operand.extent[1]
             : 0;
}
