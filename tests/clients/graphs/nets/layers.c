// SPDX-License-Identifier: Apache-2.0
// The ops of networks, each a graph.
#include "tests/clients/graphs/nets/model.h"

static const build_window_t halves = {
    .dims = 2, .size = {2, 2}, .stride = {2, 2}};

// ---- forward ---------------------------------------------------------------

// y = relu(from + bias + z); z may be NULL. An op wants a result that nobody
// else writes.
static void finish(sketch_t *s, build_t from, const parameter_t *bias,
                   const tensor_t *z, bool relu, const tensor_t *y) {
  build_t to = sketch_tensor(s, y), next;
  next = z || relu ? sketch_between(s, y->dim) : to;
  sketch_add(s, build_pointwise(CUDNN_POINTWISE_ADD, from,
                                sketch_tensor(s, bias->at), next));
  if (z) {
    from = next;
    next = relu ? sketch_between(s, y->dim) : to;
    sketch_add(s, build_pointwise(CUDNN_POINTWISE_ADD, from,
                                  sketch_tensor(s, z), next));
  }
  if (relu)
    sketch_add(s, build_pointwise(CUDNN_POINTWISE_RELU_FWD, next, NULL, to));
}

static int64_t padding_of(const parameter_t *w) {
  return w->at->dim[2] / 2; // an odd filter leaves extents as they are
}

void model_conv(model_t *m, const tensor_t *x, const parameter_t *w,
                const parameter_t *bias, const tensor_t *z, bool relu,
                const tensor_t *y) {
  sketch_t s = {0};
  build_t from = sketch_between(&s, y->dim);
  sketch_conv(&s, BUILD_FORWARD, 1, padding_of(w), sketch_tensor(&s, x),
              sketch_tensor(&s, w->at), from);
  finish(&s, from, bias, z, relu, y);
  model_end(m, &s);
}

void model_patch(model_t *m, const tensor_t *x, const parameter_t *w,
                 const parameter_t *bias, const tensor_t *y) {
  sketch_t s = {0};
  build_t from = sketch_between(&s, y->dim);
  sketch_conv(&s, BUILD_FORWARD, 2, 0, sketch_tensor(&s, x),
              sketch_tensor(&s, w->at), from);
  finish(&s, from, bias, NULL, false, y);
  model_end(m, &s);
}

void model_rise(model_t *m, const tensor_t *x, const parameter_t *w,
                const parameter_t *bias, const tensor_t *z, bool relu,
                const tensor_t *y) {
  sketch_t s = {0};
  build_t from = sketch_between(&s, y->dim);
  sketch_conv(&s, BUILD_DATA, 2, 0, from, sketch_tensor(&s, w->at),
              sketch_tensor(&s, x));
  finish(&s, from, bias, z, relu, y);
  model_end(m, &s);
}

void model_pool(model_t *m, const tensor_t *x, const tensor_t *y,
                const tensor_t *indices) {
  sketch_t s = {0};
  sketch_add(&s, build_pool(CUDNN_RESAMPLE_MAXPOOL, &halves,
                            sketch_tensor(&s, x), sketch_tensor(&s, y),
                            indices ? sketch_tensor(&s, indices) : NULL));
  model_end(m, &s);
}

// ---- backward --------------------------------------------------------------

void model_pool_back(model_t *m, const tensor_t *dy, const tensor_t *indices,
                     const tensor_t *x, const tensor_t *y, const tensor_t *dx) {
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, dy);
  sketch_add(&s, build_pool_back(CUDNN_RESAMPLE_MAXPOOL, &halves, from,
                                 indices ? sketch_tensor(&s, indices) : NULL,
                                 indices ? NULL : sketch_tensor(&s, x),
                                 indices ? NULL : sketch_tensor(&s, y),
                                 sketch_tensor(&s, dx)));
  model_end(m, &s);
}

void model_relu_back(model_t *m, const tensor_t *dy, const tensor_t *y,
                     const tensor_t *dx) {
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, dy), of = sketch_tensor(&s, y);
  sketch_add(&s, build_pointwise_back(CUDNN_POINTWISE_RELU_BWD, from, of,
                                      sketch_tensor(&s, dx)));
  model_end(m, &s);
}

