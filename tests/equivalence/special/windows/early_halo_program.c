// SPDX-License-Identifier: Apache-2.0
// Computes gradients of a filter and of the data from the same dy, in every
// order of programs. The gradient of the data must have the same bits as
// without the gradient of the filter.
//
// usage: early_halo_program RANK SIZE steps|between|set|written|moved
//        early_halo_program RANK SIZE step|x-between|x-set|x-written
//
// The tensors are this rank's rows.
//   steps      several steps
//   between    cuDNN writes dy between the two gradients; the second gradient
//              must use the new values
//   set        the same, but the CUDA runtime writes dy
//   written    the same, but written as by a kernel, which sundog does not see:
//              the call must fail, and the program ends with status 3
//   moved      the second gradient reads another dy; ends like `written`
//   step       forward, then both gradients
//   x-between, x-set, x-written   the same for x, which is written between the
//              forward call and the gradient of the filter
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { C = 3, W = 7, KERNELS = 2, ROOM = 1 << 20 };

static const float one = 1, zero = 0;
static int rows, first;
static cudnnHandle_t handle;
static cudaStream_t other;
static cudnnTensorDescriptor_t image;
static float *x, *y, *dy, *second, *dx, *w, *dw;
static void *space;

typedef struct layer {
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  float *alone; // dx, computed without a filter gradient before it
} layer_t;
static layer_t layer[KERNELS];

static size_t count(void) {
  return (size_t)C * (size_t)rows * W;
}

static float *device(size_t floats, unsigned salt) {
  float *host = malloc(floats * sizeof *host), *at;
  for (size_t i = 0; i < floats; i++)
    host[i] =
        (float)((int)((i * 37 + salt * 101 + (unsigned)first * 13) % 41) - 20) /
        8;
  CHECK(cudaMalloc((void **)&at, floats * sizeof *at));
  CHECK(cudaMemcpy(at, host, floats * sizeof *at, cudaMemcpyHostToDevice));
  free(host);
  return at;
}

// Multiplies by a call, so that in the whole view each rank has its rows.
static void times(float *at, float factor) {
  CHECK(cudnnScaleTensor(handle, image, at, &factor));
}

// Writes like a kernel of the program: sundog does not see the driver's calls.
static void clear(float *at) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*set)(unsigned long long, unsigned char, size_t);
  *(void **)&set = driver ? dlsym(driver, "cuMemsetD8_v2") : NULL;
  CHECK(!set);
  CHECK(set((uintptr_t)at, 0, count() * sizeof *at));
}

static void layer_make(layer_t *l, int kernel) {
  CHECK(cudnnCreateFilterDescriptor(&l->filter));
  CHECK(cudnnSetFilter4dDescriptor(l->filter, CUDNN_DATA_FLOAT,
                                   CUDNN_TENSOR_NCHW, C, C, kernel, kernel));
  CHECK(cudnnCreateConvolutionDescriptor(&l->conv));
  CHECK(cudnnSetConvolution2dDescriptor(l->conv, kernel / 2, kernel / 2, 1, 1,
                                        1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
}

static cudnnStatus_t filter_try(const layer_t *l, const float *of) {
  return cudnnConvolutionBackwardFilter(
      handle, &one, image, x, image, of, l->conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, space, ROOM, &zero, l->filter, dw);
}

static void filter(const layer_t *l, const float *of) {
  CHECK(filter_try(l, of));
}

static void forward(const layer_t *l) {
  CHECK(cudnnConvolutionForward(handle, &one, image, x, l->filter, w, l->conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, space,
                                ROOM, &zero, image, y));
}

static cudnnStatus_t data(const layer_t *l, const float *of) {
  return cudnnConvolutionBackwardData(
      handle, &one, l->filter, w, image, of, l->conv,
      CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, space, ROOM, &zero, image, dx);
}

static float *fetch(void) {
  float *host = malloc(count() * sizeof *host);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, dx, count() * sizeof *host, cudaMemcpyDeviceToHost));
  return host;
}

static void compare(const layer_t *l, float factor, const char *where) {
  float *is = fetch();
  for (size_t i = 0; i < count(); i++)
    if (is[i] != factor * l->alone[i]) {
      fprintf(stderr, "early_halo_program: %s: dx %zu is %g, not %g\n", where,
              i, (double)is[i], (double)(factor * l->alone[i]));
      exit(1);
    }
  free(is);
}

