// SPDX-License-Identifier: Apache-2.0
// Prints the median milliseconds, by the clock and in CPU time, of one layer of
// multi-head attention, forward or its gradients. Queries, keys and values are
// separate tensors.
//
// usage: bench_attention forward|gradients STEPS TOKENS PART CHANNELS HEADS
//                        WINDOW
//
// TOKENS are the tokens of each piece, N,N,...; PART is this process's piece.
// The program does not use sundog's functions: a token sees the process's
// tokens that are at most WINDOW away.
#include <stdbool.h>
#include <string.h>

#include "tests/clients/nets/net.h"

typedef struct layer {
  net_t net;
  cudnnAttnDescriptor_t desc;
  cudnnSeqDataDescriptor_t tokens;
  int count, channels;
  int *low, *high, *lengths; // lengths: of the device
  net_real *at[4], *grad[4]; // q, k, v, out
  size_t weight_bytes, work_bytes, reserve_bytes;
  net_parameter_t weights;
  void *work, *reserve;
} layer_t;

static void window_init(layer_t *l, int window) {
  l->low = calloc((size_t)l->count, sizeof *l->low);
  l->high = calloc((size_t)l->count, sizeof *l->high);
  if (!l->low || !l->high)
    exit(EXIT_FAILURE);
  for (int i = 0; i < l->count; i++) {
    l->low[i] = i > window ? i - window : 0;
    l->high[i] = i + window < l->count ? i + window + 1 : l->count;
  }
  CUDA(cudaMalloc((void **)&l->lengths, sizeof(int)));
  CUDA(cudaMemcpy(l->lengths, &l->count, sizeof(int), cudaMemcpyHostToDevice));
}

static void layer_init(layer_t *l, int tokens, int channels, int heads,
                       int window) {
  int extent[CUDNN_SEQDATA_DIM_COUNT], head = channels / heads;
  const cudnnSeqDataAxis_t axes[] = {
      CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM,
      CUDNN_SEQDATA_VECT_DIM};
  net_init(&l->net, 0);
  l->count = tokens;
  l->channels = channels;
  extent[CUDNN_SEQDATA_TIME_DIM] = tokens;
  extent[CUDNN_SEQDATA_BATCH_DIM] = extent[CUDNN_SEQDATA_BEAM_DIM] = 1;
  extent[CUDNN_SEQDATA_VECT_DIM] = channels;
  CUDNN(cudnnCreateAttnDescriptor(&l->desc));
  CUDNN(cudnnSetAttnDescriptor(
      l->desc, CUDNN_ATTN_QUERYMAP_ALL_TO_ONE, heads, 1 / (double)head,
      NET_DATA, NET_DATA, CUDNN_DEFAULT_MATH, NULL, NULL, channels, channels,
      channels, head, head, head, channels, tokens, tokens, 1, 1));
  CUDNN(cudnnCreateSeqDataDescriptor(&l->tokens));
  CUDNN(cudnnSetSeqDataDescriptor(l->tokens, NET_DATA, CUDNN_SEQDATA_DIM_COUNT,
                                  extent, axes, 1, &tokens, NULL));
  CUDNN(cudnnGetMultiHeadAttnBuffers(l->net.cudnn, l->desc, &l->weight_bytes,
                                     &l->work_bytes, &l->reserve_bytes));
  CUDA(cudaMalloc(&l->work, l->work_bytes + 1));
  CUDA(cudaMalloc(&l->reserve, l->reserve_bytes + 1));
  l->weights = net_weights(&l->net, l->weight_bytes / sizeof(net_real),
                           (net_real)(1.0 / channels));
  for (int i = 0; i < 4; i++) {
    size_t elements = (size_t)tokens * (size_t)channels;
    net_parameter_t numbers = net_weights(&l->net, elements, 1);
    l->at[i] = numbers.at;
    l->grad[i] = numbers.grad;
  }
  window_init(l, window);
}

static void forward(const layer_t *l) {
  CUDNN(cudnnMultiHeadAttnForward(
      l->net.cudnn, l->desc, -1, l->low, l->high, l->lengths, l->lengths,
      l->tokens, l->at[0], NULL, l->tokens, l->at[1], l->tokens, l->at[2],
      l->tokens, l->at[3], l->weight_bytes, l->weights.at, l->work_bytes,
      l->work, l->reserve_bytes, l->reserve));
}

static void gradients(const layer_t *l) {
  CUDNN(cudnnMultiHeadAttnBackwardData(
      l->net.cudnn, l->desc, l->low, l->high, l->lengths, l->lengths, l->tokens,
      l->at[3], l->tokens, l->grad[0], l->at[0], l->tokens, l->grad[1],
      l->at[1], l->tokens, l->grad[2], l->at[2], l->weight_bytes, l->weights.at,
      l->work_bytes, l->work, l->reserve_bytes, l->reserve));
}

int main(int count, char **words) {
  net_rows_t tokens;
  if (count != 8 ||
      (strcmp(words[1], "forward") != 0 &&
       strcmp(words[1], "gradients") != 0) ||
      !net_rows(0, words[3], atoi(words[4]), &tokens)) {
    fprintf(stderr, "usage: bench_attention forward|gradients STEPS "
                    "TOKENS,... PART CHANNELS HEADS WINDOW\n");
    return 2;
  }
  layer_t l = {0};
  net_clock_t clock = {0};
  layer_init(&l, tokens.count, atoi(words[5]), atoi(words[6]), atoi(words[7]));
  bool back = strcmp(words[1], "gradients") == 0;
  // The gradients need the reserve of a forward call.
  forward(&l);
  for (int i = 0; i < atoi(words[2]); i++) {
    if (back)
      gradients(&l);
    else
      forward(&l);
    net_clock_tick(&clock);
  }
  net_clock_print(&clock);
  return EXIT_SUCCESS;
}
