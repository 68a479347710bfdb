// SPDX-License-Identifier: Apache-2.0
// Plans pointwise ops on operands that have to be brought together first.
#include "rules/pointwisebring.h"

#include <stdlib.h>

#include "rules/bring.h"
#include "rules/pointwiserun.h"
#include "rules/tagging.h"

// The operands as they fit together.
typedef struct fit {
  int operands;
  sdg_placement_t placement[SDG_OPERANDS_MAX]; // dims 0: a parameter
} fit_t;

static void fit_fini(fit_t *fit) {
  for (int i = 0; i < fit->operands; i++)
    sdg_placement_fini(&fit->placement[i]);
}

static bool extents_fit(const sdg_placement_t *placement, int dims,
                        const int64_t *whole) {
  if (placement->dims != dims)
    return false;
  for (int d = 0; d < dims; d++) {
    int64_t extent = sdg_placement_extent(placement, d);
    if (extent != 1 && extent != whole[d])
      return false;
  }
  return true;
}

// The same tensor on every rank: every piece has the extents of the first.
static bool pieces_alike(const sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++)
    for (int p = 1; p < placement->part[d].pieces; p++)
      if (sdg_part_size(&placement->part[d], p) !=
          sdg_part_size(&placement->part[d], 0))
        return false;
  return true;
}

// An operand where the rules say that it is, or, where that does not fit, all
// of it on every rank.
static sdg_status_t operand_fit(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index,
                                int dims, const int64_t *whole, fit_t *fit,
                                bool *out_fits) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *said = &tagging->placement[index];
  sdg_placement_t *out = &fit->placement[index];
  if (!sdg_role_is_activation(operand->role))
    return SDG_OK;
  if (extents_fit(said, dims, whole))
    return sdg_placement_copy(said, out);
  SDG_TRY(sdg_placement_init(operand->dims, operand->extent, out));
  *out_fits = pieces_alike(said) && extents_fit(out, dims, whole);
  return SDG_OK;
}

// Whether all operands fit an output of these extents, which is not broadcast.
static sdg_status_t fit_try(const sdg_call_t *call,
                            const sdg_tagging_t *tagging, int output,
                            const int64_t *whole, fit_t *fit, bool *out_fits) {
  int dims = call->operand[output].dims;
  *fit = (fit_t){.operands = call->operands};
  *out_fits = true;
  for (int i = 0; i < call->operands && *out_fits; i++)
    SDG_TRY(operand_fit(call, tagging, i, dims, whole, fit, out_fits));
  const sdg_placement_t *y = &fit->placement[output];
  for (int d = 0; *out_fits && d < y->dims; d++)
    *out_fits = sdg_placement_extent(y, d) == whole[d];
  return SDG_OK;
}

// The output is what the rules say, or all of it is on every rank.
static sdg_status_t fit_find(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int output,
                             fit_t *out_fit) {
  const sdg_placement_t *y = &tagging->placement[output];
  int64_t whole[SDG_DIMS_MAX];
  for (int everywhere = 0; everywhere < 2; everywhere++) {
    bool fits;
    for (int d = 0; d < y->dims; d++)
      whole[d] = everywhere ? call->operand[output].extent[d]
                            : sdg_placement_extent(y, d);
    sdg_status_t status = fit_try(call, tagging, output, whole, out_fit, &fits);
    if (status == SDG_OK && fits)
      return SDG_OK;
    fit_fini(out_fit);
    if (status != SDG_OK)
      return status;
  }
  *out_fit = (fit_t){.operands = 0};
  int other = output == 0 ? call->operands - 1 : 0;
  return sdg_tagging_differ(call, tagging, other, output);
}

// A plan being made.
typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  const fit_t *fit;
  int output;
  sdg_plan_t *plan;
  sdg_box_t own;   // of the output
  sdg_box_t *need; // of the operand at hand, by rank of the group
  int slab[SDG_OPERANDS_MAX];
  sdg_box_t part[SDG_OPERANDS_MAX];
  sdg_bring_t bring[SDG_OPERANDS_MAX];
  bool brought[SDG_OPERANDS_MAX];
} maker_t;

static void extents_of(const sdg_placement_t *placement, int64_t *out) {
  for (int d = 0; d < placement->dims; d++)
    out[d] = sdg_placement_extent(placement, d);
}

