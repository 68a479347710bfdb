// SPDX-License-Identifier: Apache-2.0
// Tests which tensors inside larger ones this device's cuDNN accepts: the views
// that strategy repair uses, in layouts and types of real programs. For views
// that it refuses, sundog uses extend; results for others must be right.
#include <cudnn.h>
#include <math.h>
#include <stdbool.h>

#include "tests/gpu/probe.h"

// Rows [1, 9) of 12 of the input give rows [2, 8) of 10 of the output.
enum { N = 2, C = 4, W = 8, X_ROWS = 12, Y_ROWS = 10, X = 8, Y = 6, ALGOS = 8 };
enum { X_COUNT = N * C * X_ROWS * W, Y_COUNT = N * C * Y_ROWS * W };
enum { W_COUNT = C * C * 3 * 3 };

static cudnnHandle_t cudnn;
static const float one = 1, zero = 0;

// Returns the offset of an element in a tensor with this many rows.
static size_t place(bool channels_last, int rows, int n, int c, int h, int w) {
  return (size_t)(channels_last ? ((n * rows + h) * W + w) * C + c
                                : ((n * C + c) * rows + h) * W + w);
}

static cudnnTensorDescriptor_t describe(cudnnDataType_t type, bool last,
                                        int rows, int of) {
  cudnnTensorDescriptor_t desc;
  PROBE_CUDNN(cudnnCreateTensorDescriptor(&desc));
  PROBE_CUDNN(cudnnSetTensor4dDescriptorEx(
      desc, type, N, C, rows, W, (int)place(last, of, 1, 0, 0, 0),
      (int)place(last, of, 0, 1, 0, 0), (int)place(last, of, 0, 0, 1, 0),
      (int)place(last, of, 0, 0, 0, 1)));
  return desc;
}

typedef struct {
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
} conv_t;

