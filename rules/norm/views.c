// SPDX-License-Identifier: Apache-2.0
// One normalisation in either view: which elements are this rank's, and with
// which ranks it shares statistics.
#include <cudnn.h>

#include "rules/norm/plan.h"
#include "rules/norm/rule.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// Whether values along a dimension share a mean.
static bool is_shared(const sdg_norm_t *norm, int d) {
  return d == 0 || (d > 1 && norm->mode != CUDNN_BATCHNORM_PER_ACTIVATION);
}

static bool is_param(sdg_norm_tensor_t which) {
  return which >= SDG_NORM_SCALE;
}

// The axes along which several ranks hold values that share a mean.
static sdg_axes_t shared_axes(const sdg_norm_t *norm, const sdg_mesh_t *mesh,
                              const sdg_placement_t *x) {
  sdg_axes_t axes = 0;
  for (int d = 0; d < x->dims; d++)
    for (int i = 0; is_shared(norm, d) && i < x->split[d].axes; i++)
      if (mesh->size[x->split[d].axis[i]] > 1)
        axes |= (sdg_axes_t)1 << x->split[d].axis[i];
  return axes;
}

static const sdg_placement_t *x_placement(const sdg_norm_t *norm,
                                          const sdg_tagging_t *tagging) {
  return &tagging->placement[norm->operand[SDG_NORM_X]];
}

// ---- making a plan ---------------------------------------------------------

static int64_t values_count(const sdg_norm_t *norm, const sdg_box_t *box) {
  int64_t count = 1;
  for (int d = 0; d < box->dims; d++)
    if (is_shared(norm, d))
      count *= box->dim[d].hi - box->dim[d].lo;
  return sdg_box_empty(box) ? 0 : count;
}

// The type of scales and statistics, as cuDNN documents it.
static sdg_type_t params_type(const sdg_call_t *call) {
  return call->operand[0].type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                    : CUDNN_DATA_FLOAT;
}

// Replaces a part of the program's tensor by a packed copy.
static sdg_status_t packed_open(sdg_norm_maker_t *m, sdg_norm_tensor_t which,
                                bool reads) {
  int program = m->tensor[which].slab;
  SDG_TRY(sdg_norm_copy(m, which, m->tensor[which].type, &m->tensor[which]));
  return reads ? sdg_plan_copy(m->plan, SDG_LANE_MAIN, program,
                               m->tensor[which].slab, NULL, &m->own,
                               SDG_COPY_ACTIVATION)
               : SDG_OK;
}

static sdg_status_t tensor_open(sdg_norm_maker_t *m, sdg_norm_tensor_t which,
                                bool whole) {
  int index = m->norm->operand[which];
  if (!sdg_norm_data(m->call, m->norm, which))
    return SDG_OK;
  const sdg_operand_t *operand = &m->call->operand[index];
  bool param = is_param(which);
  sdg_box_t box = param ? m->params : whole ? sdg_operand_box(operand) : m->own;
  sdg_subcall_tensor_t *tensor = &m->tensor[which];
  SDG_TRY(sdg_plan_operand(m->plan, m->call, index, &box, &tensor->slab));
  tensor->box = param ? m->params : m->own;
  tensor->type = operand->type;
  return SDG_OK;
}

static bool is_output(const sdg_norm_maker_t *m, sdg_norm_tensor_t which) {
  int index = m->norm->operand[which];
  return index >= 0 && m->call->operand[index].is_output;
}

static bool reads_old(const sdg_call_t *call, sdg_norm_tensor_t which) {
  return which != SDG_NORM_DZ && sdg_call_scalar(call, SDG_BETA) != 0;
}

static sdg_status_t tensors_open(sdg_norm_maker_t *m, bool whole,
                                 int program[SDG_NORM_TENSORS]) {
  for (int i = 0; i < SDG_NORM_TENSORS; i++)
    SDG_TRY(tensor_open(m, (sdg_norm_tensor_t)i, whole));
  for (int i = 0; i < SDG_NORM_SCALE; i++) {
    sdg_norm_tensor_t which = (sdg_norm_tensor_t)i;
    program[i] = m->tensor[i].slab;
    if (m->packs && m->count > 0 && sdg_norm_data(m->call, m->norm, which))
      SDG_TRY(packed_open(m, which,
                          !is_output(m, which) || reads_old(m->call, which)));
  }
  return SDG_OK;
}

