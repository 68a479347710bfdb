/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples share: ending where something fails, descriptors, memory.
 */
#ifndef COMMON_H
#define COMMON_H

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

/* A call of cudart, cuDNN or cuBLAS; status 0 is success in all three. */
#define CHECK(call) check((int)(call), #call)

static inline void check(int status, const char *call) {
  if (status == 0)
    return;
  fprintf(stderr, "status %d from %s\n", status, call);
  exit(EXIT_FAILURE);
}

/* Ends the program unless all is well: says what has to do with which fault. */
static inline void require(int well, const char *what, const char *fault) {
  if (well)
    return;
  fprintf(stderr, "%s: %s\n", what, fault);
  exit(EXIT_FAILURE);
}

static inline cudnnTensorDescriptor_t describe(cudnnTensorFormat_t format,
                                               int n, int c, int h, int w) {
  cudnnTensorDescriptor_t desc;
  CHECK(cudnnCreateTensorDescriptor(&desc));
  CHECK(cudnnSetTensor4dDescriptor(desc, format, CUDNN_DATA_FLOAT, n, c, h, w));
  return desc;
}

/* Device memory for so many floats: those of `host`, or zeros if it is NULL. */
static inline float *device_floats(size_t count, const float *host) {
  float *at;
  CHECK(cudaMalloc((void **)&at, count * sizeof *at));
  if (host)
    CHECK(cudaMemcpy(at, host, count * sizeof *at, cudaMemcpyHostToDevice));
  else
    CHECK(cudaMemset(at, 0, count * sizeof *at));
  return at;
}

#endif
