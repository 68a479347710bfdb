// SPDX-License-Identifier: Apache-2.0
// Calls of cuDNN on the actor's tensors.
#include "tests/fault/actor/actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int bytes_of_type(void) {
  return actor_get("type") == CUDNN_DATA_DOUBLE ? 8 : 4;
}

int act_create(void) {
  DNN(cudnnCreate(&actor.cudnn));
  DNN(cudnnCreateTensorDescriptor(&actor.x));
  DNN(cudnnCreateTensorDescriptor(&actor.y));
  DNN(cudnnCreateFilterDescriptor(&actor.w));
  DNN(cudnnCreateConvolutionDescriptor(&actor.conv));
  DNN(cudnnCreatePoolingDescriptor(&actor.pool));
  return 0;
}

static int upload(char **device, const float *value, size_t count) {
  int wide = bytes_of_type() == 8;
  char *host = malloc(count * 8);
  for (size_t i = 0; i < count; i++)
    if (wide)
      ((double *)(void *)host)[i] = (double)value[i];
    else
      ((float *)(void *)host)[i] = value[i];
  size_t bytes = count * (size_t)bytes_of_type();
  cudaError_t got = cudaMalloc((void **)device, bytes);
  if (got == cudaSuccess)
    got = cudaMemcpy(*device, host, bytes, cudaMemcpyHostToDevice);
  free(host);
  CUDA(got);
  return 0;
}

/* Small whole numbers, so that sums are exact in any order. */
static float value_at(int n, int c, int h, int w) {
  return (float)((n * 31 + c * 17 + h * 7 + w * 3 + h * w) % 11 - 5);
}

static int fill(void) {
  int n = actor_get("n"), c = actor_get("c"), h = actor_get("h"),
      w = actor_get("w");
  size_t count = (size_t)n * (size_t)c * (size_t)h * (size_t)w, at = 0;
  float *value = malloc(count * sizeof *value);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < c; j++)
      for (int k = 0; k < h; k++)
        for (int l = 0; l < w; l++)
          value[at++] = value_at(i, j, k + actor_get("first"), l);
  int status = upload(&actor.dx, value, count);
  free(value);
  size_t taps = (size_t)actor_get("k") * (size_t)(c / actor_get("groups")) *
                (size_t)actor_get("kernel") * (size_t)actor_get("kernel");
  value = malloc(taps * sizeof *value);
  for (size_t i = 0; i < taps; i++)
    value[i] = (float)(i * i % 7) - 3;
  if (status == 0)
    status = upload(&actor.dw, value, taps);
  free(value);
  value = calloc(actor.y_count, sizeof *value);
  if (status == 0)
    status = upload(&actor.dy, value, actor.y_count);
  free(value);
  return status;
}