// Letters: F, D: the filter's and the data's gradient of a layer; f, d: of the
// other layer; s: the following calls use the other stream; t: doubles dy.
static void steps(const char *order) {
  float factor = 1;
  times(dy, 1);
  for (const char *step = order; *step; step++) {
    const layer_t *l = &layer[*step == 'f' || *step == 'd'];
    if (*step == 'F' || *step == 'f') {
      filter(l, dy);
    } else if (*step == 'D' || *step == 'd') {
      CHECK(data(l, dy));
      compare(l, factor, order);
    } else if (*step == 's') {
      CHECK(cudaDeviceSynchronize());
      CHECK(cudnnSetStream(handle, other));
    } else {
      times(dy, 2);
      factor *= 2;
    }
  }
  CHECK(cudnnSetStream(handle, NULL));
  CHECK(cudaDeviceSynchronize());
  times(dy, 1 / factor);
}

static void all_steps(void) {
  static const char *const orders[] = {
      "FD",   "FD",    "FFD", "FDD",  "D",   "FtFD", "FDtFDtFD",
      "FsD",  "sFFDD", "F",   "fd",   "fd",  "fFD",  "FfdD",
      "FfDd", "Fd",    "Fd",  "FDfd", "Fdt", "FD"};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    steps(orders[i]);
}

static void filters_fetch(float *to) {
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(to, dw, (size_t)C * C * 9 * sizeof *to,
                   cudaMemcpyDeviceToHost));
}

// Forward and both gradients; `between` says what writes x between them.
static int x_steps(const char *between) {
  float alone[C * C * 9], is[C * C * 9], factor = 1;
  filter(&layer[0], dy);
  filters_fetch(alone);
  for (int i = 0; i < 4; i++) {
    times(x, 1);
    forward(&layer[0]);
    if (i == 3 && strcmp(between, "x-between") == 0) {
      times(x, 2);
      factor = 2;
    }
    if (i == 3 && strcmp(between, "x-set") == 0) {
      CHECK(cudaMemset(x, 0, count() * sizeof *x));
      factor = 0;
    }
    if (i == 3 && strcmp(between, "x-written") == 0)
      clear(x);
    int status = (int)filter_try(&layer[0], dy);
    for (int more = 0; more < 100 && status == 0 && between[1] == '-' &&
                       between[2] == 'w' && i == 3;
         more++) {
      CHECK(cudaDeviceSynchronize());
      status = (int)filter_try(&layer[0], dy);
    }
    if (status)
      return 3;
    filters_fetch(is);
    for (int k = 0; k < C * C * 9; k++)
      if (is[k] != factor * alone[k]) {
        fprintf(stderr, "early_halo_program: %s: dw %d is %g, not %g\n",
                between, k, (double)is[k], (double)(factor * alone[k]));
        return 1;
      }
    CHECK(data(&layer[0], dy));
    compare(&layer[0], 1, between);
  }
  return 0;
}

static void open(int rank, int size) {
  rows = size == 1 ? 19 : 5 + 2 * rank;
  first = rank;
  CHECK(cudnnCreate(&handle));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudnnCreateTensorDescriptor(&image));
  CHECK(cudnnSetTensor4dDescriptor(image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, C, rows, W));
  x = device(count(), 1);
  dy = device(count(), 2);
  second = device(count(), 3);
  dx = device(count(), 4);
  y = device(count(), 7);
  first = 0; // the following tensors are the same on every rank
  w = device((size_t)C * C * 25, 5);
  dw = device((size_t)C * C * 25, 6);
  CHECK(cudaMalloc(&space, ROOM));
  for (int k = 0; k < KERNELS; k++) {
    layer_make(&layer[k], 3 + 2 * k);
    CHECK(data(&layer[k], dy));
    layer[k].alone = fetch();
  }
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  open(atoi(argv[1]), atoi(argv[2]));
  if (strcmp(argv[3], "steps") == 0) {
    all_steps();
    return 0;
  }
  if (strcmp(argv[3], "step") == 0 || argv[3][0] == 'x')
    return x_steps(argv[3]);
  for (int i = 0; i < 3; i++) {
    times(dy, 1);
    filter(&layer[0], dy);
    CHECK(data(&layer[0], dy));
    compare(&layer[0], 1, argv[3]);
  }
  times(dy, 1);
  filter(&layer[0], dy);
  if (strcmp(argv[3], "between") == 0)
    times(dy, 2);
  if (strcmp(argv[3], "set") == 0)
    CHECK(cudaMemset(dy, 0, count() * sizeof *dy));
  if (strcmp(argv[3], "written") == 0)
    clear(dy);
  int status = (int)data(&layer[0], strcmp(argv[3], "moved") ? dy : second);
  if (strcmp(argv[3], "between") == 0 || strcmp(argv[3], "set") == 0) {
    CHECK(status);
    compare(&layer[0], argv[3][0] == 's' ? 0 : 2, argv[3]);
    return 0;
  }
  // A rank whose rows were right learns of the failure at a later call.
  for (int i = 0; i < 100 && status == 0; i++) {
    CHECK(cudaDeviceSynchronize());
    status = (int)data(&layer[0], dy);
  }
  return status ? 3 : 1;
}
