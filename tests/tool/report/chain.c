/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a few layers, one behind the other, for tests of advice.
 *
 * usage: chain OUT STEPS ROWS COLUMNS LAYER...
 *        ROWS, COLUMNS: FIRST:END, the program's piece of the image
 * Layers:
 *   n:FIRST:END         before all others: several images, of which the program
 *                       has these
 *   v:FIRST:END         before all others: images of planes, whose windows are
 *                       as deep as they are high
 *   c:K:KH:KW[:STRIDE[:DILATION]]
 *                       convolution to K channels, windows KH x KW, padded so
 *                       that stride 1 keeps the extents
 *   s:KH:KW             a convolution of the same input whose result is dropped
 *   p:K[:STRIDE:PAD]    maximum pooling, K x K, stride K without padding
 *   t:K:S[:KERNEL]      transposed convolution to K channels, S x S or
 *                       KERNEL x KERNEL, which multiplies the extents by S
 *   r                   relu in place
 *   d                   dropout of a tenth
 *   m                   softmax over channels
 *   h                   a copy of what is there to the host
 *   b                   from here on backward: gradients of all convolutions
 *   g                   all steps but the first are launches of a CUDA graph
 * The image has two channels. Each step computes all layers anew. OUT becomes
 * the last layer's result as .npy: this process's piece. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                              \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "chain: %s: status %d\n", #call, status_);               \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

enum { LAYERS = 32, DIMS = 5 };

typedef struct tensor {
  cudnnTensorDescriptor_t desc;
  int extent[DIMS]; // N, C, D, H, W, or N, C, H, W
  float *at, *grad;
} tensor_t;

typedef struct layer {
  char kind;
  int number[5], numbers;
  tensor_t x, y; /* x: the y of the layer before */
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnDropoutDescriptor_t dropout;
  void *reserve;
  size_t reserve_bytes;
  float *w, *dw, *host;
} layer_t;

static cudnnHandle_t cudnn;
static void *work;
static size_t work_bytes;
static const float one = 1, zero = 0;
static int dims = 4, image[2] = {0, 1}, plane[2] = {0, 1};

static size_t count_of(const tensor_t *t) {
  size_t count = 1;
  for (int d = 0; d < dims; d++)
    count *= (size_t)t->extent[d];
  return count;
}

static float *filled(size_t count, unsigned seed, float scale) {
  float *host = malloc((count + 1) * sizeof *host), *at;
  TRY(cudaMalloc((void **)&at, (count + 1) * sizeof *at));
  for (size_t i = 0; i < count; i++)
    host[i] = scale * (float)((int)((seed + i * 37 + i * i % 11) % 17) - 8);
  TRY(cudaMemcpy(at, host, count * sizeof *at, cudaMemcpyHostToDevice));
  free(host);
  return at;
}

static tensor_t tensor(const int *extent) {
  tensor_t t;
  int stride[DIMS];
  for (int d = dims - 1; d >= 0; d--) {
    t.extent[d] = extent[d];
    stride[d] = d + 1 < dims ? stride[d + 1] * extent[d + 1] : 1;
  }
  TRY(cudnnCreateTensorDescriptor(&t.desc));
  TRY(cudnnSetTensorNdDescriptor(t.desc, CUDNN_DATA_FLOAT, dims, extent,
                                 stride));
  t.at = filled(count_of(&t), 0, 0);
  t.grad = filled(count_of(&t), 0, 0);
  return t;
}

/* A tensor like this one, of other memory. */
static tensor_t another(const tensor_t *like) {
  return tensor(like->extent);
}

/* The image by global coordinates. */
static void image_fill(const tensor_t *t, int row0, int column0) {
  float *host = malloc(count_of(t) * sizeof *host), *at = host;
  for (int c = image[0] * t->extent[1]; c < image[1] * t->extent[1]; c++)
    for (int k = plane[0]; k < plane[1]; k++)
      for (int i = row0; i < row0 + t->extent[dims - 2]; i++)
        for (int j = column0; j < column0 + t->extent[dims - 1]; j++)
          *at++ = (float)((c * 5 + k * 11 + i * 13 + j * 7 + i * j) % 23) / 8;
  TRY(cudaMemcpy(t->at, host, count_of(t) * sizeof *host,
                 cudaMemcpyHostToDevice));
  free(host);
}

