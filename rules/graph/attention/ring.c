// SPDX-License-Identifier: Apache-2.0
// Attention piece by piece of the keys ("ring"): no rank ever has more than two
// pieces of keys and values of other ranks, whatever its queries see.
//
// Forward: results of the steps are merged (merge.h). Backward: with the
// statistics of all keys a step's gradients are terms of sums. Those of keys
// and values go back one step later (side.h). Blocks that a rank's queries do
// not see are left out.
#include "rules/graph/attention/merge.h"
#include "rules/graph/attention/side.h"
#include "rules/kit/subcall.h"

enum {
  BATCH = SDG_HEADED_BATCH,
  HEADS = SDG_HEADED_HEADS,
  SEQ = SDG_HEADED_SEQ,
  VECTOR = SDG_HEADED_VECTOR,
  DIMS = SDG_HEADED_DIMS
};

typedef sdg_graph_attention_view_t view_t;

typedef struct ring {
  sdg_graph_attention_t *a;
  sdg_box_t rows;
  view_t view[SDG_COMPOSITE_ROLES]; // of the program's tensors
  sdg_graph_side_t side[SDG_SIDES];
  int part;                // a step's o, or dq
  int sum;                 // all steps', in float
  sdg_graph_merge_t merge; // forward
  // Scratch for some queries' statistics as cuDNN wants them, and a slab whose
  // order they have.
  int dense, dense_like;
} ring_t;

static cudnnDataType_t type_of(const ring_t *r, int role) {
  return (cudnnDataType_t)r->a->call->operand[r->a->operand[role]].type;
}

// The result that belongs to queries.
static int result_of(const ring_t *r) {
  return r->a->composite->backward ? SDG_COMPOSITE_DQ : SDG_COMPOSITE_O;
}

// A tensor's rows of these queries.
static sdg_box_t rows_of(const sdg_box_t *box, sdg_range_t queries) {
  sdg_box_t rows = *box;
  rows.dim[SEQ] = queries;
  return rows;
}

// ---- memory ----------------------------------------------------------------

static sdg_status_t statistics_open(ring_t *r) {
  static const int64_t by_batch[SDG_DIMS_MAX] = {
      [BATCH] = 4, [HEADS] = 3, [SEQ] = 2, [VECTOR] = 1};
  static const sdg_box_t one = {DIMS, {{0, 1}, {0, 1}, {0, 1}, {0, 1}}};
  sdg_box_t numbers = r->rows;
  numbers.dim[VECTOR] = (sdg_range_t){0, 1};
  SDG_TRY(sdg_plan_workspace(
      r->a->plan, (size_t)sdg_box_count(&numbers) * sizeof(float), &r->dense));
  return sdg_plan_packed(r->a->plan, &one, by_batch, sizeof(float),
                         &r->dense_like);
}

static sdg_status_t results_open(ring_t *r) {
  static const int64_t by_sequence[SDG_DIMS_MAX] = {
      [BATCH] = 3, [HEADS] = 2, [SEQ] = 4, [VECTOR] = 1};
  sdg_graph_attention_t *a = r->a;
  int result = result_of(r);
  const sdg_box_t *box = &r->view[result].box;
  SDG_TRY(statistics_open(r));
  if (!a->composite->backward) {
    SDG_TRY(sdg_graph_merge_open(a->plan, a->call, box,
                                 (sdg_type_t)type_of(r, result), &r->merge));
    r->part = r->merge.part;
    r->sum = r->merge.sum;
    return SDG_OK;
  }
  SDG_TRY(sdg_plan_packed(a->plan, box, by_sequence,
                          a->call->operand[a->operand[result]].elem_bytes,
                          &r->part));
  SDG_TRY(sdg_plan_packed(a->plan, box, by_sequence, sizeof(float), &r->sum));
  return sdg_plan_zero(a->plan, SDG_LANE_MAIN, r->sum, box);
}

