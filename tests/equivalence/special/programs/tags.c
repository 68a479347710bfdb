// SPDX-License-Identifier: Apache-2.0
// Tags its tensors as split, and asks which rows of the whole the rank has.
// LINKED: the program is linked to sundog; otherwise it finds sundog's
// functions with dlsym.
//
// usage: tags_program [RANK RANKS]; alone, nothing is split
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"
#include "tests/workspace.h"

#ifdef LINKED
#define SUNDOG(name) name
#else
#define SUNDOG(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))
#endif

enum { W = 5, ROWS_MAX = 16 };

#define DEMAND(condition) CHECK(!(condition))

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  void *from, *to, *filter;
  int rank, ranks, rows;
} g;

// Rank r has 3 + r rows.
static int first_row(int rank) {
  return 3 * rank + rank * (rank - 1) / 2;
}

static void describe(cudnnTensorDescriptor_t descriptor) {
  CHECK(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW,
                                   CUDNN_DATA_FLOAT, 1, 1, g.rows, W));
}

static void set_up(void) {
  float x[ROWS_MAX * W], w[9];
  g.rows = 3 + g.rank;
  for (int i = 0; i < g.rows * W; i++)
    x[i] = (float)(first_row(g.rank) * W + i);
  for (int i = 0; i < 9; i++)
    w[i] = 1;
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnCreateTensorDescriptor(&g.x));
  CHECK(cudnnCreateTensorDescriptor(&g.y));
  CHECK(cudnnCreateFilterDescriptor(&g.w));
  CHECK(cudnnCreateConvolutionDescriptor(&g.conv));
  describe(g.x);
  describe(g.y);
  CHECK(cudnnSetFilter4dDescriptor(g.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1,
                                   1, 3, 3));
  CHECK(cudnnSetConvolution2dDescriptor(
      g.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudaMalloc(&g.from, sizeof x));
  CHECK(cudaMalloc(&g.to, sizeof x));
  CHECK(cudaMalloc(&g.filter, sizeof w));
  CHECK(cudaMemcpy(g.from, x, sizeof x, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(g.filter, w, sizeof w, cudaMemcpyHostToDevice));
}

// Results are sums of nine elements; only rows [lo,hi) of the whole count.
static void convolve_and_check(int lo, int hi) {
  static const float one = 1, zero = 0;
  float y[ROWS_MAX * W];
  CHECK(
      cudnnConvolutionForward(g.cudnn, &one, g.x, g.from, g.w, g.filter, g.conv,
                              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                              workspace(), WORKSPACE_BYTES, &zero, g.y, g.to));
  CHECK(cudaMemcpy(y, g.to, sizeof y, cudaMemcpyDeviceToHost));
  for (int i = 0; i < g.rows; i++)
    for (int j = 0; j < W; j++) {
      float sum = 0;
      int row = first_row(g.rank) + i;
      for (int a = row - 1; a <= row + 1; a++)
        for (int b = j - 1; b <= j + 1; b++)
          if (a >= lo && a < hi && b >= 0 && b < W)
            sum += (float)(a * W + b);
      DEMAND(y[i * W + j] == sum);
    }
}

static void placement_check(cudnnTensorDescriptor_t descriptor, int placed) {
  placed &= g.ranks > 1;
  int64_t first[8] = {-1, -1, -1, -1, -1}, whole[8] = {0};
  int dims = SUNDOG(sundog_placement)(descriptor, 8, first, whole);
  DEMAND(dims == (placed ? 4 : 0));
  if (placed)
    DEMAND(first[2] == first_row(g.rank) && first[0] == 0 && first[3] == 0 &&
           whole[2] == first_row(g.ranks) && whole[1] == 1 && whole[3] == W);
  DEMAND(first[4] == -1);
}

int main(int count, char **arguments) {
  g.rank = count > 2 ? atoi(arguments[1]) : 0;
  g.ranks = count > 2 ? atoi(arguments[2]) : 1;
  int all = first_row(g.ranks), mine = first_row(g.rank);
  DEMAND(SUNDOG(sundog_version)()[0] == '0');
  DEMAND(SUNDOG(sundog_error)()[0] == '\0');
  set_up();
  placement_check(g.x, 0);
  CHECK(SUNDOG(sundog_tag)(g.x, "H"));
  for (int i = 0; i < 3; i++)
    convolve_and_check(0, all);
  placement_check(g.x, 1);
  placement_check(g.y, 1); // follows x
  CHECK(SUNDOG(sundog_tag)(g.x, "local"));
  convolve_and_check(mine, mine + g.rows);
  placement_check(g.x, 0);
  CHECK(SUNDOG(sundog_untag)(g.x));
  CHECK(SUNDOG(sundog_tag)(g.x, "H:ranks"));
  CHECK(SUNDOG(sundog_tag)(g.y, "H:ranks"));
  convolve_and_check(0, all);
  describe(g.x); // no tag, and y's does not count
  describe(g.y);
  placement_check(g.x, 0);
  CHECK(SUNDOG(sundog_tag)(g.x, "local"));
  convolve_and_check(mine, mine + g.rows);
  if (g.ranks > 1) {
    DEMAND(SUNDOG(sundog_tag)(g.x, "Q") == 107);
    DEMAND(SUNDOG(sundog_tag)(g.x, "H:nowhere") == 107);
    DEMAND(SUNDOG(sundog_tag)(g.x, "H,H") == 109);
    DEMAND(SUNDOG(sundog_tag)(g.x, "") == 110);
    DEMAND(SUNDOG(sundog_tag)(&g, "H") == 303);
    DEMAND(strstr(SUNDOG(sundog_error)(), "SDG-303"));
  }
  return 0;
}
