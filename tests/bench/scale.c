// SPDX-License-Identifier: Apache-2.0
// Prints the median milliseconds, by the clock and in CPU time, of one
// convolution, of the gradients of its filter and input, or of a step: all of
// these, with an input and a gradient of the output that other ops have just
// computed.
//
// usage: bench_scale forward|gradients|step STEPS IN OUT KERNEL STRIDE
// EXTENT...
//
// IN and OUT are channels; EXTENTs are those of the input; the padding is half
// the kernel. The program does not use sundog's functions: the extents are
// those of this process.
#include <string.h>

#include "tests/clients/nets/net.h"

static int usage(void) {
  fprintf(stderr, "usage: bench_scale forward|gradients|step STEPS IN OUT "
                  "KERNEL STRIDE EXTENT EXTENT [EXTENT]\n");
  return 2;
}

typedef struct layer {
  net_t net;
  net_conv_t conv;
  net_tensor_t x, y;
  cudnnConvolutionFwdAlgo_t forward;
  cudnnConvolutionBwdDataAlgo_t data;
  cudnnConvolutionBwdFilterAlgo_t filter;
  void *space;
  size_t bytes;
} layer_t;

static void algorithms(layer_t *l) {
  cudnnConvolutionFwdAlgoPerf_t forward;
  cudnnConvolutionBwdDataAlgoPerf_t data;
  cudnnConvolutionBwdFilterAlgoPerf_t filter;
  const net_conv_t *c = &l->conv;
  int count;
  CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(l->net.cudnn, l->x.desc,
                                               c->filter, c->desc, l->y.desc, 1,
                                               &count, &forward));
  CUDNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(
      l->net.cudnn, c->filter, l->y.desc, c->desc, l->x.desc, 1, &count,
      &data));
  CUDNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
      l->net.cudnn, l->x.desc, l->y.desc, c->desc, c->filter, 1, &count,
      &filter));
  l->forward = forward.algo;
  l->data = data.algo;
  l->filter = filter.algo;
  l->bytes = forward.memory;
  if (data.memory > l->bytes)
    l->bytes = data.memory;
  if (filter.memory > l->bytes)
    l->bytes = filter.memory;
  if (l->bytes)
    CUDA(cudaMalloc(&l->space, l->bytes));
}

static void forward(const layer_t *l) {
  static const float one = 1, zero = 0;
  CUDNN(cudnnConvolutionForward(l->net.cudnn, &one, l->x.desc, l->x.at,
                                l->conv.filter, l->conv.weights.at,
                                l->conv.desc, l->forward, l->space, l->bytes,
                                &zero, l->y.desc, l->y.at));
}

static void gradients(const layer_t *l) {
  static const float one = 1, zero = 0;
  CUDNN(cudnnConvolutionBackwardFilter(l->net.cudnn, &one, l->x.desc, l->x.at,
                                       l->y.desc, l->y.grad, l->conv.desc,
                                       l->filter, l->space, l->bytes, &zero,
                                       l->conv.filter, l->conv.weights.grad));
  CUDNN(cudnnConvolutionBackwardData(l->net.cudnn, &one, l->conv.filter,
                                     l->conv.weights.at, l->y.desc, l->y.grad,
                                     l->conv.desc, l->data, l->space, l->bytes,
                                     &zero, l->x.desc, l->x.grad));
}

// Fills a tensor by a call, like another layer.
static void make(const layer_t *l, const net_tensor_t *tensor, net_real *at) {
  static const float half = 0.5f;
  CUDNN(cudnnScaleTensor(l->net.cudnn, tensor->desc, at, &half));
}

int main(int count, char **words) {
  int dims = count - 5, extent[NET_DIMS_MAX] = {1}, number[8];
  if (count < 9 || count > 10)
    return usage();
  int all = strcmp(words[1], "step") == 0;
  int back = all || strcmp(words[1], "gradients") == 0;
  int there = all || strcmp(words[1], "forward") == 0;
  if (!back && !there)
    return usage();
  for (int i = 2; i < count; i++)
    if ((number[i - 2] = atoi(words[i])) <= 0)
      return usage();
  extent[1] = number[1];
  for (int d = 2; d < dims; d++)
    extent[d] = number[d + 3];
  layer_t l = {0};
  net_init(&l.net, 0);
  l.x = net_tensor(dims, extent);
  l.conv = net_conv(&l.net, dims, number[1], number[2], number[3],
                    number[3] / 2, number[4]);
  l.y = net_conv_output(&l.conv, &l.x);
  algorithms(&l);
  net_clock_t clock = {0};
  for (int i = 0; i < number[0]; i++) {
    if (all)
      make(&l, &l.x, l.x.at);
    if (there)
      forward(&l);
    if (all)
      make(&l, &l.y, l.y.grad);
    if (back)
      gradients(&l);
    net_clock_tick(&clock);
  }
  net_clock_print(&clock);
  return EXIT_SUCCESS;
}
