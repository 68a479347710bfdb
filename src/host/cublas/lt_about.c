// SPDX-License-Identifier: Apache-2.0
// What cuBLASLt says about itself: versions and the texts of its status codes.
#include <cublasLt.h>
#include <cublas_api.h>
#include <cuda_runtime_api.h>

// The version of cuBLASLt that this library stands for.
#ifdef HOST_CUBLAS_TWELVE
enum { HOST_MAJOR = 12, HOST_MINOR = 8, HOST_PATCH = 4, HOST_CUDART = 12080 };
#else
enum {
  HOST_MAJOR = CUBLAS_VER_MAJOR,
  HOST_MINOR = CUBLAS_VER_MINOR,
  HOST_PATCH = CUBLAS_VER_PATCH,
  HOST_CUDART = CUDART_VERSION
};
#endif

static const struct {
  cublasStatus_t status;
  const char *name, *text;
} texts[] = {
#define TEXT(code, text) {code, #code, text},
    TEXT(CUBLAS_STATUS_SUCCESS, "no error") TEXT(CUBLAS_STATUS_NOT_INITIALIZED,
                                                 "no handle")
        TEXT(CUBLAS_STATUS_ALLOC_FAILED, "out of memory") TEXT(
            CUBLAS_STATUS_INVALID_VALUE, "an argument has no meaning here")
            TEXT(CUBLAS_STATUS_ARCH_MISMATCH, "not a feature of this device")
                TEXT(CUBLAS_STATUS_MAPPING_ERROR, "memory could not be copied")
                    TEXT(CUBLAS_STATUS_EXECUTION_FAILED,
                         "the device could not do it")
                        TEXT(CUBLAS_STATUS_INTERNAL_ERROR, "internal error")
                            TEXT(CUBLAS_STATUS_NOT_SUPPORTED, "not supported")
                                TEXT(CUBLAS_STATUS_LICENSE_ERROR,
                                     "licence error")
#undef TEXT
};

static const char unknown[] = "unrecognized status";

const char *cublasLtGetStatusName(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].status == status)
      return texts[i].name;
  return unknown;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].status == status)
      return texts[i].text;
  return unknown;
}

size_t cublasLtGetVersion(void) {
  return HOST_MAJOR * 10000 + HOST_MINOR * 100 + HOST_PATCH;
}

size_t cublasLtGetCudartVersion(void) {
  return HOST_CUDART;
}

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value) {
  if (!value)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
  case MAJOR_VERSION:
    *value = HOST_MAJOR;
    return CUBLAS_STATUS_SUCCESS;
  case MINOR_VERSION:
    *value = HOST_MINOR;
    return CUBLAS_STATUS_SUCCESS;
  case PATCH_LEVEL:
    *value = HOST_PATCH;
    return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