static conv_t conv_make(cudnnDataType_t type, bool last) {
  conv_t c;
  c.x = describe(type, last, X, X_ROWS);
  c.y = describe(type, last, Y, Y_ROWS);
  PROBE_CUDNN(cudnnCreateFilterDescriptor(&c.w));
  PROBE_CUDNN(cudnnSetFilter4dDescriptor(
      c.w, type, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, C, C, 3, 3));
  PROBE_CUDNN(cudnnCreateConvolutionDescriptor(&c.conv));
  PROBE_CUDNN(cudnnSetConvolution2dDescriptor(
      c.conv, 0, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  return c;
}

// Writes the algorithms that accept the call, like "0 1 6".
static void algorithms(const conv_t *c, int what, char *out) {
  *out = '\0';
  for (int algo = 0; algo < ALGOS; algo++) {
    size_t bytes;
    cudnnStatus_t status =
        what == 0 ? cudnnGetConvolutionForwardWorkspaceSize(
                        cudnn, c->x, c->w, c->conv, c->y,
                        (cudnnConvolutionFwdAlgo_t)algo, &bytes)
        : what == 1 ? cudnnGetConvolutionBackwardDataWorkspaceSize(
                          cudnn, c->w, c->y, c->conv, c->x,
                          (cudnnConvolutionBwdDataAlgo_t)algo, &bytes)
                    : cudnnGetConvolutionBackwardFilterWorkspaceSize(
                          cudnn, c->x, c->y, c->conv, c->w,
                          (cudnnConvolutionBwdFilterAlgo_t)algo, &bytes);
    if (status == CUDNN_STATUS_SUCCESS)
      sprintf(out + strlen(out), "%s%d", *out ? " " : "", algo);
  }
  if (!*out)
    strcpy(out, "none");
}

static void accepted_probe(void) {
  static const struct {
    cudnnDataType_t type;
    const char *name;
  } types[] = {{CUDNN_DATA_FLOAT, "float"},
               {CUDNN_DATA_HALF, "half"},
               {CUDNN_DATA_BFLOAT16, "bfloat16"}};
  static const char *const what[] = {"forward", "gradient of data",
                                     "gradient of filter"};
  for (int t = 0; t < 3; t++)
    for (int last = 0; last < 2; last++)
      for (int i = 0; i < 3; i++) {
        char point[96], taken[64];
        conv_t c = conv_make(types[t].type, last);
        snprintf(point, sizeof point, "views, %s, %s, %s", types[t].name,
                 last ? "NHWC" : "NCHW", what[i]);
        algorithms(&c, i, taken);
        probe_say(point, "algorithms %s", taken);
      }
}

// Computes an element by plain loops over the same view; an error of one row
// would show.
static double row_value(const float *x, const float *w, bool last, int n, int k,
                        int h, int column) {
  double sum = 0;
  for (int c = 0; c < C; c++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        int at = column + j - 1;
        size_t tap = (size_t)(last ? ((k * 3 + i) * 3 + j) * C + c
                                   : ((k * C + c) * 3 + i) * 3 + j);
        if (at >= 0 && at < W)
          sum += (double)x[place(last, X_ROWS, n, c, 1 + h + i, at)] * w[tap];
      }
  return sum;
}

// Checks every element of y's memory: those of the view, and those around it,
// which must not change.
static bool is_right(const float *x, const float *w, const float *y,
                     bool last) {
  for (int n = 0; n < N; n++)
    for (int k = 0; k < C; k++)
      for (int h = 0; h < Y_ROWS; h++)
        for (int column = 0; column < W; column++) {
          float got = y[place(last, Y_ROWS, n, k, h, column)];
          double right =
              h < 2 || h >= 8 ? 7 : row_value(x, w, last, n, k, h - 2, column);
          if (!(fabs(got - right) <= 1e-4))
            return false;
        }
  return true;
}

static void values_probe(bool last) {
  float x[X_COUNT], w[W_COUNT], y[Y_COUNT];
  conv_t c = conv_make(CUDNN_DATA_FLOAT, last);
  for (unsigned i = 0; i < X_COUNT; i++)
    x[i] = probe_number(i);
  for (unsigned i = 0; i < W_COUNT; i++)
    w[i] = probe_number(i + 1000);
  for (int i = 0; i < Y_COUNT; i++)
    y[i] = 7;
  float *device_x = probe_upload(x, X_COUNT),
        *device_w = probe_upload(w, W_COUNT);
  for (int algo = 0; algo < ALGOS; algo++) {
    char point[96];
    size_t bytes;
    if (cudnnGetConvolutionForwardWorkspaceSize(cudnn, c.x, c.w, c.conv, c.y,
                                                (cudnnConvolutionFwdAlgo_t)algo,
                                                &bytes) != CUDNN_STATUS_SUCCESS)
      continue;
    float got[Y_COUNT], *device_y = probe_upload(y, Y_COUNT);
    void *space = probe_device(bytes);
    snprintf(point, sizeof point, "a view of %s by algorithm %d",
             last ? "NHWC" : "NCHW", algo);
    cudnnStatus_t status = cudnnConvolutionForward(
        cudnn, &one, c.x, device_x + place(last, X_ROWS, 0, 0, 1, 0), c.w,
        device_w, c.conv, (cudnnConvolutionFwdAlgo_t)algo, space, bytes, &zero,
        c.y, device_y + place(last, Y_ROWS, 0, 0, 2, 0));
    probe_download(device_y, got, Y_COUNT);
    if (status != CUDNN_STATUS_SUCCESS)
      probe_say(point, "said to be taken, then %s",
                cudnnGetErrorString(status));
    else
      probe_expect(point, is_right(x, w, got, last), "right", "wrong");
    PROBE_CUDA(cudaFree(device_y));
    PROBE_CUDA(cudaFree(space));
  }
}

// The calls with which sundog packs and adds.
static void pointwise_probe(bool last) {
  float x[X_COUNT], y[Y_COUNT], got[Y_COUNT];
  cudnnTensorDescriptor_t from = describe(CUDNN_DATA_FLOAT, last, Y, X_ROWS);
  cudnnTensorDescriptor_t to = describe(CUDNN_DATA_FLOAT, last, Y, Y_ROWS);
  for (unsigned i = 0; i < X_COUNT; i++)
    x[i] = probe_number(i);
  for (int i = 0; i < Y_COUNT; i++)
    y[i] = 7;
  static const char *const what[] = {"cudnnTransformTensor", "cudnnAddTensor"};
  float *device_x = probe_upload(x, X_COUNT);
  for (int adds = 0; adds < 2; adds++) {
    char point[96];
    float *device_y = probe_upload(y, Y_COUNT);
    const float *source = device_x + place(last, X_ROWS, 0, 0, 1, 0);
    float *target = device_y + place(last, Y_ROWS, 0, 0, 2, 0);
    cudnnStatus_t status =
        adds ? cudnnAddTensor(cudnn, &one, from, source, &one, to, target)
             : cudnnTransformTensor(cudnn, &one, from, source, &zero, to,
                                    target);
    probe_download(device_y, got, Y_COUNT);
    bool right = status == CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < N * C * Y_ROWS * W && right; i++) {
      int n = i / (C * Y_ROWS * W), c = i / (Y_ROWS * W) % C;
      int h = i / W % Y_ROWS, w = i % W;
      float held = h < 2 || h >= 8 ? 7 : (float)(adds ? 7 : 0);
      if (h >= 2 && h < 8)
        held += x[place(last, X_ROWS, n, c, h - 1, w)];
      right = fabsf(got[place(last, Y_ROWS, n, c, h, w)] - held) <= 1e-5f;
    }
    snprintf(point, sizeof point, "%s of a view of %s", what[adds],
             last ? "NHWC" : "NCHW");
    probe_expect(point, right, "right",
                 status ? cudnnGetErrorString(status) : "wrong");
  }
}

int main(void) {
  PROBE_CUDNN(cudnnCreate(&cudnn));
  accepted_probe();
  for (int last = 0; last < 2; last++) {
    values_probe(last);
    pointwise_probe(last);
  }
  PROBE_CUDNN(cudnnDestroy(cudnn));
  return probe_faults > 0;
}
