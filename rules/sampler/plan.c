// SPDX-License-Identifier: Apache-2.0
// Plans the sampler: fetches images, samples, and scatters their gradients.
#include "rules/sampler/plan.h"

#include <stdlib.h>

#include "rules/kit/fetch.h"
#include "rules/kit/merge.h"
#include "rules/kit/scatter_add.h"
#include "rules/vendor/argument.h"

typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  sdg_plan_t *plan;
  // The type of the program's tensors, and that of the sub-call's. If several
  // ranks have addends of the same gradients, the latter is at least float:
  // addends may cancel each other, so that only digits remain that a half type
  // does not have.
  sdg_type_t type, inner;
  bool backward;
  sdg_box_t *need;    // of x, by rank of the group; owned
  bool fetches;       // some rank does not own all of its need
  bool scatters;      // some rank has addends for elements of another
  sdg_merge_t shared; // the ranks that have the same grid
  unsigned scaled;    // outputs that the sub-call itself scales by beta
  sdg_subcall_tensor_t tensor[SDG_SAMPLER_TENSORS];
} maker_t;

static const sdg_placement_t *at(const maker_t *m,
                                 sdg_sampler_tensor_t tensor) {
  return sdg_sampler_at(m->call, m->tagging, tensor);
}

static sdg_box_t own_box(const maker_t *m, sdg_sampler_tensor_t tensor) {
  return sdg_tagging_own(m->tagging, at(m, tensor));
}

static const sdg_box_t *need_of(const maker_t *m) {
  return &m->need[m->tagging->me];
}

static bool has_result(const maker_t *m) {
  sdg_box_t box = own_box(m, SDG_SAMPLER_Y);
  return !sdg_box_empty(&box);
}

static sdg_subcall_tensor_t part_of(const maker_t *m, int slab,
                                    const sdg_box_t *box) {
  return (sdg_subcall_tensor_t){.slab = slab, .box = *box, .type = m->type};
}

// An operand's memory, and this rank's box of it.
static sdg_status_t operand_get(maker_t *m, sdg_sampler_tensor_t tensor,
                                sdg_subcall_tensor_t *out) {
  sdg_box_t own = own_box(m, tensor);
  int slab, index = sdg_sampler_operand(m->call, tensor);
  SDG_TRY(sdg_merge_operand(m->plan, m->call, index, &own, &slab));
  *out = part_of(m, slab, &own);
  return SDG_OK;
}

static bool is_wide(const maker_t *m) {
  return m->inner != m->type;
}

// Packed scratch of a type, whose dimensions nest as those of a tensor.
static sdg_status_t packed(maker_t *m, sdg_sampler_tensor_t like,
                           const sdg_box_t *box, sdg_type_t type,
                           sdg_subcall_tensor_t *out) {
  const sdg_operand_t *operand =
      &m->call->operand[sdg_sampler_operand(m->call, like)];
  int slab;
  SDG_TRY(sdg_plan_packed(
      m->plan, box, sdg_operand_nesting(operand),
      type == m->type ? operand->elem_bytes : sdg_merge_bytes(type), &slab));
  *out = (sdg_subcall_tensor_t){.slab = slab, .box = *box, .type = type};
  return SDG_OK;
}

// Copies an input of the sub-call to its type.
static sdg_status_t widen(maker_t *m, sdg_sampler_tensor_t tensor) {
  sdg_subcall_tensor_t *of = &m->tensor[tensor], from = *of;
  if (!is_wide(m) || sdg_box_empty(&from.box))
    return SDG_OK;
  SDG_TRY(packed(m, tensor, &from.box, m->inner, of));
  return sdg_subcall_transform(m->plan, 1, &from, 0, of);
}