int act_set(void) {
  cudnnDataType_t type = (cudnnDataType_t)actor_get("type");
  cudnnTensorFormat_t format = (cudnnTensorFormat_t)actor_get("layout");
  int kernel = actor_get("kernel");
  DNN(cudnnSetTensor4dDescriptor(actor.x, format, type, actor_get("n"),
                                 actor_get("c"), actor_get("h"),
                                 actor_get("w")));
  DNN(cudnnSetFilter4dDescriptor(actor.w, type, format, actor_get("k"),
                                 actor_get("c") / actor_get("groups"), kernel,
                                 kernel));
  DNN(cudnnSetConvolution2dDescriptor(
      actor.conv, actor_get("pad"), actor_get("pad"), actor_get("stride"),
      actor_get("stride"), actor_get("dilation"), actor_get("dilation"),
      CUDNN_CROSS_CORRELATION,
      type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  DNN(cudnnSetConvolutionGroupCount(actor.conv, actor_get("groups")));
  int *o = actor.out;
  DNN(cudnnGetConvolution2dForwardOutputDim(actor.conv, actor.x, actor.w, &o[0],
                                            &o[1], &o[2], &o[3]));
  if (actor_get("out") >= 0)
    o[2] = actor_get("out");
  DNN(cudnnSetTensor4dDescriptor(actor.y, format, type, o[0], o[1], o[2],
                                 o[3]));
  actor.y_count = (size_t)o[0] * (size_t)o[1] * (size_t)o[2] * (size_t)o[3];
  if (fill())
    return 1;
  cudnnConvolutionFwdAlgoPerf_t found = {.algo = 0};
  int count;
  if (actor_get("algo") >= 0)
    found.algo = (cudnnConvolutionFwdAlgo_t)actor_get("algo");
  else
    DNN(cudnnGetConvolutionForwardAlgorithm_v7(
        actor.cudnn, actor.x, actor.w, actor.conv, actor.y, 1, &count, &found));
  actor.algo = found.algo;
  DNN(cudnnGetConvolutionForwardWorkspaceSize(actor.cudnn, actor.x, actor.w,
                                              actor.conv, actor.y, actor.algo,
                                              &actor.space_bytes));
  CUDA(cudaMalloc(&actor.space, actor.space_bytes ? actor.space_bytes : 1));
  return 0;
}

/* Sets x again with the same values: a new generation, so the ranks agree
 * again. */
int act_again(void) {
  DNN(cudnnSetTensor4dDescriptor(
      actor.x, (cudnnTensorFormat_t)actor_get("layout"),
      (cudnnDataType_t)actor_get("type"), actor_get("n"), actor_get("c"),
      actor_get("h"), actor_get("w")));
  return 0;
}

typedef union {
  float f;
  double d;
} scale_t;

static scale_t scale(const char *name) {
  scale_t s;
  if (actor_get("type") == CUDNN_DATA_DOUBLE)
    s.d = actor_get(name);
  else
    s.f = (float)actor_get(name);
  return s;
}

int act_conv(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(actor.cudnn, &alpha, actor.x, actor.dx, actor.w,
                              actor.dw, actor.conv, actor.algo, actor.space,
                              actor.space_bytes, &beta, actor.y, actor.dy));
  return 0;
}

int act_capture(void) {
  cudaStream_t stream;
  cudaGraph_t graph;
  CUDA(cudaStreamCreate(&stream));
  DNN(cudnnSetStream(actor.cudnn, stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  int wrong = act_conv();
  CUDA(cudaStreamEndCapture(stream, &graph));
  DNN(cudnnSetStream(actor.cudnn, NULL));
  return wrong;
}

int act_query(void) {
  int o[4];
  DNN(cudnnGetConvolution2dForwardOutputDim(actor.conv, actor.x, actor.w, &o[0],
                                            &o[1], &o[2], &o[3]));
  return 0;
}

int act_dropout(void) {
  size_t bytes;
  DNN(cudnnDropoutGetReserveSpaceSize(actor.y, &bytes));
  return 0;
}

int act_pool(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnSetPooling2dDescriptor(actor.pool, CUDNN_POOLING_MAX,
                                  CUDNN_NOT_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
  DNN(cudnnPoolingForward(actor.cudnn, actor.pool, &alpha, actor.x, actor.dx,
                          &beta, actor.y, actor.dy));
  return 0;
}

int act_softmax(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnSoftmaxForward(actor.cudnn, CUDNN_SOFTMAX_ACCURATE,
                          CUDNN_SOFTMAX_MODE_CHANNEL, &alpha, actor.x, actor.dx,
                          &beta, actor.y, actor.dy));
  return 0;
}

int act_backward(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionBackwardData(
      actor.cudnn, &alpha, actor.w, actor.dw, actor.y, actor.dy, actor.conv,
      CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0, &beta, actor.x, actor.dx));
  return 0;
}

int act_gradient(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionBackwardFilter(
      actor.cudnn, &alpha, actor.x, actor.dx, actor.y, actor.dy, actor.conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL, 0, &beta, actor.w, actor.dw));
  return 0;
}

int act_scale(void) {
  scale_t two = scale("alpha");
  DNN(cudnnScaleTensor(actor.cudnn, actor.x, actor.dx, &two));
  return 0;
}

int act_null(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(actor.cudnn, &alpha, NULL, actor.dx, actor.w,
                              actor.dw, actor.conv, actor.algo, actor.space,
                              actor.space_bytes, &beta, actor.y, actor.dy));
  return 0;
}

int act_nullop(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(actor.cudnn, &alpha, actor.x, actor.dx, actor.w,
                              actor.dw, NULL, actor.algo, actor.space,
                              actor.space_bytes, &beta, actor.y, actor.dy));
  return 0;
}

int act_nulldata(void) {
  scale_t alpha = scale("alpha"), beta = scale("beta");
  DNN(cudnnConvolutionForward(actor.cudnn, &alpha, actor.x, NULL, actor.w,
                              actor.dw, actor.conv, actor.algo, actor.space,
                              actor.space_bytes, &beta, actor.y, actor.dy));
  return 0;
}

int act_nullscale(void) {
  DNN(cudnnConvolutionForward(actor.cudnn, NULL, actor.x, actor.dx, actor.w,
                              actor.dw, actor.conv, actor.algo, actor.space,
                              actor.space_bytes, NULL, actor.y, actor.dy));
  return 0;
}

int act_sync(void) {
  CUDA(cudaDeviceSynchronize());
  return 0;
}

/* Writes y to the file y-RANK. */
int act_write(void) {
  size_t bytes = actor.y_count * (size_t)bytes_of_type();
  void *host = calloc(1, bytes);
  char name[32];
  cudaError_t got = cudaMemcpy(host, actor.dy, bytes, cudaMemcpyDeviceToHost);
  if (actor_cuda_failed("cudaMemcpy", got)) {
    free(host);
    return 1;
  }
  snprintf(name, sizeof name, "y-%d", actor.rank);
  FILE *file = fopen(name, "wb");
  int wrong = !file || fwrite(host, 1, bytes, file) != bytes || fclose(file);
  free(host);
  return wrong;
}

/* The same by an asynchronous copy; polls until it has ended. */
int act_poll(void) {
  size_t bytes = actor.y_count * (size_t)bytes_of_type();
  void *host;
  CUDA(cudaMallocHost(&host, bytes));
  CUDA(cudaMemcpyAsync(host, actor.dy, bytes, cudaMemcpyDeviceToHost, NULL));
  cudaError_t got;
  while ((got = cudaStreamQuery(NULL)) == cudaErrorNotReady)
    usleep(1000);
  CUDA(got);
  return act_write();
}

cudnnStatus_t actor_ask(void) {
  int n, c, h, w;
  cudnnSetTensor4dDescriptor(actor.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2,
                             8, 8);
  cudnnSetFilter4dDescriptor(actor.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 2,
                             3, 3);
  cudnnSetConvolution2dDescriptor(actor.conv, 1, 1, 1, 1, 1, 1,
                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  return cudnnGetConvolution2dForwardOutputDim(actor.conv, actor.x, actor.w, &n,
                                               &c, &h, &w);
}
