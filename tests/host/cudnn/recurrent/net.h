/* SPDX-License-Identifier: Apache-2.0 */
/* A recurrent network: its descriptors and values, and what it computes by the
 * cells' definitions in doubles. */
#ifndef SDG_TESTS_HOST_CUDNN_RECURRENT_NET_H
#define SDG_TESTS_HOST_CUDNN_RECURRENT_NET_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static cudnnHandle_t handle;

/* Values that a run reads and writes, on the device and as doubles. */
typedef struct {
  tensor_t x, y, hx, hy, cx, cy, w, dy, dhy, dcy, dx, dhx, dcx, dw;
} values_t;

typedef struct {
  cudnnRNNMode_t cell;
  cudnnRNNBiasMode_t bias;
  cudnnRNNDataLayout_t layout;
  cudnnDataType_t type;
  bool skips, has_state, clips;
  int gates, layers, ways, input, hidden, out, time, batch, length[4];
  int rows;       /* of a layout in memory */
  double dropout; /* between layers */
  cudnnRNNDescriptor_t rnn;
  cudnnRNNDataDescriptor_t x_desc, y_desc;
  cudnnTensorDescriptor_t h_desc, c_desc;
  cudnnDropoutDescriptor_t drop;
  void *states, *reserve;
  size_t states_bytes, reserve_bytes;
  values_t v;
} net_t;

