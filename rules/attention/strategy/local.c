// SPDX-License-Identifier: Apache-2.0
// Attends to a rank's own keys: products of the heads' rows, and a softmax.
#include "rules/attention/strategy/local.h"

#include <stdlib.h>

#include "rules/kit/projection.h"

enum {
  Q = SDG_ATTENTION_PART_Q,
  K = SDG_ATTENTION_PART_K,
  V = SDG_ATTENTION_PART_V,
  O = SDG_ATTENTION_PART_O,
  PARTS = SDG_ATTENTION_PARTS
};

typedef sdg_attention_local_t local_t;
typedef sdg_attention_local_part_t part_t;

static sdg_plan_t *plan_of(const local_t *h) {
  return h->m->plan;
}

// ---- operands --------------------------------------------------------------

static sdg_status_t vectors_read(local_t *h, int part, int index) {
  part_t *p = &h->part[part];
  return sdg_attention_rows_read(&h->project, index, &p->own, &p->box, &p->row);
}

static void boxes_find(local_t *h) {
  const sdg_attention_maker_t *m = h->m;
  const int operand[PARTS] = {m->a.q, m->a.k, m->a.v, m->a.o};
  for (int i = 0; i < PARTS; i++) {
    part_t *p = &h->part[i];
    if (i == Q || i == O) {
      p->own = p->box =
          sdg_attention_maker_rows(m, operand[i], m->tagging->rank);
      continue;
    }
    int side = i == K ? SDG_ATTENTION_KEYS : SDG_ATTENTION_VALUES;
    p->own = sdg_tagging_own(m->tagging, &m->side[side]);
    p->box = m->need[side][m->tagging->me];
  }
}

static sdg_status_t sight_find(local_t *h) {
  const sdg_attention_maker_t *m = h->m;
  int64_t keys =
      sdg_placement_extent(&m->side[SDG_ATTENTION_KEYS], SDG_SEQUENCE_TIME);
  h->sight = malloc((size_t)h->times * sizeof *h->sight);
  if (!h->sight)
    return sdg_fail(SDG_E_NO_MEMORY, "windows of %lld queries",
                    (long long)h->times);
  for (int64_t t = 0; t < h->times; t++)
    h->sight[t] = m->windows.lo ? sdg_windows_row(&m->windows, t, keys)
                                : sdg_band_row(&m->band, t, keys);
  sdg_attention_sight_t sight = {h->sight, h->times,
                                 h->part[K].box.dim[SDG_SEQUENCE_TIME]};
  return sdg_attention_mask_add(plan_of(h), &sight, h->project.type, &h->mask);
}

// Fills the numbers, boxes and windows of `h`.
static sdg_status_t begin(local_t *h) {
  sdg_attention_maker_t *m = h->m;
  bool reduced[SDG_SEQUENCE_DIMS] = {[SDG_SEQUENCE_TIME] = true};
  sdg_merge_init(m->tagging, &m->side[SDG_ATTENTION_KEYS], reduced, &h->group);
  plan_of(h)->reduce_axes = h->group.axes;
  SDG_TRY(sdg_attention_project_open(m, &h->project));
  boxes_find(h);
  h->idle = sdg_box_empty(&h->part[K].box);
  h->times = sdg_box_length(&h->part[Q].box, SDG_SEQUENCE_TIME);
  h->groups =
      sdg_box_length(&h->part[Q].box, SDG_SEQUENCE_BATCH) * m->a.desc.heads;
  h->none = h->groups == 0;
  h->keys = h->idle ? 0 : sdg_box_length(&h->part[K].box, SDG_SEQUENCE_TIME);
  return sight_find(h);
}

// ---- products --------------------------------------------------------------

// Views rows as a tensor with one row for each query: times x all elements of
// its groups.
static sdg_status_t wide(const local_t *h, const sdg_subcall_tensor_t *rows,
                         sdg_subcall_tensor_t *out) {
  int64_t all = sdg_box_count(&rows->box);
  return sdg_attention_rows_as(
      plan_of(h), rows, (const int64_t[]){h->times, all / h->times, 1, 1}, out);
}

