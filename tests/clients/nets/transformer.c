/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of a transformer, in calls of cuDNN and cuBLAS. */
#include "transformer.h"

#include <string.h>

static const net_real one = 1, zero = 0, half = (net_real)0.5;
/* GELU by tanh: z (1 + tanh(slope (z + cubic z^3))) / 2. */
static const net_real slope = (net_real)0.7978845608028654;
static const net_real cubic = (net_real)0.044715;
static const double epsilon = 1e-5;

static cudnnTensorDescriptor_t described(int tokens, int channels) {
  cudnnTensorDescriptor_t desc;
  CUDNN(cudnnCreateTensorDescriptor(&desc));
  CUDNN(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, NET_DATA, 1, tokens,
                                   channels, 1));
  return desc;
}

static net_tensor_t rows(const transformer_t *t, int channels) {
  int extent[4] = {1, t->shape.tokens, channels, 1};
  return net_tensor(4, extent);
}

static void window_init(transformer_t *t) {
  int tokens = t->shape.tokens, window = t->shape.window;
  int *lengths = malloc(sizeof(int));
  size_t bytes = (size_t)tokens * sizeof(int);
  t->attention.low = malloc(bytes);
  t->attention.high = malloc(bytes);
  if (!lengths || !t->attention.low || !t->attention.high)
    exit(EXIT_FAILURE);
  for (int i = 0; i < tokens; i++) {
    t->attention.low[i] = i > window ? i - window : 0;
    t->attention.high[i] = i + window < tokens ? i + window + 1 : tokens;
  }
  lengths[0] = tokens;
  CUDA(cudaMalloc((void **)&t->attention.lengths, sizeof(int)));
  CUDA(cudaMemcpy(t->attention.lengths, lengths, sizeof(int),
                  cudaMemcpyHostToDevice));
  free(lengths);
}

static void attention_init(transformer_t *t) {
  const transformer_shape_t *s = &t->shape;
  int extent[CUDNN_SEQDATA_DIM_COUNT], head = s->channels / s->heads;
  const cudnnSeqDataAxis_t axes[] = {
      CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM,
      CUDNN_SEQDATA_VECT_DIM};
  extent[CUDNN_SEQDATA_TIME_DIM] = s->tokens;
  extent[CUDNN_SEQDATA_BATCH_DIM] = 1;
  extent[CUDNN_SEQDATA_BEAM_DIM] = 1;
  extent[CUDNN_SEQDATA_VECT_DIM] = s->channels;
  CUDNN(cudnnCreateAttnDescriptor(&t->attention.desc));
  CUDNN(cudnnSetAttnDescriptor(
      t->attention.desc, CUDNN_ATTN_QUERYMAP_ALL_TO_ONE, s->heads,
      1 / (double)head, NET_DATA, NET_DATA, CUDNN_DEFAULT_MATH, NULL, NULL,
      s->channels, s->channels, s->channels, head, head, head, s->channels,
      s->tokens, s->tokens, 1, 1));
  CUDNN(cudnnCreateSeqDataDescriptor(&t->attention.tokens));
  CUDNN(cudnnSetSeqDataDescriptor(t->attention.tokens, NET_DATA,
                                  CUDNN_SEQDATA_DIM_COUNT, extent, axes, 1,
                                  &s->tokens, NULL));
  CUDNN(cudnnGetMultiHeadAttnBuffers(
      t->net.cudnn, t->attention.desc, &t->attention.weight_bytes,
      &t->attention.work_bytes, &t->attention.reserve_bytes));
  CUDA(cudaMalloc(&t->attention.work, t->attention.work_bytes + 1));
  window_init(t);
}