static sdg_status_t tensors_close(sdg_norm_maker_t *m,
                                  const int program[SDG_NORM_TENSORS]) {
  for (int i = 0; i < SDG_NORM_SCALE && m->packs && m->count > 0; i++)
    if (is_output(m, (sdg_norm_tensor_t)i))
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->tensor[i].slab,
                            program[i], NULL, &m->own, SDG_COPY_ACTIVATION));
  return SDG_OK;
}

// Why types or layouts of the tensors prevent sub-calls; NULL if they do not.
// Scales and statistics must all be packed, because the vendor's functions take
// one descriptor for those of the program and those of sundog.
static const char *layout_obstacle(const sdg_call_t *call,
                                   const sdg_norm_t *norm) {
  const sdg_operand_t *scale = &call->operand[norm->operand[SDG_NORM_SCALE]];
  sdg_box_t box = sdg_operand_box(scale);
  int64_t packed[SDG_DIMS_MAX];
  sdg_slab_pack(&box, sdg_operand_nesting(scale), packed);
  for (int i = 0; i < SDG_NORM_TENSORS; i++) {
    if (!sdg_norm_data(call, norm, (sdg_norm_tensor_t)i))
      continue;
    const sdg_operand_t *operand = &call->operand[norm->operand[i]];
    bool param = is_param((sdg_norm_tensor_t)i);
    if (operand->type != (param ? params_type(call) : call->operand[0].type))
      return "with types that cuDNN does not document";
    for (int d = 0; d < operand->dims && param; d++)
      if (operand->extent[d] > 1 && operand->stride[d] != packed[d])
        return "with scales and statistics that are not packed alike";
  }
  return NULL;
}

// Why sub-calls cannot compute this call; NULL if they can. The same on all
// ranks.
static const char *obstacle(const sdg_call_t *call, const sdg_norm_t *norm) {
  const void *dx = sdg_norm_data(call, norm, SDG_NORM_DX);
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coefficient;
  if (dx && dx == sdg_norm_data(call, norm, SDG_NORM_X) &&
      dx == sdg_norm_data(call, norm, SDG_NORM_DY))
    return "with x, dy and dx at one address";
  if (norm->ops == CUDNN_BATCHNORM_OPS_BN)
    return layout_obstacle(call, norm);
  if (norm->kind == SDG_NORM_INFERENCE ||
      sdg_cudnn_get()->cudnnGetActivationDescriptor(norm->activation, &mode,
                                                    &nan, &coefficient) !=
          CUDNN_STATUS_SUCCESS ||
      mode != CUDNN_ACTIVATION_RELU)
    return "with an activation other than ReLU";
  if (norm->kind == SDG_NORM_TRAINING &&
      (sdg_call_scalar(call, SDG_ALPHA) != 1 ||
       sdg_call_scalar(call, SDG_BETA) != 0))
    return "with an activation, and alpha and beta other than 1 and 0";
  return layout_obstacle(call, norm);
}

// Finds the ranks that share statistics, and whether their parts are even.
static void ranks_read(sdg_norm_maker_t *m, const sdg_tagging_t *tagging) {
  const sdg_placement_t *x = x_placement(m->norm, tagging);
  int rank[SDG_RANKS_MAX];
  m->ranks = sdg_mesh_group(tagging->mesh, tagging->rank, m->axes, rank);
  m->even = m->ranks > 1;
  for (int i = 0; i < m->ranks; i++) {
    sdg_box_t box = sdg_placement_box(x, tagging->mesh, rank[i]);
    m->even &= values_count(m->norm, &box) * m->ranks == m->total;
    if (rank[i] == tagging->rank)
      m->place = i;
  }
}

