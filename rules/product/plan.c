// SPDX-License-Identifier: Apache-2.0
// Plans of products, in both views.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/kit/fetch.h"
#include "rules/product/kept.h"
#include "src/job/job.h"

// The reason for a strategy, which `sundog explain` prints.
static const char *why_of(const char *strategy) {
  static const struct {
    const char *strategy, *why;
  } rows[] = {
      {"part", "each rank has all addends of the sums in its part"},
      {"all-reduce", "K is split: each rank computes its addends of a piece of "
                     "the result, and the sums go to all ranks"},
      {"reduce-scatter", "K is split: each rank computes its addends of the "
                         "result, and the sums go where 'c =' says"},
      {"terms",
       "A and B are cut in K: each rank multiplies its part of K, because the "
       "sums are fewer bytes than the fetched matrices would be"},
      {"kept", "a matrix is split otherwise than the product ('a =' or 'b ='); "
               "an earlier product has fetched it ('keep =')"},
      {"all-gather", "a matrix is split otherwise than the product ('a =' or "
                     "'b ='); it is fetched first"},
      {"all-to-all", "K is split, and a matrix is split otherwise ('a =' or 'b "
                     "='); its parts are sent to where they are multiplied, "
                     "and the results are summed"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].strategy, strategy) == 0)
      return rows[i].why;
  return NULL;
}

static sdg_status_t plan_open(const sdg_product_parts_t *m,
                              const char *strategy, sdg_plan_t **out_plan) {
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create(strategy, &plan));
  plan->why = why_of(strategy);
  sdg_status_t status = sdg_product_calls_open(plan, &m->product);
  return sdg_plan_finish(plan, status, out_plan);
}

static const char *strategy_of(const sdg_product_parts_t *m) {
  if (!m->sum_axes)
    return "part";
  return m->stays ? "reduce-scatter" : "all-reduce";
}

// Computes this rank's part of the product, if it has all terms of its sums.
static sdg_status_t part_multiply(sdg_plan_t *plan,
                                  const sdg_product_parts_t *m,
                                  const int slab[SDG_PRODUCT_MATRICES]) {
  sdg_box_t own = sdg_product_need(m, SDG_RESULT, m->tagging->rank);
  const sdg_product_multiply_args_t multiply = {
      .box = sdg_product_own_box(m, m->tagging->rank),
      .factor = {slab[SDG_FACTOR_1], slab[SDG_FACTOR_2]},
      .source = slab[SDG_SOURCE],
      .addend = slab[SDG_ADDEND],
      .result = slab[SDG_RESULT],
      .beta = SDG_BETA_PROGRAM,
      .follows = true};
  return sdg_box_empty(&own) ? SDG_OK : sdg_product_multiply(plan, &multiply);
}

static sdg_status_t multiply(sdg_plan_t *plan, const sdg_product_parts_t *m,
                             const int slab[SDG_PRODUCT_MATRICES]) {
  return m->sum_axes ? sdg_product_sums(plan, m, slab)
                     : part_multiply(plan, m, slab);
}

static bool can_follow(const sdg_product_parts_t *m) {
  return sdg_product_can_follow(m, &m->tagging->placement[0].part[SDG_K]);
}

// ---- whole view -------------------------------------------------------------

static sdg_status_t share_fill(const sdg_product_parts_t *m,
                               sdg_share_t *share) {
  const sdg_product_t *p = &m->product;
  const int read[] = {SDG_FACTOR_1, SDG_FACTOR_2, SDG_SOURCE, SDG_RESULT};
  SDG_TRY(sdg_share_output(share, p->matrix[SDG_RESULT].operand,
                           &m->matrix[SDG_RESULT]));
  for (int i = 0; i < 4; i++) {
    const sdg_matrix_t *matrix = &p->matrix[read[i]];
    bool old =
        read[i] == SDG_RESULT && (!p->keeps || p->matrix[SDG_SOURCE].there);
    sdg_box_t *boxes;
    if (!matrix->there || old)
      continue;
    SDG_TRY(sdg_share_reads(share, matrix->operand, &boxes));
    for (int r = 0; r < share->ranks; r++)
      boxes[r] =
          i < 2 ? sdg_product_need(m, read[i], r) : sdg_product_old(m, r);
  }
  return SDG_OK;
}

