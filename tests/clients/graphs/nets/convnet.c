// SPDX-License-Identifier: Apache-2.0
// A classifier that trains, every op of it a graph: two convolutions with a
// pooling between them and a residual, the sum over all of space, and a head
// that is the same on every rank.
//
// usage: convnet [words of model.h]
#include "tests/clients/graphs/nets/model.h"

enum { COLOURS = 3, CHANNELS = 8, CLASSES = 4 };

int main(int words, char **word) {
  static model_t model;
  model_t *m = &model;
  const cudnnDataType_t real = CUDNN_DATA_FLOAT;
  model_init(m, words, word);
  int64_t n = m->dim[0], h = m->dim[2], w = m->dim[3];
  double points = (double)(m->whole[2] * m->whole[3] / 4);
  double samples = (double)m->whole[0];
  tensor_t *x = model_tensor(m, real, n, COLOURS, h, w);
  tensor_t *y1 = model_tensor(m, real, n, CHANNELS, h, w);
  tensor_t *pooled = model_tensor(m, real, n, CHANNELS, h / 2, w / 2);
  tensor_t *y2 = model_like(m, pooled);
  tensor_t *sum = model_tensor(m, real, n, CHANNELS, 1, 1);
  tensor_t *mean = model_like(m, sum);
  tensor_t *out = model_tensor(m, real, n, CLASSES, 1, 1);
  tensor_t *right = model_like(m, out), *off = model_like(m, out);
  tensor_t *loss = model_tensor(m, real, 1, 1, 1, 1);
  tensor_t *share = model_number(m, (float)(1 / points));
  tensor_t *slope = model_number(m, (float)(2 / samples));
  tensor_t *nothing = model_number(m, 0), *rate = model_number(m, 0.05F);
  tensor_t *dout = model_like(m, out), *dmean = model_like(m, mean);
  tensor_t *dsum = model_like(m, sum), *open = model_like(m, y2);
  tensor_t *d2 = model_like(m, y2), *dpooled = model_like(m, pooled);
  tensor_t *dy1 = model_like(m, y1), *d1 = model_like(m, y1);
  parameter_t *w1 = model_parameter(m, CHANNELS, COLOURS, 3, 3);
  parameter_t *b1 = model_parameter(m, 1, CHANNELS, 1, 1);
  parameter_t *w2 = model_parameter(m, CHANNELS, CHANNELS, 3, 3);
  parameter_t *b2 = model_parameter(m, 1, CHANNELS, 1, 1);
  parameter_t *head = model_parameter(m, CLASSES, CHANNELS, 1, 1);
  parameter_t *b3 = model_parameter(m, 1, CLASSES, 1, 1);

  model_conv(m, x, w1, b1, NULL, true, y1);
  model_pool(m, y1, pooled, NULL);
  model_conv(m, pooled, w2, b2, pooled, true, y2);
  model_sum(m, y2, sum);
  model_pointwise(m, CUDNN_POINTWISE_MUL, sum, share, mean);
  model_conv(m, mean, head, b3, NULL, false, out);
  model_loss(m, out, right, off, loss);

  model_pointwise(m, CUDNN_POINTWISE_MUL, off, slope, dout);
  model_conv_back(m, mean, head, b3, dout, NULL, dmean);
  model_pointwise(m, CUDNN_POINTWISE_MUL, dmean, share, dsum);
  model_pointwise(m, CUDNN_POINTWISE_CMP_GT, y2, nothing, open);
  model_pointwise(m, CUDNN_POINTWISE_MUL, open, dsum, d2);
  model_conv_back(m, pooled, w2, b2, d2, d2, dpooled);
  model_pool_back(m, dpooled, NULL, y1, pooled, dy1);
  model_relu_back(m, dy1, y1, d1);
  model_conv_back(m, x, w1, b1, d1, NULL, NULL);
  model_steps(m, rate);

  for (int step = 1; step <= m->steps; step++) {
    model_fill(m, x, 1, (unsigned)step);
    model_fill(m, right, 0, (unsigned)step);
    model_run(m);
    model_tell(step, loss, samples);
  }
  model_tell_parameters(m);
  model_fini(m);
  return EXIT_SUCCESS;
}
