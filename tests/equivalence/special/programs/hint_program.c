// SPDX-License-Identifier: Apache-2.0
// Makes the calls that its words name, on one rank's piece, and prints what it
// reads. The program does not use sundog's functions, but for tags.
//
// usage: hint_program RANK WORD...
//   t:NAME=N,C,H,W   a tensor: descriptor and memory; elements are 1 + RANK
//   at:NAME=OTHER[+N]   NAME uses OTHER's memory from element N on
//   as:NAME          gives NAME a new descriptor with the same extents
//   re:NAME=N,C,H,W  sets NAME's descriptor to these extents, and allocates and
//                    uploads memory of that size
//   null:NAME        sets NAME's memory to NULL
//   tag:NAME=TEXT  untag:NAME   sundog_tag, sundog_untag
//   up:A  set:A  copy:A,B    upload, cudaMemset, cudaMemcpy
//   free:A            frees the memory and allocates it again
//   again:A           the same, but nothing is uploaded there
//   from:KIND         from now on memory is allocated and freed as managed,
//                     pinned, mapped (cudaHostAlloc) or registered memory, or
//                     by cudaMalloc (device), as at first
//   less:A            the same, with half as many elements
//   half:A  last:A    cudaMemset of the first or second half
//   rows:A,B          copies half of each row
//   cube:A            cudaMemset3D
//   fill:A  add:A,B   cudnnSetTensor, cudnnAddTensor
//   gemm:A,C  gemv:A,C   C = 2 A by cuBLAS; more:A,C   C = C + 2 A
//   listed:A,C        like gemm, by arrays of addresses
//   geam:A,C          C = 2 A
//   conv:X,Y  relu:X,Y  pool:X,Y  scale:X  softmax:X,Y  reduce:A,C  wgrad:X,DY
//   near:X,Y          a 3 x 3 convolution of one channel, each time with the
//                     same descriptors
//   apart:N           sets the dilation of near
//   nrm2:A  asum:A  dot:A,B  iamax:A  axpy:A,B  scal:A  bcopy:A,B  swap:A,B
//   device           results of cuBLAS stay in device memory
//   far              the same, and the program reads them by large copies, so
//                    that each rank gets its own value in the whole view, too
//   nowhere          passes NULL for results: cuBLAS refuses the calls, and the
//                    program continues
//   part:FIRST,N,STEP   nrm2, asum and dot use N elements of A from FIRST on,
//                    STEP elements apart; N 0: all
//   of:VALUE         sets the value of elements that are uploaded later
//   by:VALUE         sets the factor of axpy, scal, scale and gemm (2 at
//                    first), and of near (1 at first)
//   loop:N ... end   repeats the words between N times
//   print:A          prints its first elements
// If a call fails, the program prints its name and ends with status 3.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/equivalence/special/programs/hint_program.h"
#include "tests/workspace.h"

enum { SHOWN = 8 };

hint_tensor_t tensors[TENSORS];
float factor = 2;

static float uploaded; // the value of every element
static float near_factor = 1;
static cudnnHandle_t handle;

void check(int status, const char *word) {
  if (status == 0)
    return;
  printf("%s failed with %d\n", word, status);
  fflush(stdout);
  exit(3);
}

static void upload(int t) {
  float *host = malloc(tensors[t].count * sizeof *host);
  for (size_t i = 0; host && i < tensors[t].count; i++)
    host[i] = uploaded;
  check((int)cudaMemcpy(tensors[t].data, host, tensors[t].count * sizeof *host,
                        cudaMemcpyHostToDevice),
        "upload");
  free(host);
}

static void set(int t) {
  const int *e = tensors[t].extent;
  check((int)cudnnSetTensor4dDescriptor(tensors[t].desc, CUDNN_TENSOR_NCHW,
                                        CUDNN_DATA_FLOAT, e[0], e[1], e[2],
                                        e[3]),
        "set");
}

static void describe(int t) {
  check((int)cudnnCreateTensorDescriptor(&tensors[t].desc), "create");
  set(t);
}

static const char *kind = "device";

static bool is(const char *what) {
  return strcmp(kind, what) == 0;
}

// The pages themselves stay.
static cudaError_t page_register(void **out, size_t bytes) {
  static _Alignas(4096) char page[SHOWN][4096];
  static int used;
  if (bytes > sizeof *page || used == SHOWN)
    exit(2);
  if (!*out)
    *out = page[used++];
  return cudaHostRegister(*out, bytes, cudaHostRegisterDefault);
}

