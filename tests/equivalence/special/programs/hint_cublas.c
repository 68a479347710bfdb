// SPDX-License-Identifier: Apache-2.0
// The words of hint_program that are calls of cuBLAS.
#include "tests/equivalence/special/programs/hint_program.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

enum { FAR = 1 << 18 };

static cublasHandle_t cublas;
static float *result; // in device memory
static int on_device, far, nowhere;
static struct {
  int first, count, step;
} part = {.step = 1}; // of the first vector; count 0: all elements

int hint_cublas_set(const char *word, const char *rest) {
  if (strcmp(word, "device") == 0)
    on_device = 1;
  else if (strcmp(word, "far") == 0)
    on_device = far = 1;
  else if (strcmp(word, "nowhere") == 0)
    nowhere = 1;
  else if (strcmp(word, "part") == 0)
    sscanf(rest, "%d,%d,%d", &part.first, &part.count, &part.step);
  else
    return 0;
  return 1;
}

// Returns where cuBLAS must write a value: to the host, the device or nowhere.
static float *value_at(float *host) {
  check((int)cublasSetPointerMode(cublas, on_device ? CUBLAS_POINTER_MODE_DEVICE
                                                    : CUBLAS_POINTER_MODE_HOST),
        "mode");
  return nowhere ? NULL : on_device ? result : host;
}

static void value_check(cublasStatus_t status, const char *word) {
  if (!nowhere)
    check((int)status, word);
}

static void value_print(const float *host) {
  static float all[FAR];
  float value = *host;
  if (far) {
    check((int)cudaMemcpy(all, result, sizeof all, cudaMemcpyDeviceToHost),
          "print");
    value = all[0];
  } else if (on_device)
    check((int)cudaMemcpy(&value, result, sizeof value, cudaMemcpyDeviceToHost),
          "print");
  printf("%g\n", (double)value);
}

static void cublas_ready(void) {
  if (cublas)
    return;
  check((int)cublasCreate(&cublas), "create");
  check((int)cudaMalloc((void **)&result, FAR * sizeof *result), "cudaMalloc");
}

// A product by arrays of addresses, which are in device memory.
static void listed(int n, const float *alpha, const float *a, const float *beta,
                   float *c) {
  const void *address[] = {a, result, c};
  void **at;
  check((int)cudaMalloc((void **)&at, sizeof address), "cudaMalloc");
  check((int)cudaMemcpy(at, address, sizeof address, cudaMemcpyHostToDevice),
        "upload");
  check((int)cublasSgemmBatched(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, 1, 1,
                                alpha, (const float *const *)at, n,
                                (const float *const *)(at + 1), 1, beta,
                                (float *const *)(at + 2), n, 1),
        "listed");
}

// A matrix of one column times a matrix of one element.
static void product(const char *word, int a, int c) {
  int n = (int)tensors[a].count;
  float one = 1, two = factor, beta = strcmp(word, "more") == 0 ? 1 : 0;
  cublas_ready();
  check((int)cudaMemcpy(result, &one, sizeof one, cudaMemcpyHostToDevice),
        "upload");
  check((int)cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST), "mode");
  if (strcmp(word, "gemv") == 0)
    check((int)cublasSgemv(cublas, CUBLAS_OP_N, n, 1, &two, tensors[a].data, n,
                           result, 1, &beta, tensors[c].data, 1),
          word);
  else if (strcmp(word, "listed") == 0)
    listed(n, &two, tensors[a].data, &beta, tensors[c].data);
  else if (strcmp(word, "geam") == 0)
    check((int)cublasSgeam(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, 1, &two,
                           tensors[a].data, n, &beta, NULL, n, tensors[c].data,
                           n),
          word);
  else
    check((int)cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, 1, 1, &two,
                           tensors[a].data, n, result, 1, &beta,
                           tensors[c].data, n),
          word);
}

static int compute(const char *word, int a, int b) {
  int n = (int)tensors[a].count, index = 0;
  int some = part.count ? part.count : n / part.step;
  float value = 0, two = factor, *x = tensors[a].data, *from = x + part.first;
  cublas_ready();
  if (strcmp(word, "nrm2") == 0)
    value_check(cublasSnrm2(cublas, some, from, part.step, value_at(&value)),
                word);
  else if (strcmp(word, "asum") == 0)
    value_check(cublasSasum(cublas, some, from, part.step, value_at(&value)),
                word);
  else if (strcmp(word, "dot") == 0)
    value_check(cublasSdot(cublas, some, from, part.step, tensors[b].data, 1,
                           value_at(&value)),
                word);
  else if (strcmp(word, "iamax") == 0) {
    (void)value_at(&value);
    check(
        (int)cublasIsamax(cublas, n, x, 1, on_device ? (int *)result : &index),
        word);
    printf("%d\n", index);
    return 1;
  } else {
    check((int)cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST), "mode");
    if (strcmp(word, "axpy") == 0)
      check((int)cublasSaxpy(cublas, n, &two, x, 1, tensors[b].data, 1), word);
    else if (strcmp(word, "scal") == 0)
      check((int)cublasSscal(cublas, n, &two, x, 1), word);
    else if (strcmp(word, "bcopy") == 0)
      check((int)cublasScopy(cublas, n, x, 1, tensors[b].data, 1), word);
    else if (strcmp(word, "swap") == 0)
      check((int)cublasSswap(cublas, n, x, 1, tensors[b].data, 1), word);
    else
      return 0;
    return 1;
  }
  value_print(&value);
  return 1;
}

int hint_cublas(const char *word, int a, int b) {
  static const char *const products[] = {"gemm", "gemv", "more", "listed",
                                         "geam"};
  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    if (strcmp(word, products[i]) == 0) {
      product(word, a, b);
      return 1;
    }
  return compute(word, a, b);
}
