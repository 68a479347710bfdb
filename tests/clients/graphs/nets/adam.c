// SPDX-License-Identifier: Apache-2.0
// Steps of parameters by Adam: three graphs for each, with numbers by value
// that are others at every step.
#include <math.h>

#include "tests/clients/graphs/nets/model.h"

static const float decay = 0.9F, decay_of_squares = 0.99F;

static build_t next(sketch_t *s, cudnnPointwiseMode_t mode, build_t x,
                    build_t b, const tensor_t *like) {
  build_t y = sketch_between(s, like->dim);
  sketch_add(s, build_pointwise(mode, x, b, y));
  return y;
}

// kept = kept * old + grad (or its square) * new, in place
static void average(model_t *m, const tensor_t *kept, const tensor_t *grad,
                    bool squared, float old) {
  tensor_t *by_old = model_number(m, old), *by_new = model_number(m, 1 - old);
  tensor_t again = tensor_again(kept);
  sketch_t s = {0};
  build_t is = sketch_tensor(&s, grad);
  if (squared)
    is = next(&s, CUDNN_POINTWISE_MUL, is, is, kept);
  is = next(&s, CUDNN_POINTWISE_MUL, is, sketch_tensor(&s, by_new), kept);
  build_t was = next(&s, CUDNN_POINTWISE_MUL, sketch_tensor(&s, kept),
                     sketch_tensor(&s, by_old), kept);
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_ADD, was, is,
                                 sketch_tensor(&s, &again)));
  model_end(m, &s);
}

// at = at - mean * factor / (sqrt(square) + epsilon), in place
static void step(model_t *m, const tensor_t *at, const tensor_t *mean,
                 const tensor_t *square, const adam_t *adam) {
  tensor_t again = tensor_again(at);
  sketch_t s = {0};
  build_t by =
      next(&s, CUDNN_POINTWISE_SQRT, sketch_tensor(&s, square), NULL, at);
  by = next(&s, CUDNN_POINTWISE_ADD, by, sketch_tensor(&s, adam->epsilon), at);
  build_t is = next(&s, CUDNN_POINTWISE_MUL, sketch_tensor(&s, mean),
                    sketch_tensor(&s, adam->factor), at);
  is = next(&s, CUDNN_POINTWISE_DIV, is, by, at);
  sketch_add(&s, build_pointwise(CUDNN_POINTWISE_SUB, sketch_tensor(&s, at), is,
                                 sketch_tensor(&s, &again)));
  model_end(m, &s);
}

adam_t model_adam(model_t *m, float rate) {
  adam_t adam = {model_number(m, 0), model_number(m, 0), rate};
  for (int i = 0; i < m->parameters; i++) {
    const parameter_t *p = &m->parameter[i];
    tensor_t *mean = model_like(m, p->at), *square = model_like(m, p->at);
    average(m, mean, p->grad, false, decay);
    average(m, square, p->grad, true, decay_of_squares);
    step(m, p->at, mean, square, &adam);
  }
  return adam;
}

// Both averages began with 0.
void adam_set(const adam_t *adam, int at_step) {
  if (!adam->factor)
    return;
  double of_mean = 1 - pow((double)decay, at_step);
  double of_square = sqrt(1 - pow((double)decay_of_squares, at_step));
  *(float *)adam->factor->at =
      (float)((double)adam->rate * of_square / of_mean);
  *(float *)adam->epsilon->at = (float)(1e-3 * of_square);
}