static void make(int t) {
  void *at = is("registered") ? tensors[t].data : NULL;
  size_t bytes = tensors[t].count * sizeof(float);
  cudaError_t status =
      is("managed")      ? cudaMallocManaged(&at, bytes, cudaMemAttachGlobal)
      : is("pinned")     ? cudaMallocHost(&at, bytes)
      : is("mapped")     ? cudaHostAlloc(&at, bytes, cudaHostAllocMapped)
      : is("registered") ? page_register(&at, bytes)
                         : cudaMalloc(&at, bytes);
  check((int)status, "allocation");
  tensors[t].data = at;
}

static void unmake(int t) {
  void *at = tensors[t].data;
  cudaError_t status = is("pinned") || is("mapped") ? cudaFreeHost(at)
                       : is("registered")           ? cudaHostUnregister(at)
                                                    : cudaFree(at);
  check((int)status, "free");
}

static void declare(int t, const char *extents, void (*to)(int)) {
  int *e = tensors[t].extent;
  if (sscanf(extents, "%d,%d,%d,%d", &e[0], &e[1], &e[2], &e[3]) != 4)
    exit(2);
  tensors[t].count = (size_t)e[0] * (size_t)e[1] * (size_t)e[2] * (size_t)e[3];
  to(t);
  make(t);
  upload(t);
}

static void print(int t) {
  float host[SHOWN] = {0};
  size_t shown = tensors[t].count < SHOWN ? tensors[t].count : SHOWN;
  check((int)cudaMemcpy(host, tensors[t].data, shown * sizeof *host,
                        cudaMemcpyDeviceToHost),
        "print");
  for (size_t i = 0; i < shown; i++)
    printf("%s%g", i ? " " : "", (double)host[i]);
  printf("\n");
}

// A 1 x 1 convolution: each output channel is the sum of all input channels.
static void convolve(int x, int y, int backward) {
  int c = tensors[x].extent[1], k = tensors[y].extent[1];
  float one = 1, zero = 0, *w, host[256];
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  for (int i = 0; i < c * k; i++)
    host[i] = 1;
  check((int)cudaMalloc((void **)&w, sizeof host), "cudaMalloc");
  check((int)cudaMemcpy(w, host, (size_t)(c * k) * sizeof *host,
                        cudaMemcpyHostToDevice),
        "upload");
  check((int)cudnnCreateFilterDescriptor(&filter), "create");
  check((int)cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT,
                                        CUDNN_TENSOR_NCHW, k, c, 1, 1),
        "set");
  check((int)cudnnCreateConvolutionDescriptor(&conv), "create");
  check((int)cudnnSetConvolution2dDescriptor(
            conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "set");
  if (!backward) {
    check((int)cudnnConvolutionForward(
              handle, &one, tensors[x].desc, tensors[x].data, filter, w, conv,
              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, workspace(),
              WORKSPACE_BYTES, &zero, tensors[y].desc, tensors[y].data),
          "conv");
    return;
  }
  check((int)cudnnConvolutionBackwardFilter(
            handle, &one, tensors[x].desc, tensors[x].data, tensors[y].desc,
            tensors[y].data, conv, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
            workspace(), WORKSPACE_BYTES, &zero, filter, w),
        "wgrad");
  check((int)cudaMemcpy(host, w, sizeof *host, cudaMemcpyDeviceToHost),
        "print");
  printf("%g\n", (double)host[0]);
}

static cudnnConvolutionDescriptor_t near_conv;

static void near_set(int apart) {
  check((int)cudnnSetConvolution2dDescriptor(
            near_conv, apart, apart, 1, 1, apart, apart,
            CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "set");
}

// Each element becomes the sum of the elements around it.
static void sum_near(int x, int y) {
  static cudnnFilterDescriptor_t filter;
  static float *w;
  const float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, zero = 0;
  if (!w) {
    check((int)cudaMalloc((void **)&w, sizeof ones), "cudaMalloc");
    check((int)cudaMemcpy(w, ones, sizeof ones, cudaMemcpyHostToDevice),
          "upload");
    check((int)cudnnCreateFilterDescriptor(&filter), "create");
    check((int)cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT,
                                          CUDNN_TENSOR_NCHW, 1, 1, 3, 3),
          "set");
    check((int)cudnnCreateConvolutionDescriptor(&near_conv), "create");
    near_set(1);
  }
  check((int)cudnnConvolutionForward(
            handle, &near_factor, tensors[x].desc, tensors[x].data, filter, w,
            near_conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, workspace(),
            WORKSPACE_BYTES, &zero, tensors[y].desc, tensors[y].data),
        "near");
}

