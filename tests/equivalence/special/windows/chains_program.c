// SPDX-License-Identifier: Apache-2.0
// Makes many cuDNN calls on streams of every kind, with handles that change
// their stream, and never waits. The program does not use sundog's functions.
// With an even seed each call depends on the call before. With an odd seed two
// streams are independent, each with two of the four fields. It writes the
// fields to a file.
//
// usage: chains_program RANK WIDTH NHWC SEED CALLS OUT ROWS...
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"
#include "tests/workspace.h"

enum { N = 2, C = 4, FIELDS = 4, FILTERS = 3, STREAMS = 6, HANDLES = 3 };

static struct {
  cudnnHandle_t handle[HANDLES];
  cudaStream_t stream[STREAMS]; /* the first two are the legacy default one */
  cudaEvent_t event;
  cudnnTensorDescriptor_t field_desc, bias_desc;
  cudnnFilterDescriptor_t filter_desc[FILTERS];
  cudnnConvolutionDescriptor_t conv[FILTERS];
  cudnnActivationDescriptor_t relu;
  cudnnOpTensorDescriptor_t sum;
  void *field[FIELDS], *filter[FILTERS], *bias;
  int first_row, rows, width, nhwc;
  int apart;    /* the streams are independent of each other */
  size_t bytes; /* bytes of one field */
} g;

static unsigned state;

static int random_below(int n) {
  state = state * 1103515245u + 12345u;
  return (int)((state >> 9) % (unsigned)n);
}

static size_t place(int n, int c, int y, int x) {
  size_t w = (size_t)g.width, h = (size_t)g.rows;
  return g.nhwc ? (((size_t)n * h + (size_t)y) * w + (size_t)x) * C + (size_t)c
                : (((size_t)n * C + (size_t)c) * h + (size_t)y) * w + (size_t)x;
}

