// SPDX-License-Identifier: Apache-2.0
// Runs a small net again and again on other inputs, and writes its tensors to a
// file each time: call by call, or from CUDA graphs.
//
// usage: graphs_program RANK HOW OUT ROWS...
//   HOW  eager    call by call
//        graph    captures the net once and launches it; makes other calls
//                 between the launches, which need more memory
//        two      captures two halves, with modes global and thread-local
//        fork     captures the net on two streams that fork and join
//        update   captures the net twice, with different filters; puts the
//                 second one into the first one's executable graph
//        again    captures, launches and destroys the net at every step
//        apart    captures two halves, and launches them on two streams
//        rewrite  convolves x, writes x, and computes the filter gradient
//        rewriter the same; a graph writes x
//        cold     captures a net that has never run
//        some     rank 0 does not capture it
//        order    launches two graphs in an order that depends on the rank
//        child    launches a graph that contains a copy of the captured one
//        thread   launches in another thread
//        dies     all ranks but the first end before the launch
//        inside   launches on a stream that is captured
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/calls.h"

enum { N = 2, C = 3, WIDTH = 17, STEPS = 4, WIDE = 16, FIELDS = 6 };
enum { X, A, B, M, D, E };
static const cudnnConvolutionFwdAlgo_t FORWARD =
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
static const cudnnConvolutionBwdDataAlgo_t DATA =
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
static const cudnnConvolutionBwdFilterAlgo_t FILTER =
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
static const float one = 1, zero = 0;

static struct {
  cudnnHandle_t cudnn;
  cudaStream_t stream, other;
  cudnnTensorDescriptor_t desc, scale, wide;
  cudnnFilterDescriptor_t w3, w5, w_wide;
  cudnnConvolutionDescriptor_t by3, by5;
  cudnnPoolingDescriptor_t pool;
  cudnnActivationDescriptor_t relu;
  float *field[FIELDS], *three[2], *five, *dw, *gamma, *beta, *big[2], *w_big;
  void *space;
  size_t space_bytes;
  int first, rows, all_rows, rank;
  FILE *out;
} g;

static float *device(size_t count) {
  void *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  CHECK(cudaMemset(memory, 0, count * sizeof(float)));
  return memory;
}

static float *filter(int seed, int count) {
  float *host = malloc((size_t)count * sizeof *host);
  float *memory = device((size_t)count);
  for (int i = 0; i < count; i++)
    host[i] = (float)((i * 7 + seed * 5) % 3 - 1);
  CHECK(cudaMemcpy(memory, host, (size_t)count * sizeof *host,
                   cudaMemcpyHostToDevice));
  free(host);
  return memory;
}

static size_t field_count(void) {
  return (size_t)(N * C * g.rows * WIDTH);
}

