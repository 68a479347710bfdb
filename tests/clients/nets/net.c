/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of small networks, in calls of cuDNN and cuBLAS. */
#include "net.h"

#include <string.h>
#include <time.h>

static const net_real one = 1, zero = 0;

void net_init(net_t *net, net_real rate) {
  memset(net, 0, sizeof *net);
  net->rate = rate;
  net->seed = 1;
  CUDNN(cudnnCreate(&net->cudnn));
  CUBLAS(cublasCreate(&net->cublas));
  CUDNN(cudnnCreateActivationDescriptor(&net->relu));
  CUDNN(cudnnSetActivationDescriptor(net->relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_PROPAGATE_NAN, 0));
  CUDNN(cudnnCreateOpTensorDescriptor(&net->add));
  CUDNN(cudnnSetOpTensorDescriptor(net->add, CUDNN_OP_TENSOR_ADD, NET_DATA,
                                   CUDNN_PROPAGATE_NAN));
}

void net_fini(net_t *net) {
  CUDA(cudaFree(net->workspace));
  CUDNN(cudnnDestroyOpTensorDescriptor(net->add));
  CUDNN(cudnnDestroyActivationDescriptor(net->relu));
  CUBLAS(cublasDestroy(net->cublas));
  CUDNN(cudnnDestroy(net->cudnn));
}

/* Room for `bytes`; work that uses the old workspace is waited for. */
static void workspace_grow(net_t *net, size_t bytes) {
  if (bytes <= net->workspace_bytes)
    return;
  CUDA(cudaFree(net->workspace));
  CUDA(cudaMalloc(&net->workspace, bytes));
  net->workspace_bytes = bytes;
}

net_real *net_zeros(size_t count) {
  void *memory;
  CUDA(cudaMalloc(&memory, count * sizeof(net_real)));
  CUDA(cudaMemset(memory, 0, count * sizeof(net_real)));
  return memory;
}

static cudnnTensorDescriptor_t descriptor(int dims, const int *extent) {
  cudnnTensorDescriptor_t desc;
  int stride[NET_DIMS_MAX];
  for (int d = dims - 1, step = 1; d >= 0; step *= extent[d--])
    stride[d] = step;
  CUDNN(cudnnCreateTensorDescriptor(&desc));
  CUDNN(cudnnSetTensorNdDescriptor(desc, NET_DATA, dims, extent, stride));
  return desc;
}

net_tensor_t net_tensor(int dims, const int *extent) {
  net_tensor_t t = {.dims = dims, .count = 1};
  for (int d = 0; d < dims; d++)
    t.count *= (size_t)(t.extent[d] = extent[d]);
  t.desc = descriptor(dims, extent);
  t.at = net_zeros(t.count);
  t.grad = net_zeros(t.count);
  return t;
}

void net_tensor_free(net_tensor_t *tensor) {
  CUDNN(cudnnDestroyTensorDescriptor(tensor->desc));
  CUDA(cudaFree(tensor->at));
  CUDA(cudaFree(tensor->grad));
}

static net_parameter_t parameter(net_real *values, size_t count) {
  net_parameter_t p = {count, net_zeros(count), net_zeros(count)};
  CUDA(cudaMemcpy(p.at, values, count * sizeof(net_real),
                  cudaMemcpyHostToDevice));
  free(values);
  return p;
}

static net_real *numbers(size_t count) {
  net_real *values = malloc(count * sizeof *values);
  if (!values) {
    fprintf(stderr, "out of memory\n");
    exit(EXIT_FAILURE);
  }
  return values;
}

net_parameter_t net_weights(net_t *net, size_t count, net_real size) {
  net_real *values = numbers(count);
  for (size_t i = 0; i < count; i++) {
    net->seed = net->seed * 1664525u + 1013904223u;
    values[i] = size * ((net_real)(net->seed >> 8) / (net_real)(1 << 23) - 1);
  }
  return parameter(values, count);
}

net_parameter_t net_constants(size_t count, net_real value) {
  net_real *values = numbers(count);
  for (size_t i = 0; i < count; i++)
    values[i] = value;
  return parameter(values, count);
}

void net_parameter_free(net_parameter_t *parameter) {
  CUDA(cudaFree(parameter->at));
  CUDA(cudaFree(parameter->grad));
}