static void pool(int x, int y) {
  float one = 1, zero = 0;
  cudnnPoolingDescriptor_t desc;
  check((int)cudnnCreatePoolingDescriptor(&desc), "create");
  check((int)cudnnSetPooling2dDescriptor(
            desc, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, tensors[x].extent[2],
            tensors[x].extent[3], 0, 0, 1, 1),
        "set");
  check((int)cudnnPoolingForward(handle, desc, &one, tensors[x].desc,
                                 tensors[x].data, &zero, tensors[y].desc,
                                 tensors[y].data),
        "pool");
}

static void reduce(int a, int c) {
  static cudnnReduceTensorDescriptor_t desc;
  static void *workspace;
  float one = 1, zero = 0;
  size_t bytes = 0;
  if (!desc) {
    check((int)cudaMalloc(&workspace, 1 << 16), "cudaMalloc");
    check((int)cudnnCreateReduceTensorDescriptor(&desc), "create");
    check((int)cudnnSetReduceTensorDescriptor(
              desc, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
              CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
              CUDNN_32BIT_INDICES),
          "set");
  }
  check((int)cudnnGetReductionWorkspaceSize(handle, desc, tensors[a].desc,
                                            tensors[c].desc, &bytes),
        "reduce");
  check((int)cudnnReduceTensor(handle, desc, NULL, 0, workspace, 1 << 16, &one,
                               tensors[a].desc, tensors[a].data, &zero,
                               tensors[c].desc, tensors[c].data),
        "reduce");
}

static void relu(int x, int y) {
  float one = 1, zero = 0;
  cudnnActivationDescriptor_t desc;
  check((int)cudnnCreateActivationDescriptor(&desc), "create");
  check((int)cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_RELU,
                                          CUDNN_PROPAGATE_NAN, 0),
        "set");
  check((int)cudnnActivationForward(handle, desc, &one, tensors[x].desc,
                                    tensors[x].data, &zero, tensors[y].desc,
                                    tensors[y].data),
        "relu");
}

static void softmax(int x, int y) {
  float one = 1, zero = 0;
  check((int)cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE,
                                 CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                                 tensors[x].desc, tensors[x].data, &zero,
                                 tensors[y].desc, tensors[y].data),
        "softmax");
}

static void move(const char *word, int a, int b) {
  size_t bytes = tensors[a].count * sizeof(float);
  if (strcmp(word, "set") == 0) {
    check((int)cudaMemset(tensors[a].data, 0, bytes), word);
  } else if (strcmp(word, "half") == 0) {
    check((int)cudaMemset(tensors[a].data, 0, bytes / 2), word);
  } else if (strcmp(word, "last") == 0) {
    check((int)cudaMemset(tensors[a].data + tensors[a].count / 2, 0, bytes / 2),
          word);
  } else if (strcmp(word, "cube") == 0) {
    struct cudaPitchedPtr all = {tensors[a].data, bytes, bytes, 1};
    struct cudaExtent extent = {bytes, 1, 1};
    check((int)cudaMemset3D(all, 0, extent), word);
  } else if (strcmp(word, "rows") == 0) {
    size_t row = (size_t)tensors[a].extent[3] * sizeof(float);
    check((int)cudaMemcpy2D(tensors[b].data, row, tensors[a].data, row, row / 2,
                            bytes / row, cudaMemcpyDeviceToDevice),
          word);
  } else if (strcmp(word, "copy") == 0) {
    check((int)cudaMemcpy(tensors[b].data, tensors[a].data, bytes,
                          cudaMemcpyDeviceToDevice),
          word);
  } else if (strcmp(word, "again") == 0) {
    float *before = tensors[a].data;
    unmake(a);
    make(a);
    if (tensors[a].data != before)
      printf("other memory\n");
  } else if (strcmp(word, "free") == 0 || strcmp(word, "less") == 0) {
    unmake(a);
    tensors[a].count /= strcmp(word, "less") == 0 ? 2 : 1;
    make(a);
    upload(a);
  } else {
    fprintf(stderr, "hint_program: %s?\n", word);
    exit(2);
  }
}