static void work_need(size_t bytes) {
  if (bytes <= work_bytes)
    return;
  work_bytes = bytes;
  TRY(cudaMalloc(&work, bytes));
}

typedef struct window {
  int kernel[2], stride, dilation, pad[2]; // of H and W
} window_t;

// D is like H.
static int of_dim(const int *number, int d) {
  return number[d == dims - 3];
}

static void conv_make(layer_t *l, int in, int out, const window_t *window) {
  int filter[DIMS] = {out, in}, pad[3], stride[3], dilation[3];
  size_t weights = (size_t)(in * out);
  for (int d = 0; d < dims - 2; d++) {
    filter[d + 2] = of_dim(window->kernel, d);
    pad[d] = of_dim(window->pad, d);
    stride[d] = window->stride;
    dilation[d] = window->dilation;
    weights *= (size_t)filter[d + 2];
  }
  TRY(cudnnCreateFilterDescriptor(&l->filter));
  TRY(cudnnSetFilterNdDescriptor(l->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                 dims, filter));
  TRY(cudnnCreateConvolutionDescriptor(&l->conv));
  TRY(cudnnSetConvolutionNdDescriptor(l->conv, dims - 2, pad, stride, dilation,
                                      CUDNN_CROSS_CORRELATION,
                                      CUDNN_DATA_FLOAT));
  l->w = filled(weights, (unsigned)(window->kernel[0] + out), 0.03125F);
  l->dw = filled(weights, 0, 0);
}

static void data_work(cudnnFilterDescriptor_t filter, const tensor_t *dy,
                      cudnnConvolutionDescriptor_t conv, const tensor_t *dx) {
  size_t bytes;
  TRY(cudnnGetConvolutionBackwardDataWorkspaceSize(
      cudnn, filter, dy->desc, conv, dx->desc,
      CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, &bytes));
  work_need(bytes);
}

static void forward_make(layer_t *l, int channels, const int *kernel,
                         int stride, int dilation) {
  int extent[DIMS];
  size_t bytes;
  window_t window = {
      .kernel = {kernel[0], kernel[1]},
      .stride = stride,
      .dilation = dilation,
      .pad = {dilation * (kernel[0] - 1) / 2, dilation * (kernel[1] - 1) / 2}};
  conv_make(l, l->x.extent[1], channels, &window);
  TRY(cudnnGetConvolutionNdForwardOutputDim(l->conv, l->x.desc, l->filter, dims,
                                            extent));
  l->y = tensor(extent);
  TRY(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, l->x.desc, l->filter, l->conv, l->y.desc,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
  work_need(bytes);
  TRY(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      cudnn, l->x.desc, l->y.desc, l->conv, l->filter,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, &bytes));
  work_need(bytes);
  data_work(l->filter, &l->y, l->conv, &l->x);
}

static void transposed_make(layer_t *l, int channels, int stride, int kernel) {
  int extent[DIMS] = {l->x.extent[0], channels},
      pad = (kernel - stride + 1) / 2;
  window_t window = {.kernel = {kernel, kernel},
                     .stride = stride,
                     .dilation = 1,
                     .pad = {pad, pad}};
  conv_make(l, channels, l->x.extent[1], &window);
  for (int d = 2; d < dims; d++)
    extent[d] = l->x.extent[d] * stride;
  l->y = tensor(extent);
  data_work(l->filter, &l->x, l->conv, &l->y);
}

static void pool_make(layer_t *l, int size, int step, int edge) {
  int extent[DIMS];
  const int window[3] = {size, size, size}, stride[3] = {step, step, step},
            pad[3] = {edge, edge, edge};
  TRY(cudnnCreatePoolingDescriptor(&l->pool));
  TRY(cudnnSetPoolingNdDescriptor(l->pool, CUDNN_POOLING_MAX,
                                  CUDNN_NOT_PROPAGATE_NAN, dims - 2, window,
                                  pad, stride));
  TRY(cudnnGetPoolingNdForwardOutputDim(l->pool, l->x.desc, dims, extent));
  l->y = tensor(extent);
}

