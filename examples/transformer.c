/* SPDX-License-Identifier: Apache-2.0 */
/* A transformer: layers of attention and two linear layers, each behind a norm
 * and added to what goes in. Products are cuBLAS's; softmax, norm and ReLU are
 * cuDNN's. Forward only, with the same weights in each layer. Prints one line:
 * "mean square of 64 x 96 numbers: 1.74253"
 *
 * One process:  sundog run -n 1 -- ./transformer
 * Four ranks:   sundog run -n 4 --rules transformer.rules -- ./transformer
 *
 * A token is a column of a matrix, as cuBLAS stores it, and a pixel of a tensor
 * in NHWC: 1 x channels x tokens x 1. */
#include <cublas_v2.h>
#include <math.h>

#include "common.h"

enum { TOKENS = 96, CHANNELS = 64, HEADS = 4, HIDDEN = 160, LAYERS = 3 };
enum { HEAD = CHANNELS / HEADS };

static const float one = 1, zero = 0;
static cudnnHandle_t cudnn;
static cublasHandle_t cublas;

/* A matrix of zeros or, with a scale, of noise, other noise in each. */
static float *matrix(int rows, int columns, float scale) {
  static size_t made;
  size_t count = (size_t)(rows * columns), seed = made++;
  float *host = malloc(count * sizeof *host);
  require(host != NULL, "transformer", "no memory");
  for (size_t i = 0; i < count; i++)
    host[i] = scale * sinf((float)(i * i % 7919 + seed));
  float *at = device_floats(count, host);
  free(host);
  return at;
}

static float *weights(int rows, int columns) {
  return matrix(rows, columns, 1 / sqrtf((float)columns));
}

/* y (rows x tokens) = weights x + keep * y */
static void linear(const float *w, int rows, const float *x, int columns,
                   float keep, float *y) {
  CHECK(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, rows, TOKENS, columns,
                    &one, w, rows, x, columns, &keep, y, rows));
}

/* Each token less its mean, over its deviation: to cuDNN's batch normalisation
 * tokens are channels, and channels pixels. */
static void norm(const float *x, float *y) {
  static cudnnTensorDescriptor_t tokens, each;
  static float *scale, *shift;
  if (!tokens) {
    tokens = describe(CUDNN_TENSOR_NCHW, 1, TOKENS, CHANNELS, 1);
    each = describe(CUDNN_TENSOR_NCHW, 1, TOKENS, 1, 1);
    scale = device_floats(TOKENS, NULL);
    CHECK(cudnnSetTensor(cudnn, each, scale, &one));
    shift = device_floats(TOKENS, NULL);
  }
  CHECK(cudnnBatchNormalizationForwardTraining(
      cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, tokens, x, tokens, y, each,
      scale, shift, 1, NULL, NULL, 1e-5, NULL, NULL));
}

/* y (channels x tokens) = the heads' values, weighed by softmax(k' q). */
static void attention(const float *q, const float *k, const float *v,
                      float *y) {
  static cudnnTensorDescriptor_t desc; /* channel: key, row: query */
  static float *scores, *chances;
  const float scale = 1 / sqrtf(HEAD);
  if (!desc) {
    desc = describe(CUDNN_TENSOR_NHWC, HEADS, TOKENS, TOKENS, 1);
    scores = matrix(TOKENS * HEADS, TOKENS, 0);
    chances = matrix(TOKENS * HEADS, TOKENS, 0);
  }
  CHECK(cublasSgemmStridedBatched(cublas, CUBLAS_OP_T, CUBLAS_OP_N, TOKENS,
                                  TOKENS, HEAD, &scale, k, CHANNELS, HEAD, q,
                                  CHANNELS, HEAD, &zero, scores, TOKENS,
                                  TOKENS * TOKENS, HEADS));
  CHECK(cudnnSoftmaxForward(cudnn, CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, &one, desc, scores,
                            &zero, desc, chances));
  CHECK(cublasSgemmStridedBatched(
      cublas, CUBLAS_OP_N, CUBLAS_OP_N, HEAD, TOKENS, TOKENS, &one, v, CHANNELS,
      HEAD, chances, TOKENS, TOKENS * TOKENS, &zero, y, CHANNELS, HEAD, HEADS));
}

int main(void) {
  CHECK(cudnnCreate(&cudnn));
  CHECK(cublasCreate(&cublas));
  static float host[CHANNELS * TOKENS];
  float *x = matrix(CHANNELS, TOKENS, 1), *n = matrix(CHANNELS, TOKENS, 0),
        *q = matrix(CHANNELS, TOKENS, 0), *k = matrix(CHANNELS, TOKENS, 0),
        *v = matrix(CHANNELS, TOKENS, 0), *h = matrix(HIDDEN, TOKENS, 0),
        *to_q = weights(CHANNELS, CHANNELS),
        *to_k = weights(CHANNELS, CHANNELS),
        *to_v = weights(CHANNELS, CHANNELS),
        *from = weights(CHANNELS, CHANNELS), *up = weights(HIDDEN, CHANNELS),
        *down = weights(CHANNELS, HIDDEN);
  cudnnTensorDescriptor_t hidden =
      describe(CUDNN_TENSOR_NHWC, 1, HIDDEN, TOKENS, 1);
  cudnnActivationDescriptor_t relu;
  CHECK(cudnnCreateActivationDescriptor(&relu));
  CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_PROPAGATE_NAN, 0));
  for (int i = 0; i < LAYERS; i++) {
    norm(x, n);
    linear(to_q, CHANNELS, n, CHANNELS, 0, q);
    linear(to_k, CHANNELS, n, CHANNELS, 0, k);
    linear(to_v, CHANNELS, n, CHANNELS, 0, v);
    attention(q, k, v, n);
    linear(from, CHANNELS, n, CHANNELS, 1, x);
    norm(x, n);
    linear(up, HIDDEN, n, CHANNELS, 0, h);
    CHECK(
        cudnnActivationForward(cudnn, relu, &one, hidden, h, &zero, hidden, h));
    linear(down, CHANNELS, h, HIDDEN, 1, x);
  }
  CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int i = 0; i < CHANNELS * TOKENS; i++)
    sum += (double)host[i] * (double)host[i];
  printf("mean square of %d x %d numbers: %.6g\n", CHANNELS, TOKENS,
         sum / (CHANNELS * TOKENS));
  return EXIT_SUCCESS;
}
