/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of a transformer on tokens of a window: normalisation, attention,
 * normalisation, two linear layers with GELU between them, and sums with what
 * went in. In calls of cuDNN's legacy API and cuBLAS. A failing call ends the
 * program.
 *
 * Tokens are rows of `channels` numbers, one after the other; to cuDNN a tensor
 * of 1 x tokens x channels x 1. */
#ifndef CLIENTS_TRANSFORMER_H
#define CLIENTS_TRANSFORMER_H

#include "net.h"

typedef struct transformer_shape {
  int tokens, channels, heads, hidden;
  int window; /* a token sees those at most so far away */
} transformer_shape_t;

/* What layers share. */
typedef struct transformer {
  net_t net;
  transformer_shape_t shape;
  cudnnOpTensorDescriptor_t multiply;
  cudnnActivationDescriptor_t tanh;
  cudnnReduceTensorDescriptor_t sum;
  net_real *space; /* of reductions */
  size_t space_bytes;
  cudnnTensorDescriptor_t each; /* a number for each token */
  net_real *ones, *zeros;       /* scales and biases of tokens */
  net_tensor_t scratch, wide;   /* tokens x channels, tokens x hidden */
  struct {
    cudnnAttnDescriptor_t desc;
    cudnnSeqDataDescriptor_t tokens;
    int *low, *high, *lengths; /* lengths: of the device */
    size_t weight_bytes, work_bytes, reserve_bytes;
    void *work;
  } attention;
} transformer_t;

/* y = scale * (x - mean) / deviation + shift, over a token's channels. */
typedef struct transformer_norm {
  net_tensor_t plain; /* before scale and shift */
  net_parameter_t scale, shift;
  cudnnTensorDescriptor_t row; /* a number for each channel */
  net_real *mean, *inverse, *junk, *junk2;
} transformer_norm_t;

typedef struct transformer_linear {
  int in, out;
  net_parameter_t weights, bias;
  cudnnTensorDescriptor_t row;
} transformer_linear_t;

typedef struct transformer_layer {
  transformer_norm_t first, second;
  net_tensor_t a, b, c, h, t, g, y; /* normed, attended, normed, hidden before
                                       GELU, its tanh, GELU, what comes out */
  net_parameter_t attention;
  void *reserve;
  transformer_linear_t up, down;
} transformer_layer_t;

void transformer_init(transformer_t *t, transformer_shape_t shape,
                      net_real rate);
void transformer_fini(transformer_t *t);
transformer_layer_t transformer_layer(transformer_t *t);
void transformer_layer_free(transformer_layer_t *layer);
void transformer_forward(transformer_t *t, transformer_layer_t *l,
                         const net_tensor_t *x);
/* Gradients of the parameters, each of which takes a step, and of x. */
void transformer_backward(transformer_t *t, transformer_layer_t *l,
                          const net_tensor_t *x);
/* to = the sum of `from` over tokens; `width` numbers, described by `row`. */
void transformer_sum(transformer_t *t, const net_tensor_t *like,
                     const net_real *from, cudnnTensorDescriptor_t row,
                     net_real *to);

#endif