static sdg_status_t share_build(const sdg_product_parts_t *m,
                                sdg_plan_t *plan) {
  int slab[SDG_PRODUCT_MATRICES];
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(m->tagging->mesh), &plan->share));
  SDG_TRY(share_fill(m, plan->share));
  plan->axes = m->sum_axes ? m->tagging->axes : 0;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    const sdg_matrix_t *matrix = &m->product.matrix[i];
    slab[i] = -1;
    if (!matrix->there)
      continue;
    sdg_box_t all = sdg_operand_box(&m->call->operand[matrix->operand]);
    SDG_TRY(sdg_plan_operand(plan, m->call, matrix->operand, &all, &slab[i]));
  }
  return multiply(plan, m, slab);
}

sdg_status_t sdg_product_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  sdg_product_parts_t m;
  sdg_plan_t *plan = NULL;
  *out_plan = NULL;
  SDG_TRY(sdg_product_open(call, tagging, &m));
  sdg_status_t status = SDG_OK;
  bool refused = false; // the vendor refuses the call, or has nothing to do
  for (int d = 0; d < SDG_PRODUCT_DIMS; d++)
    refused |= m.product.extent[d] == 0;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++)
    refused |=
        m.product.matrix[i].there &&
        (!m.product.matrix[i].data ||
         !sdg_matrix_lies(&m.product.matrix[i], m.product.matrix[i].extent));
  // The batch is cut, but this product has no batch: every rank computes it.
  refused |= m.product.extent[SDG_BATCH] == 1 &&
             tagging->placement[0].dims > SDG_BATCH &&
             tagging->placement[0].part[SDG_BATCH].pieces > 1;
  if (refused || (m.sum_axes && (!m.product.sums || !can_follow(&m))))
    goto out; // every rank computes all of it
  SDG_TRY_GOTO(plan_open(&m, strategy_of(&m), &plan), out);
  status = share_build(&m, plan);
  status = sdg_plan_finish(plan, status, out_plan);
out:
  sdg_product_fini(&m);
  return status;
}

// ---- shard view -------------------------------------------------------------

typedef struct shard {
  const sdg_product_parts_t *m;
  sdg_plan_t *plan;
  int slab[SDG_PRODUCT_MATRICES];
  sdg_box_t need[2][SDG_RANKS_MAX]; // each rank's need of the factors
  bool needs[2];                    // some rank needs elements of others
  bool fetches[2]; // messages fetch them; no earlier product has left them
  bool by_sums;    // sdg_product_prefer_sums has cut the product in K
  sdg_product_keep_t keep[2];
} shard_t;

static sdg_box_t own_box(const sdg_product_parts_t *m, int matrix) {
  return sdg_tagging_own(m->tagging, &m->matrix[matrix]);
}

static void needs_find(shard_t *s) {
  const sdg_tagging_t *tagging = s->m->tagging;
  for (int f = 0; f < 2; f++) {
    for (int i = 0; i < tagging->ranks; i++)
      s->need[f][i] = sdg_product_need(s->m, f, tagging->rank_list[i]);
    s->needs[f] = sdg_fetch_communicates(tagging, &s->m->matrix[f], s->need[f]);
    if (s->needs[f])
      s->keep[f] = sdg_product_keep(s->m, f, s->need[f]);
    s->fetches[f] = s->needs[f] && !s->keep[f].takes;
  }
}

// Whether each rank's call states the size of its own part, and not of the
// whole.
static bool is_stated(const sdg_product_parts_t *m) {
  const sdg_placement_t *product = &m->tagging->placement[0];
  for (int d = 0; d < product->dims; d++)
    if (product->part[d].pieces > 1 &&
        m->tagging->section->sizes[d] == SDG_SIZES_WHOLE)
      return false;
  return true;
}

