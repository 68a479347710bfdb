// SPDX-License-Identifier: Apache-2.0
// What cuBLAS says about itself: versions and the texts of its status codes.
#include <cublas_api.h>
#include <cublasLt.h>

const char *cublasGetStatusName(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}

const char *cublasGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusString(status);
}

size_t cublasGetCudartVersion(void) {
  return cublasLtGetCudartVersion();
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
  return cublasLtGetProperty(type, value);
}
