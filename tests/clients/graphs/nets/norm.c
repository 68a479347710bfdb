// SPDX-License-Identifier: Apache-2.0
// Batch normalisation in training as XLA and cudnn-frontend put it into graphs:
// a convolution with statistics, parameters of the sums (BN_FINALIZE), which
// also move the running mean and variance, and scale, bias and relu in front of
// the next convolution. The program counts its own elements.
//
// usage: norm [words of model.h] [--count NUMBER] [--copy] [--own [--local]]
//   --count  says that so many elements were summed, which is wrong
//   --copy   the parameters are of a copy of the sums
//   --own    the sums are the program's own, and not of the convolution
//   --local  the program says so by a tag of their memory
// Prints "step STEP loss LOSS" for the sum of squares, and all statistics.
#include "tests/clients/graphs/nets/model.h"

#include <cuda_runtime_api.h>
#include <string.h>

enum { COLOURS = 3, CHANNELS = 8 };

typedef struct norm {
  tensor_t *sum, *squares, *scale, *bias, *mean, *variance; /* running */
  tensor_t *saved_mean, *saved_deviation, *by, *plus;
  tensor_t count, epsilon, factor, next_mean, next_variance;
} norm_t;

static tensor_t *channels(model_t *m) {
  return model_tensor(m, CUDNN_DATA_FLOAT, 1, CHANNELS, 1, 1);
}

static norm_t norm_make(model_t *m, int64_t count) {
  norm_t n;
  tensor_t **own[] = {&n.sum,        &n.squares,         &n.mean, &n.variance,
                      &n.saved_mean, &n.saved_deviation, &n.by,   &n.plus};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    *own[i] = channels(m);
  n.scale = model_parameter(m, 1, CHANNELS, 1, 1)->at;
  n.bias = model_parameter(m, 1, CHANNELS, 1, 1)->at;
  n.count = tensor_count(count);
  n.epsilon = tensor_number(1e-3F);
  n.factor = tensor_number(0.25F);
  n.next_mean = tensor_again(n.mean);
  n.next_variance = tensor_again(n.variance);
  return n;
}

static op_t finalize(const model_t *m, norm_t *n) {
  sketch_t s = {0};
  build_t op =
      build_create(CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR);
  cudnnBnFinalizeStatsMode_t mode = CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(op, OPERATION_BN_FINALIZE_STATS_MODE, BN_FINALIZE_STATS_MODE, 1,
            &mode);
  BUILD_SET(op, OPERATION_BN_FINALIZE_MATH_PREC, DATA_TYPE, 1, &type);
#define GIVE(name, tensor)                                                     \
  BUILD_GIVE(op, OPERATION_BN_FINALIZE_##name, sketch_tensor(&s, tensor))
  GIVE(Y_SUM_DESC, n->sum);
  GIVE(Y_SQ_SUM_DESC, n->squares);
  GIVE(SCALE_DESC, n->scale);
  GIVE(BIAS_DESC, n->bias);
  GIVE(PREV_RUNNING_MEAN_DESC, n->mean);
  GIVE(PREV_RUNNING_VAR_DESC, n->variance);
  GIVE(UPDATED_RUNNING_MEAN_DESC, &n->next_mean);
  GIVE(UPDATED_RUNNING_VAR_DESC, &n->next_variance);
  GIVE(SAVED_MEAN_DESC, n->saved_mean);
  GIVE(SAVED_INV_STD_DESC, n->saved_deviation);
  GIVE(EQ_SCALE_DESC, n->by);
  GIVE(EQ_BIAS_DESC, n->plus);
  GIVE(ACCUM_COUNT_DESC, &n->count);
  GIVE(EPSILON_DESC, &n->epsilon);
  GIVE(EXP_AVERATE_FACTOR_DESC, &n->factor);
#undef GIVE
  CHECK(cudnnBackendFinalize(op));
  sketch_add(&s, op);
  return op_make(&m->net, &s);
}

static op_t convolution(const model_t *m, const tensor_t *x,
                        const parameter_t *w, const norm_t *n,
                        const tensor_t *y) {
  sketch_t s = {0};
  build_t to = sketch_tensor(&s, y), sum = sketch_tensor(&s, n->sum);
  sketch_conv(&s, BUILD_FORWARD, 1, 1, sketch_tensor(&s, x),
              sketch_tensor(&s, w->at), to);
  sketch_add(&s, build_statistics(to, sum, sketch_tensor(&s, n->squares)));
  return op_make(&m->net, &s);
}

// y = conv(relu(x * by + plus), w)
static op_t normalised(const model_t *m, const tensor_t *x, const norm_t *n,
                       const parameter_t *w, const tensor_t *y) {
  sketch_t s = {0};
  build_t scaled = sketch_between(&s, x->dim), whole, open;
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_MUL, sketch_tensor(&s, x),
                                 sketch_tensor(&s, n->by), scaled));
  whole = sketch_between(&s, x->dim);
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_ADD, scaled,
                                 sketch_tensor(&s, n->plus), whole));
  open = sketch_between(&s, x->dim);
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_RELU_FWD, whole, NULL, open));
  sketch_conv(&s, BUILD_FORWARD, 1, 1, open, sketch_tensor(&s, w->at),
              sketch_tensor(&s, y));
  return op_make(&m->net, &s);
}