static sdg_status_t steps_add(const sdg_call_t *call, const sdg_norm_t *norm,
                              const sdg_tagging_t *tagging, bool whole,
                              sdg_plan_t *plan) {
  const sdg_placement_t *x = x_placement(norm, tagging);
  const sdg_operand_t *scale = &call->operand[norm->operand[SDG_NORM_SCALE]];
  sdg_axes_t axes = shared_axes(norm, tagging->mesh, x);
  sdg_norm_maker_t m = {
      .call = call,
      .norm = norm,
      .plan = plan,
      .type = params_type(call),
      .axes = axes,
      .sum = tagging->sum_axes & axes,
      .own = sdg_tagging_own(tagging, x),
      .params = sdg_operand_box(scale),
      .total = 1,
  };
  int program[SDG_NORM_TENSORS];
  m.count = values_count(norm, &m.own);
  // Each rank may decide this alone, because it reads and writes the same
  // elements either way.
  m.packs = whole && (tagging->section->strategy == SDG_STRATEGY_EXTEND ||
                      !sdg_norm_accepted_in_place(call, norm, &m.own));
  for (int d = 0; d < x->dims; d++)
    if (is_shared(norm, d))
      m.total *= sdg_placement_extent(x, d);
  ranks_read(&m, tagging);
  SDG_TRY(sdg_subcalls_open(plan, call));
  SDG_TRY(tensors_open(&m, whole, program));
  SDG_TRY(norm->kind == SDG_NORM_BACKWARD ? sdg_norm_backward(&m)
                                          : sdg_norm_forward(&m));
  return tensors_close(&m, program);
}

// ---- the shard view --------------------------------------------------------

// Checks a tensor of scales or statistics: along dimensions that are normalised
// together it must have one value, along the others it must be cut like x.
static sdg_status_t param_check(const sdg_call_t *call, const sdg_norm_t *norm,
                                const sdg_tagging_t *tagging, int index,
                                int *out_refusal) {
  const sdg_placement_t *x = x_placement(norm, tagging);
  const sdg_placement_t *param = &tagging->placement[index];
  if (param->dims != x->dims) {
    *out_refusal = CUDNN_STATUS_BAD_PARAM;
    return SDG_OK;
  }
  for (int d = 0; d < x->dims; d++) {
    const sdg_part_t *part = &x->part[d];
    bool one = !param->split[d].axes && sdg_placement_extent(param, d) == 1;
    bool cut = x->split[d].axes > 0;
    // If each rank has one value, its tensor looks like one value for all.
    if (cut && one && !is_shared(norm, d)) {
      for (int piece = 0; piece < part->pieces; piece++)
        one &= sdg_part_size(part, piece) == 1;
      if (one)
        continue;
    }
    if (is_shared(norm, d) ? one : sdg_part_equal(&param->part[d], part))
      continue;
    if (cut)
      return sdg_tagging_differ(call, tagging, index,
                                norm->operand[SDG_NORM_X]);
    *out_refusal = CUDNN_STATUS_BAD_PARAM;
  }
  return SDG_OK;
}

static sdg_status_t operands_check(const sdg_call_t *call,
                                   const sdg_norm_t *norm,
                                   const sdg_tagging_t *tagging,
                                   int *out_refusal) {
  *out_refusal = 0;
  SDG_TRY(sdg_same_split_check(call, tagging, norm->operand[SDG_NORM_X]));
  for (int i = 0; i < call->operands; i++)
    if (sdg_role_is_scale(call->operand[i].role))
      SDG_TRY(param_check(call, norm, tagging, i, out_refusal));
  return SDG_OK;
}

static const char merge_why[] =
    "statistics cover all ranks: each rank's are merged with the others', and "
    "then each rank computes its own part";

sdg_status_t sdg_norm_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  sdg_norm_t norm;
  int refusal;
  sdg_norm_read(call, &norm);
  SDG_TRY(operands_check(call, &norm, tagging, &refusal));
  if (!refusal)
    refusal = sdg_norm_refusal(call, &norm);
  bool apart = norm.kind == SDG_NORM_INFERENCE ||
               !shared_axes(&norm, tagging->mesh, x_placement(&norm, tagging));
  if (apart)
    return sdg_literal_plan(out_plan);
  SDG_TRY(sdg_tagging_sure(call, tagging));
  const char *why = refusal ? NULL : obstacle(call, &norm);
  if (why)
    return sdg_fail(SDG_E_NO_RULE, "%s %s", call->entry_name, why);
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("merge", &plan));
  plan->refusal = refusal;
  plan->why = merge_why;
  sdg_status_t status =
      refusal ? SDG_OK : steps_add(call, &norm, tagging, false, plan);
  return sdg_plan_finish(plan, status, out_plan);
}