// Whether every rank of the group has exactly the images and channels of its
// result.
static bool is_exact(const maker_t *m, sdg_sampler_tensor_t tensor) {
  bool exact = true;
  for (int r = 0; r < m->tagging->ranks && exact; r++) {
    sdg_box_t box = sdg_placement_box(at(m, tensor), m->tagging->mesh,
                                      m->tagging->rank_list[r]);
    exact = sdg_box_equal(&box, &m->need[r]);
  }
  return exact;
}

// Fills `need` and the members that decide about the plan. Uses only what the
// ranks agreed on, so that all ranks decide alike.
static sdg_status_t facts_find(maker_t *m, bool whole) {
  const sdg_tagging_t *tagging = m->tagging;
  const sdg_placement_t *x = at(m, SDG_SAMPLER_X), *y = at(m, SDG_SAMPLER_Y);
  const bool channels[SDG_DIMS_MAX] = {[1] = true};
  SDG_TRY(SDG_ALLOCATE(m->need, tagging->ranks, "boxes of %d ranks",
                       tagging->ranks));
  for (int r = 0; r < tagging->ranks; r++) {
    sdg_box_t box = sdg_placement_box(y, tagging->mesh, tagging->rank_list[r]);
    m->need[r] = sdg_sampler_need(x, &box);
  }
  m->fetches = !whole && sdg_fetch_communicates(tagging, x, m->need);
  sdg_merge_init(tagging, y, channels, &m->shared);
  m->scatters =
      m->backward && (!is_exact(m, SDG_SAMPLER_DX) ||
                      sdg_fetch_returns(tagging, at(m, SDG_SAMPLER_DX),
                                        at(m, SDG_SAMPLER_Y), m->need));
  m->inner = m->scatters || (m->backward && m->shared.axes)
                 ? sdg_merge_type(m->type)
                 : m->type;
  return SDG_OK;
}

static bool is_literal(const maker_t *m) {
  return !m->fetches && !m->scatters && !(m->backward && m->shared.axes) &&
         is_exact(m, SDG_SAMPLER_X);
}

// ---- inputs ----------------------------------------------------------------

static sdg_status_t fetch_make(maker_t *m, int from, int into) {
  sdg_fetch_t fetch = {.landed = NULL};
  m->plan->axes = m->tagging->axes;
  sdg_status_t status = sdg_fetch_open(
      m->plan, m->tagging, at(m, SDG_SAMPLER_X), m->need, from, into, &fetch);
  if (status == SDG_OK)
    status = sdg_plan_exchange(m->plan);
  if (status == SDG_OK)
    status = sdg_fetch_own(m->plan, &fetch);
  if (status == SDG_OK)
    status = sdg_plan_join(m->plan, SDG_LANE_MAIN);
  if (status == SDG_OK)
    status = sdg_fetch_land(m->plan, &fetch);
  sdg_fetch_fini(&fetch);
  return status;
}

static sdg_status_t x_get(maker_t *m) {
  sdg_subcall_tensor_t *x = &m->tensor[SDG_SAMPLER_X];
  SDG_TRY(operand_get(m, SDG_SAMPLER_X, x));
  x->box = *need_of(m);
  if (m->fetches) {
    int from = x->slab;
    SDG_TRY(packed(m, SDG_SAMPLER_X, need_of(m), m->type, x));
    SDG_TRY(fetch_make(m, from, x->slab));
  }
  return widen(m, SDG_SAMPLER_X);
}

// Whether this rank's part of a grid is all of its slab. The vendor's functions
// take no strides of a grid, so other parts must be copied.
static bool is_dense(const maker_t *m, const sdg_subcall_tensor_t *grid) {
  return sdg_box_equal(&grid->box, &m->plan->slab[grid->slab].box);
}

