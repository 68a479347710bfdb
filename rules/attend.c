// SPDX-License-Identifier: Apache-2.0
// Attention to boxes of keys, block by block of queries.
#include "rules/attend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/merge.h"
#include "rules/vendor.h"

// Dimensions of the arithmetic's tensors; the grid's follow.
enum { G, ALONG };

// Queries that are computed together, and scratch for them.
typedef struct block {
  sdg_box_t q, o; // in the operands' coordinates
  sdg_range_t g;  // folded
  bool full;      // every slot of every query has a key
  int scores;     // slabs: G, slot, grid; and as G, slot, queries, 1
  int flat;
  int dscores, dflat; // backward
  int products;       // G, channels, grid
  int q_own, q_fold;  // packed, and the same memory folded
  int o_own, o_fold;
  int dq_own, dq_fold;
} block_t;

// The queries that have a key at one step, folded, and their keys.
typedef struct pair {
  sdg_box_t q, k; // grid dimensions only
  int64_t slot;
} pair_t;

typedef struct maker {
  const sdg_attend_t *a;
  bool backward;
  int64_t slots;    // of a query
  int64_t width;    // channels of a head, the most
  int k, v, dk, dv; // folded slabs
  int memory;       // of the blocks, which take turns
  int64_t room;     // for so many queries times G
  block_t at;       // the block at hand
  pair_t *pair;
  int pairs;
} maker_t;

static int64_t size_of(sdg_range_t range) {
  return range.hi - range.lo;
}

static int64_t queries_of(const sdg_box_t *q) {
  int64_t count = 1;
  for (int d = 2; d < q->dims; d++)
    count *= size_of(q->dim[d]);
  return count;
}

// ---- folded tensors --------------------------------------------------------

// G [g), `second`, and the grid of `box`.
static sdg_box_t folded(const sdg_box_t *box, sdg_range_t g,
                        sdg_range_t second) {
  sdg_box_t out = *box;
  out.dim[G] = g;
  out.dim[ALONG] = second;
  return out;
}

static sdg_subcall_tensor_t view(const maker_t *m, int slab,
                                 const sdg_box_t *box, sdg_range_t second) {
  return (sdg_subcall_tensor_t){
      .slab = slab, .box = folded(box, m->at.g, second), .type = m->a->type};
}

static sdg_subcall_tensor_t slot_view(const maker_t *m, int slab,
                                      const pair_t *pair) {
  return view(m, slab, &pair->q, (sdg_range_t){pair->slot, pair->slot + 1});
}

static int64_t heads_of(const sdg_attend_t *a) {
  return size_of(a->q.box.dim[1]) / a->shape->q_channels;
}

// The memory of packed slab `of` with N and heads as one.
static sdg_status_t fold(const sdg_attend_t *a, int of, int64_t channels,
                         sdg_range_t g, int *out_slab) {
  sdg_box_t box = folded(&a->plan->slab[of].box, g, (sdg_range_t){0, channels});
  return sdg_plan_within(a->plan, of, 0, &box, of, out_slab);
}

static sdg_status_t folds_make(maker_t *m) {
  const sdg_attend_t *a = m->a;
  const sdg_neighborhood_t *shape = a->shape;
  sdg_range_t all = {0, size_of(a->q.box.dim[0]) * heads_of(a)};
  SDG_TRY(fold(a, a->k, shape->q_channels, all, &m->k));
  SDG_TRY(fold(a, a->v, shape->v_channels, all, &m->v));
  if (!m->backward)
    return SDG_OK;
  SDG_TRY(fold(a, a->dk, shape->q_channels, all, &m->dk));
  return fold(a, a->dv, shape->v_channels, all, &m->dv);
}

// ---- blocks ----------------------------------------------------------------

// Elements for one query of one head.
static int64_t elements_each(const maker_t *m) {
  const sdg_neighborhood_t *shape = m->a->shape;
  int64_t each = m->slots + m->width + shape->q_channels + shape->v_channels;
  return m->backward ? each + m->slots + shape->q_channels : each;
}