void net_step(net_t *net, net_parameter_t *p) {
  net_real down = -net->rate;
  CUBLAS(NET_AXPY(net->cublas, (int)p->count, &down, p->grad, 1, p->at, 1));
}

/* ---- convolutions -------------------------------------------------------- */

net_conv_t net_conv(net_t *net, int dims, int in, int out, int kernel, int pad,
                    int stride) {
  net_conv_t c = {0};
  int taps[NET_DIMS_MAX] = {out, in}, count = out * in, fan = in;
  int pads[3], strides[3], ones[3] = {1, 1, 1};
  int bias[NET_DIMS_MAX] = {1, out, 1, 1, 1};
  for (int d = 0; d < dims - 2; d++) {
    taps[d + 2] = kernel;
    count *= kernel;
    fan *= kernel;
    pads[d] = pad;
    strides[d] = stride;
  }
  CUDNN(cudnnCreateFilterDescriptor(&c.filter));
  CUDNN(cudnnSetFilterNdDescriptor(c.filter, NET_DATA, CUDNN_TENSOR_NCHW, dims,
                                   taps));
  CUDNN(cudnnCreateConvolutionDescriptor(&c.desc));
  CUDNN(cudnnSetConvolutionNdDescriptor(c.desc, dims - 2, pads, strides, ones,
                                        CUDNN_CROSS_CORRELATION, NET_DATA));
  c.bias_desc = descriptor(dims, bias);
  c.weights = net_weights(net, (size_t)count, (net_real)1.5 / (net_real)fan);
  c.bias = net_constants((size_t)out, (net_real)0.01);
  return c;
}

void net_conv_free(net_conv_t *conv) {
  CUDNN(cudnnDestroyFilterDescriptor(conv->filter));
  CUDNN(cudnnDestroyConvolutionDescriptor(conv->desc));
  CUDNN(cudnnDestroyTensorDescriptor(conv->bias_desc));
  net_parameter_free(&conv->weights);
  net_parameter_free(&conv->bias);
}

net_tensor_t net_conv_output(const net_conv_t *conv, const net_tensor_t *x) {
  int extent[NET_DIMS_MAX];
  CUDNN(cudnnGetConvolutionNdForwardOutputDim(conv->desc, x->desc, conv->filter,
                                              x->dims, extent));
  return net_tensor(x->dims, extent);
}

/* The pair of tensors of a convolution is the same in all calls, so that one
 * answer does for all of them. */
static void algorithms(net_t *net, net_conv_t *conv, cudnnTensorDescriptor_t x,
                       cudnnTensorDescriptor_t y) {
  cudnnConvolutionFwdAlgoPerf_t forward;
  cudnnConvolutionBwdDataAlgoPerf_t data;
  cudnnConvolutionBwdFilterAlgoPerf_t filter;
  int count;
  if (conv->algo.known)
    return;
  CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(
      net->cudnn, x, conv->filter, conv->desc, y, 1, &count, &forward));
  CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(
      net->cudnn, conv->filter, y, conv->desc, x, 1, &count, &data));
  CUDNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
      net->cudnn, x, y, conv->desc, conv->filter, 1, &count, &filter));
  workspace_grow(net, forward.memory);
  workspace_grow(net, data.memory);
  workspace_grow(net, filter.memory);
  conv->algo.forward = forward.algo;
  conv->algo.data = data.algo;
  conv->algo.filter = filter.algo;
  conv->algo.known = 1;
}

/* y = conv(x), without the bias. */
static void forward(net_t *net, net_conv_t *conv, cudnnTensorDescriptor_t x,
                    const net_real *x_at, cudnnTensorDescriptor_t y,
                    net_real *y_at) {
  algorithms(net, conv, x, y);
  CUDNN(cudnnConvolutionForward(net->cudnn, &one, x, x_at, conv->filter,
                                conv->weights.at, conv->desc,
                                conv->algo.forward, net->workspace,
                                net->workspace_bytes, &zero, y, y_at));
}

