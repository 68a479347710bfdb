// SPDX-License-Identifier: Apache-2.0
// The sub-calls that attend to a block's keys.
#include <math.h>

#include "rules/kit/softmax_merge.h"
#include "rules/neighborhood/attend_block.h"
#include "rules/vendor/vendor.h"

static sdg_subcall_tensor_t
slot_view(const sdg_neighborhood_attend_maker_t *m, int slab,
          const sdg_neighborhood_attend_pair_t *pair) {
  return sdg_neighborhood_attend_view(
      m, slab, &pair->q, (sdg_range_t){pair->slot, pair->slot + 1});
}

static cudnnStatus_t softmax_back_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnSoftmaxBackward(
      run->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
      &run->scalar[0], run->descriptor[0], run->data[0], run->descriptor[1],
      run->data[1], &run->scalar[1], run->descriptor[1], run->data[1]);
}

// Softmax backward of the weights' gradients, in place.
static sdg_status_t softmax_back_add(const sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_attend_t *a = m->a;
  sdg_subcall_t sub = {
      .fn = softmax_back_run,
      .tensors = 2,
      .tensor = {sdg_subcall_slab(a->plan, m->at.flat, a->type),
                 sdg_subcall_slab(a->plan, m->at.dflat, a->type)},
      .scalar = {sdg_scalar(a->type, 1), sdg_scalar(a->type, 0)}};
  return sdg_subcall_add(a->plan, &sub);
}

// The slabs of scores, or of their gradients.
typedef struct slots {
  int slab, sums;
} slots_t;

// Scalar products of queries with their keys: the elements of queries are in
// slab `own`, those of keys in slab `theirs`, each with this many channels.
typedef struct dots {
  int own, theirs;
  int64_t channels;
  double scale;
} dots_t;

static sdg_status_t product_add(const sdg_neighborhood_attend_maker_t *m,
                                const dots_t *dots,
                                const sdg_neighborhood_attend_pair_t *pair,
                                double scale, const sdg_subcall_tensor_t *to) {
  sdg_range_t all = {0, dots->channels};
  sdg_subcall_tensor_t x =
      sdg_neighborhood_attend_view(m, dots->own, &pair->q, all);
  sdg_subcall_tensor_t y =
      sdg_neighborhood_attend_view(m, dots->theirs, &pair->k, all);
  return sdg_subcall_op(m->a->plan, CUDNN_OP_TENSOR_MUL, scale, &x, 1, &y, 0,
                        to);
}

// Computes the scalar products of one step, and stores them in its slot. A
// product of one channel needs no reduction.
static sdg_status_t dot_add(const sdg_neighborhood_attend_maker_t *m,
                            const dots_t *dots,
                            const sdg_neighborhood_attend_pair_t *pair,
                            const slots_t *to) {
  sdg_subcall_tensor_t slot = slot_view(m, to->slab, pair);
  if (dots->channels == 1)
    return product_add(m, dots, pair, dots->scale, &slot);
  sdg_subcall_tensor_t products = sdg_neighborhood_attend_view(
      m, m->at.products, &pair->q, (sdg_range_t){0, dots->channels});
  SDG_TRY(product_add(m, dots, pair, 1, &products));
  return sdg_subcall_reduce(m->a->plan, CUDNN_REDUCE_TENSOR_ADD, dots->scale,
                            &products, 0, &slot);
}

// Computes the scalar products of the slots [first, first + count), in which
// all queries have keys, with one reduction.
static sdg_status_t run_add(const sdg_neighborhood_attend_maker_t *m,
                            const dots_t *dots, int64_t first, int64_t count,
                            const slots_t *to) {
  for (int64_t i = 0; i < count; i++) {
    const sdg_neighborhood_attend_pair_t *pair =
        &m->pair[m->pair_all[first + i]];
    sdg_range_t place = {i * m->width, i * m->width + dots->channels};
    sdg_subcall_tensor_t products =
        sdg_neighborhood_attend_view(m, m->at.products, &pair->q, place);
    SDG_TRY(product_add(m, dots, pair, 1, &products));
  }
  sdg_subcall_tensor_t terms =
      sdg_subcall_slab(m->a->plan, m->at.terms, m->a->type);
  sdg_subcall_tensor_t sums =
      sdg_subcall_slab(m->a->plan, to->sums, m->a->type);
  terms.box.dim[1] = (sdg_range_t){0, count};
  terms.box.dim[2] = (sdg_range_t){0, dots->channels};
  sums.box.dim[1] = (sdg_range_t){first, first + count};
  return sdg_subcall_reduce(m->a->plan, CUDNN_REDUCE_TENSOR_ADD, dots->scale,
                            &terms, 0, &sums);
}

// The number of slots from `first` on whose steps all queries have.
static int64_t run_length(const sdg_neighborhood_attend_maker_t *m,
                          const dots_t *dots, int64_t first) {
  int64_t count = 0;
  while (dots->channels > 1 && count < m->times && first + count < m->slots &&
         m->pair_all[first + count] >= 0)
    count++;
  return count;
}