// Memory of a block, part by part: the next one, of `each` elements per query
// and head.
static sdg_status_t part_take(const maker_t *m, const sdg_box_t *box,
                              int64_t each, int64_t *io_offset, int *out_slab) {
  int bytes = sdg_merge_bytes(m->a->type);
  SDG_TRY(sdg_plan_within(m->a->plan, m->memory, (size_t)*io_offset, box, m->k,
                          out_slab));
  *io_offset += (each * m->room * bytes + 255) / 256 * 256;
  return SDG_OK;
}

static sdg_status_t both_take(const maker_t *m, const sdg_box_t *box,
                              int64_t channels, int64_t *io_offset,
                              int *out_own, int *out_fold) {
  SDG_TRY(part_take(m, box, channels, io_offset, out_own));
  return fold(m->a, *out_own, channels, m->at.g, out_fold);
}

static sdg_status_t scores_take(const maker_t *m, int64_t *io_offset,
                                int *out_scores, int *out_flat) {
  const block_t *b = &m->at;
  sdg_box_t box = folded(&b->q, b->g, (sdg_range_t){0, m->slots});
  SDG_TRY(part_take(m, &box, m->slots, io_offset, out_scores));
  sdg_box_t flat = {
      .dims = 4,
      .dim = {
          {0, size_of(b->g)}, {0, m->slots}, {0, queries_of(&b->q)}, {0, 1}}};
  return sdg_plan_within(m->a->plan, *out_scores, 0, &flat, *out_scores,
                         out_flat);
}

static sdg_status_t block_take(maker_t *m) {
  const sdg_neighborhood_t *shape = m->a->shape;
  block_t *b = &m->at;
  int64_t offset = 0;
  SDG_TRY(scores_take(m, &offset, &b->scores, &b->flat));
  sdg_box_t box = folded(&b->q, b->g, (sdg_range_t){0, m->width});
  SDG_TRY(part_take(m, &box, m->width, &offset, &b->products));
  SDG_TRY(
      both_take(m, &b->q, shape->q_channels, &offset, &b->q_own, &b->q_fold));
  SDG_TRY(
      both_take(m, &b->o, shape->v_channels, &offset, &b->o_own, &b->o_fold));
  if (!m->backward)
    return SDG_OK;
  SDG_TRY(
      both_take(m, &b->q, shape->q_channels, &offset, &b->dq_own, &b->dq_fold));
  return scores_take(m, &offset, &b->dscores, &b->dflat);
}

// ---- steps -----------------------------------------------------------------

static bool pair_make(const maker_t *m, const int64_t *step, pair_t *out) {
  const sdg_neighborhood_t *shape = m->a->shape;
  *out = (pair_t){.q = m->at.q, .k = m->at.q};
  for (int d = 0; d < shape->grid; d++) {
    const sdg_neighbor_t *dim = &shape->dim[d];
    sdg_range_t seeing = sdg_neighbor_queries(dim, step[d]);
    sdg_range_t *q = &out->q.dim[2 + d], *k = &out->k.dim[2 + d];
    q->lo = q->lo > seeing.lo ? q->lo : seeing.lo;
    q->hi = q->hi < seeing.hi ? q->hi : seeing.hi;
    if (q->lo >= q->hi)
      return false;
    k->lo = q->lo + step[d] * dim->dilation;
    k->hi = q->hi + step[d] * dim->dilation;
    out->slot = out->slot * dim->kernel + sdg_neighbor_slot(dim, step[d]);
  }
  return true;
}