// Whether the program's own call multiplies exactly what each rank should.
static bool is_literal(const shard_t *s) {
  const sdg_tagging_t *tagging = s->m->tagging;
  for (int f = 0; f < 2; f++)
    for (int i = 0; i < tagging->ranks; i++) {
      sdg_box_t have = sdg_placement_box(&s->m->matrix[f], tagging->mesh,
                                         tagging->rank_list[i]);
      if (!sdg_box_equal(&have, &s->need[f][i]))
        return false;
    }
  return !s->m->sum_axes && is_stated(s->m);
}

// A missing address or a leading dimension that is too small is an error of
// this rank only.
static sdg_status_t lies_check(const sdg_product_parts_t *m, int index,
                               const sdg_box_t *box) {
  const sdg_matrix_t *matrix = &m->product.matrix[index];
  int64_t extent[3];
  for (int d = 0; d < matrix->dims; d++)
    extent[d] = box->dim[d].hi - box->dim[d].lo;
  if (!matrix->data && !sdg_box_empty(box))
    return sdg_job_fail(sdg_fail(SDG_E_ARGUMENT, "%s of %s has no address",
                                 sdg_role_name(matrix->role),
                                 m->call->entry_name));
  if (sdg_matrix_lies(matrix, extent))
    return SDG_OK;
  return sdg_job_fail(sdg_fail(
      SDG_E_ARGUMENT,
      "%s of %s: a leading dimension of %lld, but rows or columns of %lld "
      "elements",
      sdg_role_name(matrix->role), m->call->entry_name,
      (long long)matrix->stride[matrix->outer],
      (long long)extent[matrix->inner]));
}

static sdg_status_t slabs_add(shard_t *s) {
  const sdg_product_parts_t *m = s->m;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    const sdg_matrix_t *matrix = &m->product.matrix[i];
    sdg_box_t box;
    s->slab[i] = -1;
    if (!matrix->there)
      continue;
    box = own_box(m, i);
    SDG_TRY(lies_check(m, i, &box));
    SDG_TRY(
        sdg_plan_operand(s->plan, m->call, matrix->operand, &box, &s->slab[i]));
  }
  return SDG_OK;
}

// The slab with everything that this rank needs of a factor.
static sdg_status_t factor_room(shard_t *s, int f, int *out_slab) {
  const sdg_box_t *need = &s->need[f][s->m->tagging->me];
  const sdg_product_keep_t *keep = &s->keep[f];
  const sdg_held_t held = {
      .token = keep->token, .order = keep->order, .taken = keep->takes};
  return keep->leaves || keep->takes
             ? sdg_plan_hold(s->plan, need, s->slab[f], &held, out_slab)
             : sdg_plan_scratch(s->plan, need, s->slab[f], out_slab);
}

static sdg_status_t factors_take(shard_t *s) {
  for (int f = 0; f < 2; f++)
    if (s->keep[f].takes)
      SDG_TRY(factor_room(s, f, &s->slab[f]));
  return SDG_OK;
}

// Makes slabs with everything that this rank needs of the factors: fetches the
// parts that other ranks have, and copies its own parts.
static sdg_status_t factors_fetch(shard_t *s) {
  const sdg_tagging_t *tagging = s->m->tagging;
  sdg_fetch_t fetch[2] = {{.from = 0}, {.from = 0}};
  sdg_status_t status = SDG_OK;
  for (int f = 0; f < 2; f++) {
    int own = s->slab[f], all;
    if (!s->fetches[f])
      continue;
    SDG_TRY_GOTO(factor_room(s, f, &all), out);
    SDG_TRY_GOTO(sdg_fetch_open(s->plan, tagging, &s->m->matrix[f], s->need[f],
                                own, all, &fetch[f]),
                 out);
    SDG_TRY_GOTO(sdg_fetch_own(s->plan, &fetch[f]), out);
    s->slab[f] = all;
  }
  SDG_TRY_GOTO(sdg_plan_exchange(s->plan), out);
  SDG_TRY_GOTO(sdg_plan_join(s->plan, SDG_LANE_MAIN), out);
  for (int f = 0; f < 2 && status == SDG_OK; f++)
    if (s->fetches[f])
      status = sdg_fetch_land(s->plan, &fetch[f]);
out:
  sdg_fetch_fini(&fetch[0]);
  sdg_fetch_fini(&fetch[1]);
  return status;
}

