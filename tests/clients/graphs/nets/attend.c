// SPDX-License-Identifier: Apache-2.0
// Attention as cudnn-frontend states it: the scale by value, and a mask only
// where there is one. Without a mask it is one op, forward.
#include "tests/clients/graphs/attention/compose.h"
#include "tests/clients/graphs/nets/tokens.h"

// ---- arrays ----------------------------------------------------------------

// Batch, heads, tokens, the numbers of a head. Memory has the heads of a token
// side by side.
static array_t part_of(const tokens_t *t, part_t part) {
  const tensor_t *x = part.of;
  int64_t tokens = x->dim[2] * x->dim[3], size = t->channels / t->heads;
  int64_t bytes = part.first * (x->type == CUDNN_DATA_HALF ? 2 : 4);
  return (array_t){.exists = true,
                   .type = x->type,
                   .dim = {x->dim[0], t->heads, tokens, size},
                   .stride = {tokens * x->dim[1], size, x->dim[1], 1},
                   .device = (char *)x->at + bytes};
}

static array_t heads_of(const tokens_t *t, const tensor_t *x) {
  return part_of(t, (part_t){x, 0});
}

// One for each head of a token; those of a head are side by side.
static array_t numbers_of(const tokens_t *t, const tensor_t *x) {
  int64_t tokens = x->dim[2] * x->dim[3];
  return (array_t){.exists = true,
                   .type = CUDNN_DATA_FLOAT,
                   .dim = {x->dim[0], t->heads, tokens, 1},
                   .stride = {t->heads * tokens, tokens, 1, 1},
                   .device = x->at};
}

// ---- graphs ----------------------------------------------------------------

static case_t case_of(const tokens_t *t, kind_t kind, const part_t in[3],
                      const tensor_t *o, const tensor_t *statistics) {
  const tensor_t *q = in[0].of;
  int64_t tokens = q->dim[2] * q->dim[3], size = t->channels / t->heads;
  bool band = t->sees == SEES_BAND;
  case_t c = {.kind = kind,
              .type = q->type,
              .b = q->dim[0],
              .h = t->heads,
              .g = t->heads,
              .s_q = tokens,
              .s_kv = tokens,
              .d = size,
              .d_v = size,
              .scale = 1 / sqrt((double)size),
              .scaled = true,
              .has_left = band,
              .left = t->window + 1, // the first one that is not seen
              .has_right = t->sees != SEES_ALL,
              .right = band ? t->window : 0,
              .stats = true};
  c.array[Q] = part_of(t, in[0]);
  c.array[K] = part_of(t, in[1]);
  c.array[V] = part_of(t, in[2]);
  c.array[O] = heads_of(t, o);
  c.array[STATS] = numbers_of(t, statistics);
  return c;
}

// Numbers by value, whose memory is the next graph's, too, are the model's.
static op_t *case_end(model_t *m, const case_t *c) {
  static draft_t draft; // has the numbers, until the next graph
  made_t made = graph_make(m->net.handle, c, &draft);
  op_t op = {.graph = made.graph, .tensors = made.count, .has_numbers = true};
  CHECK(made.count > SKETCH_TENSORS || m->ops == MODEL_OPS);
  for (int64_t i = 0; i < made.count; i++) {
    op.uid[i] = made.uids[i];
    op.pointer[i] = made.pointers[i];
    if (made.by_value[i])
      op.pointer[i] = model_number_like(m, made.pointers[i])->at;
  }
  m->op[m->ops] = op;
  return &m->op[m->ops++];
}

void attend_forward(model_t *m, const tokens_t *t, const part_t in[3],
                    const tensor_t *o, const tensor_t *statistics) {
  kind_t kind = t->sees == SEES_ALL ? ONE : FORWARD;
  case_t c = case_of(t, kind, in, o, statistics);
  (void)case_end(m, &c);
}

void attend_backward(model_t *m, const tokens_t *t, const part_t in[3],
                     const tensor_t *o, const tensor_t *statistics,
                     const tensor_t *d_o, const part_t d[3]) {
  case_t c = case_of(t, BACKWARD, in, o, statistics);
  tensor_t *delta = model_like(m, statistics);
  tensor_t *sum = model_tensor(m, CUDNN_DATA_FLOAT, o->dim[0], o->dim[1],
                               o->dim[2], o->dim[3]);
  c.array[D_O] = heads_of(t, d_o);
  c.array[DELTA] = numbers_of(t, delta);
  c.array[GATHERED] = heads_of(t, sum);
  c.array[D_Q] = part_of(t, d[0]);
  c.array[D_K] = part_of(t, d[1]);
  c.array[D_V] = part_of(t, d[2]);
  op_t *op = case_end(m, &c);
  op->zeroed = sum->at;
  op->zeroed_bytes = (size_t)tensor_elements(sum) * sizeof(float);
}
