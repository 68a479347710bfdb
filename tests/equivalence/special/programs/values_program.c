// SPDX-License-Identifier: Apache-2.0
// Makes calls with weights, biases, scales or inputs that differ between ranks,
// as its arguments say. Prints the status of each step's first call as a
// number.
//
// usage: values_program SEED WHAT HOW [STEPS]
//   WHAT  filter bias scale matrix gradient none: drawn with SEED; all others
//         are equal on all ranks. running: statistics, which may differ
//   HOW   kept      descriptors are kept
//         anew      new descriptors for each call
//         gated     the stream is blocked at the first call
//         captured  a first call is captured into a graph that never runs
//         lone      each step is one call without parameters, captured so
//         again     x is copied again for each step; with WHAT later, other
//                   values from step 3 on
//         set       x is written by cudaMemset
//         device    x is a copy of other device memory
//         pieces    a call writes the first half of x
//         untouched x is never written
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/calls.h"
#include "tests/workspace.h"

enum { N = 2, C = 4, H = 6, W = 5, K = 3, COUNT = N * C * H * W, GAP = 7 };

static const float one = 1, zero = 0;
static unsigned seed;
static const char *what, *how;
static cudnnHandle_t cudnn;
static cublasHandle_t cublas;
static atomic_int gate;

static void stand_still(void *unused) {
  (void)unused;
  while (!atomic_load(&gate))
    usleep(1000);
}

// Returns device memory of `count` numbers; drawn with SEED if WHAT is `name`.
static void *numbers(const char *name, int count) {
  unsigned state = strcmp(name, what) == 0 ? seed : 12345;
  float *host = malloc((size_t)count * sizeof *host);
  void *device;
  for (int i = 0; i < count; i++) {
    state = state * 1103515245u + 12345u;
    host[i] = (float)(state >> 16 & 63) / 16 + 1;
  }
  CHECK(cudaMalloc(&device, (size_t)count * sizeof *host));
  CHECK(cudaMemcpy(device, host, (size_t)count * sizeof *host,
                   cudaMemcpyHostToDevice));
  free(host);
  return device;
}

typedef struct net {
  cudnnTensorDescriptor_t x, bias, scale;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
} net_t;

static void net_make(net_t *net) {
  CHECK(cudnnCreateTensorDescriptor(&net->x));
  CHECK(cudnnCreateTensorDescriptor(&net->bias));
  CHECK(cudnnCreateTensorDescriptor(&net->scale));
  CHECK(cudnnCreateFilterDescriptor(&net->w));
  CHECK(cudnnCreateConvolutionDescriptor(&net->conv));
  CHECK(cudnnSetTensor4dDescriptor(net->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   N, C, H, W));
  CHECK(cudnnSetTensor4dDescriptor(net->bias, CUDNN_TENSOR_NCHW,
                                   CUDNN_DATA_FLOAT, 1, C, 1, 1));
  CHECK(cudnnSetTensor4dDescriptor(net->scale, CUDNN_TENSOR_NCHW,
                                   CUDNN_DATA_FLOAT, 1, C, 1, 1));
  CHECK(cudnnSetFilter4dDescriptor(net->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   C, C, K, K));
  CHECK(cudnnSetConvolution2dDescriptor(
      net->conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
}

static void net_free(net_t *net) {
  CHECK(cudnnDestroyTensorDescriptor(net->x));
  CHECK(cudnnDestroyTensorDescriptor(net->bias));
  CHECK(cudnnDestroyTensorDescriptor(net->scale));
  CHECK(cudnnDestroyFilterDescriptor(net->w));
  CHECK(cudnnDestroyConvolutionDescriptor(net->conv));
}

static struct {
  void *x, *y, *z, *w, *dw, *bias, *scale, *shift, *mean, *variance, *a, *b;
} data;

static bool is(const char *word, const char *other) {
  return strcmp(word, other) == 0;
}

// Writes x before a step, as HOW says.
static void x_make(int step) {
  size_t bytes = COUNT * sizeof(float), half = bytes / 2;
  void *from = NULL;
  if (is(how, "again")) {
    float host[COUNT];
    bool other = is(what, "later") && step >= 3;
    for (int i = 0; i < COUNT; i++)
      host[i] = (float)(i % 7 + step) + (other ? (float)seed : 0);
    CHECK(cudaMemcpy(data.x, host, bytes, cudaMemcpyHostToDevice));
  } else if (is(how, "set")) {
    CHECK(cudaMemset(data.x, is(what, "x") ? (int)(seed % 60) + 1 : 1, bytes));
  } else if (is(how, "device") && step == 0) {
    from = numbers("x", COUNT);
    CHECK(cudaMemcpy(data.x, from, bytes, cudaMemcpyDeviceToDevice));
  } else if (is(how, "pieces") && step == 0) {
    from = numbers("x", COUNT);
    CHECK(cudaMemcpy((char *)data.x + half, (char *)from + half, half,
                     cudaMemcpyDeviceToDevice));
  }
  if (from)
    CHECK(cudaFree(from));
}

static int told; // the first status that is not 0

static void tell(const char *call, int status) {
  if (status && !told)
    fprintf(stderr, "values_program: %s was refused\n", call);
  told = told ? told : status;
}

static void convolve(const net_t *net) {
  tell("convolution",
       (int)cudnnConvolutionForward(
           cudnn, &one, net->x, data.x, net->w, data.w, net->conv,
           CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace(),
           WORKSPACE_BYTES, &zero, net->x, data.y));
}

// A convolution writes the first sample of x.
static void half_make(const net_t *net) {
  cudnnTensorDescriptor_t one_sample;
  CHECK(cudnnCreateTensorDescriptor(&one_sample));
  CHECK(cudnnSetTensor4dDescriptor(one_sample, CUDNN_TENSOR_NCHW,
                                   CUDNN_DATA_FLOAT, 1, C, H, W));
  tell("half", (int)cudnnConvolutionForward(
                   cudnn, &one, one_sample, data.y, net->w, data.w, net->conv,
                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                   workspace(), WORKSPACE_BYTES, &zero, one_sample, data.x));
  CHECK(cudnnDestroyTensorDescriptor(one_sample));
}

static void step(const net_t *net, int number) {
  x_make(number);
  if (is(how, "pieces"))
    half_make(net);
  convolve(net);
  tell("bias", (int)cudnnAddTensor(cudnn, &one, net->bias, data.bias, &one,
                                   net->x, data.y));
  tell("normalisation",
       (int)cudnnBatchNormalizationForwardTraining(
           cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, net->x, data.y, net->x,
           data.z, net->scale, data.scale, data.shift, 0.1, data.mean,
           data.variance, 1e-5, NULL, NULL));
  tell("product",
       (int)cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 4, 6, &one, data.a,
                        8, data.b, 6, &zero, data.z, 8));
  tell("gradient", (int)cudnnConvolutionBackwardFilter(
                       cudnn, &one, net->x, data.x, net->x, data.y, net->conv,
                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace(),
                       WORKSPACE_BYTES, &zero, net->w, data.dw));
}

// Blocks the stream until the first call has returned.
static void gated(const net_t *net) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudnnSetStream(cudnn, stream));
  CHECK(cudaLaunchHostFunc(stream, stand_still, NULL));
  convolve(net);
  atomic_store(&gate, 1);
  CHECK(cudaStreamSynchronize(stream));
}

