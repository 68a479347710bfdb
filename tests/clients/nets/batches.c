/* SPDX-License-Identifier: Apache-2.0 */
/* A small data-parallel program that learns to blur. Each process may get only
 * some of the batch's images; groups of `--model` processes get the same ones.
 * It knows how many images the whole batch has, because the mean is over all of
 * them, and nothing else about other processes. */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "net.h"

enum { SIDE = 12, CHANNELS = 5 };

typedef struct learner {
  net_t net;
  net_tensor_t in, hidden, out, right;
  net_conv_t first, last;
  cudnnOpTensorDescriptor_t multiply;
  cudnnReduceTensorDescriptor_t sum;
  cudnnTensorDescriptor_t number;
  net_real *loss, *space;
  size_t space_bytes;
  double points; /* of the whole batch */
} learner_t;

static const net_real one = 1, zero = 0;

static void learner_init(learner_t *l, net_rows_t images) {
  int extent[4] = {images.count, 1, SIDE, SIDE}, ones[4] = {1, 1, 1, 1};
  memset(l, 0, sizeof *l);
  net_init(&l->net, (net_real)0.2);
  l->in = net_tensor(4, extent);
  l->right = net_tensor(4, extent);
  l->first = net_conv(&l->net, 4, 1, CHANNELS, 3, 1, 1);
  l->hidden = net_conv_output(&l->first, &l->in);
  l->last = net_conv(&l->net, 4, CHANNELS, 1, 1, 0, 1);
  l->out = net_conv_output(&l->last, &l->hidden);
  l->points = (double)images.total * SIDE * SIDE;
  CUDNN(cudnnCreateOpTensorDescriptor(&l->multiply));
  CUDNN(cudnnSetOpTensorDescriptor(l->multiply, CUDNN_OP_TENSOR_MUL, NET_DATA,
                                   CUDNN_PROPAGATE_NAN));
  CUDNN(cudnnCreateReduceTensorDescriptor(&l->sum));
  CUDNN(cudnnSetReduceTensorDescriptor(
      l->sum, CUDNN_REDUCE_TENSOR_ADD, NET_DATA, CUDNN_PROPAGATE_NAN,
      CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  CUDNN(cudnnCreateTensorDescriptor(&l->number));
  CUDNN(cudnnSetTensorNdDescriptor(l->number, NET_DATA, 4, ones, ones));
  l->loss = net_zeros(1);
  CUDNN(cudnnGetReductionWorkspaceSize(l->net.cudnn, l->sum, l->right.desc,
                                       l->number, &l->space_bytes));
  l->space = net_zeros(l->space_bytes / sizeof(net_real) + 1);
}

static void learner_fini(learner_t *l) {
  net_tensor_t *tensors[] = {&l->in, &l->hidden, &l->out, &l->right};
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
    net_tensor_free(tensors[i]);
  net_conv_free(&l->first);
  net_conv_free(&l->last);
  CUDNN(cudnnDestroyOpTensorDescriptor(l->multiply));
  CUDNN(cudnnDestroyReduceTensorDescriptor(l->sum));
  CUDNN(cudnnDestroyTensorDescriptor(l->number));
  CUDA(cudaFree(l->loss));
  CUDA(cudaFree(l->space));
  net_fini(&l->net);
}

/* A number of [-1, 1) for a pixel of an image; 0 outside of it. */
static double pixel(int step, int image, int r, int c) {
  if (r < 0 || r >= SIDE || c < 0 || c >= SIDE)
    return 0;
  unsigned x = (unsigned)(step * 1000 + image) * 2654435761u ^
               (unsigned)(r * SIDE + c + 1) * 2246822519u;
  x = (x ^ x >> 15) * 2246822519u;
  x = (x ^ x >> 13) * 3266489917u;
  return (x >> 8) / (double)(1 << 23) - 1;
}

/* Makes the step's images, and the blurred ones. */
static void load(learner_t *l, int step, net_rows_t images) {
  size_t bytes = l->in.count * sizeof(net_real), at = 0;
  net_real *in = malloc(bytes), *right = malloc(bytes);
  if (!in || !right)
    exit(EXIT_FAILURE);
  for (int i = images.first; i < images.first + images.count; i++)
    for (int r = 0; r < SIDE; r++)
      for (int c = 0; c < SIDE; c++, at++) {
        double sum = 0;
        for (int tap = 0; tap < 9; tap++)
          sum += pixel(step, i, r + tap / 3 - 1, c + tap % 3 - 1);
        in[at] = (net_real)pixel(step, i, r, c);
        right[at] = (net_real)(sum / 9);
      }
  CUDA(cudaMemcpy(l->in.at, in, bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(l->right.at, right, bytes, cudaMemcpyHostToDevice));
  free(in);
  free(right);
}

/* Returns the mean square error of the output. */
static double train(learner_t *l) {
  net_t *net = &l->net;
  net_real minus = -1, share = (net_real)(1 / l->points),
           slope = (net_real)(2 / l->points), mean;
  net_conv_forward(net, &l->first, &l->in, &l->hidden);
  net_relu(net, &l->hidden);
  net_conv_forward(net, &l->last, &l->hidden, &l->out);
  CUDNN(cudnnOpTensor(net->cudnn, net->add, &one, l->out.desc, l->out.at,
                      &minus, l->right.desc, l->right.at, &zero, l->out.desc,
                      l->out.grad));
  CUDNN(cudnnOpTensor(net->cudnn, l->multiply, &one, l->out.desc, l->out.grad,
                      &one, l->out.desc, l->out.grad, &zero, l->right.desc,
                      l->right.grad));
  CUDNN(cudnnReduceTensor(net->cudnn, l->sum, NULL, 0, l->space, l->space_bytes,
                          &share, l->right.desc, l->right.grad, &zero,
                          l->number, l->loss));
  CUDNN(cudnnScaleTensor(net->cudnn, l->out.desc, l->out.grad, &slope));
  net_conv_backward(net, &l->last, &l->hidden, &l->out, 1, 0);
  net_relu_backward(net, &l->hidden);
  net_conv_backward(net, &l->first, &l->in, &l->hidden, 0, 0);
  CUDA(cudaMemcpy(&mean, l->loss, sizeof mean, cudaMemcpyDeviceToHost));
  return mean;
}

static int usage(void) {
  fprintf(stderr, "usage: batches [--steps N] [--rows IMAGES | --parts N,N,... "
                  "--part I]\n               [--model PROCESSES OF A PART]\n");
  return 2;
}

int main(int argc, char **argv) {
  static const struct option table[] = {
      {"steps", 1, 0, 'n'}, {"rows", 1, 0, 'r'},  {"parts", 1, 0, 'p'},
      {"part", 1, 0, 'i'},  {"model", 1, 0, 'm'}, {0, 0, 0, 0}};
  int steps = 60, total = 12, process = 0, model = 1;
  const char *parts = NULL;
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
      process = atoi(optarg);
      break;
    case 'm':
      model = atoi(optarg);
      break;
    default:
      return usage();
    }
  net_rows_t images;
  if (optind != argc || model < 1 ||
      !net_rows(total, parts, process / model, &images))
    return usage();
  learner_t learner;
  learner_init(&learner, images);
  for (int step = 1; step <= steps; step++) {
    load(&learner, step, images);
    printf("step %d loss %.*g\n", step, NET_DIGITS, train(&learner));
    fflush(stdout);
  }
  learner_fini(&learner);
  return EXIT_SUCCESS;
}