// Stores in each slot the scalar product over a head's channels.
static sdg_status_t dots_add(const sdg_neighborhood_attend_maker_t *m,
                             const dots_t *dots, const slots_t *to) {
  for (int64_t slot = 0; slot < m->slots;) {
    int64_t count = run_length(m, dots, slot);
    if (count > 0)
      SDG_TRY(run_add(m, dots, slot, count, to));
    slot += count > 0 ? count : 1;
  }
  for (int i = 0; i < m->pairs; i++)
    if (!m->pair[i].all || dots->channels == 1)
      SDG_TRY(dot_add(m, dots, &m->pair[i], to));
  return SDG_OK;
}

// Adds to the queries' elements of slab `to`, for each slot, `weights` times
// their keys' elements in slab `from`. `reverse`: adds to the keys' elements
// the weighted elements of the queries.
static sdg_status_t weighted_add(const sdg_neighborhood_attend_maker_t *m,
                                 int weights, int from, int64_t channels,
                                 double scale, int to, bool reverse) {
  sdg_range_t all = {0, channels};
  for (int i = 0; i < m->pairs; i++) {
    const sdg_neighborhood_attend_pair_t *pair = &m->pair[i];
    sdg_subcall_tensor_t factor = sdg_neighborhood_attend_view(
        m, from, reverse ? &pair->q : &pair->k, all);
    sdg_subcall_tensor_t weight = slot_view(m, weights, pair);
    sdg_subcall_tensor_t sum =
        sdg_neighborhood_attend_view(m, to, reverse ? &pair->k : &pair->q, all);
    SDG_TRY(sdg_subcall_op(m->a->plan, CUDNN_OP_TENSOR_MUL, scale, &factor, 1,
                           &weight, reverse || i > 0, &sum));
  }
  return SDG_OK;
}

// Copies between the program's memory and the block's.
static sdg_status_t load(const sdg_neighborhood_attend_maker_t *m,
                         const sdg_subcall_tensor_t *operand,
                         const sdg_box_t *box, int own) {
  sdg_subcall_tensor_t from = *operand;
  sdg_subcall_tensor_t to = sdg_subcall_slab(m->a->plan, own, m->a->type);
  from.box = *box;
  return sdg_subcall_transform(m->a->plan, 1, &from, 0, &to);
}

static sdg_status_t store(const sdg_neighborhood_attend_maker_t *m, int own,
                          const sdg_box_t *box,
                          const sdg_subcall_tensor_t *operand) {
  sdg_subcall_tensor_t from = sdg_subcall_slab(m->a->plan, own, m->a->type);
  sdg_subcall_tensor_t to = *operand;
  to.box = *box;
  return sdg_subcall_transform(m->a->plan, 1, &from, 0, &to);
}

// Computes the weights of a block's keys. A slot without a key has the score
// -inf, so its weight is 0.
static sdg_status_t weights_add(const sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_attend_t *a = m->a;
  sdg_subcall_tensor_t all = sdg_subcall_slab(a->plan, m->at.scores, a->type);
  SDG_TRY(load(m, &a->q, &m->at.q, m->at.q_own));
  if (!m->at.full)
    SDG_TRY(sdg_subcall_set(a->plan, -(double)INFINITY, &all));
  SDG_TRY(dots_add(
      m, &(dots_t){m->at.q_fold, m->k, a->shape->q_channels, a->shape->scale},
      &(slots_t){m->at.scores, m->at.sums}));
  sdg_subcall_tensor_t flat = sdg_subcall_slab(a->plan, m->at.flat, a->type);
  return sdg_softmax_add(a->plan, CUDNN_SOFTMAX_ACCURATE,
                         CUDNN_SOFTMAX_MODE_CHANNEL, &flat, &flat);
}

sdg_status_t sdg_neighborhood_attend_block_forward(
    const sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_attend_block_t *b = &m->at;
  SDG_TRY(weights_add(m));
  SDG_TRY(weighted_add(m, b->scores, m->v, m->a->shape->v_channels, 1,
                       b->o_fold, false));
  return store(m, b->o_own, &b->o, &m->a->o);
}

// With weights p of scores s: dv = p do, dp = do . v, ds = p (dp - sum of p
// dp), dq = scale ds k, dk = scale ds q.
sdg_status_t sdg_neighborhood_attend_block_backward(
    const sdg_neighborhood_attend_maker_t *m) {
  const sdg_neighborhood_attend_t *a = m->a;
  const sdg_neighborhood_t *shape = a->shape;
  const sdg_neighborhood_attend_block_t *b = &m->at;
  sdg_subcall_tensor_t all = sdg_subcall_slab(a->plan, b->dscores, a->type);
  SDG_TRY(weights_add(m));
  SDG_TRY(load(m, &a->o, &b->o, b->o_own));
  SDG_TRY(
      weighted_add(m, b->scores, b->o_fold, shape->v_channels, 1, m->dv, true));
  if (!b->full)
    SDG_TRY(sdg_subcall_set(a->plan, 0, &all));
  SDG_TRY(dots_add(m, &(dots_t){b->o_fold, m->v, shape->v_channels, 1},
                   &(slots_t){b->dscores, b->dsums}));
  SDG_TRY(softmax_back_add(m));
  SDG_TRY(weighted_add(m, b->dscores, m->k, shape->q_channels, shape->scale,
                       b->dq_fold, false));
  SDG_TRY(weighted_add(m, b->dscores, b->q_fold, shape->q_channels,
                       shape->scale, m->dk, true));
  return store(m, b->dq_own, &b->q, &a->dq);
}
