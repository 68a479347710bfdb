// SPDX-License-Identifier: Apache-2.0
// Pointwise calls whose operands are cut in different rows, or are all there on
// every rank: random ones, every element checked.
//
// usage: disagreecase RANK RANKS SEED TRIALS
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { RANKS_MAX = 8, ROOM = 1 << 13, C = 2, W = 3, A = 0, B, OUT };

static int rank, ranks;
static unsigned long long state;

static int draw(int below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((state >> 33) % (unsigned)below);
}

// One operand: its rows [lo,hi) on this rank, of one column where `narrow`.
typedef struct operand {
  int lo, hi;
  bool nhwc, narrow;
  cudnnTensorDescriptor_t descriptor;
  void *data;
} operand_t;

// Distinct cuts in [1, rows), in order.
static void part_draw(int rows, int *first) {
  for (int p = 0; p <= ranks; p++)
    first[p] = p == ranks ? rows : p; // the least that each piece can have
  for (int p = ranks - 1; p > 0; p--)
    first[p] += draw(first[p + 1] - first[p]);
}

static void operand_draw(operand_t *operand, int rows) {
  int first[RANKS_MAX + 1];
  part_draw(rows, first);
  bool everywhere = draw(4) == 0;
  operand->lo = everywhere ? 0 : first[rank];
  operand->hi = everywhere ? rows : first[rank + 1];
  operand->nhwc = draw(2);
}

static int offset(const operand_t *operand, int c, int row, int w) {
  int h = operand->hi - operand->lo, width = operand->narrow ? 1 : W;
  w = operand->narrow ? 0 : w;
  return operand->nhwc ? ((row - operand->lo) * width + w) * C + c
                       : (c * h + row - operand->lo) * width + w;
}

static float value(int operand, const operand_t *o, int c, int row, int w) {
  return (float)(1 + operand * 1000 + (c * 100 + row) * 10 +
                 (o->narrow ? 0 : w));
}

static void operand_fill(operand_t *o, int which) {
  float host[ROOM];
  CHECK(cudnnSetTensor4dDescriptor(
      o->descriptor, o->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
      CUDNN_DATA_FLOAT, 1, C, o->hi - o->lo, o->narrow ? 1 : W));
  for (int c = 0; c < C; c++)
    for (int row = o->lo; row < o->hi; row++)
      for (int w = 0; w < W; w++)
        host[offset(o, c, row, w)] = value(which, o, c, row, w);
  CHECK(cudaMemcpy(o->data, host, sizeof host, cudaMemcpyHostToDevice));
}

static int result_check(const operand_t *o, bool adds, float beta) {
  float host[ROOM];
  int wrong = 0;
  CHECK(cudaMemcpy(host, o[OUT].data, sizeof host, cudaMemcpyDeviceToHost));
  for (int c = 0; c < C; c++)
    for (int row = o[OUT].lo; row < o[OUT].hi; row++)
      for (int w = 0; w < W; w++) {
        float old = value(OUT, &o[OUT], c, row, w);
        float a = value(A, &o[A], c, row, w), b = value(B, &o[B], c, row, w);
        float should = (adds ? 2 * b : a + 3 * b) + beta * old;
        wrong += host[offset(&o[OUT], c, row, w)] != should;
      }
  return wrong;
}

int main(int count, char **arguments) {
  static operand_t o[3];
  const float one = 1, two = 2, three = 3;
  if (count != 5)
    return 2;
  rank = atoi(arguments[1]);
  ranks = atoi(arguments[2]);
  state = strtoull(arguments[3], NULL, 10) * 2 + 1;
  cudnnHandle_t handle;
  cudnnOpTensorDescriptor_t add;
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateOpTensorDescriptor(&add));
  CHECK(cudnnSetOpTensorDescriptor(add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN));
  for (int i = 0; i < 3; i++) {
    CHECK(cudnnCreateTensorDescriptor(&o[i].descriptor));
    CHECK(cudaMalloc(&o[i].data, ROOM * sizeof(float)));
  }
  for (int trial = 0; trial < atoi(arguments[4]); trial++) {
    int rows = ranks + 1 + draw(20); // one row each would be a broadcast
    bool adds = draw(3) == 0;
    float beta = (float)draw(2);
    for (int i = 0; i < 3; i++)
      operand_draw(&o[i], rows);
    o[B].narrow = draw(3) == 0;
    for (int i = 0; i < 3; i++)
      operand_fill(&o[i], i);
    for (int repeat = 0; repeat < 2; repeat++) {
      if (repeat)
        operand_fill(&o[OUT], OUT);
      if (adds)
        CHECK(cudnnAddTensor(handle, &two, o[B].descriptor, o[B].data, &beta,
                             o[OUT].descriptor, o[OUT].data));
      else
        CHECK(cudnnOpTensor(handle, add, &one, o[A].descriptor, o[A].data,
                            &three, o[B].descriptor, o[B].data, &beta,
                            o[OUT].descriptor, o[OUT].data));
      int wrong = result_check(o, adds, beta);
      if (wrong) {
        fprintf(stderr, "disagreecase: trial %d: %d wrong\n", trial, wrong);
        return 1;
      }
    }
  }
  return 0;
}