// Each query's own step first: it is there for all of the block, and what is
// added to begins with it.
static sdg_status_t pairs_make(maker_t *m) {
  const sdg_neighborhood_t *shape = m->a->shape;
  static const int64_t own[SDG_NEIGHBOR_GRID_MAX];
  int64_t step[SDG_NEIGHBOR_GRID_MAX], count = 1, covered = 0;
  sdg_range_t steps[SDG_NEIGHBOR_GRID_MAX];
  for (int d = 0; d < shape->grid; d++) {
    steps[d] = sdg_neighbor_steps(&shape->dim[d]);
    step[d] = steps[d].lo;
    count *= size_of(steps[d]);
  }
  free(m->pair);
  m->pairs = 0;
  m->pair = malloc((size_t)count * sizeof *m->pair);
  if (!m->pair)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan of %lld steps", (long long)count);
  m->pairs += pair_make(m, own, &m->pair[0]);
  for (int64_t i = 0; i < count; i++) {
    if (memcmp(step, own, (size_t)shape->grid * sizeof *own) != 0)
      m->pairs += pair_make(m, step, &m->pair[m->pairs]);
    for (int d = shape->grid - 1; d >= 0 && ++step[d] == steps[d].hi; d--)
      step[d] = steps[d].lo;
  }
  for (int i = 0; i < m->pairs; i++)
    covered += queries_of(&m->pair[i].q);
  m->at.full = covered == m->slots * queries_of(&m->at.q);
  return SDG_OK;
}

// ---- sub-calls -------------------------------------------------------------

static cudnnStatus_t softmax_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnSoftmaxForward(
      run->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
      &run->scalar[0], run->descriptor[0], run->data[0], &run->scalar[1],
      run->descriptor[0], run->data[0]);
}

static cudnnStatus_t softmax_back_run(const sdg_subcall_run_t *run) {
  return sdg_cudnn_get()->cudnnSoftmaxBackward(
      run->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
      &run->scalar[0], run->descriptor[0], run->data[0], run->descriptor[1],
      run->data[1], &run->scalar[1], run->descriptor[1], run->data[1]);
}

// Of the weights in place; backward, of their gradients.
static sdg_status_t softmax_add(const maker_t *m, bool backward) {
  const sdg_attend_t *a = m->a;
  sdg_subcall_t sub = {
      .fn = backward ? softmax_back_run : softmax_run,
      .tensors = backward ? 2 : 1,
      .tensor = {sdg_subcall_slab(a->plan, m->at.flat, a->type)},
      .scalar = {sdg_scalar(a->type, 1), sdg_scalar(a->type, 0)}};
  if (backward)
    sub.tensor[1] = sdg_subcall_slab(a->plan, m->at.dflat, a->type);
  return sdg_subcall_add(a->plan, &sub);
}

// Into each slot of `to` the sum over `channels` of what the queries have in
// slab `own` times what their keys have in `theirs`.
static sdg_status_t dots_add(const maker_t *m, int own, int theirs,
                             int64_t channels, double scale, int to) {
  sdg_plan_t *plan = m->a->plan;
  sdg_range_t all = {0, channels};
  for (int i = 0; i < m->pairs; i++) {
    const pair_t *pair = &m->pair[i];
    sdg_subcall_tensor_t x = view(m, own, &pair->q, all);
    sdg_subcall_tensor_t y = view(m, theirs, &pair->k, all);
    sdg_subcall_tensor_t slot = slot_view(m, to, pair);
    // Nothing to sum is no reduction.
    sdg_subcall_tensor_t products =
        channels > 1 ? view(m, m->at.products, &pair->q, all) : slot;
    SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, channels > 1 ? 1 : scale,
                           &x, 1, &y, 0, &products));
    if (channels > 1)
      SDG_TRY(sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_ADD, scale,
                                 &products, 0, &slot));
  }
  return SDG_OK;
}

// To the queries' elements of slab `to` each slot of `weights` times what their
// keys have in slab `theirs`.
static sdg_status_t gather_add(const maker_t *m, int weights, int theirs,
                               int64_t channels, double scale, int to) {
  sdg_range_t all = {0, channels};
  for (int i = 0; i < m->pairs; i++) {
    const pair_t *pair = &m->pair[i];
    sdg_subcall_tensor_t y = view(m, theirs, &pair->k, all);
    sdg_subcall_tensor_t weight = slot_view(m, weights, pair);
    sdg_subcall_tensor_t sum = view(m, to, &pair->q, all);
    SDG_TRY(sdg_subcall_op(m->a->plan, CUDNN_OP_TENSOR_MUL, scale, &y, 1,
                           &weight, i > 0, &sum));
  }
  return SDG_OK;
}