static void dropout_make(layer_t *l) {
  size_t bytes;
  void *states;
  TRY(cudnnCreateDropoutDescriptor(&l->dropout));
  TRY(cudnnDropoutGetStatesSize(cudnn, &bytes));
  TRY(cudaMalloc(&states, bytes));
  TRY(cudnnSetDropoutDescriptor(l->dropout, cudnn, 0.1F, states, bytes, 1));
  TRY(cudnnDropoutGetReserveSpaceSize(l->x.desc, &l->reserve_bytes));
  TRY(cudaMalloc(&l->reserve, l->reserve_bytes));
}

static void layer_make(layer_t *l, const tensor_t *x) {
  const int *n = l->number;
  l->x = *x;
  l->y = *x;
  switch (l->kind) {
  case 'c':
    forward_make(l, n[0], n + 1, l->numbers > 3 ? n[3] : 1,
                 l->numbers > 4 ? n[4] : 1);
    break;
  case 's':
    forward_make(l, x->extent[1], n, 1, 1);
    break;
  case 'p':
    pool_make(l, n[0], l->numbers > 1 ? n[1] : n[0], n[2]);
    break;
  case 't':
    transposed_make(l, n[0], n[1], l->numbers > 2 ? n[2] : n[1]);
    break;
  case 'd':
    l->y = another(x);
    dropout_make(l);
    break;
  case 'm':
    l->y = another(x);
    break;
  case 'h':
    l->host = malloc(count_of(x) * sizeof *l->host);
    break;
  default:
    break;
  }
}

static void layer_forward(const layer_t *l) {
  cudnnActivationDescriptor_t relu;
  switch (l->kind) {
  case 'c':
  case 's':
    TRY(cudnnConvolutionForward(cudnn, &one, l->x.desc, l->x.at, l->filter,
                                l->w, l->conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, work,
                                work_bytes, &zero, l->y.desc, l->y.at));
    break;
  case 't':
    TRY(cudnnConvolutionBackwardData(cudnn, &one, l->filter, l->w, l->x.desc,
                                     l->x.at, l->conv,
                                     CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, work,
                                     work_bytes, &zero, l->y.desc, l->y.at));
    break;
  case 'p':
    TRY(cudnnPoolingForward(cudnn, l->pool, &one, l->x.desc, l->x.at, &zero,
                            l->y.desc, l->y.at));
    break;
  case 'r':
    TRY(cudnnCreateActivationDescriptor(&relu));
    TRY(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
    TRY(cudnnActivationForward(cudnn, relu, &one, l->x.desc, l->x.at, &zero,
                               l->x.desc, l->x.at));
    TRY(cudnnDestroyActivationDescriptor(relu));
    break;
  case 'h':
    TRY(cudaMemcpy(l->host, l->x.at, count_of(&l->x) * sizeof *l->host,
                   cudaMemcpyDeviceToHost));
    break;
  case 'd':
    TRY(cudnnDropoutForward(cudnn, l->dropout, l->x.desc, l->x.at, l->y.desc,
                            l->y.at, l->reserve, l->reserve_bytes));
    break;
  case 'm':
    TRY(cudnnSoftmaxForward(cudnn, CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, &one, l->x.desc,
                            l->x.at, &zero, l->y.desc, l->y.at));
    break;
  default:
    break;
  }
}

static void layer_backward(const layer_t *l, int first) {
  if (l->kind != 'c' && l->kind != 's')
    return;
  TRY(cudnnConvolutionBackwardFilter(cudnn, &one, l->x.desc, l->x.at, l->y.desc,
                                     l->y.grad, l->conv,
                                     CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, work,
                                     work_bytes, &zero, l->filter, l->dw));
  if (!first)
    TRY(cudnnConvolutionBackwardData(cudnn, &one, l->filter, l->w, l->y.desc,
                                     l->y.grad, l->conv,
                                     CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, work,
                                     work_bytes, &zero, l->x.desc, l->x.grad));
}

static void step_run(const layer_t *layer, int layers, int backward) {
  for (int i = 0; i < layers; i++)
    layer_forward(&layer[i]);
  for (int i = layers - 1; i >= 0 && backward; i--)
    layer_backward(&layer[i], i == 0);
}

// Runs a step, and the others as launches of what it captures of a second one.
static void steps_launch(const layer_t *layer, int layers, int backward,
                         int steps) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  TRY(cudaStreamCreate(&stream));
  TRY(cudnnSetStream(cudnn, stream));
  step_run(layer, layers, backward);
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  step_run(layer, layers, backward);
  TRY(cudaStreamEndCapture(stream, &graph));
  TRY(cudaGraphInstantiate(&exec, graph, 0));
  for (int step = 1; step < steps; step++)
    TRY(cudaGraphLaunch(exec, stream));
}