static sdg_status_t grid_get(maker_t *m) {
  sdg_subcall_tensor_t *grid = &m->tensor[SDG_SAMPLER_GRID];
  SDG_TRY(operand_get(m, SDG_SAMPLER_GRID, grid));
  if (!has_result(m) || is_wide(m))
    return widen(m, SDG_SAMPLER_GRID);
  if (is_dense(m, grid))
    return SDG_OK;
  int from = grid->slab;
  SDG_TRY(packed(m, SDG_SAMPLER_GRID, &grid->box, m->type, grid));
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, from, grid->slab, NULL,
                       &grid->box, SDG_COPY_ACTIVATION);
}

// ---- gradients -------------------------------------------------------------

static sdg_status_t finish(maker_t *m, sdg_sampler_tensor_t gradient,
                           const sdg_subcall_tensor_t *from,
                           const sdg_subcall_tensor_t *to) {
  return sdg_box_empty(&to->box)
             ? SDG_OK
             : sdg_sampler_finish_add(m->plan, gradient, from, to);
}

// Chooses where the sub-call puts a gradient: in the program's memory if
// `alone`, which means that no other rank has addends of it, otherwise in
// scratch of `box`.
static sdg_status_t gradient_open(maker_t *m, sdg_sampler_tensor_t gradient,
                                  bool alone, const sdg_box_t *box,
                                  sdg_subcall_tensor_t *out_output) {
  SDG_TRY(operand_get(m, gradient, out_output));
  m->tensor[gradient] = *out_output;
  if (alone && !is_wide(m))
    m->scaled |= 1u << gradient;
  bool direct = m->scaled >> gradient & 1 &&
                (gradient != SDG_SAMPLER_DGRID || is_dense(m, out_output));
  if (direct || !has_result(m))
    return SDG_OK;
  SDG_TRY(packed(m, gradient, box, m->inner, &m->tensor[gradient]));
  // The sub-call adds to the old values, so that the sum is rounded once.
  return m->scaled >> gradient & 1 && sdg_call_scalar(m->call, SDG_BETA2) != 0
             ? sdg_plan_copy(m->plan, SDG_LANE_MAIN, out_output->slab,
                             m->tensor[gradient].slab, NULL, box,
                             SDG_COPY_ACTIVATION)
             : SDG_OK;
}

// Ranks that have other channels of the same images have addends of the same
// gradients of the grid.
static sdg_status_t grid_close(maker_t *m, const sdg_subcall_tensor_t *output) {
  sdg_subcall_tensor_t sum = m->tensor[SDG_SAMPLER_DGRID];
  if (m->scaled >> SDG_SAMPLER_DGRID & 1)
    return sum.slab == output->slab || !has_result(m)
               ? SDG_OK
               : sdg_plan_copy(m->plan, SDG_LANE_MAIN, sum.slab, output->slab,
                               NULL, &output->box, SDG_COPY_ACTIVATION);
  if (m->shared.axes) {
    int from = has_result(m) ? sum.slab : -1;
    SDG_TRY(packed(m, SDG_SAMPLER_DGRID, &output->box, m->inner, &sum));
    SDG_TRY(sdg_scatter_add_sum(m->plan, m->shared.axes, &output->box, from,
                                sum.slab, m->inner));
  } else if (!has_result(m)) {
    return SDG_OK;
  }
  return finish(m, SDG_SAMPLER_DGRID, &sum, output);
}

static sdg_status_t scatter(maker_t *m, int from, int to) {
  sdg_scatter_add_t back = {.from = from};
  m->plan->axes = m->tagging->axes;
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_COMM));
  sdg_status_t status = sdg_scatter_add_open(
      m->plan, m->tagging, at(m, SDG_SAMPLER_DX), at(m, SDG_SAMPLER_Y), m->need,
      NULL, from, to, &back);
  if (status == SDG_OK)
    status = sdg_plan_exchange(m->plan);
  if (status == SDG_OK)
    status = sdg_plan_join(m->plan, SDG_LANE_MAIN);
  if (status == SDG_OK)
    status = sdg_scatter_add_close(m->plan, &back, m->inner);
  sdg_scatter_add_fini(&back);
  return status;
}