static void tag(int t, const char *text) {
  __typeof__(&sundog_tag) say =
      (__typeof__(&sundog_tag))dlsym(RTLD_DEFAULT, "sundog_tag");
  if (say)
    check(say(tensors[t].desc, text), "tag");
}

static void untag(int t) {
  __typeof__(&sundog_untag) say =
      (__typeof__(&sundog_untag))dlsym(RTLD_DEFAULT, "sundog_untag");
  if (say)
    check(say(tensors[t].desc), "untag");
}

static void operate(const char *word, int a, int b) {
  float one = 1, two = factor;
  if (strcmp(word, "up") == 0)
    upload(a);
  else if (strcmp(word, "as") == 0)
    describe(a);
  else if (strcmp(word, "print") == 0)
    print(a);
  else if (strcmp(word, "conv") == 0)
    convolve(a, b, 0);
  else if (strcmp(word, "wgrad") == 0)
    convolve(a, b, 1);
  else if (strcmp(word, "pool") == 0)
    pool(a, b);
  else if (strcmp(word, "near") == 0)
    sum_near(a, b);
  else if (strcmp(word, "untag") == 0)
    untag(a);
  else if (strcmp(word, "relu") == 0)
    relu(a, b);
  else if (strcmp(word, "scale") == 0)
    check((int)cudnnScaleTensor(handle, tensors[a].desc, tensors[a].data, &two),
          word);
  else if (strcmp(word, "softmax") == 0)
    softmax(a, b);
  else if (strcmp(word, "fill") == 0)
    check((int)cudnnSetTensor(handle, tensors[a].desc, tensors[a].data, &two),
          word);
  else if (strcmp(word, "add") == 0)
    check((int)cudnnAddTensor(handle, &one, tensors[a].desc, tensors[a].data,
                              &one, tensors[b].desc, tensors[b].data),
          word);
  else if (strcmp(word, "reduce") == 0)
    reduce(a, b);
  else if (!hint_cublas(word, a, b))
    move(word, a, b);
}

static int tensor_of(const char *name) {
  return *name >= 'a' && *name <= 'z' ? *name - 'a' : 0;
}

static void obey(const char *text) {
  char word[32];
  size_t length = strcspn(text, ":");
  snprintf(word, sizeof word, "%.*s", (int)length, text);
  const char *rest = text[length] ? text + length + 1 : "";
  int a = tensor_of(rest), b = strlen(rest) > 2 ? tensor_of(rest + 2) : 0;
  if (strcmp(word, "t") == 0)
    declare(a, rest + 2, describe);
  else if (strcmp(word, "re") == 0)
    declare(a, rest + 2, set);
  else if (strcmp(word, "at") == 0)
    tensors[a].data = tensors[b].data + (strlen(rest) > 3 ? atoi(rest + 3) : 0);
  else if (strcmp(word, "null") == 0)
    tensors[a].data = NULL;
  else if (strcmp(word, "from") == 0)
    kind = rest;
  else if (strcmp(word, "apart") == 0)
    near_set(atoi(rest));
  else if (strcmp(word, "tag") == 0)
    tag(a, rest + 2);
  else if (strcmp(word, "of") == 0)
    uploaded = strtof(rest, NULL);
  else if (strcmp(word, "by") == 0)
    factor = near_factor = strtof(rest, NULL);
  else if (!hint_cublas_set(word, rest))
    operate(word, a, b);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  uploaded = (float)(1 + atoi(argv[1]));
  check((int)cudnnCreate(&handle), "create");
  for (int i = 2; i < argc; i++) {
    if (strncmp(argv[i], "loop:", 5) != 0) {
      if (strcmp(argv[i], "end") != 0)
        obey(argv[i]);
      continue;
    }
    int times = atoi(argv[i] + 5), end = i + 1;
    while (end < argc && strcmp(argv[end], "end") != 0)
      end++;
    for (int n = 0; n < times; n++)
      for (int k = i + 1; k < end; k++)
        obey(argv[k]);
    i = end;
  }
  check((int)cudaDeviceSynchronize(), "synchronise");
  return 0;
}
