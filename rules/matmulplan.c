// SPDX-License-Identifier: Apache-2.0
// Plans of products, in both views.
#include <stdlib.h>

#include "rules/bring.h"
#include "rules/matmul.h"

static sdg_status_t plan_open(const sdg_matmul_t *m, const char *strategy,
                              sdg_plan_t **out_plan) {
  sdg_plan_t *plan = sdg_plan_create(strategy);
  if (!plan)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  sdg_status_t status = sdg_matmul_calls_open(plan, &m->product);
  if (status == SDG_OK)
    *out_plan = plan;
  else
    sdg_plan_destroy(plan);
  return status;
}

static const char *strategy_of(const sdg_matmul_t *m) {
  if (!m->sum_axes)
    return "part";
  return m->tagging->section->matrix[SDG_MATRIX_C].splits > 0 ? "reduce-scatter"
                                                              : "all-reduce";
}

// This rank's part of the product, where sums are its own.
static sdg_status_t part_multiply(sdg_plan_t *plan, const sdg_matmul_t *m,
                                  const int slab[SDG_PRODUCT_MATRICES]) {
  sdg_box_t own = sdg_matmul_need(m, SDG_RESULT, m->tagging->rank);
  const sdg_multiply_t multiply = {
      .box = sdg_matmul_box(m, m->tagging->rank),
      .factor = {slab[SDG_FACTOR_1], slab[SDG_FACTOR_2]},
      .source = slab[SDG_SOURCE],
      .addend = slab[SDG_ADDEND],
      .result = slab[SDG_RESULT],
      .beta = SDG_BETA_PROGRAM,
      .follows = true};
  return sdg_box_empty(&own) ? SDG_OK : sdg_matmul_multiply(plan, &multiply);
}

static sdg_status_t multiply(sdg_plan_t *plan, const sdg_matmul_t *m,
                             const int slab[SDG_PRODUCT_MATRICES]) {
  return m->sum_axes ? sdg_matmul_sums(plan, m, slab)
                     : part_multiply(plan, m, slab);
}

// Whether every rank with a piece of the sums can make what follows them: the
// vendor multiplies no matrices without terms there.
static bool can_follow(const sdg_matmul_t *m) {
  const sdg_placement_t *product = &m->tagging->placement[0];
  if (m->product.epilogue <= 1)
    return true;
  for (int i = 0; i < product->part[SDG_K].pieces; i++)
    if (sdg_part_size(&product->part[SDG_K], i) == 0)
      return false;
  return true;
}

// ---- whole view
// --------------------------------------------------------------

static sdg_box_t all_of(const sdg_operand_t *operand) {
  sdg_box_t box = {.dims = operand->dims};
  for (int d = 0; d < operand->dims; d++)
    box.dim[d].hi = operand->extent[d];
  return box;
}

static sdg_status_t share_fill(const sdg_matmul_t *m, sdg_share_t *share) {
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
          i < 2 ? sdg_matmul_need(m, read[i], r) : sdg_matmul_piece(m, r);
  }
  return SDG_OK;
}

static sdg_status_t share_build(const sdg_matmul_t *m, sdg_plan_t *plan) {
  int slab[SDG_PRODUCT_MATRICES];
  plan->share = sdg_share_create(sdg_mesh_ranks(m->tagging->mesh));
  if (!plan->share)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  SDG_TRY(share_fill(m, plan->share));
  plan->axes = m->sum_axes ? m->tagging->axes : 0;
  for (int i = 0; i < SDG_PRODUCT_MATRICES; i++) {
    const sdg_matrix_t *matrix = &m->product.matrix[i];
    slab[i] = -1;
    if (!matrix->there)
      continue;
    sdg_box_t all = all_of(&m->call->operand[matrix->operand]);
    SDG_TRY(sdg_plan_operand(plan, m->call, matrix->operand, &all, &slab[i]));
  }
  return multiply(plan, m, slab);
}

sdg_status_t sdg_matmul_share(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  sdg_matmul_t m;
  sdg_plan_t *plan = NULL;
  *out_plan = NULL;
  SDG_TRY(sdg_matmul_open(call, tagging, &m));
  sdg_status_t status = SDG_OK;
  if (m.sum_axes && (!m.product.sums || !can_follow(&m)))
    goto out; // every rank carries out all of it
  SDG_TRY_GOTO(plan_open(&m, strategy_of(&m), &plan), out);
  status = share_build(&m, plan);
  if (status == SDG_OK)
    *out_plan = plan;
  else
    sdg_plan_destroy(plan);
out:
  sdg_matmul_fini(&m);
  return status;
}

// ---- shard view
// --------------------------------------------------------------

sdg_status_t sdg_matmul_plan(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) {
  (void)tagging;
  *out_plan = NULL;
  return sdg_fail(SDG_E_NO_RULE, "%s in the shard view", call->entry_name);
}
