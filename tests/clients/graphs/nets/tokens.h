/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of a transformer, each a graph: linear layers, layer norms, attention. A
 * tensor's tokens are its places, row by row, of one image after the other; a
 * token is the numbers of its channels, which lie side by side. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_NETS_TOKENS_H
#define SDG_TESTS_CLIENTS_GRAPHS_NETS_TOKENS_H

#include <cublas_v2.h>

#include "tests/clients/graphs/nets/model.h"

/* What a token sees of its image's tokens. */
typedef enum {
  SEES_ALL,
  SEES_PAST, /* itself and those before it */
  SEES_BAND, /* those at most `window` away */
} sees_t;

typedef struct {
  int64_t channels, heads, hidden;
  sees_t sees;
  int64_t window;
  bool packed; /* q, k and v of a token side by side, of one linear layer */
  cublasHandle_t cublas; /* of all products but those of attention; NULL: they
                            are graphs */
} tokens_t;

/* ---- linear layers: y = x w + bias ---- */

/* w: in x out. */
typedef struct {
  parameter_t *w, *bias;
} linear_t;

linear_t linear_make(model_t *m, int64_t in, int64_t out);
/* With `add`: y = x w + bias + add. With h: h = x w + bias, y = GELU(h). Both
 * may be NULL. */
void linear_forward(model_t *m, const tokens_t *t, const linear_t *l,
                    const tensor_t *x, const tensor_t *add, const tensor_t *h,
                    const tensor_t *y);
/* The gradients of w, bias and x: dx = dy w' + add, or, with h, of which x is
 * the GELU, h's gradient. Both may be NULL. */
void linear_backward(model_t *m, const tokens_t *t, const linear_t *l,
                     const tensor_t *x, const tensor_t *dy, const tensor_t *add,
                     const tensor_t *h, const tensor_t *dx);

/* ---- layer norms ---- */

typedef struct {
  parameter_t *scale, *bias;
  const tensor_t *mean, *inverse, *epsilon;
} norm_t;

norm_t norm_make(model_t *m, const tensor_t *x);
void norm_forward(model_t *m, const norm_t *n, const tensor_t *x,
                  const tensor_t *y);
void norm_backward(model_t *m, const norm_t *n, const tensor_t *x,
                   const tensor_t *dy, const tensor_t *dx);

/* ---- attention ---- */

/* The channels from `first` of a tensor. */
typedef struct {
  const tensor_t *of;
  int64_t first;
} part_t;

/* o, and the statistics that the gradients need, a number for each head of a
 * token; in: q, k, v. */
void attend_forward(model_t *m, const tokens_t *t, const part_t in[3],
                    const tensor_t *o, const tensor_t *statistics);
/* d: the gradients of q, k and v. */
void attend_backward(model_t *m, const tokens_t *t, const part_t in[3],
                     const tensor_t *o, const tensor_t *statistics,
                     const tensor_t *d_o, const part_t d[3]);

/* ---- a block ---- */

typedef struct {
  norm_t first, second;
  linear_t in[3], out, up, down; /* in: to q, k and v, or to all of them */
  part_t qkv[3];
  const tensor_t *x, *a, *statistics, *o, *b, *c, *h, *g;
} block_t;

/* b = x + attention of norm x; the result is b + GELU layers of norm b. */
const tensor_t *block_forward(model_t *m, const tokens_t *t, const tensor_t *x,
                              block_t *out);
/* Of dy; returns the gradient of x. */
const tensor_t *block_backward(model_t *m, const tokens_t *t, const block_t *b,
                               const tensor_t *dy);

#endif