int main(int words, char **word) {
  static model_t model;
  model_t *m = &model;
  const cudnnDataType_t real = CUDNN_DATA_FLOAT;
  model_init(m, words, word);
  int64_t count = m->dim[0] * m->dim[2] * m->dim[3];
  bool copies = false, own = false, local = false;
  for (int i = 1; i < words; i++) {
    copies |= strcmp(word[i], "--copy") == 0;
    own |= strcmp(word[i], "--own") == 0;
    local |= strcmp(word[i], "--local") == 0;
    if (strcmp(word[i], "--count") == 0 && i + 1 < words)
      count = atoi(word[i + 1]);
  }
  tensor_t *x = model_tensor(m, real, m->dim[0], COLOURS, m->dim[2], m->dim[3]);
  tensor_t *y =
      model_tensor(m, real, m->dim[0], CHANNELS, m->dim[2], m->dim[3]);
  tensor_t *z = model_like(m, y), *nothing = model_like(m, z);
  tensor_t *off = model_like(m, z);
  tensor_t *loss = model_tensor(m, real, 1, 1, 1, 1);
  parameter_t *w1 = model_parameter(m, CHANNELS, COLOURS, 3, 3);
  parameter_t *w2 = model_parameter(m, CHANNELS, CHANNELS, 3, 3);
  norm_t n = norm_make(m, count), made = n;
  if (copies || own) { // what the convolution writes
    made.sum = channels(m);
    made.squares = channels(m);
  }
  if (local) {
    model_tag_local(n.sum);
    model_tag_local(n.squares);
  }
  op_t first = convolution(m, x, w1, &made, y), second = finalize(m, &n);
  op_t third = normalised(m, y, &n, w2, z);
  model_loss(m, z, nothing, off, loss);
  for (int step = 1; step <= m->steps; step++) {
    model_fill(m, x, 1, (unsigned)step);
    op_run(&m->net, &first);
    if (copies) {
      const size_t bytes = CHANNELS * sizeof(float);
      CHECK(cudaMemcpyAsync(n.sum->at, made.sum->at, bytes,
                            cudaMemcpyDeviceToDevice, NULL));
      CHECK(cudaMemcpyAsync(n.squares->at, made.squares->at, bytes,
                            cudaMemcpyDeviceToDevice, NULL));
    }
    op_run(&m->net, &second);
    op_run(&m->net, &third);
    model_run(m);
    model_tell(step, loss, 1);
  }
  parameter_t told[] = {{n.sum, NULL},        {n.squares, NULL},
                        {n.mean, NULL},       {n.variance, NULL},
                        {n.saved_mean, NULL}, {n.saved_deviation, NULL},
                        {n.by, NULL},         {n.plus, NULL}};
  memcpy(m->parameter, told, sizeof told);
  m->parameters = sizeof told / sizeof *told;
  model_tell_parameters(m);
  op_free(&first);
  op_free(&second);
  op_free(&third);
  tensor_free(&n.count);
  tensor_free(&n.epsilon);
  tensor_free(&n.factor);
  model_fini(m);
  return EXIT_SUCCESS;
}
