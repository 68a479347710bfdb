// SPDX-License-Identifier: Apache-2.0
// The steps of attention by merging.
//
// All ranks have the queries q. Each rank has some keys k and values v, and
// computes the scores s = scale q k of its keys and p = softmax(s) over these
// keys only. w is the rank's share of each query's softmax over all keys
// (rules/kit/softmax_merge.h). The result over all keys is c = sum over ranks
// of w p v. Projection, bias and residual follow on every rank.
//
// Backward, with a = w p, from the gradient dc of c:
//
//   dv = a dc,  da = dc v,  ds = a (da - sum over all keys of a da),
//   dk = scale ds q,  dq = sum over ranks of scale ds k.
//
// Gradients of parameters are sums over keys, too, so each rank computes one
// addend. The gradient of the output's bias is no such sum: one rank adds it.
#include "rules/attention/strategy/merge.h"

#include "rules/attention/strategy/local.h"
#include "rules/kit/gradient_sum.h"
#include "rules/place/place.h"

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

static sdg_status_t output_make(local_t *h) {
  const sdg_attention_t *a = &h->m->a;
  sdg_plan_t *plan = plan_of(h);
  part_t *o = &h->part[O];
  sdg_subcall_tensor_t residual;
  if (h->none)
    return SDG_OK;
  SDG_TRY(sdg_attention_local_rows(h, V, &h->results, &o->projected));
  o->row = o->projected;
  if (h->project.matrix[O].is_there) {
    SDG_TRY(
        sdg_attention_rows_room(plan, o->projected.box.dim[0].hi,
                                sdg_box_length(&o->box, SDG_SEQUENCE_VECTOR),
                                h->project.type, &o->row));
    SDG_TRY(
        sdg_attention_project_right(&h->project, O, &o->projected, &o->row));
  }
  if (a->residual >= 0) {
    SDG_TRY(sdg_attention_rows_read(&h->project, a->residual, &o->own, &o->box,
                                    &residual));
    SDG_TRY(sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, &o->row, 1, &residual,
                           0, &o->row));
  }
  return sdg_attention_rows_store(&h->project, &o->row, a->o, &o->own, &o->box);
}

static sdg_status_t forward_make(local_t *h) {
  SDG_TRY(sdg_attention_local_results(h));
  SDG_TRY(sdg_plan_reduce(plan_of(h), h->results.slab, h->project.type,
                          SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan_of(h), SDG_LANE_MAIN));
  return output_make(h);
}