// ---- the whole view --------------------------------------------------------

// Whether the ranks can share the call: every rank has all scales and
// statistics, so no dimension is split in which these have several values.
static bool shareable(const sdg_call_t *call, const sdg_norm_t *norm,
                      const sdg_tagging_t *tagging) {
  const sdg_placement_t *x = x_placement(norm, tagging);
  if (sdg_norm_refusal(call, norm) != 0 || call->operand[0].elem_bytes == 0 ||
      (norm->kind == SDG_NORM_INFERENCE &&
       !sdg_norm_data(call, norm, SDG_NORM_MEAN)) ||
      obstacle(call, norm))
    return false;
  for (int d = 0; d < x->dims; d++)
    if (x->split[d].axes > 0 && !is_shared(norm, d))
      return false;
  return sdg_placement_axes(x) != 0;
}

// Adds the written operands: activations are placed like x, all others are on
// every rank.
static sdg_status_t outputs_add(sdg_share_t *share, const sdg_call_t *call,
                                const sdg_norm_t *norm,
                                const sdg_placement_t *x) {
  sdg_placement_t all;
  const sdg_operand_t *scale = &call->operand[norm->operand[SDG_NORM_SCALE]];
  SDG_TRY(sdg_placement_init(scale->dims, scale->extent, &all));
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < SDG_NORM_TENSORS && status == SDG_OK; i++) {
    int index = norm->operand[i];
    if (sdg_norm_data(call, norm, (sdg_norm_tensor_t)i) &&
        call->operand[index].is_output)
      status = sdg_share_output(share, index,
                                is_param((sdg_norm_tensor_t)i) ? &all : x);
  }
  sdg_placement_fini(&all);
  return status;
}

// Adds what each rank reads: its own part of activations, all of scales and
// statistics (also the old values of outputs), and nothing of operands that the
// op does not use.
static sdg_status_t reads_add(sdg_share_t *share, const sdg_call_t *call,
                              const sdg_norm_t *norm,
                              const sdg_tagging_t *tagging) {
  bool used[SDG_OPERANDS_MAX] = {false};
  sdg_norm_tensor_t what[SDG_OPERANDS_MAX];
  for (int i = 0; i < SDG_NORM_TENSORS; i++)
    if (norm->operand[i] >= 0) {
      used[norm->operand[i]] = true;
      what[norm->operand[i]] = (sdg_norm_tensor_t)i;
    }
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    bool old = operand->is_output && used[i] && !is_param(what[i]) &&
               !reads_old(call, what[i]);
    sdg_box_t *boxes;
    if (old)
      continue;
    SDG_TRY(sdg_share_reads(share, i, &boxes));
    for (int r = 0; r < share->ranks; r++) {
      boxes[r] = (sdg_box_t){.dims = operand->dims};
      if (used[i] && operand->data)
        boxes[r] = is_param(what[i])
                       ? sdg_operand_box(operand)
                       : sdg_placement_box(x_placement(norm, tagging),
                                           tagging->mesh, r);
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_norm_share(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) {
  sdg_norm_t norm;
  sdg_norm_read(call, &norm);
  *out_plan = NULL;
  if (norm.kind == SDG_NORM_NONE || !shareable(call, &norm, tagging))
    return SDG_OK;
  bool merges = norm.kind != SDG_NORM_INFERENCE;
  sdg_plan_t *plan;
  sdg_status_t status;
  SDG_TRY(sdg_plan_create_shared(merges ? "merge" : "window",
                                 sdg_mesh_ranks(tagging->mesh), &plan));
  if (merges)
    plan->why = merge_why;
  const sdg_placement_t *x = x_placement(&norm, tagging);
  SDG_TRY_GOTO(outputs_add(plan->share, call, &norm, x), fail);
  SDG_TRY_GOTO(reads_add(plan->share, call, &norm, tagging), fail);
  SDG_TRY_GOTO(steps_add(call, &norm, tagging, true, plan), fail);
fail:
  return sdg_plan_finish(plan, status, out_plan);
}