// ---- one step --------------------------------------------------------------

// Statistics of some queries as cuDNN wants them: the program's own, if these
// are read and all are wanted.
static sdg_status_t statistics_view(ring_t *r, sdg_range_t queries,
                                    view_t *out) {
  sdg_plan_t *plan = r->a->plan;
  int own = r->a->slab[SDG_COMPOSITE_STATS];
  bool reads = r->a->composite->backward;
  *out = (view_t){own, rows_of(&r->rows, queries), CUDNN_DATA_FLOAT};
  out->box.dim[VECTOR] = (sdg_range_t){0, 1};
  if (reads && sdg_box_equal(&out->box, &plan->slab[own].box))
    return SDG_OK;
  SDG_TRY(
      sdg_plan_within(plan, r->dense, 0, &out->box, r->dense_like, &out->slab));
  return reads ? sdg_plan_copy(plan, SDG_LANE_MAIN, own, out->slab, NULL,
                               &out->box, SDG_COPY_STRIP)
               : SDG_OK;
}

static sdg_status_t result_add(ring_t *r, sdg_range_t queries, int statistics) {
  int result = result_of(r);
  sdg_box_t box = rows_of(&r->view[result].box, queries);
  if (!r->a->composite->backward)
    return sdg_graph_merge_add(r->a->plan, &r->merge, &box, statistics,
                               &r->a->refusal);
  sdg_subcall_tensor_t term = {
      .slab = r->part, .box = box, .type = (sdg_type_t)type_of(r, result)};
  sdg_subcall_tensor_t sum = {
      .slab = r->sum, .box = box, .type = CUDNN_DATA_FLOAT};
  return sdg_subcall_transform(r->a->plan, 1, &term, 1, &sum);
}

static sdg_status_t step_compute(ring_t *r, int step, const view_t *keys) {
  sdg_graph_attention_t *a = r->a;
  int rank = a->tagging->rank;
  sdg_range_t among = sdg_graph_ring_keys(a, rank, step);
  sdg_sight_block_t block = sdg_graph_attention_block(a, rank, among);
  view_t view[SDG_COMPOSITE_ROLES];
  for (int i = 0; i < SDG_SIDES && a->composite->backward; i++)
    SDG_TRY(sdg_graph_side_terms(&r->side[i], step, &keys[i]));
  if (block.queries.hi <= block.queries.lo)
    return SDG_OK;
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    view[role] = r->view[role];
    view[role].box = rows_of(&view[role].box, block.queries);
  }
  if (a->operand[SDG_COMPOSITE_BIAS] >= 0)
    view[SDG_COMPOSITE_BIAS].box = sdg_graph_bias_need(a, rank, among);
  SDG_TRY(statistics_view(r, block.queries, &view[SDG_COMPOSITE_STATS]));
  view[result_of(r)].slab = r->part;
  for (int i = 0; i < SDG_SIDES; i++) {
    const sdg_graph_side_t *side = &r->side[i];
    view[side->role] = keys[i];
    if (a->composite->backward)
      view[side->back] = side->terms[step % SDG_RESIDENT];
  }
  SDG_TRY(sdg_graph_attention_add(a, &block, view));
  return result_add(r, block.queries, view[SDG_COMPOSITE_STATS].slab);
}

// ---- all steps -------------------------------------------------------------