static sdg_status_t data_make(local_t *h) {
  const sdg_attention_t *a = &h->m->a;
  sdg_plan_t *plan = plan_of(h);
  const part_t *q = &h->part[Q];
  const int to[] = {a->dq, a->dk, a->dv};
  sdg_subcall_tensor_t made[PARTS] = {{0}};
  SDG_TRY(sdg_attention_local_back(h));
  int64_t size = sdg_box_length(&q->box, SDG_SEQUENCE_VECTOR);
  if (h->idle) {
    SDG_TRY(sdg_attention_rows_room(plan, sdg_box_count(&q->box) / size, size,
                                    h->project.type, &made[Q]));
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, made[Q].slab, &made[Q].box));
  }
  for (int i = Q; i <= V && !h->idle; i++)
    SDG_TRY(sdg_attention_rows_project_back(&h->project, i, &h->d_projected[i],
                                            &made[i]));
  for (int i = K; i <= V; i++)
    SDG_TRY(sdg_attention_rows_store(&h->project, &made[i], to[i],
                                     &h->part[i].own, &h->part[i].box));
  SDG_TRY(sdg_plan_reduce(plan, made[Q].slab, made[Q].type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  return sdg_attention_rows_store(&h->project, &made[Q], to[Q], &q->own,
                                  &q->box);
}

// Adds this rank's terms of the parameters' gradients.
static sdg_status_t parameters_fill(local_t *h, int weights, bool adds) {
  sdg_subcall_tensor_t results;
  if (h->group.me == 0 && !h->none) {
    if (h->idle)
      SDG_TRY(sdg_attention_local_output(h));
    SDG_TRY(sdg_attention_project_bias(&h->project, O, &h->part[O].row, weights,
                                       adds));
  }
  if (h->idle)
    return SDG_OK;
  for (int i = Q; i <= V; i++) {
    SDG_TRY(sdg_attention_project_matrix(&h->project, i, &h->part[i].row,
                                         &h->d_projected[i], weights, adds));
    SDG_TRY(sdg_attention_project_bias(&h->project, i, &h->d_projected[i],
                                       weights, adds));
  }
  SDG_TRY(sdg_attention_local_rows(h, V, &h->results, &results));
  return sdg_attention_project_matrix(&h->project, O, &results, &h->part[O].row,
                                      weights, adds);
}

static sdg_status_t parameters_make(local_t *h) {
  sdg_attention_maker_t *m = h->m;
  sdg_gradient_sum_t sum;
  if (m->call->operand[m->a.dw].extent[SDG_SEQUENCE_VECTOR] == 0)
    return SDG_OK; // without projections there are no parameters
  SDG_TRY(sdg_attention_local_back(h));
  if (m->plan->share)
    SDG_TRY(sdg_gradient_sum_share(m->plan->share, m->call, m->a.dw,
                                   sdg_attention_old_factor(m->call)));
  SDG_TRY(sdg_gradient_sum_open(m->plan, m->call, m->a.dw, m->sum_axes,
                                sdg_attention_old_factor, &sum));
  bool adds = sum.takes_beta && m->a.adds;
  if (!adds)
    SDG_TRY(sdg_gradient_sum_prefill(m->plan, m->call, &sum));
  SDG_TRY(parameters_fill(h, sum.part, adds));
  return sdg_gradient_sum_close(m->plan, m->call, &sum);
}

static sdg_status_t steps_make(local_t *h) {
  switch (h->m->a.kind) {
  case SDG_ATTENTION_FORWARD:
    return forward_make(h);
  case SDG_ATTENTION_DATA:
    return data_make(h);
  case SDG_ATTENTION_WEIGHTS:
    break;
  }
  return parameters_make(h);
}

sdg_status_t sdg_attention_merge_steps(sdg_attention_maker_t *m) {
  local_t local;
  sdg_status_t status = sdg_attention_local_open(m, &local);
  if (status == SDG_OK)
    status = steps_make(&local);
  sdg_attention_local_fini(&local);
  return status;
}

// ---- whether it can be done ------------------------------------------------

bool sdg_attention_merge_applies(const sdg_placement_t *queries,
                                 const sdg_placement_t *keys) {
  const sdg_split_t *batch = &queries->split[SDG_SEQUENCE_BATCH];
  return queries->part[SDG_SEQUENCE_TIME].pieces == 1 &&
         keys->part[SDG_SEQUENCE_TIME].pieces > 1 &&
         keys->part[SDG_SEQUENCE_VECTOR].pieces == 1 &&
         sdg_place_same(batch, &keys->split[SDG_SEQUENCE_BATCH], 1) &&
         sdg_part_equal(&queries->part[SDG_SEQUENCE_BATCH],
                        &keys->part[SDG_SEQUENCE_BATCH]);
}

// The vendor's functions count the elements of a tensor in 32 bits, so the
// scores of a rank must not be more than INT32_MAX.
bool sdg_attention_merge_can(const sdg_attention_maker_t *m) {
  const sdg_placement_t *queries = m->rows;
  const sdg_placement_t *keys = &m->tagging->placement[m->a.k];
  int64_t max = 0;
  for (int r = 0; r < keys->part[SDG_SEQUENCE_TIME].pieces; r++) {
    int64_t size = sdg_part_size(&keys->part[SDG_SEQUENCE_TIME], r);
    max = size > max ? size : max;
  }
  if (m->queries.length || m->keys.length ||
      sdg_placement_extent(queries, SDG_SEQUENCE_BEAM) > 1 ||
      sdg_placement_extent(keys, SDG_SEQUENCE_BEAM) > 1)
    return false;
  double scores = (double)sdg_placement_extent(queries, SDG_SEQUENCE_TIME) *
                  (double)sdg_placement_extent(queries, SDG_SEQUENCE_BATCH) *
                  (double)m->a.desc.heads * (double)max;
  return scores <= INT32_MAX && max <= SDG_ATTENTION_MASK_KEYS;
}