/* dx = the transpose of conv, of dy, + keep dx. */
static void transpose(net_t *net, net_conv_t *conv, cudnnTensorDescriptor_t y,
                      const net_real *dy, cudnnTensorDescriptor_t x,
                      net_real keep, net_real *dx) {
  algorithms(net, conv, x, y);
  CUDNN(cudnnConvolutionBackwardData(
      net->cudnn, &one, conv->filter, conv->weights.at, y, dy, conv->desc,
      conv->algo.data, net->workspace, net->workspace_bytes, &keep, x, dx));
}

static void filter_gradient(net_t *net, net_conv_t *conv,
                            cudnnTensorDescriptor_t x, const net_real *x_at,
                            cudnnTensorDescriptor_t y, const net_real *dy) {
  algorithms(net, conv, x, y);
  CUDNN(cudnnConvolutionBackwardFilter(
      net->cudnn, &one, x, x_at, y, dy, conv->desc, conv->algo.filter,
      net->workspace, net->workspace_bytes, &zero, conv->filter,
      conv->weights.grad));
}

static void bias_add(net_t *net, const net_conv_t *conv,
                     const net_tensor_t *y) {
  CUDNN(cudnnAddTensor(net->cudnn, &one, conv->bias_desc, conv->bias.at, &one,
                       y->desc, y->at));
}

static void bias_gradient(net_t *net, const net_conv_t *conv,
                          const net_tensor_t *y) {
  CUDNN(cudnnConvolutionBackwardBias(net->cudnn, &one, y->desc, y->grad, &zero,
                                     conv->bias_desc, conv->bias.grad));
}

void net_conv_forward(net_t *net, net_conv_t *conv, const net_tensor_t *x,
                      const net_tensor_t *y) {
  forward(net, conv, x->desc, x->at, y->desc, y->at);
  bias_add(net, conv, y);
}

void net_conv_backward(net_t *net, net_conv_t *conv, const net_tensor_t *x,
                       const net_tensor_t *y, int wanted, net_real keep) {
  bias_gradient(net, conv, y);
  filter_gradient(net, conv, x->desc, x->at, y->desc, y->grad);
  if (wanted)
    transpose(net, conv, y->desc, y->grad, x->desc, keep, x->grad);
  net_step(net, &conv->weights);
  net_step(net, &conv->bias);
}

void net_conv_up(net_t *net, net_conv_t *conv, const net_tensor_t *y,
                 const net_tensor_t *x) {
  transpose(net, conv, y->desc, y->at, x->desc, 0, x->at);
}

void net_conv_up_backward(net_t *net, net_conv_t *conv, const net_tensor_t *y,
                          const net_tensor_t *x) {
  filter_gradient(net, conv, x->desc, x->grad, y->desc, y->at);
  forward(net, conv, x->desc, x->grad, y->desc, y->grad);
  net_step(net, &conv->weights);
}

/* ---- normalisation ------------------------------------------------------- */

net_norm_t net_norm(const net_tensor_t *x) {
  net_norm_t n;
  size_t channels = (size_t)x->extent[1];
  CUDNN(cudnnCreateTensorDescriptor(&n.desc));
  CUDNN(
      cudnnDeriveBNTensorDescriptor(n.desc, x->desc, CUDNN_BATCHNORM_SPATIAL));
  n.scale = net_constants(channels, 1);
  n.shift = net_constants(channels, 0);
  n.running_mean = net_zeros(channels);
  n.running_variance = net_zeros(channels);
  n.saved_mean = net_zeros(channels);
  n.saved_deviation = net_zeros(channels);
  return n;
}

void net_norm_free(net_norm_t *norm) {
  CUDNN(cudnnDestroyTensorDescriptor(norm->desc));
  net_parameter_free(&norm->scale);
  net_parameter_free(&norm->shift);
  CUDA(cudaFree(norm->running_mean));
  CUDA(cudaFree(norm->running_variance));
  CUDA(cudaFree(norm->saved_mean));
  CUDA(cudaFree(norm->saved_deviation));
}

void net_norm_forward(net_t *net, net_norm_t *norm, const net_tensor_t *x,
                      const net_tensor_t *y) {
  CUDNN(cudnnBatchNormalizationForwardTraining(
      net->cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x->desc, x->at, y->desc,
      y->at, norm->desc, norm->scale.at, norm->shift.at, 0.1,
      norm->running_mean, norm->running_variance, 1e-4, norm->saved_mean,
      norm->saved_deviation));
}