static void window(cudnnConvolutionDescriptor_t *conv,
                   cudnnFilterDescriptor_t *desc, int size, int channels) {
  CHECK(cudnnCreateFilterDescriptor(desc));
  CHECK(cudnnSetFilter4dDescriptor(*desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   channels, channels, size, size));
  if (!conv)
    return;
  CHECK(cudnnCreateConvolutionDescriptor(conv));
  CHECK(cudnnSetConvolution2dDescriptor(*conv, size / 2, size / 2, 1, 1, 1, 1,
                                        CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
}

static void setup(void) {
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudaStreamCreateWithFlags(&g.stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&g.other, cudaStreamNonBlocking));
  CHECK(cudnnSetStream(g.cudnn, g.stream));
  CHECK(cudnnCreateTensorDescriptor(&g.desc));
  CHECK(cudnnSetTensor4dDescriptor(g.desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   N, C, g.rows, WIDTH));
  CHECK(cudnnCreateTensorDescriptor(&g.wide));
  CHECK(cudnnSetTensor4dDescriptor(g.wide, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   N, WIDE, g.rows, WIDTH));
  CHECK(cudnnCreateTensorDescriptor(&g.scale));
  CHECK(
      cudnnDeriveBNTensorDescriptor(g.scale, g.desc, CUDNN_BATCHNORM_SPATIAL));
  window(&g.by3, &g.w3, 3, C);
  window(&g.by5, &g.w5, 5, C);
  window(NULL, &g.w_wide, 5, WIDE);
  CHECK(cudnnCreatePoolingDescriptor(&g.pool));
  CHECK(cudnnSetPooling2dDescriptor(g.pool, CUDNN_POOLING_MAX,
                                    CUDNN_NOT_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  CHECK(cudnnCreateActivationDescriptor(&g.relu));
  CHECK(cudnnSetActivationDescriptor(g.relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  for (int i = 0; i < FIELDS; i++)
    g.field[i] = device(field_count());
  g.three[0] = filter(1, C * C * 9);
  g.three[1] = filter(2, C * C * 9);
  g.five = filter(3, C * C * 25);
  g.w_big = filter(4, WIDE * WIDE * 25);
  g.dw = device(C * C * 9);
  g.gamma = filter(5, C);
  g.beta = filter(6, C);
  for (int i = 0; i < 2; i++)
    g.big[i] = device((size_t)(N * WIDE * g.rows * WIDTH));
  g.space_bytes = (size_t)64 << 20;
  CHECK(cudaMalloc(&g.space, g.space_bytes));
}

static void fill(int step) {
  float *host = malloc(field_count() * sizeof *host), *at = host;
  for (int n = 0; n < N * C; n++)
    for (int y = g.first; y < g.first + g.rows; y++)
      for (int x = 0; x < WIDTH; x++)
        *at++ = (float)((n * 5 + y * 3 + x * 7 + step * 11 + y * x) % 5 - 2);
  CHECK(cudaMemcpy(g.field[X], host, field_count() * sizeof *host,
                   cudaMemcpyHostToDevice));
  free(host);
}

static int convolve(int from, int to, const float *w) {
  return (int)cudnnConvolutionForward(
      g.cudnn, &one, g.desc, g.field[from], g.w3, w, g.by3, FORWARD, g.space,
      g.space_bytes, &zero, g.desc, g.field[to]);
}

static int first_half(const float *w) {
  int status = convolve(X, A, w);
  if (!status)
    status = (int)cudnnActivationForward(g.cudnn, g.relu, &one, g.desc,
                                         g.field[A], &zero, g.desc, g.field[B]);
  if (!status)
    status = (int)cudnnPoolingForward(g.cudnn, g.pool, &one, g.desc, g.field[B],
                                      &zero, g.desc, g.field[M]);
  return status;
}

static int filter_gradient(void) {
  return (int)cudnnConvolutionBackwardFilter(
      g.cudnn, &one, g.desc, g.field[X], g.desc, g.field[D], g.by3, FILTER,
      g.space, g.space_bytes, &zero, g.w3, g.dw);
}

static int second_half(void) {
  int status = (int)cudnnConvolutionBackwardData(
      g.cudnn, &one, g.w5, g.five, g.desc, g.field[M], g.by5, DATA, g.space,
      g.space_bytes, &zero, g.desc, g.field[D]);
  if (!status)
    status = filter_gradient();
  if (!status)
    status = (int)cudnnBatchNormalizationForwardTraining(
        g.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, g.desc, g.field[D],
        g.desc, g.field[E], g.scale, g.gamma, g.beta, 1, NULL, NULL, 1e-5, NULL,
        NULL);
  return status;
}

static int net(const float *w) {
  int status = first_half(w);
  return status ? status : second_half();
}

// Needs more memory for halos than the net.
static void disturb(void) {
  CHECK(cudaMemsetAsync(g.big[0], 0x7f, N * WIDE * WIDTH * sizeof(float),
                        g.stream));
  CHECK(cudnnConvolutionForward(g.cudnn, &one, g.wide, g.big[0], g.w_wide,
                                g.w_big, g.by5, FORWARD, g.space, g.space_bytes,
                                &zero, g.wide, g.big[1]));
}

static void put(const float *memory, size_t count) {
  float *host = malloc(count * sizeof *host);
  CHECK(cudaMemcpy(host, memory, count * sizeof *host, cudaMemcpyDeviceToHost));
  if (fwrite(host, sizeof *host, count, g.out) != count)
    exit(EXIT_FAILURE);
  free(host);
}

static void result(void) {
  CHECK(cudaStreamSynchronize(g.stream));
  for (int i = A; i < FIELDS; i++)
    put(g.field[i], field_count());
  put(g.dw, C * C * 9);
  for (int i = A; i < FIELDS; i++)
    CHECK(cudaMemset(g.field[i], 0xff, field_count() * sizeof(float)));
  CHECK(cudaMemset(g.dw, 0xff, C * C * 9 * sizeof(float)));
}

typedef enum part { ALL, FIRST, SECOND } part_t;

static cudaGraph_t capture(part_t part, const float *w,
                           enum cudaStreamCaptureMode mode) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(g.stream, mode));
  CHECK(part == ALL ? net(w) : part == FIRST ? first_half(w) : second_half());
  CHECK(cudaStreamEndCapture(g.stream, &graph));
  return graph;
}

static cudaGraphExec_t runnable(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return exec;
}

// The filter gradient on another stream, beside the normalisation.
static cudaGraph_t capture_forked(void) {
  cudaGraph_t graph;
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(g.stream, cudaStreamCaptureModeGlobal));
  CHECK(convolve(X, D, g.three[1]));
  CHECK(cudaEventRecord(fork, g.stream));
  CHECK(cudaStreamWaitEvent(g.other, fork, 0));
  CHECK(cudnnSetStream(g.cudnn, g.other));
  CHECK(filter_gradient());
  CHECK(cudaEventRecord(join, g.other));
  CHECK(cudnnSetStream(g.cudnn, g.stream));
  CHECK(first_half(g.three[0]));
  CHECK(cudaStreamWaitEvent(g.stream, join, 0));
  CHECK(second_half());
  CHECK(cudaStreamEndCapture(g.stream, &graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return graph;
}

static void launch(cudaGraphExec_t exec) {
  CHECK(cudaGraphLaunch(exec, g.stream));
}

static void *launch_apart(void *exec) {
  return cudaGraphLaunch(exec, g.other) ? exec : NULL;
}

// A graph writes what the halos that an earlier call has fetched are of.
static void rewrites(const char *how) {
  float *values = device(field_count());
  size_t bytes = field_count() * sizeof(float);
  cudaGraph_t graph;
  cudaGraphExec_t exec = NULL;
  CHECK(filter_gradient());
  CHECK(convolve(M, B, g.three[1]));
  if (!strcmp(how, "rewriter")) {
    CHECK(cudaStreamBeginCapture(g.stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(g.field[X], values, bytes, cudaMemcpyDeviceToDevice,
                          g.stream));
    CHECK(convolve(M, B, g.three[1]));
    CHECK(cudaStreamEndCapture(g.stream, &graph));
    exec = runnable(graph);
  }
  for (int step = 0; step < STEPS; step++) {
    CHECK(cudaStreamSynchronize(g.stream)); // fill() does not wait for it
    fill(step + 1);
    CHECK(cudaMemcpy(values, g.field[X], bytes, cudaMemcpyDeviceToDevice));
    fill(step);
    CHECK(net(g.three[0]));
    if (exec)
      launch(exec);
    else {
      CHECK(cudaMemcpyAsync(g.field[X], values, bytes, cudaMemcpyDeviceToDevice,
                            g.stream));
      CHECK(convolve(M, B, g.three[1]));
    }
    CHECK(filter_gradient());
    result();
  }
}

static void steps(const char *how) {
  cudaGraphExec_t exec[2] = {NULL, NULL};
  cudaGraph_t second = NULL;
  if (!strcmp(how, "graph"))
    exec[0] = runnable(capture(ALL, g.three[0], cudaStreamCaptureModeGlobal));
  if (!strcmp(how, "fork"))
    exec[0] = runnable(capture_forked());
  if (!strcmp(how, "two") || !strcmp(how, "apart")) {
    exec[0] = runnable(capture(FIRST, g.three[0], cudaStreamCaptureModeGlobal));
    exec[1] = runnable(capture(SECOND, NULL, cudaStreamCaptureModeThreadLocal));
  }
  if (!strcmp(how, "update")) {
    exec[0] = runnable(capture(ALL, g.three[1], cudaStreamCaptureModeRelaxed));
    second = capture(ALL, g.three[0], cudaStreamCaptureModeRelaxed);
  }
  for (int step = 0; step < STEPS; step++) {
    fill(step);
    if (!strcmp(how, "again"))
      exec[0] = runnable(capture(ALL, g.three[0], cudaStreamCaptureModeGlobal));
    if (second) {
      cudaGraphExecUpdateResultInfo info;
      launch(exec[0]); // with the other filter
      disturb();
      CHECK(cudaGraphExecUpdate(exec[0], second, &info));
      CHECK(cudaGraphDestroy(second));
      second = NULL;
    }
    if (exec[0])
      launch(exec[0]);
    else
      CHECK(net(g.three[0]));
    disturb();
    if (!strcmp(how, "apart")) {
      CHECK(cudaStreamSynchronize(g.stream));
      CHECK(cudaGraphLaunch(exec[1], g.other));
      disturb();
      CHECK(cudaStreamSynchronize(g.other));
    } else if (exec[1]) {
      launch(exec[1]);
    }
    if (!strcmp(how, "again")) // while it runs
      CHECK(cudaGraphExecDestroy(exec[0]));
    result();
  }
}

static int fails(const char *how) {
  cudaGraph_t graph, outer;
  cudaGraphNode_t node;
  pthread_t thread;
  void *failed;
  if (!strcmp(how, "cold")) {
    CHECK(cudaStreamBeginCapture(g.stream, cudaStreamCaptureModeRelaxed));
    int status = convolve(X, A, g.three[0]);
    CHECK(cudaStreamEndCapture(g.stream, &graph));
    CHECK(cudaGraphDestroy(graph));
    // The job goes on.
    CHECK(convolve(X, A, g.three[0]));
    CHECK(cudaStreamSynchronize(g.stream));
    return status;
  }
  CHECK(net(g.three[0]));
  CHECK(cudaStreamSynchronize(g.stream));
  if (!strcmp(how, "some")) {
    if (g.rank > 0)
      CHECK(cudaStreamBeginCapture(g.stream, cudaStreamCaptureModeRelaxed));
    CHECK(convolve(X, A, g.three[0]));
    if (g.rank > 0)
      CHECK(cudaStreamEndCapture(g.stream, &graph));
    return (int)cudaStreamSynchronize(g.stream);
  }
  graph = capture(FIRST, g.three[0], cudaStreamCaptureModeRelaxed);
  cudaGraphExec_t exec = NULL;
  if (!strcmp(how, "order")) {
    cudaGraphExec_t both[2] = {
        runnable(graph),
        runnable(capture(SECOND, NULL, cudaStreamCaptureModeRelaxed))};
    CHECK(cudaGraphLaunch(both[g.rank % 2], g.stream));
    CHECK(cudaGraphLaunch(both[1 - g.rank % 2], g.stream));
  } else if (!strcmp(how, "child")) {
    CHECK(cudaGraphCreate(&outer, 0));
    CHECK(cudaGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
    launch(runnable(outer));
  } else if (!strcmp(how, "dies")) {
    if (g.rank > 0)
      _exit(3);
    launch(runnable(graph));
  } else if (!strcmp(how, "thread")) {
    exec = runnable(graph);
    CHECK(pthread_create(&thread, NULL, launch_apart, exec));
    CHECK(pthread_join(thread, &failed));
    return failed != NULL;
  } else if (!strcmp(how, "inside")) {
    exec = runnable(graph);
    CHECK(cudaStreamBeginCapture(g.other, cudaStreamCaptureModeRelaxed));
    return (int)cudaGraphLaunch(exec, g.other);
  } else {
    return 0;
  }
  return (int)cudaStreamSynchronize(g.stream);
}

int main(int count, char **arguments) {
  if (count < 5)
    return 2;
  g.rank = atoi(arguments[1]);
  g.rows = atoi(arguments[4 + g.rank]);
  for (int i = 0; i < g.rank; i++)
    g.first += atoi(arguments[4 + i]);
  g.out = fopen(arguments[3], "wb");
  setup();
  fill(0);
  const char *how = arguments[2];
  static const char *const good[] = {"eager", "graph",   "two",
                                     "fork",  "update",  "again",
                                     "apart", "rewrite", "rewriter"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (!strcmp(how, good[i])) {
      CHECK(net(g.three[0]));
      CHECK(cudaStreamSynchronize(g.stream));
      if (!strncmp(how, "rewrite", 7))
        rewrites(how);
      else
        steps(how);
      return fclose(g.out) ? EXIT_FAILURE : EXIT_SUCCESS;
    }
  return fails(how) ? EXIT_FAILURE : EXIT_SUCCESS;
}