static void filter_back(model_t *m, int64_t stride, int64_t padding,
                        const tensor_t *x, const tensor_t *dy,
                        const tensor_t *dw) {
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, x), by = sketch_tensor(&s, dy);
  sketch_conv(&s, BUILD_FILTER, stride, padding, from, sketch_tensor(&s, dw),
              by);
  model_end(m, &s);
}

void model_conv_back(model_t *m, const tensor_t *x, const parameter_t *w,
                     const parameter_t *bias, const tensor_t *dy,
                     const tensor_t *add, const tensor_t *dx) {
  filter_back(m, 1, padding_of(w), x, dy, w->grad);
  model_sum(m, dy, bias->grad);
  if (!dx)
    return;
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, dy), of = sketch_tensor(&s, w->at);
  build_t to = add ? sketch_between(&s, dx->dim) : sketch_tensor(&s, dx);
  sketch_conv(&s, BUILD_DATA, 1, padding_of(w), to, of, from);
  if (add)
    sketch_add(&s,
               build_pointwise(CUDNN_POINTWISE_ADD, to, sketch_tensor(&s, add),
                               sketch_tensor(&s, dx)));
  model_end(m, &s);
}

void model_patch_back(model_t *m, const tensor_t *x, const parameter_t *w,
                      const parameter_t *bias, const tensor_t *dy) {
  filter_back(m, 2, 0, x, dy, w->grad);
  model_sum(m, dy, bias->grad);
}

void model_rise_back(model_t *m, const tensor_t *x, const parameter_t *w,
                     const parameter_t *bias, const tensor_t *dy,
                     const tensor_t *dx) {
  filter_back(m, 2, 0, dy, x, w->grad);
  model_sum(m, dy, bias->grad);
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, dy), of = sketch_tensor(&s, w->at);
  sketch_conv(&s, BUILD_FORWARD, 2, 0, from, of, sketch_tensor(&s, dx));
  model_end(m, &s);
}

// ---- without a window ------------------------------------------------------

void model_pointwise(model_t *m, cudnnPointwiseMode_t mode, const tensor_t *x,
                     const tensor_t *b, const tensor_t *y) {
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, x);
  sketch_add(&s, build_pointwise(mode, from, b ? sketch_tensor(&s, b) : NULL,
                                 sketch_tensor(&s, y)));
  model_end(m, &s);
}

void model_sum(model_t *m, const tensor_t *x, const tensor_t *y) {
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, x);
  sketch_add(
      &s, build_reduction(CUDNN_REDUCE_TENSOR_ADD, from, sketch_tensor(&s, y)));
  model_end(m, &s);
}

void model_loss(model_t *m, const tensor_t *x, const tensor_t *right,
                const tensor_t *d, const tensor_t *sum) {
  sketch_t s = {0};
  build_t from = sketch_tensor(&s, x), of = sketch_tensor(&s, right);
  build_t off = sketch_tensor(&s, d), square = sketch_between(&s, x->dim);
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_SUB, from, of, off));
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_MUL, off, off, square));
  sketch_add(&s, build_reduction(CUDNN_REDUCE_TENSOR_ADD, square,
                                 sketch_tensor(&s, sum)));
  model_end(m, &s);
}

void model_steps(model_t *m, const tensor_t *rate) {
  for (int i = 0; i < m->parameters; i++) {
    const parameter_t *p = &m->parameter[i];
    tensor_t next = tensor_again(p->at);
    sketch_t s = {0};
    build_t from = sketch_tensor(&s, p->at);
    build_t step = sketch_between(&s, p->at->dim);
    sketch_add(&s,
               build_pointwise(CUDNN_POINTWISE_MUL, sketch_tensor(&s, p->grad),
                               sketch_tensor(&s, rate), step));
    sketch_add(&s, build_pointwise(CUDNN_POINTWISE_SUB, from, step,
                                   sketch_tensor(&s, &next)));
    model_end(m, &s);
  }
}
