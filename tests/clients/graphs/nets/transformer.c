// SPDX-License-Identifier: Apache-2.0
// A weather model that trains, every op of it a graph: patches of a field
// become tokens by a convolution, which attend to others in blocks of a
// transformer, and become patches again. It learns to fade the field.
//
// usage: transformer [words of model.h] [--blocks N] [--channels N] [--heads N]
//                    [--hidden N] [--sees all|past|N] [--products cublas]
//                    [--steps-by adam] [--inputs packed]
//   --sees     what a token sees: all, those before it, or those N away
//   --inputs   packed: queries, keys and values are of one linear layer
//   --products cublas: all products but those of attention are calls of cuBLAS
#include <string.h>

#include "tests/clients/graphs/nets/tokens.h"

enum { VARIABLES = 3, BLOCKS_MAX = 4 };

static int64_t number(int words, char **word, const char *name,
                      int64_t missing) {
  const char *text = model_word(words, word, name);
  return text ? strtoll(text, NULL, 10) : missing;
}

static bool is_word(int words, char **word, const char *name,
                    const char *value) {
  const char *text = model_word(words, word, name);
  return text && strcmp(text, value) == 0;
}

static tokens_t tokens_of(int words, char **word) {
  tokens_t t = {.channels = number(words, word, "--channels", 16),
                .heads = number(words, word, "--heads", 2),
                .hidden = number(words, word, "--hidden", 32),
                .sees = SEES_BAND,
                .window = number(words, word, "--sees", 9)};
  if (is_word(words, word, "--sees", "all"))
    t.sees = SEES_ALL;
  if (is_word(words, word, "--sees", "past"))
    t.sees = SEES_PAST;
  t.packed = is_word(words, word, "--inputs", "packed");
  if (is_word(words, word, "--products", "cublas"))
    CHECK(cublasCreate(&t.cublas));
  return t;
}

int main(int words, char **word) {
  static model_t model;
  static block_t block[BLOCKS_MAX];
  model_t *m = &model;
  model_init(m, words, word);
  tokens_t t = tokens_of(words, word);
  int blocks = (int)number(words, word, "--blocks", 2);
  CHECK(blocks > BLOCKS_MAX);
  int64_t n = m->dim[0], h = m->dim[2], w = m->dim[3];
  double points = (double)(m->whole[0] * m->whole[2] * m->whole[3] * VARIABLES);
  tensor_t *x = model_tensor(m, m->real, n, VARIABLES, h, w);
  tensor_t *right = model_like(m, x), *out = model_like(m, x);
  tensor_t *off = model_like(m, x), *dout = model_like(m, x);
  tensor_t *first = model_tensor(m, m->real, n, t.channels, h / 2, w / 2);
  tensor_t *dlast = model_like(m, first);
  tensor_t *loss = model_tensor(m, CUDNN_DATA_FLOAT, 1, 1, 1, 1);
  tensor_t *faded = model_number(m, 0.5F), *rate = model_number(m, 0.05F);
  tensor_t *slope = model_number(m, (float)(2 / points));
  parameter_t *patch = model_parameter(m, t.channels, VARIABLES, 2, 2);
  parameter_t *bias = model_parameter(m, 1, t.channels, 1, 1);
  parameter_t *back = model_parameter(m, t.channels, VARIABLES, 2, 2);
  parameter_t *offset = model_parameter(m, 1, VARIABLES, 1, 1);

  model_pointwise(m, CUDNN_POINTWISE_MUL, x, faded, right);
  model_patch(m, x, patch, bias, first);
  const tensor_t *last = first;
  for (int i = 0; i < blocks; i++)
    last = block_forward(m, &t, last, &block[i]);
  model_rise(m, last, back, offset, NULL, false, out);
  model_loss(m, out, right, off, loss);

  model_pointwise(m, CUDNN_POINTWISE_MUL, off, slope, dout);
  model_rise_back(m, last, back, offset, dout, dlast);
  const tensor_t *dfirst = dlast;
  for (int i = blocks - 1; i >= 0; i--)
    dfirst = block_backward(m, &t, &block[i], dfirst);
  model_patch_back(m, x, patch, bias, dfirst);
  adam_t adam = {0};
  if (is_word(words, word, "--steps-by", "adam"))
    adam = model_adam(m, 0.01F);
  else
    model_steps(m, rate);

  for (int step = 1; step <= m->steps; step++) {
    model_fill(m, x, 1, (unsigned)step);
    adam_set(&adam, step);
    model_run(m);
    model_tell(step, loss, points);
  }
  model_tell_parameters(m);
  model_fini(m);
  if (t.cublas)
    CHECK(cublasDestroy(t.cublas));
  return EXIT_SUCCESS;
}