void transformer_init(transformer_t *t, transformer_shape_t shape,
                      net_real rate) {
  memset(t, 0, sizeof *t);
  t->shape = shape;
  net_init(&t->net, rate);
  CUDNN(cudnnCreateOpTensorDescriptor(&t->multiply));
  CUDNN(cudnnSetOpTensorDescriptor(t->multiply, CUDNN_OP_TENSOR_MUL, NET_DATA,
                                   CUDNN_PROPAGATE_NAN));
  CUDNN(cudnnCreateActivationDescriptor(&t->tanh));
  CUDNN(cudnnSetActivationDescriptor(t->tanh, CUDNN_ACTIVATION_TANH,
                                     CUDNN_PROPAGATE_NAN, 0));
  CUDNN(cudnnCreateReduceTensorDescriptor(&t->sum));
  CUDNN(cudnnSetReduceTensorDescriptor(
      t->sum, CUDNN_REDUCE_TENSOR_ADD, NET_DATA, CUDNN_PROPAGATE_NAN,
      CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  t->each = described(shape.tokens, 1);
  net_parameter_t ones = net_constants((size_t)shape.tokens, 1);
  t->ones = ones.at;
  t->zeros = ones.grad; /* which nothing is ever added to */
  t->scratch = rows(t, shape.channels);
  t->wide = rows(t, shape.hidden);
  attention_init(t);
}

void transformer_fini(transformer_t *t) {
  net_tensor_free(&t->scratch);
  net_tensor_free(&t->wide);
  CUDNN(cudnnDestroyOpTensorDescriptor(t->multiply));
  CUDNN(cudnnDestroyActivationDescriptor(t->tanh));
  CUDNN(cudnnDestroyReduceTensorDescriptor(t->sum));
  CUDNN(cudnnDestroyTensorDescriptor(t->each));
  CUDNN(cudnnDestroyAttnDescriptor(t->attention.desc));
  CUDNN(cudnnDestroySeqDataDescriptor(t->attention.tokens));
  void *memory[] = {t->ones, t->zeros, t->space, t->attention.lengths,
                    t->attention.work};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
    CUDA(cudaFree(memory[i]));
  free(t->attention.low);
  free(t->attention.high);
  net_fini(&t->net);
}

/* ---- parts of a layer ---------------------------------------------------- */

/* to = a * b * factor + keep * to, element by element; `b` may be a row. */
static void product(transformer_t *t, const net_tensor_t *like, net_real factor,
                    const net_real *a, cudnnTensorDescriptor_t b_desc,
                    const net_real *b, net_real keep, net_real *to) {
  CUDNN(cudnnOpTensor(t->net.cudnn, t->multiply, &factor, like->desc, a, &one,
                      b_desc, b, &keep, like->desc, to));
}

/* to = factor * from + keep * to. */
static void blend(transformer_t *t, const net_tensor_t *like, net_real factor,
                  const net_real *from, net_real keep, net_real *to) {
  CUDNN(cudnnTransformTensor(t->net.cudnn, &factor, like->desc, from, &keep,
                             like->desc, to));
}

void transformer_sum(transformer_t *t, const net_tensor_t *like,
                     const net_real *from, cudnnTensorDescriptor_t row,
                     net_real *to) {
  size_t bytes;
  CUDNN(cudnnGetReductionWorkspaceSize(t->net.cudnn, t->sum, like->desc, row,
                                       &bytes));
  if (bytes > t->space_bytes) {
    CUDA(cudaFree(t->space));
    CUDA(cudaMalloc((void **)&t->space, bytes));
    t->space_bytes = bytes;
  }
  CUDNN(cudnnReduceTensor(t->net.cudnn, t->sum, NULL, 0, t->space,
                          t->space_bytes, &one, like->desc, from, &zero, row,
                          to));
}

static transformer_norm_t norm(const transformer_t *t) {
  size_t channels = (size_t)t->shape.channels, tokens = (size_t)t->shape.tokens;
  return (transformer_norm_t){.plain = rows(t, t->shape.channels),
                              .scale = net_constants(channels, 1),
                              .shift = net_constants(channels, 0),
                              .row = described(1, t->shape.channels),
                              .mean = net_zeros(tokens),
                              .inverse = net_zeros(tokens),
                              .junk = net_zeros(tokens),
                              .junk2 = net_zeros(tokens)};
}

static void norm_free(transformer_norm_t *n) {
  net_tensor_free(&n->plain);
  net_parameter_free(&n->scale);
  net_parameter_free(&n->shift);
  CUDNN(cudnnDestroyTensorDescriptor(n->row));
  net_real *memory[] = {n->mean, n->inverse, n->junk, n->junk2};
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
    CUDA(cudaFree(memory[i]));
}

/* A token is a channel to cuDNN's batch normalisation. */
static void norm_forward(transformer_t *t, transformer_norm_t *n,
                         const net_tensor_t *x, const net_tensor_t *y) {
  CUDNN(cudnnBatchNormalizationForwardTraining(
      t->net.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x->desc, x->at,
      n->plain.desc, n->plain.at, t->each, t->ones, t->zeros, 1, NULL, NULL,
      epsilon, n->mean, n->inverse));
  product(t, y, 1, n->plain.at, n->row, n->scale.at, 0, y->at);
  CUDNN(cudnnAddTensor(t->net.cudnn, &one, n->row, n->shift.at, &one, y->desc,
                       y->at));
}

/* x's gradient is added to what is there. */
static void norm_backward(transformer_t *t, transformer_norm_t *n,
                          const net_tensor_t *x, const net_tensor_t *y) {
  product(t, y, 1, y->grad, n->plain.desc, n->plain.at, 0, t->scratch.at);
  transformer_sum(t, y, t->scratch.at, n->row, n->scale.grad);
  transformer_sum(t, y, y->grad, n->row, n->shift.grad);
  product(t, y, 1, y->grad, n->row, n->scale.at, 0, n->plain.grad);
  CUDNN(cudnnBatchNormalizationBackward(
      t->net.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &one, &one, &zero, x->desc,
      x->at, n->plain.desc, n->plain.grad, x->desc, x->grad, t->each, t->ones,
      n->junk, n->junk2, epsilon, n->mean, n->inverse));
  net_step(&t->net, &n->scale);
  net_step(&t->net, &n->shift);
}

static transformer_linear_t linear(transformer_t *t, int in, int out) {
  return (transformer_linear_t){
      .in = in,
      .out = out,
      .weights =
          net_weights(&t->net, (size_t)in * (size_t)out, (net_real)(1.0 / in)),
      .bias = net_constants((size_t)out, 0),
      .row = described(1, out)};
}

static void linear_free(transformer_linear_t *l) {
  net_parameter_free(&l->weights);
  net_parameter_free(&l->bias);
  CUDNN(cudnnDestroyTensorDescriptor(l->row));
}

/* y = x weights + bias + keep * y. To cuBLAS rows are columns. */
static void linear_forward(transformer_t *t, transformer_linear_t *l,
                           const net_real *x, net_real keep,
                           const net_tensor_t *y) {
  CUBLAS(NET_GEMM(t->net.cublas, CUBLAS_OP_N, CUBLAS_OP_N, l->out,
                  t->shape.tokens, l->in, &one, l->weights.at, l->out, x, l->in,
                  &keep, y->at, l->out));
  CUDNN(cudnnAddTensor(t->net.cudnn, &one, l->row, l->bias.at, &one, y->desc,
                       y->at));
}

static void linear_backward(transformer_t *t, transformer_linear_t *l,
                            const net_real *x, const net_tensor_t *y,
                            net_real *dx) {
  CUBLAS(NET_GEMM(t->net.cublas, CUBLAS_OP_T, CUBLAS_OP_N, l->in,
                  t->shape.tokens, l->out, &one, l->weights.at, l->out, y->grad,
                  l->out, &zero, dx, l->in));
  CUBLAS(NET_GEMM(t->net.cublas, CUBLAS_OP_N, CUBLAS_OP_T, l->out, l->in,
                  t->shape.tokens, &one, y->grad, l->out, x, l->in, &zero,
                  l->weights.grad, l->out));
  transformer_sum(t, y, y->grad, l->row, l->bias.grad);
  net_step(&t->net, &l->weights);
  net_step(&t->net, &l->bias);
}

/* g = GELU(h); keeps the tanh in t. */
static void gelu(transformer_t *t, transformer_layer_t *l) {
  const net_tensor_t *h = &l->h;
  product(t, h, 1, h->at, h->desc, h->at, 0, t->wide.at);
  blend(t, h, slope, h->at, 0, l->t.at);
  product(t, h, slope * cubic, t->wide.at, h->desc, h->at, 1, l->t.at);
  CUDNN(cudnnActivationForward(t->net.cudnn, t->tanh, &one, h->desc, l->t.at,
                               &zero, h->desc, l->t.at));
  blend(t, h, half, h->at, 0, l->g.at);
  product(t, h, half, h->at, h->desc, l->t.at, 1, l->g.at);
}

/* h' = g' ((1 + tanh) / 2 + h (1 - tanh^2) slope (1 + 3 cubic h^2) / 2). */
static void gelu_backward(transformer_t *t, transformer_layer_t *l) {
  const net_tensor_t *h = &l->h;
  net_real *through = t->wide.grad;
  product(t, h, half, l->g.grad, h->desc, h->at, 0, t->wide.at);
  CUDNN(cudnnActivationBackward(t->net.cudnn, t->tanh, &one, h->desc, l->t.at,
                                h->desc, t->wide.at, h->desc, l->t.at, &zero,
                                h->desc, through));
  blend(t, h, half, l->g.grad, 0, h->grad);
  product(t, h, half, l->g.grad, h->desc, l->t.at, 1, h->grad);
  blend(t, h, slope, through, 1, h->grad);
  product(t, h, 1, h->at, h->desc, h->at, 0, t->wide.at);
  product(t, h, 3 * slope * cubic, through, h->desc, t->wide.at, 1, h->grad);
}

static void attend(transformer_t *t, transformer_layer_t *l,
                   const net_tensor_t *x) {
  cudnnSeqDataDescriptor_t tokens = t->attention.tokens;
  CUDNN(cudnnMultiHeadAttnForward(
      t->net.cudnn, t->attention.desc, -1, t->attention.low, t->attention.high,
      t->attention.lengths, t->attention.lengths, tokens, l->a.at, x->at,
      tokens, l->a.at, tokens, l->a.at, tokens, l->b.at,
      t->attention.weight_bytes, l->attention.at, t->attention.work_bytes,
      t->attention.work, t->attention.reserve_bytes, l->reserve));
}

/* Queries, keys and values are one tensor: its gradient is the sum of theirs.
 */
static void attend_backward(transformer_t *t, transformer_layer_t *l) {
  cudnnSeqDataDescriptor_t tokens = t->attention.tokens;
  CUDNN(cudnnMultiHeadAttnBackwardData(
      t->net.cudnn, t->attention.desc, t->attention.low, t->attention.high,
      t->attention.lengths, t->attention.lengths, tokens, l->b.grad, tokens,
      l->a.grad, l->a.at, tokens, t->scratch.at, l->a.at, tokens,
      t->scratch.grad, l->a.at, t->attention.weight_bytes, l->attention.at,
      t->attention.work_bytes, t->attention.work, t->attention.reserve_bytes,
      l->reserve));
  CUDNN(cudnnMultiHeadAttnBackwardWeights(
      t->net.cudnn, t->attention.desc, CUDNN_WGRAD_MODE_SET, tokens, l->a.at,
      tokens, l->a.at, tokens, l->a.at, tokens, l->b.grad,
      t->attention.weight_bytes, l->attention.at, l->attention.grad,
      t->attention.work_bytes, t->attention.work, t->attention.reserve_bytes,
      l->reserve));
  blend(t, &l->a, 1, t->scratch.at, 1, l->a.grad);
  blend(t, &l->a, 1, t->scratch.grad, 1, l->a.grad);
}

/* ---- a layer ------------------------------------------------------------- */

transformer_layer_t transformer_layer(transformer_t *t) {
  int channels = t->shape.channels, hidden = t->shape.hidden;
  transformer_layer_t l = {.first = norm(t), .second = norm(t)};
  net_tensor_t *narrow[] = {&l.a, &l.b, &l.c, &l.y},
               *wide[] = {&l.h, &l.t, &l.g};
  for (int i = 0; i < 4; i++)
    *narrow[i] = rows(t, channels);
  for (int i = 0; i < 3; i++)
    *wide[i] = rows(t, hidden);
  l.attention = net_weights(&t->net, t->attention.weight_bytes / sizeof one,
                            (net_real)(2.0 / channels));
  CUDA(cudaMalloc(&l.reserve, t->attention.reserve_bytes + 1));
  l.up = linear(t, channels, hidden);
  l.down = linear(t, hidden, channels);
  return l;
}

void transformer_layer_free(transformer_layer_t *l) {
  net_tensor_t *tensors[] = {&l->a, &l->b, &l->c, &l->h, &l->t, &l->g, &l->y};
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
    net_tensor_free(tensors[i]);
  norm_free(&l->first);
  norm_free(&l->second);
  net_parameter_free(&l->attention);
  CUDA(cudaFree(l->reserve));
  linear_free(&l->up);
  linear_free(&l->down);
}

void transformer_forward(transformer_t *t, transformer_layer_t *l,
                         const net_tensor_t *x) {
  norm_forward(t, &l->first, x, &l->a);
  attend(t, l, x);
  norm_forward(t, &l->second, &l->b, &l->c);
  linear_forward(t, &l->up, l->c.at, 0, &l->h);
  gelu(t, l);
  blend(t, &l->b, 1, l->b.at, 0, l->y.at);
  linear_forward(t, &l->down, l->g.at, 1, &l->y);
}

void transformer_backward(transformer_t *t, transformer_layer_t *l,
                          const net_tensor_t *x) {
  linear_backward(t, &l->down, l->g.at, &l->y, l->g.grad);
  gelu_backward(t, l);
  linear_backward(t, &l->up, l->c.at, &l->h, l->c.grad);
  blend(t, &l->b, 1, l->y.grad, 0, l->b.grad);
  norm_backward(t, &l->second, &l->b, &l->c);
  attend_backward(t, l);
  net_step(&t->net, &l->attention);
  blend(t, x, 1, l->b.grad, 0, x->grad);
  norm_backward(t, &l->first, x, &l->a);
}
