/* SPDX-License-Identifier: Apache-2.0 */
/* A small network that learns to tell waves of three directions apart: two
 * convolutions, the mean over the image, a linear layer, softmax.
 *
 * The images are made by a formula of row and column, so that a process can be
 * told to work on some rows only. */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "net.h"

enum { IMAGES = 6, CLASSES = 3, CHANNELS = 8, COLUMNS = 32 };

typedef struct cnn {
  net_t net;
  net_conv_t first, second;
  cudnnPoolingDescriptor_t mean;
  net_tensor_t image, a, b, features, logits, chances, right;
  net_parameter_t weights, shift; /* of the linear layer */
  cudnnTensorDescriptor_t shift_desc;
} cnn_t;

static const net_real one = 1, zero = 0;

static void cnn_init(cnn_t *c, int rows) {
  int image[4] = {IMAGES, 1, rows, COLUMNS};
  int head[4] = {IMAGES, CLASSES, 1, 1};
  net_init(&c->net, (net_real)0.15);
  c->image = net_tensor(4, image);
  c->first = net_conv(&c->net, 4, 1, CHANNELS, 3, 1, 1);
  c->a = net_conv_output(&c->first, &c->image);
  c->second = net_conv(&c->net, 4, CHANNELS, CHANNELS, 3, 1, 2);
  c->b = net_conv_output(&c->second, &c->a);
  c->mean =
      net_pool(CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 2, c->b.extent + 2);
  c->features = net_pool_output(c->mean, &c->b);
  c->logits = net_tensor(4, head);
  c->chances = net_tensor(4, head);
  c->right = net_tensor(4, head);
  c->weights = net_weights(&c->net, CLASSES * CHANNELS, (net_real)0.5);
  c->shift = net_constants(CLASSES, 0);
  CUDNN(cudnnCreateTensorDescriptor(&c->shift_desc));
  CUDNN(cudnnSetTensor4dDescriptor(c->shift_desc, CUDNN_TENSOR_NCHW, NET_DATA,
                                   1, CLASSES, 1, 1));
}

static void cnn_fini(cnn_t *c) {
  net_tensor_t *tensors[] = {&c->image,  &c->a,       &c->b,    &c->features,
                             &c->logits, &c->chances, &c->right};
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
    net_tensor_free(tensors[i]);
  net_conv_free(&c->first);
  net_conv_free(&c->second);
  CUDNN(cudnnDestroyPoolingDescriptor(c->mean));
  net_parameter_free(&c->weights);
  net_parameter_free(&c->shift);
  CUDNN(cudnnDestroyTensorDescriptor(c->shift_desc));
  net_fini(&c->net);
}

/* A number of [0, 1) that depends on both. */
static double chance(unsigned a, unsigned b) {
  unsigned x = a * 2654435761u ^ (b + 0x9e3779b9u) * 2246822519u;
  x = (x ^ x >> 15) * 2246822519u;
  x = (x ^ x >> 13) * 3266489917u;
  return (x >> 8) / (double)(1 << 24);
}

/* The step's images and what they show: image i waves along rows, columns or
 * both, as i says, by a phase and with noise of its own. */
