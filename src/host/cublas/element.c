// SPDX-License-Identifier: Apache-2.0
// Elements of any type as double, and back with one rounding.
#include "src/host/cublas/blas.h"

#include <math.h>
#include <string.h>

__extension__ typedef _Float16 half_t;

size_t host_type_bytes(cudaDataType type) {
  switch ((int)type) {
  case CUDA_R_8I:
    return 1;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_32F:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_64F:
  case CUDA_C_32F:
    return 8;
  case CUDA_C_64F:
    return 16;
  default:
    return 0;
  }
}

static float from_bfloat(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

// Rounds to float first, with the last bit set if anything was cut off (round
// to odd), so that the second rounding never sees a false tie.
static uint16_t to_bfloat(double value) {
  float narrow = (float)value;
  uint32_t bits;
  if (isnan(value))
    return 0x7fff;
  memcpy(&bits, &narrow, sizeof bits);
  if ((double)narrow != value && isfinite(narrow)) {
    if (fabs((double)narrow) > fabs(value))
      bits--;
    bits |= 1;
  }
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double host_element_load(const void *at, cudaDataType type, int64_t index) {
  switch ((int)type) {
  case CUDA_R_8I:
    return ((const int8_t *)at)[index];
  case CUDA_R_16F:
    return (double)((const half_t *)at)[index];
  case CUDA_R_16BF:
    return from_bfloat(((const uint16_t *)at)[index]);
  case CUDA_R_32F:
    return ((const float *)at)[index];
  case CUDA_R_32I:
    return ((const int32_t *)at)[index];
  default:
    return ((const double *)at)[index];
  }
}

void host_element_store(void *at, cudaDataType type, int64_t index,
                        double value) {
  switch ((int)type) {
  case CUDA_R_8I:
    ((int8_t *)at)[index] = (int8_t)fmax(-128, fmin(127, rint(value)));
    break;
  case CUDA_R_16F:
    ((half_t *)at)[index] = (half_t)value;
    break;
  case CUDA_R_16BF:
    ((uint16_t *)at)[index] = to_bfloat(value);
    break;
  case CUDA_R_32F:
    ((float *)at)[index] = (float)value;
    break;
  case CUDA_R_32I:
    ((int32_t *)at)[index] = (int32_t)value;
    break;
  default:
    ((double *)at)[index] = value;
  }
}

bool host_type_is_complex(cudaDataType type) {
  return type == CUDA_C_32F || type == CUDA_C_64F;
}

host_number_t host_number_load(const void *at, cudaDataType type,
                               int64_t index) {
  if (type == CUDA_C_32F)
    return ((const float _Complex *)at)[index];
  if (type == CUDA_C_64F)
    return ((const double _Complex *)at)[index];
  return host_element_load(at, type, index);
}

void host_number_store(void *at, cudaDataType type, int64_t index,
                       host_number_t value) {
  if (type == CUDA_C_32F)
    ((float _Complex *)at)[index] = (float _Complex)value;
  else if (type == CUDA_C_64F)
    ((double _Complex *)at)[index] = value;
  else
    host_element_store(at, type, index, creal(value));
}