static void activate(const net_t *net) {
  static cudnnActivationDescriptor_t relu;
  if (!relu) {
    CHECK(cudnnCreateActivationDescriptor(&relu));
    CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                       CUDNN_PROPAGATE_NAN, 0));
  }
  tell("activation",
       (int)cudnnActivationForward(cudnn, relu, &one, net->x, data.x, &zero,
                                   net->x, data.y));
}

// Captures a call and drops the graph.
static void captured(const net_t *net, void (*call)(const net_t *net)) {
  cudaStream_t stream;
  cudaGraph_t graph;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudnnSetStream(cudnn, stream));
  (void)workspace(); // not allocated while captured
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  call(net);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphDestroy(graph));
}

int main(int count, char **arguments) {
  if (count < 4)
    return 2;
  seed = (unsigned)atoi(arguments[1]) * 7919u + 1;
  what = arguments[2];
  how = arguments[3];
  int steps = count > 4 ? atoi(arguments[4]) : 2;
  net_t net;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cublasCreate(&cublas));
  if (is(how, "untouched"))
    CHECK(cudaMalloc(&data.x, COUNT * sizeof(float)));
  else
    data.x = numbers(is(how, "kept") ? "x" : "", COUNT);
  data.y = numbers("y", COUNT);
  data.z = numbers("z", COUNT);
  data.w = numbers("filter", C * C * K * K);
  data.dw = numbers("gradient", C * C * K * K);
  data.bias = numbers("bias", C);
  data.scale = numbers("scale", C);
  data.shift = numbers("shift", C);
  data.mean = numbers("running", C);
  data.variance = numbers("running", C);
  data.a = numbers("a", 48);
  data.b = numbers("matrix", 24);
  net_make(&net);
  if (is(how, "gated"))
    gated(&net);
  if (is(how, "captured"))
    captured(&net, convolve);
  for (int i = 0; i < steps; i++) {
    if (is(how, "lone")) {
      captured(&net, activate);
      continue;
    }
    if (is(how, "anew") && i > 0)
      net_make(&net);
    step(&net, i);
    if (is(how, "anew"))
      net_free(&net);
  }
  CHECK(cudaDeviceSynchronize());
  return told ? 1 : 0;
}
