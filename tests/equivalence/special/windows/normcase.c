/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of batch normalisation on four ranks, N cut over axis a, H over b, each
 * rank against float64: gradients of scales and biases are summed over the axes
 * that the rules say, everything else over all; the averaging factor is another
 * one at each step, as programs have it that average over all of them.
 *
 * usage: normcase RANK AXES    AXES: of the rules' `sum =`: "ab", "a", "b", ""
 */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { N = 5, C = 3, H = 7, W = 4, STEPS = 3, ALL = N * C * H * W };
static const int cut_n[] = {0, 1, N}, cut_h[] = {0, 5, H};
static const double epsilon = 0.01;

static double x[N][C][H * W], dy[N][C][H * W], scale[C], bias[C];
static double mean[C], inverse[C], variance[C];
static int rank, wrong;

static double draw(void) {
  static unsigned long state = 12345;
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return (double)(float)((double)(state >> 40) / (1 << 23) - 1);
}

static void draw_all(void) {
  for (int i = 0; i < ALL; i++) {
    (&x[0][0][0])[i] = (double)(float)(40 + draw());
    (&dy[0][0][0])[i] = draw();
  }
  for (int c = 0; c < C; c++) {
    scale[c] = draw();
    bias[c] = draw();
    double sum = 0, squares = 0;
    for (int n = 0; n < N; n++)
      for (int i = 0; i < H * W; i++)
        sum += x[n][c][i];
    mean[c] = sum / (N * H * W);
    for (int n = 0; n < N; n++)
      for (int i = 0; i < H * W; i++)
        squares += (x[n][c][i] - mean[c]) * (x[n][c][i] - mean[c]);
    variance[c] = squares / (N * H * W);
    inverse[c] = 1 / sqrt(variance[c] + epsilon);
  }
}

static void expect(const char *what, int step, int at, double found,
                   double right) {
  if (fabs(found - right) <= 1e-4 * (1 + fabs(right)))
    return;
  if (wrong++ == 0)
    fprintf(stderr, "normcase: rank %d, step %d: %s[%d] is %.9g, not %.9g\n",
            rank, step, what, at, found, right);
}

/* Sums of dy and dy times the normalised x over boxes of N and H. */
static void sums(int c, int n0, int n1, int h0, int h1, double out[2]) {
  out[0] = out[1] = 0;
  for (int n = n0; n < n1; n++)
    for (int i = h0 * W; i < h1 * W; i++) {
      out[0] += dy[n][c][i] * (x[n][c][i] - mean[c]) * inverse[c];
      out[1] += dy[n][c][i];
    }
}

static float *device(size_t count) {
  void *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  CHECK(cudaMemset(memory, 0, count * sizeof(float)));
  return memory;
}

static void get(const float *from, int count, float *to) {
  CHECK(
      cudaMemcpy(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost));
}

/* This rank's piece of a tensor. */
static void put_piece(double (*from)[C][H * W], const int n[2], const int h[2],
                      float *to) {
  float piece[ALL];
  size_t count = 0;
  for (int i = n[0]; i < n[1]; i++)
    for (int c = 0; c < C; c++)
      for (int k = h[0] * W; k < h[1] * W; k++)
        piece[count++] = (float)from[i][c][k];
  CHECK(cudaMemcpy(to, piece, count * sizeof *piece, cudaMemcpyHostToDevice));
}

static void put_params(const double *from, float *to) {
  float values[C];
  for (int c = 0; c < C; c++)
    values[c] = (float)from[c];
  CHECK(cudaMemcpy(to, values, sizeof values, cudaMemcpyHostToDevice));
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  rank = atoi(argv[1]);
  const int *n = cut_n + rank / 2, *h = cut_h + rank % 2;
  int sum_a = strchr(argv[2], 'a') != NULL,
      sum_b = strchr(argv[2], 'b') != NULL;
  int images = n[1] - n[0], rows = h[1] - h[0];
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t field, params;
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&field));
  CHECK(cudnnCreateTensorDescriptor(&params));
  CHECK(cudnnSetTensor4dDescriptor(field, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   images, C, rows, W));
  CHECK(cudnnDeriveBNTensorDescriptor(params, field, CUDNN_BATCHNORM_SPATIAL));
  float *dev_x = device(ALL), *dev_y = device(ALL), *dev_dy = device(ALL),
        *dev_dx = device(ALL), *dev[8], host[ALL], one = 1, zero = 0;
  enum { SCALE, BIAS, MEAN, VARIANCE, SAVED, INVERSE, DSCALE, DBIAS };
  for (int i = 0; i < 8; i++)
    dev[i] = device(C);
  double average[2][C] = {{0}};
  for (int step = 0; step < STEPS; step++) {
    draw_all();
    put_piece(x, n, h, dev_x);
    put_piece(dy, n, h, dev_dy);
    put_params(scale, dev[SCALE]);
    put_params(bias, dev[BIAS]);
    CHECK(cudnnBatchNormalizationForwardTraining(
        handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, field, dev_x, field,
        dev_y, params, dev[SCALE], dev[BIAS], 1.0 / (1 + step), dev[MEAN],
        dev[VARIANCE], epsilon, dev[SAVED], dev[INVERSE]));
    CHECK(cudnnBatchNormalizationBackward(
        handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, field, dev_x,
        field, dev_dy, field, dev_dx, params, dev[SCALE], dev[DSCALE],
        dev[DBIAS], epsilon, dev[SAVED], dev[INVERSE]));
    double count = N * H * W, of_all[C][2], of_some[C][2];
    for (int c = 0; c < C; c++) {
      average[0][c] += (mean[c] - average[0][c]) / (1 + step);
      average[1][c] +=
          (variance[c] * count / (count - 1) - average[1][c]) / (1 + step);
      sums(c, 0, N, 0, H, of_all[c]);
      sums(c, sum_a ? 0 : n[0], sum_a ? N : n[1], sum_b ? 0 : h[0],
           sum_b ? H : h[1], of_some[c]);
    }
    get(dev[MEAN], C, host);
    for (int c = 0; c < C; c++)
      expect("running mean", step, c, host[c], average[0][c]);
    get(dev[VARIANCE], C, host);
    for (int c = 0; c < C; c++)
      expect("running variance", step, c, host[c], average[1][c]);
    for (int k = 0; k < 2; k++) {
      get(dev[DSCALE + k], C, host);
      for (int c = 0; c < C; c++)
        expect(k ? "dbias" : "dscale", step, c, host[c], of_some[c][k]);
    }
    get(dev_dx, images * C * rows * W, host);
    for (int i = 0; i < images * C * rows * W; i++) {
      int k = h[0] * W + i % (rows * W), c = i / W / rows % C,
          image = n[0] + i / W / rows / C;
      double out = (x[image][c][k] - mean[c]) * inverse[c];
      expect(
          "dx", step, i, host[i],
          scale[c] * inverse[c] *
              (dy[image][c][k] - (of_all[c][1] + out * of_all[c][0]) / count));
    }
  }
  return wrong > 0;
}