static sdg_projection_t product(const local_t *h,
                                const sdg_subcall_tensor_t *weights,
                                const sdg_subcall_tensor_t *matrices,
                                const sdg_subcall_tensor_t *rows) {
  return (sdg_projection_t){.left = *weights,
                            .matrix = *matrices,
                            .right = *rows,
                            .math = h->m->a.desc.math};
}

static sdg_status_t weights_room(const local_t *h, sdg_subcall_tensor_t *out) {
  return sdg_attention_rows_room(plan_of(h), h->times, h->groups * h->keys,
                                 h->project.type, out);
}

static sdg_status_t rows_room(const local_t *h, int part,
                              sdg_subcall_tensor_t *out) {
  return sdg_attention_rows_room(plan_of(h), h->times,
                                 h->groups * h->project.each[part],
                                 h->project.type, out);
}

// weights = rows matrices^T
static sdg_status_t scores_make(const local_t *h, int part,
                                const sdg_subcall_tensor_t *rows,
                                const sdg_subcall_tensor_t *weights) {
  sdg_projection_t p = product(h, weights, &h->part[part].matrices, rows);
  return sdg_projection_left(plan_of(h), &p);
}

// rows = weights matrices
static sdg_status_t rows_make(const local_t *h, int part,
                              const sdg_subcall_tensor_t *weights,
                              const sdg_subcall_tensor_t *rows) {
  sdg_projection_t p = product(h, weights, &h->part[part].matrices, rows);
  return sdg_projection_right(plan_of(h), &p);
}

// Gradients of projected keys or values, as rows: weights^T rows.
static sdg_status_t matrices_make(local_t *h, int part,
                                  const sdg_subcall_tensor_t *weights,
                                  const sdg_subcall_tensor_t *rows) {
  sdg_subcall_tensor_t room, made;
  SDG_TRY(sdg_attention_rows_room(plan_of(h), h->groups * h->keys,
                                  h->project.each[part], h->project.type,
                                  &room));
  SDG_TRY(sdg_attention_rows_as(
      plan_of(h), &room,
      (const int64_t[]){1, h->groups, h->keys, h->project.each[part]}, &made));
  sdg_projection_t p = product(h, weights, &made, rows);
  SDG_TRY(sdg_projection_matrix(plan_of(h), &p));
  return sdg_attention_rows_join(&h->project, &made, &h->d_projected[part]);
}

// ---- the softmax -----------------------------------------------------------

// Reduces over keys. cudnnReduceTensor refuses to reduce a single key, so this
// copies it.
static sdg_status_t keys_reduce(const local_t *h, cudnnReduceTensorOp_t op,
                                double alpha, const sdg_subcall_tensor_t *from,
                                const sdg_subcall_tensor_t *to) {
  return h->keys > 1 ? sdg_subcall_reduce(plan_of(h), op, alpha, from, 0, to)
                     : sdg_subcall_transform(plan_of(h), alpha, from, 0, to);
}

static sdg_status_t shares_open(local_t *h) {
  sdg_box_t field = {.dims = 4,
                     .dim = {{0, h->times}, {0, 1}, {0, h->groups}, {0, 1}}};
  sdg_subcall_tensor_t like;
  SDG_TRY(sdg_attention_rows_groups(plan_of(h), &h->results, h->times,
                                    h->groups, &like));
  return sdg_softmax_merge_open(plan_of(h), &h->group, &field, 1, like.slab,
                                h->project.type, &h->shares);
}

// Gives scores of keys that a query does not see their masked value, even if
// they are NaN.
static sdg_status_t scores_mask(const local_t *h) {
  const sdg_subcall_tensor_t *s = &h->by_key, *least = &h->mask.least;
  if (h->mask.some)
    SDG_TRY(sdg_subcall_op_numbers(plan_of(h), CUDNN_OP_TENSOR_MIN, 1, s, 1,
                                   &h->mask.seen, s));
  if (!h->mask.away)
    return SDG_OK;
  SDG_TRY(sdg_subcall_op_numbers(plan_of(h), CUDNN_OP_TENSOR_MIN, 1, s, -1,
                                 least, s));
  return sdg_subcall_op_numbers(plan_of(h), CUDNN_OP_TENSOR_MAX, 1, s, 1, least,
                                s);
}

