// SPDX-License-Identifier: Apache-2.0
// Norms that a training program makes of what every rank has: to clip
// gradients, to watch weights.
//
// usage: clip gradient|squares|weights [local] [words of model.h]
//   gradient  the sum of a filter's gradient
//   squares   the sum of its squares, which a graph of their own computes
//   weights   the sum of the filter after a step
//   local     the program tags what is reduced, and the gradient
// Prints "step 1 loss SUM", and the filter.
#include "tests/clients/graphs/nets/model.h"

#include <string.h>

enum { COLOURS = 3, CHANNELS = 8 };

int main(int words, char **word) {
  static model_t model;
  model_t *m = &model;
  CHECK(words < 2);
  model_init(m, words, word);
  tensor_t *x = model_tensor(m, CUDNN_DATA_FLOAT, m->dim[0], COLOURS, m->dim[2],
                             m->dim[3]);
  tensor_t *y = model_tensor(m, CUDNN_DATA_FLOAT, m->dim[0], CHANNELS,
                             m->dim[2], m->dim[3]);
  tensor_t *sum = model_tensor(m, CUDNN_DATA_FLOAT, 1, 1, 1, 1);
  tensor_t *rate = model_number(m, 1e-4F);
  parameter_t *w = model_parameter(m, CHANNELS, COLOURS, 3, 3);
  parameter_t *bias = model_parameter(m, 1, CHANNELS, 1, 1);
  tensor_t *squares = model_like(m, w->grad);
  const tensor_t *what = word[1][0] == 'g'   ? w->grad
                         : word[1][0] == 's' ? squares
                                             : w->at;
  if (words > 2 && strcmp(word[2], "local") == 0) {
    model_tag_local(what);
    model_tag_local(w->grad);
  }
  model_conv(m, x, w, bias, NULL, true, y);
  model_conv_back(m, x, w, bias, y, NULL, NULL);
  model_steps(m, rate);
  if (what == squares)
    model_pointwise(m, CUDNN_POINTWISE_MUL, w->grad, w->grad, squares);
  model_sum(m, what, sum);
  model_fill(m, x, 1, 1);
  model_run(m);
  model_tell(1, sum, 1);
  model_tell_parameters(m);
  model_fini(m);
  return EXIT_SUCCESS;
}
