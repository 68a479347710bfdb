// SPDX-License-Identifier: Apache-2.0
// Plans of softmax: each rank's elements of a call, and helpers for both
// directions.
#include "rules/reduce/softmax_plan.h"

#include <string.h>

#include "rules/place/same_split.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

sdg_softmax_t sdg_softmax_program(const sdg_subcall_run_t *run) {
  sdg_softmax_t softmax;
  (void)sdg_softmax_read(run->call, &softmax);
  return softmax;
}

cudnnStatus_t sdg_softmax_product(const sdg_subcall_run_t *run) {
  sdg_softmax_t p = sdg_softmax_program(run);
  return sdg_cudnn_get()->cudnnOpTensor(
      run->handle, run->op, p.alpha, run->descriptor[0], run->data[0],
      &run->scalar[0], run->descriptor[1], run->data[1], p.beta,
      run->descriptor[2], run->data[2]);
}

sdg_status_t sdg_softmax_bound(sdg_softmax_maker_t *m, double value,
                               sdg_subcall_tensor_t *out) {
  sdg_box_t one = {.dims = m->own.dims};
  for (int d = 0; d < one.dims; d++)
    one.dim[d].hi = 1;
  SDG_TRY(sdg_merge_scratch(m->plan, &one, m->operand[0].slab, m->type, out));
  return sdg_subcall_set(m->plan, value, out);
}

sdg_status_t sdg_softmax_field(sdg_softmax_maker_t *m,
                               sdg_subcall_tensor_t *out) {
  return sdg_merge_scratch(m->plan, &m->field, m->operand[0].slab, m->type,
                           out);
}

sdg_status_t sdg_softmax_widen(sdg_softmax_maker_t *m, int index,
                               const sdg_subcall_tensor_t *room,
                               sdg_subcall_tensor_t *out) {
  *out = m->operand[index];
  if (out->type == m->type)
    return SDG_OK;
  if (room)
    *out = *room;
  else
    SDG_TRY(sdg_merge_scratch(m->plan, &m->own, m->operand[index].slab, m->type,
                              out));
  return sdg_subcall_transform(m->plan, 1, &m->operand[index], 0, out);
}

// cudnnReduceTensor refuses to reduce a single element, so this copies it.
sdg_status_t sdg_softmax_reduce(sdg_softmax_maker_t *m,
                                cudnnReduceTensorOp_t op, double alpha,
                                const sdg_subcall_tensor_t *from,
                                const sdg_subcall_tensor_t *to) {
  for (int d = 0; d < m->own.dims; d++)
    if (m->reduced[d] && m->own.dim[d].hi - m->own.dim[d].lo > 1)
      return sdg_subcall_reduce(m->plan, op, alpha, from, 0, to);
  return sdg_subcall_transform(m->plan, alpha, from, 0, to);
}

// Where the result before alpha and beta is stored: in the output, if that has
// the right type, its old values are not read, and no input shares its memory.
static sdg_status_t result_make(sdg_softmax_maker_t *m) {
  int output = m->softmax.output;
  const sdg_operand_t *y = &m->call->operand[output];
  m->in_place = y->type == m->type && !m->adds;
  for (int i = 0; i < output; i++)
    m->in_place &= m->call->operand[i].data != y->data;
  m->result = m->operand[output];
  return m->in_place
             ? SDG_OK
             : sdg_merge_scratch(m->plan, &m->own, m->operand[output].slab,
                                 m->type, &m->result);
}

static sdg_status_t steps_make(sdg_softmax_maker_t *m) {
  for (int i = 0; i <= m->softmax.output; i++) {
    int slab;
    SDG_TRY(sdg_merge_operand(m->plan, m->call, i, &m->own, &slab));
    m->operand[i] = sdg_subcall_slab(m->plan, slab, m->call->operand[i].type);
    m->operand[i].box = m->own;
  }
  if (!m->merge.axes) {
    sdg_subcall_t real = {.fn = sdg_subcall_program,
                          .tensors = m->softmax.output + 1};
    memcpy(real.tensor, m->operand, sizeof m->operand);
    return m->empty ? SDG_OK : sdg_subcall_add(m->plan, &real);
  }
  if (!m->empty)
    SDG_TRY(result_make(m));
  return m->softmax.backward ? sdg_softmax_backward(m) : sdg_softmax_forward(m);
}

static const char merge_why[] =
    "the op has only this strategy: it sums over a split dimension";

static sdg_status_t maker_init(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_softmax_maker_t *m) {
  const sdg_placement_t *placement = &tagging->placement[0];
  m->call = call;
  sdg_softmax_reduced(&m->softmax, placement->dims, m->reduced);
  sdg_merge_init(tagging, placement, m->reduced, &m->merge);
  m->adds = sdg_call_scalar(call, SDG_BETA) != 0;
  m->type = sdg_merge_type(call->operand[0].type);
  m->own = sdg_tagging_own(tagging, placement);
  m->field = sdg_merge_field(&m->own, m->reduced);
  m->empty = sdg_box_empty(&m->own);
  if (m->merge.axes && m->type < 0)
    return sdg_fail(SDG_E_TENSOR_TYPE, "%s of cudnnDataType_t %d",
                    call->entry_name, call->operand[0].type);
  return SDG_OK;
}

sdg_status_t sdg_softmax_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  sdg_softmax_maker_t m = {.plan = NULL};
  if (!sdg_softmax_read(call, &m.softmax))
    return sdg_literal_plan(out_plan);
  for (int i = 1; i <= m.softmax.output; i++)
    if (!sdg_placement_equal(&tagging->placement[0], &tagging->placement[i]))
      return sdg_tagging_differ(call, tagging, i, 0);
  SDG_TRY(maker_init(call, tagging, &m));
  if (!m.merge.axes)
    return sdg_literal_plan(out_plan);
  SDG_TRY(sdg_merge_open(call, tagging, &m.merge, "merge", merge_why, -1, NULL,
                         &m.plan));
  sdg_status_t status = steps_make(&m);
  return sdg_plan_finish(m.plan, status, out_plan);
}

// Each rank reads its own elements; of the output only if it adds to them.
static sdg_status_t reads_fill(const sdg_softmax_maker_t *m,
                               const sdg_tagging_t *tagging) {
  for (int i = 0; i < m->softmax.inputs + m->adds; i++)
    SDG_TRY(sdg_share_reads_own(m->plan->share, i, &tagging->placement[0],
                                tagging->mesh));
  return SDG_OK;
}

sdg_status_t sdg_softmax_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  sdg_softmax_maker_t m = {.plan = NULL};
  *out_plan = NULL;
  // The real function reports a call that a single device rejects.
  if (!sdg_softmax_read(call, &m.softmax) ||
      !sdg_placement_axes(&tagging->placement[0]) ||
      sdg_merge_type(call->operand[0].type) < 0)
    return SDG_OK;
  for (int i = 1; i <= m.softmax.output; i++)
    if (memcmp(call->operand[0].extent, call->operand[i].extent,
               (size_t)call->operand[0].dims * sizeof(int64_t)) != 0)
      return SDG_OK;
  SDG_TRY(maker_init(call, tagging, &m));
  SDG_TRY(sdg_merge_open(call, tagging, &m.merge,
                         m.merge.axes ? "merge" : "window",
                         m.merge.axes ? merge_why : NULL, m.softmax.output,
                         &tagging->placement[0], &m.plan));
  sdg_status_t status = reads_fill(&m, tagging);
  if (status == SDG_OK)
    status = steps_make(&m);
  return sdg_plan_finish(m.plan, status, out_plan);
}