static sdg_status_t shard_build(shard_t *s) {
  bool fetches = s->fetches[0] || s->fetches[1];
  s->plan->axes = fetches || s->m->sum_axes ? s->m->tagging->axes : 0;
  SDG_TRY(slabs_add(s));
  SDG_TRY(factors_take(s));
  if (fetches)
    SDG_TRY(factors_fetch(s));
  return multiply(s->plan, s->m, s->slab);
}

static sdg_status_t sums_check(const sdg_product_parts_t *m) {
  const char *entry = m->call->entry_name;
  if (!m->sum_axes)
    return SDG_OK;
  if (m->product.device_scalars)
    return sdg_fail(SDG_E_NO_RULE,
                    "%s with K split, and alpha and beta in device memory: use "
                    "pointer mode HOST",
                    entry);
  const sdg_gemm_t *gemm = m->call->args;
  if (isinf(sdg_product_scalar(gemm->alpha, m->product.scale)))
    return sdg_fail(SDG_E_NO_RULE,
                    "%s with K split, and an infinite alpha: use 1, and "
                    "scale the result",
                    entry);
  if (!m->product.sums)
    return sdg_fail(SDG_E_NO_RULE,
                    "%s with K split, matrices of cudaDataType %d, %d, %d "
                    "(A, B, C), and alpha and beta of %d",
                    entry, m->product.matrix[SDG_FACTOR_1].type,
                    m->product.matrix[SDG_FACTOR_2].type,
                    m->product.matrix[SDG_RESULT].type, m->product.scale);
  if (!can_follow(m))
    return sdg_fail(
        SDG_E_NO_RULE,
        "%s with an epilogue, and K split so that the part of some rank is 0",
        entry);
  return SDG_OK;
}

static sdg_status_t shard_make(shard_t *s, sdg_plan_t **out_plan) {
  SDG_TRY(sums_check(s->m));
  bool literal = is_literal(s);
  const char *strategy = s->by_sums ? "terms" : strategy_of(s->m);
  if (s->fetches[0] || s->fetches[1])
    strategy = s->m->sum_axes ? "all-to-all" : "all-gather";
  else if (!s->m->sum_axes && (s->needs[0] || s->needs[1]))
    strategy = "kept";
  SDG_TRY(plan_open(s->m, literal ? "literal" : strategy, &s->plan));
  s->plan->literal = literal;
  sdg_status_t status = literal ? SDG_OK : shard_build(s);
  return sdg_plan_finish(s->plan, status, out_plan);
}

sdg_status_t sdg_product_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  sdg_product_parts_t m;
  *out_plan = NULL;
  SDG_TRY(sdg_product_open(call, tagging, &m));
  shard_t *s = calloc(1, sizeof *s);
  sdg_tagging_t *summed = calloc(1, sizeof *summed);
  sdg_status_t status = SDG_OK;
  if (s && summed) {
    s->m = &m;
    needs_find(s);
    const bool taken[2] = {s->keep[0].takes, s->keep[1].takes};
    status = sdg_product_prefer_sums(&m, taken, summed, &s->by_sums);
    if (s->by_sums) {
      memset(s->keep, 0, sizeof s->keep);
      needs_find(s);
    }
    if (status == SDG_OK)
      status = shard_make(s, out_plan);
    if (s->by_sums)
      sdg_placement_fini(&summed->placement[0]);
  } else {
    status = sdg_fail(SDG_E_NO_MEMORY, "a plan");
  }
  free(summed);
  free(s);
  sdg_product_fini(&m);
  return status;
}

sdg_status_t sdg_product_place(const sdg_call_t *call, sdg_tagging_t *tagging) {
  sdg_product_parts_t m;
  SDG_TRY(sdg_product_open(call, tagging, &m));
  sdg_status_t status = sdg_product_check(&m);
  for (int i = 0; i < SDG_PRODUCT_MATRICES && status == SDG_OK; i++)
    if (m.product.matrix[i].there)
      status = sdg_placement_copy(
          &m.matrix[i], &tagging->placement[m.product.matrix[i].operand]);
  sdg_product_fini(&m);
  return status;
}
