// SPDX-License-Identifier: Apache-2.0
// Convolutions, reductions and statistics computed by loops over doubles.
#include <math.h>
#include <stdlib.h>

#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

typedef struct {
  int tensor[3]; /* x, w, y */
  int out;       /* 0, 1, 2 */
  double *sum, *terms, *error;
} products_t;

static void add_product(const products_t *p, const reference_t *r,
                        const int64_t at[3]) {
  int a = p->out == 0 ? 1 : 0, b = p->out == 2 ? 1 : 2;
  const reference_tensor_t *ta = &r->tensor[p->tensor[a]],
                           *tb = &r->tensor[p->tensor[b]];
  double va = ta->value[at[a]], vb = tb->value[at[b]];
  double ea = ta->error[at[a]], eb = tb->error[at[b]];
  int64_t to = at[p->out];
  p->sum[to] += va * vb;
  p->terms[to] += fabs(va * vb);
  p->error[to] += fabs(va) * eb + fabs(vb) * ea + ea * eb;
}

static void unfold(const sdg_graph_tensor_t *t, int64_t i, int64_t *index) {
  for (int d = t->rank - 1; d >= 0; d--) {
    index[d] = i % t->dim[d];
    i /= t->dim[d];
  }
}

static int64_t fold(const sdg_graph_tensor_t *t, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < t->rank; d++)
    at = at * t->dim[d] + index[d];
  return at;
}

/* The input element of an output's window position; false outside. */
static bool window(const made_t *m, const sdg_graph_node_t *node,
                   const products_t *p, const int64_t *y, const int64_t *w,
                   int64_t *out_at) {
  const sdg_graph_tensor_t *x = &m->graph.tensor[p->tensor[0]];
  const sdg_graph_tensor_t *tw = &m->graph.tensor[p->tensor[1]];
  bool flip = sdg_graph_integer(node, CUDNN_ATTR_CONVOLUTION_CONV_MODE, -1) ==
              CUDNN_CONVOLUTION;
  int64_t groups = x->dim[1] / tw->dim[1], index[MADE_RANK];
  int64_t group = w[0] / (tw->dim[0] / groups);
  index[0] = y[0];
  index[1] = group * tw->dim[1] + w[1];
  for (int d = 0; d < x->rank - 2; d++) {
    int64_t k = flip ? tw->dim[2 + d] - 1 - w[2 + d] : w[2 + d];
    index[2 + d] =
        y[2 + d] *
            sdg_graph_parameter(node, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)
                ->value[d]
                .integer -
        sdg_graph_parameter(node, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)
            ->value[d]
            .integer +
        k * sdg_graph_parameter(node, CUDNN_ATTR_CONVOLUTION_DILATIONS)
                ->value[d]
                .integer;
    if (index[2 + d] < 0 || index[2 + d] >= x->dim[2 + d])
      return false;
  }
  *out_at = fold(x, index);
  return true;
}

void reference_conv(reference_t *r, const made_t *m,
                    const sdg_graph_node_t *node, double rounding) {
  int which =
      (int)node->kind - CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  products_t p = {.out = which == 0 ? 2 : which == 1 ? 1 : 0};
  for (int k = 0; k < 3; k++)
    p.tensor[k] = sdg_graph_operand(node, made_conv_names[which][k]);
  const sdg_graph_tensor_t *w = &m->graph.tensor[p.tensor[1]],
                           *y = &m->graph.tensor[p.tensor[2]];
  int64_t count = r->tensor[p.tensor[p.out]].count;
  p.sum = calloc((size_t)count + 1, sizeof *p.sum);
  p.terms = calloc((size_t)count + 1, sizeof *p.terms);
  p.error = calloc((size_t)count + 1, sizeof *p.error);
  int64_t at[3], y_at[MADE_RANK], w_at[MADE_RANK];
  for (at[2] = 0; at[2] < r->tensor[p.tensor[2]].count; at[2]++) {
    unfold(y, at[2], y_at);
    int64_t per = r->tensor[p.tensor[1]].count / w->dim[0];
    for (int64_t k = 0; k < per; k++) {
      at[1] = y_at[1] * per + k;
      unfold(w, at[1], w_at);
      if (window(m, node, &p, y_at, w_at, &at[0]))
        add_product(&p, r, at);
    }
  }
  double alpha = sdg_graph_real(node, made_conv_names[which][3], 1);
  double beta = sdg_graph_real(node, made_conv_names[which][4], 0);
  int out = p.tensor[p.out];
  for (int64_t i = 0; i < count; i++) {
    double value = alpha * p.sum[i];
    if (beta != 0)
      value += beta * r->tensor[out].value[i];
    reference_put(r, m, out, i, value,
                  fabs(alpha) * (p.error[i] + 32 * rounding * p.terms[i]) +
                      rounding * fabs(value));
  }
  free(p.sum);
  free(p.terms);
  free(p.error);
}