static void load(cnn_t *c, int step, net_rows_t rows) {
  net_real right[IMAGES * CLASSES] = {0};
  net_real *image = malloc(c->image.count * sizeof *image), *at = image;
  if (!image)
    exit(EXIT_FAILURE);
  for (int i = 0; i < IMAGES; i++) {
    int kind = i % CLASSES;
    unsigned seed = (unsigned)(step * IMAGES + i);
    double phase = 6.283185307 * chance(seed, 0);
    right[i * CLASSES + kind] = 1;
    for (int r = rows.first; r < rows.first + rows.count; r++)
      for (int k = 0; k < COLUMNS; k++) {
        double along = kind == 0 ? r : kind == 1 ? k : 0.7 * (r + k);
        double noise = chance(seed, 1 + (unsigned)(r * COLUMNS + k)) - 0.5;
        *at++ = (net_real)(sin(1.3 * along + phase) + 0.4 * noise);
      }
  }
  CUDA(cudaMemcpy(c->image.at, image, c->image.count * sizeof *image,
                  cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(c->right.at, right, sizeof right, cudaMemcpyHostToDevice));
  free(image);
}

/* Features and logits are rows of row-major matrices: to cuBLAS, columns. */
static void linear(cnn_t *c) {
  CUBLAS(NET_GEMM(c->net.cublas, CUBLAS_OP_T, CUBLAS_OP_N, CLASSES, IMAGES,
                  CHANNELS, &one, c->weights.at, CHANNELS, c->features.at,
                  CHANNELS, &zero, c->logits.at, CLASSES));
  CUDNN(cudnnAddTensor(c->net.cudnn, &one, c->shift_desc, c->shift.at, &one,
                       c->logits.desc, c->logits.at));
}

static void linear_backward(cnn_t *c) {
  CUBLAS(NET_GEMM(c->net.cublas, CUBLAS_OP_N, CUBLAS_OP_T, CHANNELS, CLASSES,
                  IMAGES, &one, c->features.at, CHANNELS, c->logits.grad,
                  CLASSES, &zero, c->weights.grad, CHANNELS));
  CUBLAS(NET_GEMM(c->net.cublas, CUBLAS_OP_N, CUBLAS_OP_N, CHANNELS, IMAGES,
                  CLASSES, &one, c->weights.at, CHANNELS, c->logits.grad,
                  CLASSES, &zero, c->features.grad, CHANNELS));
  CUDNN(cudnnConvolutionBackwardBias(c->net.cudnn, &one, c->logits.desc,
                                     c->logits.grad, &zero, c->shift_desc,
                                     c->shift.grad));
  net_step(&c->net, &c->weights);
  net_step(&c->net, &c->shift);
}

/* The mean of -log(chance of what is right); its gradient goes to the logits.
 */
static double loss(cnn_t *c) {
  net_real chances[IMAGES * CLASSES], share = (net_real)1 / IMAGES,
                                      minus = -share;
  double sum = 0;
  CUDNN(cudnnSoftmaxForward(
      c->net.cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
      c->logits.desc, c->logits.at, &zero, c->chances.desc, c->chances.at));
  CUDNN(cudnnOpTensor(c->net.cudnn, c->net.add, &share, c->chances.desc,
                      c->chances.at, &minus, c->right.desc, c->right.at, &zero,
                      c->logits.desc, c->logits.grad));
  CUDA(cudaMemcpy(chances, c->chances.at, sizeof chances,
                  cudaMemcpyDeviceToHost));
  for (int i = 0; i < IMAGES; i++)
    sum -= log(chances[i * CLASSES + i % CLASSES]);
  return sum / IMAGES;
}

static double train(cnn_t *c) {
  net_conv_forward(&c->net, &c->first, &c->image, &c->a);
  net_relu(&c->net, &c->a);
  net_conv_forward(&c->net, &c->second, &c->a, &c->b);
  net_relu(&c->net, &c->b);
  net_pool_forward(&c->net, c->mean, &c->b, &c->features);
  linear(c);
  double now = loss(c);
  linear_backward(c);
  net_pool_backward(&c->net, c->mean, &c->b, &c->features, 0);
  net_relu_backward(&c->net, &c->b);
  net_conv_backward(&c->net, &c->second, &c->a, &c->b, 1, 0);
  net_relu_backward(&c->net, &c->a);
  net_conv_backward(&c->net, &c->first, &c->image, &c->a, 0, 0);
  return now;
}

static int usage(FILE *to) {
  fprintf(to, "usage: simplecnn [--steps N] [--rows N | --parts N,N,... --part "
              "I]\n");
  return to == stderr ? 2 : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  int steps = 120, total = 47, part = 0;
  const char *parts = NULL;
  static const struct option table[] = {
      {"steps", 1, 0, 'n'}, {"rows", 1, 0, 'r'}, {"parts", 1, 0, 'p'},
      {"part", 1, 0, 'i'},  {"help", 0, 0, 'h'}, {0, 0, 0, 0}};
  for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;)
    switch (c) {
    case 'n':
      steps = atoi(optarg);
      break;
    case 'r':
      total = atoi(optarg);
      break;
    case 'p':
      parts = optarg;
      break;
    case 'i':
      part = atoi(optarg);
      break;
    default:
      return usage(c == 'h' ? stdout : stderr);
    }
  net_rows_t rows;
  if (optind < argc || !net_rows(total, parts, part, &rows))
    return usage(stderr);
  cnn_t cnn;
  cnn_init(&cnn, rows.count);
  for (int step = 1; step <= steps; step++) {
    load(&cnn, step, rows);
    printf("step %d loss %.*g\n", step, NET_DIGITS, train(&cnn));
    fflush(stdout);
  }
  cnn_fini(&cnn);
  return EXIT_SUCCESS;
}
