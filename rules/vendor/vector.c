// SPDX-License-Identifier: Apache-2.0
// The sizes of the elements of vectors.
#include "rules/vendor/vector.h"

#include <library_types.h>

size_t sdg_vector_type_bytes(int type) {
  switch (type) {
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_32F:
  case CUDA_C_16F:
  case CUDA_C_16BF:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_64F:
  case CUDA_C_32F:
  case CUDA_R_64I:
    return 8;
  case CUDA_C_64F:
    return 16;
  default:
    return 0;
  }
}
