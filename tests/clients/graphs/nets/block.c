// SPDX-License-Identifier: Apache-2.0
// A block of a transformer, whose residuals are a graph of their own and the
// end of a linear layer.
#include "tests/clients/graphs/nets/tokens.h"

// q, k and v: tensors of their own, or parts of one.
static void parts_make(model_t *m, const tokens_t *t, const tensor_t *like,
                       part_t out[3]) {
  for (int i = 0; i < 3; i++)
    out[i] = i > 0 && t->packed
                 ? (part_t){out[0].of, i * t->channels}
                 : (part_t){model_tensor(m, m->real, like->dim[0],
                                         (t->packed ? 3 : 1) * t->channels,
                                         like->dim[2], like->dim[3]),
                            0};
}

const tensor_t *block_forward(model_t *m, const tokens_t *t, const tensor_t *x,
                              block_t *out) {
  tensor_t *a = model_like(m, x), *o = model_like(m, x);
  tensor_t *through = model_like(m, x), *b = model_like(m, x);
  tensor_t *c = model_like(m, x), *y = model_like(m, x);
  tensor_t *h =
      model_tensor(m, m->real, x->dim[0], t->hidden, x->dim[2], x->dim[3]);
  tensor_t *g = model_like(m, h);
  *out = (block_t){.first = norm_make(m, x),
                   .second = norm_make(m, b),
                   .x = x,
                   .a = a,
                   .o = o,
                   .b = b,
                   .c = c,
                   .h = h,
                   .g = g};
  norm_forward(m, &out->first, x, a);
  parts_make(m, t, x, out->qkv);
  for (int i = 0; i < (t->packed ? 1 : 3); i++) {
    const tensor_t *to = out->qkv[i].of;
    out->in[i] = linear_make(m, t->channels, to->dim[1]);
    linear_forward(m, t, &out->in[i], a, NULL, NULL, to);
  }
  out->statistics = model_tensor(m, CUDNN_DATA_FLOAT, x->dim[0], t->heads,
                                 x->dim[2], x->dim[3]);
  attend_forward(m, t, out->qkv, o, out->statistics);
  out->out = linear_make(m, t->channels, t->channels);
  linear_forward(m, t, &out->out, o, NULL, NULL, through);
  model_pointwise(m, CUDNN_POINTWISE_ADD, through, x, b);
  norm_forward(m, &out->second, b, c);
  out->up = linear_make(m, t->channels, t->hidden);
  linear_forward(m, t, &out->up, c, NULL, h, g);
  out->down = linear_make(m, t->hidden, t->channels);
  linear_forward(m, t, &out->down, g, b, NULL, y);
  return y;
}

const tensor_t *block_backward(model_t *m, const tokens_t *t, const block_t *b,
                               const tensor_t *dy) {
  tensor_t *dh = model_like(m, b->h), *dc = model_like(m, b->c);
  tensor_t *through = model_like(m, b->b), *db = model_like(m, b->b);
  tensor_t *d_o = model_like(m, b->o), *dx = model_like(m, b->x);
  tensor_t *da = NULL;
  part_t d[3];
  linear_backward(m, t, &b->down, b->g, dy, NULL, b->h, dh);
  linear_backward(m, t, &b->up, b->c, dh, NULL, NULL, dc);
  norm_backward(m, &b->second, b->b, dc, through);
  model_pointwise(m, CUDNN_POINTWISE_ADD, through, dy, db);
  linear_backward(m, t, &b->out, b->o, db, NULL, NULL, d_o);
  parts_make(m, t, b->x, d);
  attend_backward(m, t, b->qkv, b->o, b->statistics, d_o, d);
  for (int i = 0; i < (t->packed ? 1 : 3); i++) {
    tensor_t *sum = model_like(m, b->a);
    linear_backward(m, t, &b->in[i], b->a, d[i].of, da, NULL, sum);
    da = sum;
  }
  tensor_t *behind = model_like(m, b->x);
  norm_backward(m, &b->first, b->x, da, behind);
  model_pointwise(m, CUDNN_POINTWISE_ADD, behind, db, dx);
  return dx;
}