static inline int row_of(const net_t *n, int t, int b) {
  if (n->layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
    return b * n->time + t;
  if (n->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
    return t * n->batch + b;
  int row = 0;
  for (int i = 0; i < t; i++)
    for (int j = 0; j < n->batch; j++)
      row += i < n->length[j];
  return row + b;
}

static inline int parts(const net_t *n) {
  return n->layers * n->ways;
}

static inline void describe(net_t *n) {
  double fill = 0;
  OK(cudnnCreateRNNDescriptor(&n->rnn));
  OK(cudnnCreateDropoutDescriptor(&n->drop));
  OK(cudnnDropoutGetStatesSize(handle, &n->states_bytes));
  OK(cudaMalloc(&n->states, n->states_bytes));
  OK(cudnnSetDropoutDescriptor(n->drop, handle, (float)n->dropout, n->states,
                               n->states_bytes, 5));
  OK(cudnnSetRNNDescriptor_v8(
      n->rnn, CUDNN_RNN_ALGO_STANDARD, n->cell, n->bias,
      n->ways == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
      n->skips ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, n->type,
      n->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      CUDNN_DEFAULT_MATH, n->input, n->hidden, n->out, n->layers, n->drop,
      CUDNN_RNN_PADDED_IO_ENABLED));
  if (n->clips)
    OK(cudnnRNNSetClip_v9(n->rnn, CUDNN_RNN_CLIP_MINMAX, -0.3, 0.2));
  OK(cudnnCreateRNNDataDescriptor(&n->x_desc));
  OK(cudnnCreateRNNDataDescriptor(&n->y_desc));
  OK(cudnnSetRNNDataDescriptor(n->x_desc, n->type, n->layout, n->time, n->batch,
                               n->input, n->length, &fill));
  OK(cudnnSetRNNDataDescriptor(n->y_desc, n->type, n->layout, n->time, n->batch,
                               n->out * n->ways, n->length, &fill));
  OK(cudnnCreateTensorDescriptor(&n->h_desc));
  OK(cudnnCreateTensorDescriptor(&n->c_desc));
  OK(cudnnSetTensorNdDescriptorEx(n->h_desc, CUDNN_TENSOR_NCHW, n->type, 3,
                                  (int[]){parts(n), n->batch, n->out}));
  OK(cudnnSetTensorNdDescriptorEx(n->c_desc, CUDNN_TENSOR_NCHW, n->type, 3,
                                  (int[]){parts(n), n->batch, n->hidden}));
}

static inline void create(net_t *n, cudnnDataType_t type, double dropout) {
  *n = (net_t){.cell = (cudnnRNNMode_t)case_range(0, 3),
               .bias = (cudnnRNNBiasMode_t)case_range(0, 3),
               .layout = (cudnnRNNDataLayout_t)case_range(0, 2),
               .type = type,
               .dropout = dropout,
               .has_state = case_range(0, 3) > 0,
               .layers = case_range(dropout > 0 ? 2 : 1, 3),
               .ways = case_range(1, 2),
               .hidden = case_range(1, 5),
               .time = case_range(1, 5),
               .batch = case_range(1, 4)};
  n->gates = n->cell == CUDNN_LSTM ? 4 : n->cell == CUDNN_GRU ? 3 : 1;
  n->out = n->cell == CUDNN_LSTM && case_range(0, 1) ? case_range(1, n->hidden)
                                                     : n->hidden;
  n->clips = n->cell == CUDNN_LSTM && case_range(0, 2) == 0;
  n->skips = case_range(0, 3) == 0;
  n->input = n->skips ? n->hidden : case_range(1, 5);
  bool packed = n->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  for (int b = 0, most = n->time; b < n->batch; b++) {
    n->length[b] = b == 0 && packed ? n->time : case_range(1, most);
    if (packed)
      most = n->length[b];
  }
  n->rows = n->time * n->batch;
  if (packed) {
    n->rows = 0;
    for (int b = 0; b < n->batch; b++)
      n->rows += n->length[b];
  }
  describe(n);
  size_t bytes, work;
  OK(cudnnGetRNNWeightSpaceSize(handle, n->rnn, &bytes));
  OK(cudnnGetRNNTempSpaceSizes(handle, n->rnn, CUDNN_FWD_MODE_TRAINING,
                               n->x_desc, &work, &n->reserve_bytes));
  OK(cudaMalloc(&n->reserve, n->reserve_bytes));
  values_t *v = &n->v;
  int x = n->rows * n->input, y = n->rows * n->out * n->ways;
  int h = parts(n) * n->batch * n->out, c = parts(n) * n->batch * n->hidden;
  tensor_t *const all[] = {&v->x,   &v->dx,  &v->y,   &v->dy, &v->hx,
                           &v->hy,  &v->dhx, &v->dhy, &v->cx, &v->cy,
                           &v->dcx, &v->dcy, &v->w,   &v->dw};
  const int count[] = {x, x, y, y, h, h, h, h, c, c, c, c, 0, 0};
  for (int i = 0; i < 14; i++)
    *all[i] =
        tensor_vector(type, count[i] ? count[i] : (int)(bytes / v->x.unit));
}

static inline void destroy(net_t *n) {
  values_t *v = &n->v;
  tensor_t *const all[] = {&v->x,   &v->dx,  &v->y,   &v->dy, &v->hx,
                           &v->hy,  &v->dhx, &v->dhy, &v->cx, &v->cy,
                           &v->dcx, &v->dcy, &v->w,   &v->dw};
  for (int i = 0; i < 14; i++)
    tensor_destroy(all[i]);
  OK(cudaFree(n->reserve));
  OK(cudaFree(n->states));
  OK(cudnnDestroyRNNDescriptor(n->rnn));
  OK(cudnnDestroyDropoutDescriptor(n->drop));
  OK(cudnnDestroyRNNDataDescriptor(n->x_desc));
  OK(cudnnDestroyRNNDataDescriptor(n->y_desc));
  OK(cudnnDestroyTensorDescriptor(n->h_desc));
  OK(cudnnDestroyTensorDescriptor(n->c_desc));
}

/* Matrix or bias `id` of a pseudo-layer; NULL where there is none. */
static const double *param(const net_t *n, int part, int id, bool is_bias,
                           int *out_columns) {
  cudnnTensorDescriptor_t m, b;
  void *m_at, *b_at;
  OK(cudnnCreateTensorDescriptor(&m));
  OK(cudnnCreateTensorDescriptor(&b));
  OK(cudnnGetRNNWeightParams(handle, n->rnn, part, n->v.w.bytes, n->v.w.device,
                             id, m, &m_at, b, &b_at));
  int rank, dim[3] = {0}, stride[3];
  cudnnDataType_t type;
  OK(cudnnGetTensorNdDescriptor(is_bias ? b : m, 3, &type, &rank, dim, stride));
  *out_columns = dim[2];
  OK(cudnnDestroyTensorDescriptor(m));
  OK(cudnnDestroyTensorDescriptor(b));
  char *at = is_bias ? b_at : m_at;
  if (!at)
    return NULL;
  return n->v.w.value + (at - (char *)n->v.w.device) / (long)n->v.w.unit;
}

/* Row j of a matrix times a vector; a missing matrix is the identity. */
static inline double times(const net_t *n, int part, int id, int j,
                           const double *in) {
  int columns;
  const double *m = param(n, part, id, false, &columns);
  if (!m)
    return in[j];
  double sum = 0;
  for (int i = 0; i < columns; i++)
    sum += m[j * columns + i] * in[i];
  return sum;
}

static inline double bias(const net_t *n, int part, int id, int j) {
  int columns;
  const double *b = param(n, part, id, true, &columns);
  return b ? b[j] : 0;
}

static inline double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

/* Limits are floats and apply when a cell is read. */
static inline double limited(const net_t *n, double c) {
  return n->clips ? fmin(fmax(c, (double)-0.3F), (double)0.2F) : c;
}

/* One step: h (and c) become the next state. */
static inline void step(const net_t *n, int part, const double *in, double *h,
                        double *c) {
  double next[8], m[8];
  int g = n->gates;
  for (int j = 0; j < n->hidden; j++) {
    double a[4], r[4];
    for (int k = 0; k < g; k++) {
      a[k] = times(n, part, k, j, in) + bias(n, part, k, j);
      r[k] = times(n, part, g + k, j, h) + bias(n, part, g + k, j);
    }
    switch (n->cell) {
    case CUDNN_RNN_RELU:
      m[j] = fmax(a[0] + r[0], 0);
      break;
    case CUDNN_RNN_TANH:
      m[j] = tanh(a[0] + r[0]);
      break;
    case CUDNN_LSTM:
      c[j] = sigmoid(a[1] + r[1]) * limited(n, c[j]) +
             sigmoid(a[0] + r[0]) * tanh(a[2] + r[2]);
      m[j] = sigmoid(a[3] + r[3]) * tanh(limited(n, c[j]));
      break;
    default: {
      double reset = sigmoid(a[0] + r[0]), update = sigmoid(a[1] + r[1]);
      m[j] = (1 - update) * tanh(a[2] + reset * r[2]) + update * h[j];
    }
    }
  }
  for (int j = 0; j < n->out; j++)
    next[j] = n->out == n->hidden ? m[j] : times(n, part, 2 * g, j, m);
  memcpy(h, next, (size_t)n->out * sizeof *h);
}

/* y, hy and cy of all sequences, as doubles in the layouts of the program. */
static inline void define(const net_t *n, double *y, double *hy, double *cy) {
  enum { WIDE = 16 };
  for (int b = 0; b < n->batch; b++) {
    double in[8][WIDE], out[8][WIDE] = {{0}};
    for (int t = 0; t < n->length[b]; t++)
      memcpy(in[t], n->v.x.value + row_of(n, t, b) * n->input,
             (size_t)n->input * sizeof(double));
    for (int part = 0; part < parts(n); part++) {
      int way = part % n->ways;
      double *h = hy + (part * n->batch + b) * n->out;
      double *c = cy + (part * n->batch + b) * n->hidden;
      for (int j = 0; j < n->out; j++)
        h[j] = n->has_state ? n->v.hx.value[h - hy + j] : 0;
      for (int j = 0; j < n->hidden; j++)
        c[j] = n->has_state ? n->v.cx.value[c - cy + j] : 0;
      for (int i = 0; i < n->length[b]; i++) {
        int t = way ? n->length[b] - 1 - i : i;
        step(n, part, in[t], h, c);
        memcpy(out[t] + way * n->out, h, (size_t)n->out * sizeof *h);
      }
      if (way == n->ways - 1)
        memcpy(in, out, sizeof in);
    }
    for (int t = 0; t < n->length[b]; t++)
      memcpy(y + row_of(n, t, b) * n->out * n->ways, in[t],
             (size_t)(n->out * n->ways) * sizeof(double));
  }
}

#endif
