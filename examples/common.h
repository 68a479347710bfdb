/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples share: ending where something fails, descriptors, memory,
 * files. */
#ifndef COMMON_H
#define COMMON_H

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Reads a float field from a file of NumPy's format. The caller frees what it
 * returns. */
static inline float *field_read(const char *path, int *rows, int *columns) {
  unsigned char start[10] = {0};
  char head[65536] = "";
  FILE *file = fopen(path, "rb");
  require(file != NULL, path, "cannot be read");
  require(fread(start, 1, 10, file) == 10, path, "too short");
  size_t bytes = start[8] + 256u * start[9];
  require(fread(head, 1, bytes, file) == bytes, path, "too short");
  const char *shape = strstr(head, "'shape'");
  require(strstr(head, "<f4") && shape &&
              sscanf(shape, "'shape': (%d, %d)", rows, columns) == 2,
          path, "not a float field");
  size_t count = (size_t)*rows * (size_t)*columns;
  float *at = malloc(count * sizeof *at);
  require(at && fread(at, sizeof *at, count, file) == count, path, "too short");
  fclose(file);
  return at;
}

/* A float field in a file of NumPy's format, version 1. */
static inline void field_write(const char *path, const float *at, int rows,
                               int columns) {
  char head[118];
  size_t count = (size_t)rows * (size_t)columns;
  FILE *file = fopen(path, "wb");
  require(file != NULL, path, "cannot be written");
  snprintf(head, sizeof head,
           "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }",
           rows, columns);
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
  fprintf(file, "%-117s\n", head);
  require(fwrite(at, sizeof *at, count, file) == count && fclose(file) == 0,
          path, "cannot be written");
}

#endif
