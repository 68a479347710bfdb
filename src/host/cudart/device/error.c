// SPDX-License-Identifier: Apache-2.0
// Names and texts of the error codes.
#include "src/host/cudart/internal.h"

const char *cudaGetErrorName(cudaError_t error) {
  switch ((int)error) {
#define X(code, text)                                                          \
  case code:                                                                   \
    return #code;
#include "src/host/cudart/device/errors.def"
#undef X
  }
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  switch ((int)error) {
#define X(code, text)                                                          \
  case code:                                                                   \
    return text;
#include "src/host/cudart/device/errors.def"
#undef X
  }
  return "unrecognized error code";
}