static void needs_fill(maker_t *m, int index) {
  int64_t extent[SDG_DIMS_MAX];
  extents_of(&m->fit->placement[index], extent);
  for (int r = 0; r < m->tagging->ranks; r++) {
    sdg_box_t box =
        sdg_placement_box(&m->fit->placement[m->output], m->tagging->mesh,
                          m->tagging->rank_list[r]);
    m->need[r] = sdg_pointwise_project(extent, &box);
  }
}

// A parameter: this rank's own, as long as the rank's piece of the output or,
// where it is as long as the whole, the part of it that belongs there.
static sdg_status_t parameter_add(maker_t *m, int index) {
  const sdg_operand_t *operand = &m->call->operand[index];
  const sdg_placement_t *y = &m->fit->placement[m->output];
  sdg_box_t all = {.dims = operand->dims};
  if (operand->dims != y->dims)
    return sdg_tagging_differ(m->call, m->tagging, index, m->output);
  for (int d = 0; d < operand->dims; d++) {
    int64_t own = m->own.dim[d].hi - m->own.dim[d].lo;
    bool whole = operand->extent[d] == 1 || operand->extent[d] != own;
    all.dim[d] = whole ? (sdg_range_t){0, operand->extent[d]} : m->own.dim[d];
    if (operand->extent[d] != 1 && operand->extent[d] != own &&
        operand->extent[d] != sdg_placement_extent(y, d))
      return sdg_tagging_differ(m->call, m->tagging, index, m->output);
  }
  m->part[index] = sdg_pointwise_project(operand->extent, &m->own);
  return sdg_plan_operand(m->plan, m->call, index, &all, &m->slab[index]);
}

static sdg_status_t operand_add(maker_t *m, int index) {
  const sdg_placement_t *placement = &m->fit->placement[index];
  if (placement->dims == 0)
    return parameter_add(m, index);
  sdg_box_t own =
      sdg_placement_box(placement, m->tagging->mesh, m->tagging->rank);
  int slab;
  SDG_TRY(sdg_plan_operand(m->plan, m->call, index, &own, &slab));
  needs_fill(m, index);
  m->part[index] = m->need[m->tagging->me];
  m->slab[index] = slab;
  if (!sdg_bring_communicates(m->tagging, placement, m->need))
    return SDG_OK;
  m->plan->axes = m->tagging->axes;
  m->brought[index] = true;
  if (!sdg_box_contains(&own, &m->part[index]))
    SDG_TRY(sdg_plan_scratch(m->plan, &m->part[index], slab, &m->slab[index]));
  return sdg_bring_open(m->plan, m->tagging, placement, m->need, slab,
                        m->slab[index], &m->bring[index]);
}

static sdg_status_t steps_make(maker_t *m) {
  SDG_TRY(sdg_pointwise_open(m->plan));
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(operand_add(m, i));
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < m->call->operands; i++)
    if (m->brought[i] && m->bring[i].into != m->bring[i].from)
      SDG_TRY(sdg_bring_own(m->plan, &m->bring[i]));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < m->call->operands; i++) {
    if (m->brought[i])
      SDG_TRY(sdg_bring_land(m->plan, &m->bring[i]));
    SDG_TRY(
        sdg_pointwise_operand(m->plan, m->call, i, m->slab[i], &m->part[i]));
  }
  return sdg_plan_call(m->plan, 0);
}

sdg_status_t sdg_pointwise_bring(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, int output,
                                 sdg_plan_t **out_plan) {
  fit_t fit;
  SDG_TRY(fit_find(call, tagging, output, &fit));
  maker_t m = {
      .call = call,
      .tagging = tagging,
      .fit = &fit,
      .output = output,
      .plan = sdg_plan_create("bring"),
      .own = sdg_placement_box(&fit.placement[output], tagging->mesh,
                               tagging->rank),
      .need = calloc((size_t)tagging->ranks, sizeof *m.need),
  };
  sdg_status_t status =
      m.plan && m.need ? steps_make(&m) : sdg_fail(SDG_E_NO_MEMORY, "a plan");
  for (int i = 0; i < call->operands; i++)
    sdg_bring_fini(&m.bring[i]);
  free(m.need);
  fit_fini(&fit);
  if (status == SDG_OK)
    *out_plan = m.plan;
  else
    sdg_plan_destroy(m.plan);
  return status;
}