typedef struct {
  double value, low, high, terms, error;
  int64_t count;
} sum_t;

static double between(double low, double high) {
  return low <= 0 && high >= 0 ? 0 : fmin(fabs(low), fabs(high));
}

static void accumulate(sum_t *s, cudnnReduceTensorOp_t op, double v, double e) {
  bool first = s->count++ == 0, greater = op != CUDNN_REDUCE_TENSOR_MIN;
  double low = v - e, high = v + e;
  switch ((int)op) {
  case CUDNN_REDUCE_TENSOR_AMAX:
    high = fmax(fabs(low), fabs(high));
    low = between(v - e, v + e);
    v = fabs(v);
    /* fall through */
  case CUDNN_REDUCE_TENSOR_MIN:
  case CUDNN_REDUCE_TENSOR_MAX:
    s->value = first ? v : greater ? fmax(s->value, v) : fmin(s->value, v);
    s->low = first ? low : greater ? fmax(s->low, low) : fmin(s->low, low);
    s->high = first     ? high
              : greater ? fmax(s->high, high)
                        : fmin(s->high, high);
    s->error = fmax(s->value - s->low, s->high - s->value);
    return;
  case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
    if (v == 0 && e == 0 && first) {
      s->value = 1;
      return;
    }
    if (v == 0 && e == 0)
      return;
    if (fabs(v) <= e)
      s->error = INFINITY;
    /* fall through */
  case CUDNN_REDUCE_TENSOR_MUL:
    if (first)
      s->value = 1;
    s->error = s->error * (fabs(v) + e) + fabs(s->value) * e;
    s->value *= v;
    s->terms = fabs(s->value);
    return;
  case CUDNN_REDUCE_TENSOR_NORM2:
    e = 2 * fabs(v) * e + e * e;
    v *= v;
    break;
  case CUDNN_REDUCE_TENSOR_NORM1:
    v = fabs(v);
  }
  s->value += v;
  s->terms += fabs(v);
  s->error += e;
}

static void finish(sum_t *s, cudnnReduceTensorOp_t op, double rounding) {
  bool extreme = op == CUDNN_REDUCE_TENSOR_MIN ||
                 op == CUDNN_REDUCE_TENSOR_MAX ||
                 op == CUDNN_REDUCE_TENSOR_AMAX;
  s->error += extreme ? 0 : 4 * rounding * s->terms;
  if (op == CUDNN_REDUCE_TENSOR_AVG) {
    s->value /= (double)s->count;
    s->error /= (double)s->count;
  }
  if (op == CUDNN_REDUCE_TENSOR_NORM2) {
    double root = sqrt(s->value);
    s->error = s->value > s->error ? s->error / root + rounding * root
                                   : sqrt(s->value + s->error) - root;
    s->value = root;
  }
}

static void reduce(reference_t *r, const made_t *m, cudnnReduceTensorOp_t op,
                   int x, int y, double rounding, bool root) {
  const sdg_graph_tensor_t *tx = &m->graph.tensor[x], *ty = &m->graph.tensor[y];
  int64_t count = r->tensor[y].count, index[MADE_RANK];
  sum_t *sum = calloc((size_t)count + 1, sizeof *sum);
  for (int64_t i = 0; i < r->tensor[x].count; i++) {
    unfold(tx, i, index);
    for (int d = 0; d < tx->rank; d++)
      index[d] /= tx->dim[d] / ty->dim[d];
    accumulate(&sum[fold(ty, index)], op, r->tensor[x].value[i],
               r->tensor[x].error[i]);
  }
  for (int64_t i = 0; i < count; i++) {
    if (root)
      finish(&sum[i], op, rounding);
    else
      sum[i].error += 4 * rounding * sum[i].terms;
    reference_put(r, m, y, i, sum[i].value, sum[i].error);
  }
  free(sum);
}

void reference_reduction(reference_t *r, const made_t *m,
                         const sdg_graph_node_t *node, double rounding) {
  reduce(r, m,
         (cudnnReduceTensorOp_t)sdg_graph_integer(
             node, CUDNN_ATTR_REDUCTION_OPERATOR, -1),
         sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
         sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC),
         rounding, true);
}

void reference_statistics(reference_t *r, const made_t *m,
                          const sdg_graph_node_t *node, double rounding) {
  int x = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
  reduce(r, m, CUDNN_REDUCE_TENSOR_ADD, x,
         sdg_graph_operand(node, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC),
         rounding, true);
  reduce(r, m, CUDNN_REDUCE_TENSOR_NORM2, x,
         sdg_graph_operand(node, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC),
         rounding, false);
}