static cudnnTensorFormat_t format(void) {
  return g.nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

static void field_describe(void) {
  CHECK(cudnnSetTensor4dDescriptor(g.field_desc, format(), CUDNN_DATA_FLOAT, N,
                                   C, g.rows, g.width));
}

static void *device_copy(const float *host, size_t bytes) {
  void *device;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

static void filters_make(void) {
  static const int kernel[FILTERS] = {3, 5, 3}, dilation[FILTERS] = {1, 1, 3};
  for (int i = 0; i < FILTERS; i++) {
    int k = kernel[i], d = dilation[i], pad = d * (k - 1) / 2;
    float host[C * C * 25];
    for (int j = 0; j < C * C * k * k; j++)
      host[j] = (float)((j * 7 + i * 3) % 13 - 6) / (6.0f * C * (float)k);
    CHECK(cudnnCreateFilterDescriptor(&g.filter_desc[i]));
    CHECK(cudnnSetFilter4dDescriptor(g.filter_desc[i], CUDNN_DATA_FLOAT,
                                     CUDNN_TENSOR_NCHW, C, C, k, k));
    CHECK(cudnnCreateConvolutionDescriptor(&g.conv[i]));
    CHECK(cudnnSetConvolution2dDescriptor(g.conv[i], pad, pad, 1, 1, d, d,
                                          CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    g.filter[i] = device_copy(host, sizeof(float) * (size_t)(C * C * k * k));
  }
}

static void fields_make(void) {
  float *host = malloc(g.bytes);
  for (int i = 0; i < FIELDS; i++) {
    for (int n = 0; n < N; n++)
      for (int c = 0; c < C; c++)
        for (int y = 0; y < g.rows; y++)
          for (int x = 0; x < g.width; x++) {
            int value = (y + g.first_row) * 31 + x * 17 + c * 5 + n * 3 + i;
            host[place(n, c, y, x)] = (float)(value % 23 - 11) / 11;
          }
    g.field[i] = device_copy(host, g.bytes);
  }
  free(host);
}

static void set_up(void) {
  static const float bias[C] = {0.1f, -0.2f, 0.3f, 0.05f};
  for (int i = 0; i < HANDLES; i++)
    CHECK(cudnnCreate(&g.handle[i]));
  g.stream[1] = cudaStreamLegacy;
  g.stream[2] = cudaStreamPerThread;
  CHECK(cudaStreamCreate(&g.stream[3]));
  CHECK(cudaStreamCreateWithFlags(&g.stream[4], cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&g.stream[5], cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&g.event, cudaEventDisableTiming));
  CHECK(cudnnCreateTensorDescriptor(&g.field_desc));
  field_describe();
  CHECK(cudnnCreateTensorDescriptor(&g.bias_desc));
  CHECK(cudnnSetTensor4dDescriptor(g.bias_desc, format(), CUDNN_DATA_FLOAT, 1,
                                   C, 1, 1));
  CHECK(cudnnCreateActivationDescriptor(&g.relu));
  CHECK(cudnnSetActivationDescriptor(g.relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  CHECK(cudnnCreateOpTensorDescriptor(&g.sum));
  CHECK(cudnnSetOpTensorDescriptor(g.sum, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_NOT_PROPAGATE_NAN));
  g.bias = device_copy(bias, sizeof bias);
  filters_make();
  fields_make();
}

static void convolve(cudnnHandle_t handle, int from, int to, float beta) {
  static const float half = 0.5f;
  int k = random_below(FILTERS);
  CHECK(cudnnConvolutionForward(
      handle, &half, g.field_desc, g.field[from], g.filter_desc[k], g.filter[k],
      g.conv[k], CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace(),
      WORKSPACE_BYTES, &beta, g.field_desc, g.field[to]));
}

static void convolve_fused(cudnnHandle_t handle, int from, int to, int old) {
  static const float half = 0.5f, quarter = 0.25f;
  int k = random_below(FILTERS);
  CHECK(cudnnConvolutionBiasActivationForward(
      handle, &half, g.field_desc, g.field[from], g.filter_desc[k], g.filter[k],
      g.conv[k], CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace(),
      WORKSPACE_BYTES, &quarter, g.field_desc, g.field[old], g.bias_desc,
      g.bias, g.relu, g.field_desc, g.field[to]));
}

static void add(cudnnHandle_t handle, int from, int to) {
  static const float one = 1, half = 0.5f, zero = 0;
  // The output may be in the memory of the first operand only.
  CHECK(cudnnOpTensor(handle, g.sum, &half, g.field_desc, g.field[to], &half,
                      g.field_desc, g.field[from], &zero, g.field_desc,
                      g.field[to]));
  CHECK(cudnnAddTensor(handle, &one, g.bias_desc, g.bias, &one, g.field_desc,
                       g.field[to]));
}

static void rectify(cudnnHandle_t handle, int from, int to) {
  static const float one = 1, quarter = 0.25f;
  CHECK(cudnnActivationForward(handle, g.relu, &one, g.field_desc,
                               g.field[from], &quarter, g.field_desc,
                               g.field[to]));
}

/* Returns whether the legacy default stream orders the work of these two
 * streams: it orders all streams but those created as non-blocking. */
static int ordered(int a, int b) {
  return a == b || (a < 2 && b < 4) || (b < 2 && a < 4);
}

// Makes one call on a random stream; *stream is the stream of the call before.
// An event orders the two if nothing else does, and sometimes although
// something does.
static void call_random(int *stream) {
  int next = g.apart ? 2 * random_below(2) : random_below(STREAMS);
  int which = next / 2; // of the two independent streams
  if (g.apart)
    next = 2 + (next + g.width) % 4; // no two of them wait for each other
  int event = !g.apart && (!ordered(*stream, next) || random_below(4) == 0);
  if (event) {
    CHECK(cudaEventRecord(g.event, g.stream[*stream]));
    CHECK(cudaStreamWaitEvent(g.stream[next], g.event, 0));
  }
  *stream = next;
  if (random_below(5) == 0)
    field_describe();
  cudnnHandle_t handle = g.handle[random_below(HANDLES)];
  CHECK(cudnnSetStream(handle, g.stream[next]));
  int count = g.apart ? FIELDS / 2 : FIELDS;
  int from = random_below(count);
  int to = (from + 1 + random_below(count - 1)) % count;
  if (g.apart) {
    from += which * count;
    to += which * count;
  }
  switch (random_below(6)) {
  case 0:
  case 1:
    convolve(handle, from, to, 0);
    break;
  case 2:
    convolve(handle, from, to, 0.25f);
    break;
  case 3:
    convolve_fused(handle, from, to, random_below(2) ? to : from);
    break;
  case 4:
    add(handle, from, to);
    break;
  default:
    rectify(handle, from, to);
  }
}

static int fields_write(const char *path) {
  FILE *file = fopen(path, "wb");
  float *host = malloc(g.bytes);
  int good = file && host;
  for (int i = 0; i < FIELDS && good; i++) {
    CHECK(cudaMemcpy(host, g.field[i], g.bytes, cudaMemcpyDeviceToHost));
    good = fwrite(host, g.bytes, 1, file) == 1;
  }
  free(host);
  return file && fclose(file) == 0 && good;
}

int main(int argc, char **argv) {
  if (argc < 8) {
    fprintf(stderr,
            "usage: chains_program RANK WIDTH NHWC SEED CALLS OUT ROWS...\n");
    return 2;
  }
  int rank = atoi(argv[1]);
  g.width = atoi(argv[2]);
  g.nhwc = atoi(argv[3]);
  state = (unsigned)atoi(argv[4]);
  g.apart = state % 2;
  for (int i = 0; i < rank; i++)
    g.first_row += atoi(argv[7 + i]);
  g.rows = atoi(argv[7 + rank]);
  g.bytes = sizeof(float) * N * C * (size_t)g.rows * (size_t)g.width;
  set_up();
  int stream = 0;
  for (int calls = atoi(argv[5]); calls > 0; calls--)
    call_random(&stream);
  for (int i = 0; i < STREAMS; i++)
    CHECK(cudaStreamSynchronize(g.stream[i]));
  return fields_write(argv[6]) ? 0 : 1;
}
