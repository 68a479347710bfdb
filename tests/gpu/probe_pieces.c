// SPDX-License-Identifier: Apache-2.0
// Measures the sub-calls that a split convolution is made of: the whole tensor,
// a range of its rows, a strip of two output rows, and tensors whose first byte
// is not aligned.
//
// usage: probe_pieces [EDGE [CHANNELS]]    (1024 64: 3x3, half)
#include <stdbool.h>

#include "tests/gpu/probe_conv.h"

enum { ALGORITHMS = 2 };

static int edge = 1024, channels = 64;
static cudaStream_t stream;

typedef struct op {
  const char *name;
  cudnnStatus_t (*run)(const probe_conv_t *c);
} op_t;

typedef struct call {
  const op_t *op;
  const probe_conv_t *conv;
} call_t;

static void call_enqueue(void *with) {
  const call_t *call = with;
  PROBE_CUDNN(call->op->run(call->conv));
}

static cudnnStatus_t space_ask(const probe_conv_t *c, const op_t *op,
                               size_t *out_bytes) {
  if (op->run == probe_conv_forward)
    return cudnnGetConvolutionForwardWorkspaceSize(
        c->cudnn, c->x, c->w, c->how, c->y,
        (cudnnConvolutionFwdAlgo_t)c->algorithm, out_bytes);
  if (op->run == probe_conv_data)
    return cudnnGetConvolutionBackwardDataWorkspaceSize(
        c->cudnn, c->w, c->y, c->how, c->x,
        (cudnnConvolutionBwdDataAlgo_t)c->algorithm, out_bytes);
  return cudnnGetConvolutionBackwardFilterWorkspaceSize(
      c->cudnn, c->x, c->y, c->how, c->w,
      (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, out_bytes);
}

static void measure(probe_conv_t *c, const op_t *op, const char *order,
                    const char *piece) {
  char point[128];
  snprintf(point, sizeof point, "%s, %s, algorithm %d, %s", op->name, order,
           c->algorithm, piece);
  cudnnStatus_t status = space_ask(c, op, &c->space_bytes);
  if (status == CUDNN_STATUS_SUCCESS) {
    c->space = probe_device(c->space_bytes);
    status = op->run(c);
    if (status == CUDNN_STATUS_SUCCESS) {
      const call_t call = {op, c};
      probe_time_t took =
          probe_time(call_enqueue, (void *)(uintptr_t)&call, stream);
      probe_say(point,
                "%.1f us on the device, the caller's %.1f, workspace %.1f MB",
                took.gpu_us, took.cpu_us, (double)c->space_bytes / 1e6);
    }
    PROBE_CUDA(cudaStreamSynchronize(stream));
    PROBE_CUDA(cudaFree(c->space));
  }
  if (status != CUDNN_STATUS_SUCCESS)
    probe_say(point, "%s", cudnnGetErrorString(status));
}

// The inner rows lie one row behind the tensor's first element.
static void pieces_probe(probe_conv_t c, const op_t *op,
                         cudnnTensorFormat_t format) {
  const struct {
    const char *name;
    int x_rows, y_rows;
    size_t offset_bytes; // of x and of y
  } pieces[] = {
      {"whole", edge, edge, 0},
      {"whole, 2 bytes off", edge, edge, PROBE_HALF_BYTES},
      {"all rows but two, in place", edge, edge - 2, 0},
      {"strip of two rows", 4, 2, 0},
  };
  const char *order = format == CUDNN_TENSOR_NHWC ? "NHWC" : "NCHW";
  for (int i = 0; i < 4; i++) {
    probe_conv_t piece = c;
    size_t row = (size_t)edge * PROBE_HALF_BYTES *
                 (size_t)(format == CUDNN_TENSOR_NHWC ? channels : 1);
    piece.x_at += pieces[i].offset_bytes;
    piece.y_at += pieces[i].offset_bytes;
    if (pieces[i].y_rows == edge - 2)
      piece.y_at += row;
    probe_conv_open(&piece, format, channels, edge, pieces[i].x_rows,
                    pieces[i].y_rows);
    measure(&piece, op, order, pieces[i].name);
    probe_conv_close(&piece);
  }
}

int main(int count, char **words) {
  static const op_t ops[] = {{"forward", probe_conv_forward},
                             {"gradient of data", probe_conv_data},
                             {"gradient of filter", probe_conv_filter}};
  probe_conv_t c = {.algorithm = 0};
  if (count > 1)
    edge = atoi(words[1]);
  if (count > 2)
    channels = atoi(words[2]);
  if (edge < 16 || channels < 1)
    return 2;
  size_t bytes = (probe_conv_elements(channels, edge) + 1) * PROBE_HALF_BYTES;
  PROBE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  PROBE_CUDNN(cudnnCreate(&c.cudnn));
  PROBE_CUDNN(cudnnSetStream(c.cudnn, stream));
  c.x_at = probe_halves(bytes);
  c.y_at = probe_halves(bytes);
  c.w_at = probe_halves((size_t)channels * (size_t)channels * PROBE_KERNEL *
                        PROBE_KERNEL * PROBE_HALF_BYTES);
  for (int i = 0; i < 3; i++)
    for (int last = 1; last >= 0; last--)
      for (c.algorithm = 0; c.algorithm < ALGORITHMS; c.algorithm++)
        pieces_probe(c, &ops[i], last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
  PROBE_CUDNN(cudnnDestroy(c.cudnn));
  return probe_faults > 0;
}