void net_norm_backward(net_t *net, net_norm_t *norm, const net_tensor_t *x,
                       const net_tensor_t *y) {
  CUDNN(cudnnBatchNormalizationBackward(
      net->cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, x->desc,
      x->at, y->desc, y->grad, x->desc, x->grad, norm->desc, norm->scale.at,
      norm->scale.grad, norm->shift.grad, 1e-4, norm->saved_mean,
      norm->saved_deviation));
  net_step(net, &norm->scale);
  net_step(net, &norm->shift);
}

/* ---- pooling, activation ------------------------------------------------- */

cudnnPoolingDescriptor_t net_pool(cudnnPoolingMode_t mode, int spatial,
                                  const int *window) {
  cudnnPoolingDescriptor_t pool;
  int none[3] = {0};
  CUDNN(cudnnCreatePoolingDescriptor(&pool));
  CUDNN(cudnnSetPoolingNdDescriptor(pool, mode, CUDNN_PROPAGATE_NAN, spatial,
                                    window, none, window));
  return pool;
}

net_tensor_t net_pool_output(cudnnPoolingDescriptor_t pool,
                             const net_tensor_t *x) {
  int extent[NET_DIMS_MAX];
  CUDNN(cudnnGetPoolingNdForwardOutputDim(pool, x->desc, x->dims, extent));
  return net_tensor(x->dims, extent);
}

void net_pool_forward(net_t *net, cudnnPoolingDescriptor_t pool,
                      const net_tensor_t *x, const net_tensor_t *y) {
  CUDNN(cudnnPoolingForward(net->cudnn, pool, &one, x->desc, x->at, &zero,
                            y->desc, y->at));
}

void net_pool_backward(net_t *net, cudnnPoolingDescriptor_t pool,
                       const net_tensor_t *x, const net_tensor_t *y,
                       net_real keep) {
  CUDNN(cudnnPoolingBackward(net->cudnn, pool, &one, y->desc, y->at, y->desc,
                             y->grad, x->desc, x->at, &keep, x->desc, x->grad));
}

void net_relu(net_t *net, const net_tensor_t *x) {
  CUDNN(cudnnActivationForward(net->cudnn, net->relu, &one, x->desc, x->at,
                               &zero, x->desc, x->at));
}

void net_relu_backward(net_t *net, const net_tensor_t *x) {
  CUDNN(cudnnActivationBackward(net->cudnn, net->relu, &one, x->desc, x->at,
                                x->desc, x->grad, x->desc, x->at, &zero,
                                x->desc, x->grad));
}

/* ---- rows, time ---------------------------------------------------------- */

int net_rows(int total, const char *parts, int part, net_rows_t *out) {
  *out = (net_rows_t){total, 0, total};
  if (!parts)
    return total > 0;
  out->total = out->count = 0;
  for (int i = 0;; i++) {
    char *end;
    long size = strtol(parts, &end, 10);
    if (end == parts || size <= 0 || size > 1 << 20)
      return 0;
    if (i < part)
      out->first += (int)size;
    if (i == part)
      out->count = (int)size;
    out->total += (int)size;
    if (*end == '\0')
      return out->count > 0;
    parts = end + 1;
  }
}

static double now_ms(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

void net_clock_tick(net_clock_t *clock) {
  CUDA(cudaDeviceSynchronize());
  double wall = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
  int i = clock->steps++ - 1; // since the tick before
  if (i >= 0) {
    size_t bytes = (size_t)(i + 1) * sizeof(double);
    clock->walls = realloc(clock->walls, bytes);
    clock->cpus = realloc(clock->cpus, bytes);
    if (!clock->walls || !clock->cpus)
      exit(EXIT_FAILURE);
    clock->walls[i] = wall - clock->wall;
    clock->cpus[i] = cpu - clock->cpu;
  }
  clock->wall = wall;
  clock->cpu = cpu;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  if (count < 1)
    return 0;
  qsort(values, (size_t)count, sizeof *values, compare);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void net_clock_print(net_clock_t *clock) {
  int first = clock->steps / 4, count = clock->steps - 1 - first;
  printf("%.4f ms, %.4f ms of CPU\n", median(clock->walls + first, count),
         median(clock->cpus + first, count));
  free(clock->walls);
  free(clock->cpus);
}