// The other way: to the keys' elements of slab `to` what the queries have in
// slab `own`.
static sdg_status_t scatter_add(const maker_t *m, int weights, int own,
                                int64_t channels, double scale, int to) {
  sdg_range_t all = {0, channels};
  for (int i = 0; i < m->pairs; i++) {
    const pair_t *pair = &m->pair[i];
    sdg_subcall_tensor_t x = view(m, own, &pair->q, all);
    sdg_subcall_tensor_t weight = slot_view(m, weights, pair);
    sdg_subcall_tensor_t sum = view(m, to, &pair->k, all);
    SDG_TRY(sdg_subcall_op(m->a->plan, CUDNN_OP_TENSOR_MUL, scale, &x, 1,
                           &weight, 1, &sum));
  }
  return SDG_OK;
}

// Between the program's memory and the block's.
static sdg_status_t load(const maker_t *m, const sdg_subcall_tensor_t *operand,
                         const sdg_box_t *box, int own) {
  sdg_subcall_tensor_t from = *operand;
  sdg_subcall_tensor_t to = sdg_subcall_slab(m->a->plan, own, m->a->type);
  from.box = *box;
  return sdg_subcall_transform(m->a->plan, 1, &from, 0, &to);
}

static sdg_status_t store(const maker_t *m, int own, const sdg_box_t *box,
                          const sdg_subcall_tensor_t *operand) {
  sdg_subcall_tensor_t from = sdg_subcall_slab(m->a->plan, own, m->a->type);
  sdg_subcall_tensor_t to = *operand;
  to.box = *box;
  return sdg_subcall_transform(m->a->plan, 1, &from, 0, &to);
}

// Slots without a key weigh nothing.
static sdg_status_t weights_add(const maker_t *m) {
  const sdg_attend_t *a = m->a;
  sdg_subcall_tensor_t all = sdg_subcall_slab(a->plan, m->at.scores, a->type);
  SDG_TRY(load(m, &a->q, &m->at.q, m->at.q_own));
  if (!m->at.full)
    SDG_TRY(sdg_subcall_set(a->plan, -(double)INFINITY, &all));
  SDG_TRY(dots_add(m, m->at.q_fold, m->k, a->shape->q_channels, a->shape->scale,
                   m->at.scores));
  return softmax_add(m, false);
}

static sdg_status_t forward_add(const maker_t *m) {
  const block_t *b = &m->at;
  SDG_TRY(weights_add(m));
  SDG_TRY(
      gather_add(m, b->scores, m->v, m->a->shape->v_channels, 1, b->o_fold));
  return store(m, b->o_own, &b->o, &m->a->o);
}

// With weights p of scores s: dv = p do, dp = do . v, ds = p (dp - sum of p
// dp), dq = scale ds k, dk = scale ds q.
static sdg_status_t backward_add(const maker_t *m) {
  const sdg_attend_t *a = m->a;
  const sdg_neighborhood_t *shape = a->shape;
  const block_t *b = &m->at;
  sdg_subcall_tensor_t all = sdg_subcall_slab(a->plan, b->dscores, a->type);
  SDG_TRY(weights_add(m));
  SDG_TRY(load(m, &a->o, &b->o, b->o_own));
  SDG_TRY(scatter_add(m, b->scores, b->o_fold, shape->v_channels, 1, m->dv));
  if (!b->full)
    SDG_TRY(sdg_subcall_set(a->plan, 0, &all));
  SDG_TRY(dots_add(m, b->o_fold, m->v, shape->v_channels, 1, b->dscores));
  SDG_TRY(softmax_add(m, true));
  SDG_TRY(gather_add(m, b->dscores, m->k, shape->q_channels, shape->scale,
                     b->dq_fold));
  SDG_TRY(scatter_add(m, b->dscores, b->q_fold, shape->q_channels, shape->scale,
                      m->dk));
  return store(m, b->dq_own, &b->q, &a->dq);
}