// Computes p from the scores, and this rank's maximum and sum for the shares.
static sdg_status_t weights_make(local_t *h) {
  sdg_plan_t *plan = plan_of(h);
  const sdg_subcall_tensor_t *s = &h->by_key, *max = &h->shares.max;
  if (!h->idle) {
    SDG_TRY(scores_mask(h));
    SDG_TRY(keys_reduce(h, CUDNN_REDUCE_TENSOR_MAX, 1, s, max));
    SDG_TRY(sdg_softmax_add(plan, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL,
                            s, s));
    SDG_TRY(keys_reduce(h, CUDNN_REDUCE_TENSOR_MAX, -1, s, &h->shares.log_sum));
    SDG_TRY(sdg_softmax_add(plan, CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, s, s));
  }
  return h->mask.some && !h->none ? sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1,
                                                   max, 1, &h->mask.max, 0, max)
                                  : SDG_OK;
}

static sdg_status_t shares_make(local_t *h) {
  SDG_TRY(sdg_softmax_merge_sum(plan_of(h), &h->shares));
  if (h->idle)
    return SDG_OK;
  SDG_TRY(sdg_softmax_merge_make(plan_of(h), &h->shares, false));
  return h->mask.lost ? sdg_subcall_op(plan_of(h), CUDNN_OP_TENSOR_MUL, 1,
                                       &h->shares.max, 1, &h->mask.share, 0,
                                       &h->shares.max)
                      : SDG_OK;
}

// Projects queries, keys and values, and computes p.
static sdg_status_t attend(local_t *h) {
  sdg_plan_t *plan = plan_of(h);
  const int operand[] = {h->m->a.q, h->m->a.k, h->m->a.v};
  SDG_TRY(rows_room(h, V, &h->results));
  SDG_TRY(shares_open(h));
  for (int i = Q; i <= V && !h->idle; i++) {
    part_t *p = &h->part[i];
    SDG_TRY(vectors_read(h, i, operand[i]));
    SDG_TRY(sdg_attention_rows_project(&h->project, i, &p->row, &p->projected));
    if (i == Q)
      SDG_TRY(sdg_subcall_scale(plan, h->m->a.desc.scale, &p->projected));
    else
      SDG_TRY(sdg_attention_rows_split(&h->project, &p->projected, h->keys,
                                       h->groups, &p->matrices));
  }
  if (!h->idle) {
    sdg_subcall_tensor_t queries;
    SDG_TRY(wide(h, &h->part[Q].projected, &queries));
    SDG_TRY(weights_room(h, &h->weights));
    SDG_TRY(sdg_attention_rows_groups(plan, &h->weights, h->times, h->groups,
                                      &h->by_key));
    SDG_TRY(scores_make(h, K, &queries, &h->weights));
  }
  return weights_make(h);
}

sdg_status_t sdg_attention_local_open(sdg_attention_maker_t *m, local_t *out) {
  *out = (local_t){.m = m};
  SDG_TRY(begin(out));
  return attend(out);
}

void sdg_attention_local_fini(local_t *local) {
  free(local->sight);
}

// ---- forward ---------------------------------------------------------------

sdg_status_t sdg_attention_local_results(local_t *h) {
  sdg_plan_t *plan = plan_of(h);
  sdg_subcall_tensor_t each;
  if (!h->idle)
    SDG_TRY(rows_make(h, V, &h->weights, &h->results));
  SDG_TRY(shares_make(h));
  if (h->idle)
    return sdg_plan_zero(plan, SDG_LANE_MAIN, h->results.slab, &h->results.box);
  SDG_TRY(
      sdg_attention_rows_groups(plan, &h->results, h->times, h->groups, &each));
  return sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, 1, &each, 1, &h->shares.max,
                        0, &each);
}