// While a step is computed, the keys of the next one come, and the terms of the
// one before go.
static sdg_status_t steps_make(ring_t *r) {
  sdg_plan_t *plan = r->a->plan;
  int steps = sdg_graph_ring_steps(r->a);
  bool back = r->a->composite->backward;
  view_t keys[SDG_RESIDENT][SDG_SIDES];
  for (int i = 0; i < SDG_SIDES; i++)
    SDG_TRY(sdg_graph_side_fetch(&r->side[i], 0, &keys[0][i]));
  for (int step = 0; step < steps + back; step++) {
    bool fetches = step + 1 < steps, returns = back && step > 0;
    if (step > 0)
      SDG_TRY(sdg_plan_join(plan, SDG_LANE_COMM));
    for (int i = 0; i < SDG_SIDES && returns; i++)
      SDG_TRY(sdg_graph_side_send(&r->side[i], step - 1));
    for (int i = 0; i < SDG_SIDES && fetches; i++)
      SDG_TRY(sdg_graph_side_fetch(&r->side[i], step + 1,
                                   &keys[(step + 1) % SDG_RESIDENT][i]));
    if (fetches || returns)
      SDG_TRY(sdg_plan_exchange(plan));
    if (step < steps)
      SDG_TRY(step_compute(r, step, keys[step % SDG_RESIDENT]));
    SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
    for (int i = 0; i < SDG_SIDES && returns; i++)
      SDG_TRY(sdg_graph_side_add(&r->side[i], step - 1));
  }
  return SDG_OK;
}

// Rounds once, to the types of the program.
static sdg_status_t results_store(ring_t *r) {
  sdg_graph_attention_t *a = r->a;
  const int role[] = {result_of(r), SDG_COMPOSITE_DK, SDG_COMPOSITE_DV};
  const int sum[] = {r->sum, r->side[SDG_KEYS].sum, r->side[SDG_VALUES].sum};
  int count = a->composite->backward ? 1 + SDG_SIDES : 1;
  for (int i = 0; i < count; i++) {
    if (sdg_box_empty(&a->plan->slab[sum[i]].box))
      continue;
    sdg_subcall_tensor_t from =
        sdg_subcall_slab(a->plan, sum[i], CUDNN_DATA_FLOAT);
    sdg_subcall_tensor_t to = sdg_subcall_slab(a->plan, a->slab[role[i]],
                                               (sdg_type_t)type_of(r, role[i]));
    SDG_TRY(sdg_subcall_transform(a->plan, 1, &from, 0, &to));
  }
  int stats = a->slab[SDG_COMPOSITE_STATS];
  return a->composite->backward || stats < 0
             ? SDG_OK
             : sdg_plan_copy(a->plan, SDG_LANE_MAIN, r->merge.total, stats,
                             NULL, NULL, SDG_COPY_STRIP);
}

// All ranks' results: backward, terms of the queries' gradients.
static sdg_status_t results_merge(ring_t *r) {
  sdg_graph_attention_t *a = r->a;
  a->plan->reduce_axes = sdg_split_all_axes(&a->side[SDG_KEYS]->split[SEQ]);
  return a->composite->backward
             ? sdg_plan_reduce(a->plan, r->sum, CUDNN_DATA_FLOAT,
                               SDG_COMBINE_SUM)
             : sdg_graph_merge_ranks(a->plan, &r->merge,
                                     &r->view[result_of(r)].box, &a->refusal);
}

static sdg_status_t ring_make(ring_t *r) {
  sdg_graph_attention_t *a = r->a;
  r->rows = sdg_graph_attention_rows(a, a->tagging->rank);
  a->plan->axes = a->tagging->axes;
  SDG_TRY(sdg_graph_attention_operands(a, r->view));
  SDG_TRY(results_open(r));
  for (int i = 0; i < SDG_SIDES; i++)
    SDG_TRY(sdg_graph_side_open(a, i, &r->side[i]));
  SDG_TRY(steps_make(r));
  if (a->merges)
    SDG_TRY(results_merge(r));
  return results_store(r);
}

sdg_status_t sdg_graph_attention_ring(sdg_graph_attention_t *a) {
  ring_t r = {.a = a};
  sdg_status_t status = ring_make(&r);
  for (int i = 0; i < SDG_SIDES; i++)
    sdg_graph_side_fini(&r.side[i]);
  return status;
}

sdg_status_t sdg_graph_attention_merge(sdg_graph_attention_t *a) {
  a->merges = true;
  return sdg_graph_attention_ring(a);
}