static void npy_save(const char *path, const tensor_t *t) {
  FILE *file = fopen(path, "wb");
  float *host = malloc(count_of(t) * sizeof *host);
  char head[119] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  size_t bytes = strlen(head);
  if (!file || !host)
    exit(EXIT_FAILURE);
  TRY(cudaMemcpy(host, t->at, count_of(t) * sizeof *host,
                 cudaMemcpyDeviceToHost));
  for (int d = 0; d < dims; d++)
    bytes += (size_t)sprintf(head + bytes, "%d, ", t->extent[d]);
  bytes += (size_t)sprintf(head + bytes, "), }");
  memset(head + bytes, ' ', sizeof head - bytes);
  head[117] = '\n';
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
  fwrite(head, 1, 118, file);
  fwrite(host, sizeof *host, count_of(t), file);
  if (fclose(file) != 0)
    exit(EXIT_FAILURE);
  free(host);
}

int main(int argc, char **argv) {
  static layer_t layer[LAYERS];
  int row[2], column[2], layers = 0, backward = 0, graph = 0;
  if (argc < 6 || argc - 5 > LAYERS ||
      sscanf(argv[3], "%d:%d", &row[0], &row[1]) != 2 ||
      sscanf(argv[4], "%d:%d", &column[0], &column[1]) != 2)
    return EXIT_FAILURE;
  TRY(cudnnCreate(&cudnn));
  int first = 5;
  for (; first < argc && strchr("nv", *argv[first]); first++) {
    const char *word = argv[first];
    int *range = *word == 'n' ? image : plane;
    if (sscanf(word + 1, ":%d:%d", &range[0], &range[1]) == 2)
      dims = *word == 'v' ? 5 : dims;
  }
  int extent[DIMS] = {image[1] - image[0], 2, plane[1] - plane[0]};
  extent[dims - 2] = row[1] - row[0];
  extent[dims - 1] = column[1] - column[0];
  tensor_t first_x = tensor(extent), x = first_x;
  for (int i = first; i < argc; i++) {
    layer_t *l = &layer[layers];
    int *n = l->number;
    if (*argv[i] == 'b') {
      backward = 1;
      continue;
    }
    if (*argv[i] == 'g') {
      graph = 1;
      continue;
    }
    l->kind = *argv[i];
    l->numbers = sscanf(argv[i] + 1, ":%d:%d:%d:%d:%d", &n[0], &n[1], &n[2],
                        &n[3], &n[4]);
    layer_make(l, &x);
    if (l->kind != 's')
      x = l->y;
    layers++;
  }
  image_fill(&first_x, row[0], column[0]);
  if (graph)
    steps_launch(layer, layers, backward, atoi(argv[2]));
  for (int step = 0; step < atoi(argv[2]) && !graph; step++)
    step_run(layer, layers, backward);
  TRY(cudaDeviceSynchronize());
  npy_save(argv[1], &x);
  return EXIT_SUCCESS;
}