// ---- all blocks ------------------------------------------------------------

static int64_t block_count(const maker_t *m, const sdg_box_t *q) {
  return size_of(q->dim[0]) * (size_of(q->dim[1]) / m->a->shape->q_channels) *
         queries_of(q);
}

// Halves of a block that is too large: of N, then rows, then heads.
static bool block_halve(const maker_t *m, const sdg_box_t *q,
                        sdg_box_t half[2]) {
  int64_t bytes =
      block_count(m, q) * elements_each(m) * sdg_merge_bytes(m->a->type);
  if (bytes <= m->a->block_bytes)
    return false;
  static const int order[] = {0, 2, 3, 4, 1};
  for (int i = 0; i < 5; i++) {
    int d = order[i];
    int64_t unit = d == 1 ? m->a->shape->q_channels : 1;
    int64_t units = d < q->dims ? size_of(q->dim[d]) / unit : 1;
    if (units < 2)
      continue;
    half[0] = half[1] = *q;
    half[0].dim[d].hi = half[1].dim[d].lo = q->dim[d].lo + units / 2 * unit;
    return true;
  }
  return false;
}

static void room_measure(maker_t *m, const sdg_box_t *q) {
  sdg_box_t half[2];
  if (block_halve(m, q, half)) {
    room_measure(m, &half[0]);
    room_measure(m, &half[1]);
    return;
  }
  int64_t count = block_count(m, q);
  m->room = count > m->room ? count : m->room;
}

static sdg_status_t block_add(maker_t *m, const sdg_box_t *q) {
  const sdg_attend_t *a = m->a;
  const sdg_neighborhood_t *shape = a->shape;
  sdg_box_t half[2];
  if (block_halve(m, q, half)) {
    SDG_TRY(block_add(m, &half[0]));
    return block_add(m, &half[1]);
  }
  int64_t head = (q->dim[1].lo - a->q.box.dim[1].lo) / shape->q_channels;
  int64_t heads = size_of(q->dim[1]) / shape->q_channels;
  int64_t first = (q->dim[0].lo - a->q.box.dim[0].lo) * heads_of(a) + head;
  m->at = (block_t){
      .q = *q, .o = *q, .g = {first, first + size_of(q->dim[0]) * heads}};
  m->at.o.dim[1].lo = a->o.box.dim[1].lo + head * shape->v_channels;
  m->at.o.dim[1].hi = m->at.o.dim[1].lo + heads * shape->v_channels;
  SDG_TRY(block_take(m));
  SDG_TRY(pairs_make(m));
  return m->backward ? backward_add(m) : forward_add(m);
}

static sdg_status_t attend(const sdg_attend_t *a, bool backward) {
  const sdg_neighborhood_t *shape = a->shape;
  maker_t m = {.a = a, .backward = backward, .slots = 1};
  for (int d = 0; d < shape->grid; d++)
    m.slots *= shape->dim[d].kernel;
  m.width = shape->q_channels;
  if (backward && shape->v_channels > m.width)
    m.width = shape->v_channels;
  room_measure(&m, &a->q.box);
  SDG_TRY(folds_make(&m));
  size_t bytes =
      (size_t)(elements_each(&m) * m.room) * (size_t)sdg_merge_bytes(a->type);
  // Each part begins where its memory is aligned.
  SDG_TRY(sdg_plan_workspace(a->plan, bytes + 8 * 256, &m.memory));
  sdg_status_t status = block_add(&m, &a->q.box);
  free(m.pair);
  return status;
}

sdg_status_t sdg_attend_forward(const sdg_attend_t *a) {
  return attend(a, false);
}

sdg_status_t sdg_attend_backward(const sdg_attend_t *a) {
  return attend(a, true);
}