// Every rank has addends for all rows of its images. If every rank has all of
// dx, a reduction sums them; otherwise they are scattered to their owners.
static sdg_status_t x_close(maker_t *m, const sdg_subcall_tensor_t *output) {
  int from = has_result(m) ? m->tensor[SDG_SAMPLER_DX].slab : -1;
  sdg_subcall_tensor_t sum = m->tensor[SDG_SAMPLER_DX];
  if (m->scaled >> SDG_SAMPLER_DX & 1)
    return SDG_OK;
  if (!m->scatters)
    return has_result(m) ? finish(m, SDG_SAMPLER_DX, &sum, output) : SDG_OK;
  SDG_TRY(packed(m, SDG_SAMPLER_DX, &output->box, m->inner, &sum));
  if (sdg_placement_axes(at(m, SDG_SAMPLER_DX)))
    SDG_TRY(scatter(m, from, sum.slab));
  else
    SDG_TRY(sdg_scatter_add_sum(m->plan,
                                sdg_placement_axes(at(m, SDG_SAMPLER_Y)),
                                &output->box, from, sum.slab, m->inner));
  return finish(m, SDG_SAMPLER_DX, &sum, output);
}

static sdg_status_t backward_make(maker_t *m) {
  sdg_subcall_tensor_t dx, dgrid;
  sdg_box_t box = own_box(m, SDG_SAMPLER_DGRID);
  SDG_TRY(gradient_open(m, SDG_SAMPLER_DX, !m->scatters, need_of(m), &dx));
  SDG_TRY(gradient_open(m, SDG_SAMPLER_DGRID, !m->shared.axes, &box, &dgrid));
  if (has_result(m))
    SDG_TRY(sdg_sampler_call_add(m->plan, m->call, m->tensor, m->scaled));
  SDG_TRY(grid_close(m, &dgrid));
  return x_close(m, &dx);
}

// ---- the plan --------------------------------------------------------------

static sdg_status_t steps_make(maker_t *m) {
  SDG_TRY(sdg_subcalls_open(m->plan, m->call));
  SDG_TRY(x_get(m));
  SDG_TRY(grid_get(m));
  SDG_TRY(operand_get(m, SDG_SAMPLER_Y, &m->tensor[SDG_SAMPLER_Y]));
  SDG_TRY(widen(m, SDG_SAMPLER_Y));
  if (m->backward)
    return backward_make(m);
  return has_result(m)
             ? sdg_sampler_call_add(m->plan, m->call, m->tensor, m->scaled)
             : SDG_OK;
}

sdg_status_t sdg_sampler_fill(const sdg_call_t *call,
                              const sdg_tagging_t *tagging, sdg_plan_t *plan) {
  maker_t m = {.call = call,
               .tagging = tagging,
               .plan = plan,
               .backward = sdg_sampler_is_backward(call)};
  m.type = call->operand[sdg_sampler_operand(call, SDG_SAMPLER_X)].type;
  bool whole = plan->share != NULL;
  sdg_status_t status = facts_find(&m, whole);
  if (status == SDG_OK && !whole && is_literal(&m)) {
    plan->strategy = "literal";
    plan->literal = true;
  } else if (status == SDG_OK) {
    status = steps_make(&m);
  }
  free(m.need);
  return status;
}

sdg_status_t sdg_sampler_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  SDG_TRY(sdg_sampler_edges(call, tagging));
  SDG_TRY(sdg_sampler_check(call));
  int unfit = sdg_sampler_unfit(call, tagging);
  if (unfit >= 0)
    return sdg_sampler_unfit_fail(call, tagging, unfit);
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("fetch", &plan));
  sdg_status_t status = sdg_sampler_fill(call, tagging, plan);
  if (!plan->literal)
    plan->why = "the values of the grid decide which rows of x a rank needs, "
                "so each rank fetches all rows";
  return sdg_plan_finish(plan, status, out_plan);
}
