// SPDX-License-Identifier: Apache-2.0
// A U-Net that trains, every op of it a graph: two levels of convolutions, with
// a pooling down, and a transposed convolution up, to which what lies beside is
// added.
//
// usage: unet [words of model.h]
#include "tests/clients/graphs/nets/model.h"

enum { CHANNELS = 4 };

int main(int words, char **word) {
  static model_t model;
  model_t *m = &model;
  const cudnnDataType_t real = CUDNN_DATA_FLOAT;
  model_init(m, words, word);
  int64_t n = m->dim[0], h = m->dim[2], w = m->dim[3];
  double points = (double)(m->whole[0] * m->whole[2] * m->whole[3]);
  tensor_t *x = model_tensor(m, real, n, 2, h, w);
  tensor_t *y1 = model_tensor(m, real, n, CHANNELS, h, w);
  tensor_t *pooled = model_tensor(m, real, n, CHANNELS, h / 2, w / 2);
  tensor_t *at = model_tensor(m, CUDNN_DATA_INT8, n, CHANNELS, h / 2, w / 2);
  tensor_t *y2 = model_tensor(m, real, n, 2 * CHANNELS, h / 2, w / 2);
  tensor_t *up = model_like(m, y1), *y3 = model_like(m, y1);
  tensor_t *out = model_tensor(m, real, n, 1, h, w);
  tensor_t *right = model_like(m, out), *off = model_like(m, out);
  tensor_t *loss = model_tensor(m, real, 1, 1, 1, 1);
  tensor_t *slope = model_number(m, (float)(2 / points));
  tensor_t *rate = model_number(m, 0.2F);
  tensor_t *dout = model_like(m, out), *dy3 = model_like(m, y3);
  tensor_t *d3 = model_like(m, y3), *dup = model_like(m, up);
  tensor_t *dsum = model_like(m, up), *dy2 = model_like(m, y2);
  tensor_t *d2 = model_like(m, y2), *dpooled = model_like(m, pooled);
  tensor_t *below = model_like(m, y1), *dy1 = model_like(m, y1);
  tensor_t *d1 = model_like(m, y1);
  parameter_t *w1 = model_parameter(m, CHANNELS, 2, 3, 3);
  parameter_t *b1 = model_parameter(m, 1, CHANNELS, 1, 1);
  parameter_t *w2 = model_parameter(m, 2 * CHANNELS, CHANNELS, 3, 3);
  parameter_t *b2 = model_parameter(m, 1, 2 * CHANNELS, 1, 1);
  parameter_t *rise = model_parameter(m, 2 * CHANNELS, CHANNELS, 2, 2);
  parameter_t *b3 = model_parameter(m, 1, CHANNELS, 1, 1);
  parameter_t *w3 = model_parameter(m, CHANNELS, CHANNELS, 5, 5);
  parameter_t *b4 = model_parameter(m, 1, CHANNELS, 1, 1);
  parameter_t *last = model_parameter(m, 1, CHANNELS, 1, 1);
  parameter_t *b5 = model_parameter(m, 1, 1, 1, 1);

  model_conv(m, x, w1, b1, NULL, true, y1);
  model_pool(m, y1, pooled, at);
  model_conv(m, pooled, w2, b2, NULL, true, y2);
  model_rise(m, y2, rise, b3, y1, true, up);
  model_conv(m, up, w3, b4, NULL, true, y3);
  model_conv(m, y3, last, b5, NULL, false, out);
  model_loss(m, out, right, off, loss);

  model_pointwise(m, CUDNN_POINTWISE_MUL, off, slope, dout);
  model_conv_back(m, y3, last, b5, dout, NULL, dy3);
  model_relu_back(m, dy3, y3, d3);
  model_conv_back(m, up, w3, b4, d3, NULL, dup);
  model_relu_back(m, dup, up, dsum);
  model_rise_back(m, y2, rise, b3, dsum, dy2);
  model_relu_back(m, dy2, y2, d2);
  model_conv_back(m, pooled, w2, b2, d2, NULL, dpooled);
  model_pool_back(m, dpooled, at, NULL, NULL, below);
  model_pointwise(m, CUDNN_POINTWISE_ADD, below, dsum, dy1);
  model_relu_back(m, dy1, y1, d1);
  model_conv_back(m, x, w1, b1, d1, NULL, NULL);
  model_steps(m, rate);

  for (int step = 1; step <= m->steps; step++) {
    model_fill(m, x, 1, (unsigned)step);
    model_fill(m, right, 1, (unsigned)step + 100);
    model_run(m);
    model_tell(step, loss, points);
  }
  model_tell_parameters(m);
  model_fini(m);
  return EXIT_SUCCESS;
}
