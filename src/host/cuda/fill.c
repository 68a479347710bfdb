// SPDX-License-Identifier: Apache-2.0
// Memory filled with values of one, two or four bytes.
#include "src/host/cuda/call.h"

#include <stdlib.h>

typedef struct fill {
  char *at; // the address for the host
  size_t pitch, count, rows;
  unsigned value;
  int unit;
} fill_t;

static cudaError_t fill_run(void *argument) {
  const fill_t *fill = argument;
  for (size_t row = 0; row < fill->rows; row++) {
    char *at = fill->at + row * fill->pitch;
    for (size_t i = 0; i < fill->count; i++)
      if (fill->unit == 2)
        ((unsigned short *)(void *)at)[i] = (unsigned short)fill->value;
      else
        ((unsigned *)(void *)at)[i] = fill->value;
  }
  return cudaSuccess;
}

static void *fill_again(const void *argument) {
  fill_t *copy = malloc(sizeof *copy);
  if (copy)
    *copy = *(const fill_t *)argument;
  return copy;
}

// `rows` rows of `count` values of `unit` bytes.
static CUresult fill(CUdeviceptr to, size_t pitch, unsigned value, int unit,
                     size_t count, size_t rows, bool wait, CUstream stream) {
  CUresult result = host_cu_ready();
  void *at = (void *)(uintptr_t)to;
  size_t bytes = count * (size_t)unit;
  RETURN_IF(result, result);
  RETURN_IF(to % (size_t)unit || (rows > 1 && pitch % (size_t)unit),
            CUDA_ERROR_INVALID_VALUE);
  RETURN_IF(bytes == 0 || rows == 0, CUDA_SUCCESS);
  if (unit == 1 && rows == 1)
    return wait ? RT(cudaMemset(at, (int)value, count))
                : RT(cudaMemsetAsync(at, (int)value, count, stream));
  if (unit == 1)
    return wait ? RT(cudaMemset2D(at, pitch, (int)value, count, rows))
                : RT(cudaMemset2DAsync(at, pitch, (int)value, count, rows,
                                       stream));
  char *mine = host_memory_resolve(at, (rows - 1) * pitch + bytes);
  RETURN_IF(!mine || (rows > 1 && pitch < bytes), CUDA_ERROR_INVALID_VALUE);
  fill_t *job = malloc(sizeof *job);
  RETURN_IF(!job, CUDA_ERROR_OUT_OF_MEMORY);
  *job = (fill_t){mine, pitch, count, rows, value, unit};
  host_cu_begin();
  cudaError_t error =
      host_stream_submit_again(stream, fill_run, job, free, fill_again);
  if (error == cudaSuccess && wait)
    error = host_runtime()->cudaStreamSynchronize(stream);
  return host_cu_end(error);
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return fill(to, 0, value, 1, count, 1, true, NULL);
}

CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return fill(to, 0, value, 2, count, 1, true, NULL);
}

CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return fill(to, 0, value, 4, count, 1, true, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  return fill(to, 0, value, 1, count, 1, false, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                          CUstream stream) {
  return fill(to, 0, value, 2, count, 1, false, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream stream) {
  return fill(to, 0, value, 4, count, 1, false, stream);
}

CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value,
                      size_t width, size_t height) {
  return fill(to, pitch, value, 1, width, height, true, NULL);
}

CUresult cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value,
                       size_t width, size_t height) {
  return fill(to, pitch, value, 2, width, height, true, NULL);
}

CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value,
                       size_t width, size_t height) {
  return fill(to, pitch, value, 4, width, height, true, NULL);
}