sdg_status_t sdg_attention_local_rows(const local_t *h, int part,
                                      const sdg_subcall_tensor_t *rows,
                                      sdg_subcall_tensor_t *out) {
  int64_t elements = h->m->a.desc.heads * h->project.each[part];
  int64_t n = sdg_box_count(&rows->box) / elements;
  return sdg_attention_rows_as(plan_of(h), rows,
                               (const int64_t[]){n, elements, 1, 1}, out);
}

// ---- gradients -------------------------------------------------------------

sdg_status_t sdg_attention_local_output(local_t *h) {
  part_t *o = &h->part[O];
  SDG_TRY(vectors_read(h, O, h->m->a.o));
  o->projected = o->row;
  if (!h->project.matrix[O].is_there)
    return SDG_OK;
  SDG_TRY(sdg_attention_rows_room(plan_of(h), o->row.box.dim[0].hi,
                                  h->m->a.desc.heads * h->project.each[V],
                                  h->project.type, &o->projected));
  return sdg_attention_project_left(&h->project, O, &o->projected, &o->row);
}

// Computes ds in d_weights. `by_key` contains a, and becomes a delta; delta is
// the sum over all keys, of all ranks, of a da.
static sdg_status_t scores_back(local_t *h, const sdg_subcall_tensor_t *rows) {
  sdg_plan_t *plan = plan_of(h);
  sdg_subcall_tensor_t delta, by_key;
  SDG_TRY(sdg_merge_scratch(plan, &h->shares.field, h->shares.fields.slab,
                            h->project.type, &delta));
  if (h->idle) {
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, delta.slab, &delta.box));
  } else {
    SDG_TRY(weights_room(h, &h->d_weights));
    SDG_TRY(sdg_attention_rows_groups(plan, &h->d_weights, h->times, h->groups,
                                      &by_key));
    SDG_TRY(scores_make(h, V, rows, &h->d_weights));
    SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, 1, &by_key, 1, &h->by_key,
                           0, &by_key));
    SDG_TRY(keys_reduce(h, CUDNN_REDUCE_TENSOR_ADD, 1, &by_key, &delta));
  }
  SDG_TRY(sdg_plan_reduce(plan, delta.slab, delta.type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  if (h->idle)
    return SDG_OK;
  SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_MUL, 1, &h->by_key, 1, &delta, 0,
                         &h->by_key));
  return sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, &by_key, -1, &h->by_key,
                        0, &by_key);
}

sdg_status_t sdg_attention_local_back(local_t *h) {
  sdg_subcall_tensor_t rows, queries;
  SDG_TRY(shares_make(h));
  if (h->idle)
    return scores_back(h, NULL);
  SDG_TRY(sdg_subcall_op(plan_of(h), CUDNN_OP_TENSOR_MUL, 1, &h->by_key, 1,
                         &h->shares.max, 0, &h->by_key));
  SDG_TRY(sdg_attention_local_output(h));
  SDG_TRY(wide(h, &h->part[O].projected, &rows));
  if (h->m->a.kind == SDG_ATTENTION_WEIGHTS)
    SDG_TRY(rows_make(h, V, &h->weights, &h->results));
  SDG_TRY(matrices_make(h, V, &h->weights, &rows));
  SDG_TRY(scores_back(h, &rows));
  SDG_TRY(wide(h, &h->part[Q].projected, &queries));
  SDG_TRY(matrices_make(h, K, &h->d_weights, &queries));
  SDG_TRY(rows_room(h, Q, &h->d_projected[Q]));
  SDG_TRY(rows_make(h, K, &h->d_weights, &h->d_projected[Q]));
  SDG_TRY(
      sdg_subcall_scale(plan_of(h), h->m->a.desc.scale, &h->d_projected[Q]));
  sdg_subcall_tensor_t made = h->d_projected[Q];
  return sdg_attention_local_rows(h, Q, &made, &h->d_projected[Q]);
}
