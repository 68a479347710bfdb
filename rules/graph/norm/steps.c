// SPDX-License-Identifier: Apache-2.0
// The steps of a batch or instance norm over split dimensions: those of a batch
// norm of the legacy API (rules/norm). An instance norm is one of each sample.
#include <cudnn.h>
#include <string.h>

#include "rules/graph/norm/norm.h"
#include "rules/kit/subcall.h"
#include "rules/norm/plan.h"
#include "rules/place/tagging.h"

// ---- numbers by value ------------------------------------------------------

static double value_get(const sdg_call_t *call, int t) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(call);
  const void *at = t < 0 ? NULL : execution->pointer[t];
  float single;
  double twice;
  if (!at)
    return 0;
  if (execution->pattern->graph->tensor[t].type == CUDNN_DATA_DOUBLE) {
    memcpy(&twice, at, sizeof twice);
    return twice;
  }
  memcpy(&single, at, sizeof single);
  return (double)single;
}

static double number_get(const sdg_call_t *call, sdg_norm_number_t which) {
  const sdg_graph_pattern_t *p = sdg_graph_call_execution(call)->pattern;
  const sdg_graph_node_t *node = &p->graph->node[p->main];
  switch (which) {
  case SDG_NORM_ALPHA:
  case SDG_NORM_ALPHA_PARAM:
    return 1;
  case SDG_NORM_EPSILON:
    return value_get(call, sdg_graph_norm_epsilon(node));
  case SDG_NORM_FACTOR:
    return value_get(call, sdg_graph_norm_factor(node));
  case SDG_NORM_BETA:
  case SDG_NORM_BETA_PARAM:
    break;
  }
  return 0;
}

// ---- what the vendor's functions take --------------------------------------

static bool is_number(const sdg_graph_t *graph, int t) {
  if (t < 0)
    return true;
  const sdg_graph_tensor_t *tensor = &graph->tensor[t];
  return tensor->is_by_value && (tensor->type == CUDNN_DATA_FLOAT ||
                                 tensor->type == CUDNN_DATA_DOUBLE);
}

static bool is_activation_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

// Channels are neighbours, and samples lie one after the other. The order of
// statistics in scratch is the scale's.
static bool is_packed(const sdg_operand_t *operand) {
  const int64_t *extent = operand->extent, *stride = operand->stride;
  return (extent[1] == 1 || (stride[1] == 1 && stride[0] > 1)) &&
         (extent[0] == 1 || stride[0] == extent[1]);
}

// Whether a scale or bias of the program's is computed in the graph.
static bool is_computed(const sdg_graph_maker_t *m, sdg_role_t role) {
  int t = sdg_graph_norm_tensor(m->norm->node, role, false);
  return t >= 0 && m->main.pattern->writer[t] >= 0;
}

static const char *params_obstacle(const sdg_graph_maker_t *m) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  for (int i = 0; i < p->operands; i++) {
    sdg_role_t role;
    const sdg_operand_t *operand = &m->call->operand[i];
    if (!sdg_graph_norm_role(m->norm->node, p->operand[i], &role) ||
        sdg_role_is_activation(role))
      continue;
    if (operand->type != CUDNN_DATA_FLOAT)
      return "with scales and statistics that are not float";
    if (!is_packed(operand))
      return "with scales and statistics that are not packed";
    for (int d = 2; d < operand->dims; d++)
      if (operand->extent[d] != 1)
        return "with scales of more than channels";
  }
  return NULL;
}

static const char *obstacle(const sdg_graph_maker_t *m) {
  const sdg_graph_node_t *node = m->norm->node;
  const sdg_graph_t *graph = m->main.pattern->graph;
  const sdg_role_t inner[] = {SDG_ROLE_X, SDG_ROLE_DY,
                              m->norm->kind.backward ? SDG_ROLE_DX
                                                     : SDG_ROLE_Y};
  for (int i = 0; i < SDG_GRAPH_NORM_INNERS; i++) {
    int t = sdg_graph_norm_tensor(node, inner[i], true);
    if (t >= 0 && !is_activation_type(graph->tensor[t].type))
      return "of other types than float and halves";
  }
  if (!is_number(graph, sdg_graph_norm_epsilon(node)) ||
      !is_number(graph, sdg_graph_norm_factor(node)))
    return "whose numbers are neither float nor double by value";
  if (is_computed(m, SDG_ROLE_SCALE) || is_computed(m, SDG_ROLE_SHIFT))
    return "with a scale or bias that the graph computes";
  if ((sdg_graph_norm_tensor(node, SDG_ROLE_MEAN, true) < 0) !=
      (sdg_graph_norm_tensor(node, SDG_ROLE_VARIANCE, true) < 0))
    return "with one running statistic";
  return m->main.op.dims > 5 ? "with that many dimensions" : params_obstacle(m);
}

sdg_status_t sdg_graph_norm_steps_check(const sdg_graph_maker_t *m) {
  const char *why = obstacle(m);
  return why ? sdg_fail(SDG_E_NO_RULE, "%s, over a dimension that is split, %s",
                        m->call->entry_name, why)
             : SDG_OK;
}

// ---- the tensors -----------------------------------------------------------

static int operand_in(const sdg_graph_maker_t *m, sdg_role_t role, bool out) {
  const sdg_graph_pattern_t *p = m->main.pattern;
  int t = sdg_graph_norm_tensor(m->norm->node, role, out), i = 0;
  while (t >= 0 && i < p->operands && p->operand[i] != t)
    i++;
  return t >= 0 && i < p->operands ? i : -1;
}

static const struct {
  sdg_norm_tensor_t which;
  sdg_role_t role;
} roles[] = {
    {SDG_NORM_X, SDG_ROLE_X},
    {SDG_NORM_Y, SDG_ROLE_Y},
    {SDG_NORM_DY, SDG_ROLE_DY},
    {SDG_NORM_DX, SDG_ROLE_DX},
    {SDG_NORM_SCALE, SDG_ROLE_SCALE},
    {SDG_NORM_BIAS, SDG_ROLE_SHIFT},
    {SDG_NORM_MEAN, SDG_ROLE_MEAN},
    {SDG_NORM_VARIANCE, SDG_ROLE_VARIANCE},
    {SDG_NORM_SAVED_MEAN, SDG_ROLE_SAVED_MEAN},
    {SDG_NORM_SAVED_INVERSE, SDG_ROLE_SAVED_INVERSE},
    {SDG_NORM_DSCALE, SDG_ROLE_DSCALE},
    {SDG_NORM_DBIAS, SDG_ROLE_DSHIFT},
};

static void norm_fill(const sdg_graph_maker_t *m, sdg_norm_t *out) {
  *out = (sdg_norm_t){.kind = m->norm->kind.backward ? SDG_NORM_BACKWARD
                                                     : SDG_NORM_TRAINING,
                      .mode = CUDNN_BATCHNORM_SPATIAL,
                      .ops = CUDNN_BATCHNORM_OPS_BN,
                      .groups = 1,
                      .number = number_get};
  for (int i = 0; i < SDG_NORM_TENSORS; i++)
    out->operand[i] = -1;
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    out->operand[roles[i].which] = operand_in(m, roles[i].role, true);
}

// The type in which all activations are: their own if they have one.
static sdg_type_t type_of(const sdg_graph_maker_t *m) {
  const sdg_graph_tensor_t *tensor = m->main.pattern->graph->tensor;
  const int *t = m->norm->tensor;
  for (int i = 0; i < SDG_GRAPH_NORM_INNERS; i++)
    if (t[i] >= 0 && tensor[t[i]].type != tensor[t[0]].type)
      return CUDNN_DATA_FLOAT;
  return (sdg_type_t)tensor[t[0]].type;
}

// An activation in that type; an input's values go with it.
static sdg_status_t activation_open(sdg_graph_maker_t *m, sdg_norm_maker_t *to,
                                    sdg_graph_norm_inner_t which,
                                    sdg_subcall_tensor_t *out) {
  int t = m->norm->tensor[which], slab = m->norm->slab[which];
  sdg_type_t type = type_of(m);
  if (t < 0)
    return SDG_OK;
  sdg_subcall_tensor_t own = sdg_subcall_slab(
      m->plan, slab, (sdg_type_t)m->main.pattern->graph->tensor[t].type);
  *out = own;
  if (own.type == type)
    return SDG_OK;
  out->type = type;
  SDG_TRY(sdg_plan_scratch_of(m->plan, &to->own, sdg_merge_bytes(type), slab,
                              &out->slab));
  return which == SDG_GRAPH_NORM_RESULT
             ? SDG_OK
             : sdg_subcall_transform(m->plan, 1, &own, 0, out);
}

static sdg_status_t result_close(sdg_graph_maker_t *m,
                                 const sdg_subcall_tensor_t *found) {
  int t = m->norm->tensor[SDG_GRAPH_NORM_RESULT];
  int slab = m->norm->slab[SDG_GRAPH_NORM_RESULT];
  sdg_subcall_tensor_t own = sdg_subcall_slab(
      m->plan, slab, (sdg_type_t)m->main.pattern->graph->tensor[t].type);
  return found->slab == slab
             ? SDG_OK
             : sdg_subcall_transform(m->plan, 1, found, 0, &own);
}

static sdg_status_t param_open(sdg_graph_maker_t *m, const sdg_norm_t *norm,
                               sdg_norm_maker_t *to, sdg_norm_tensor_t which) {
  int index = norm->operand[which];
  if (index < 0)
    return SDG_OK;
  to->tensor[which] =
      sdg_subcall_slab(m->plan, m->operand_slab[index], to->type);
  return SDG_OK;
}

// Scales are 1, and biases 0, where the graph has none.
static sdg_status_t scale_open(sdg_graph_maker_t *m, sdg_norm_maker_t *to) {
  sdg_box_t channels = to->params;
  const int64_t order[SDG_DIMS_MAX] = {5, 4, 3, 2, 1};
  sdg_subcall_tensor_t *scale = &to->tensor[SDG_NORM_SCALE];
  if (sdg_norm_data(to->call, to->norm, SDG_NORM_SCALE))
    return SDG_OK;
  channels.dim[0] = (sdg_range_t){0, 1};
  SDG_TRY(sdg_plan_packed(m->plan, &channels, order, (int)sizeof(float),
                          &scale->slab));
  *scale = sdg_subcall_slab(m->plan, scale->slab, to->type);
  return sdg_subcall_set(m->plan, 1, scale);
}

static sdg_status_t tensors_open(sdg_graph_maker_t *m, sdg_norm_maker_t *to) {
  bool back = m->norm->kind.backward;
  for (int i = SDG_NORM_SCALE; i < SDG_NORM_TENSORS; i++)
    SDG_TRY(param_open(m, to->norm, to, (sdg_norm_tensor_t)i));
  SDG_TRY(scale_open(m, to));
  if (!back && !sdg_norm_data(to->call, to->norm, SDG_NORM_BIAS))
    SDG_TRY(sdg_norm_constant(to, 0, &to->tensor[SDG_NORM_BIAS]));
  SDG_TRY(activation_open(m, to, SDG_GRAPH_NORM_OF_X, &to->tensor[SDG_NORM_X]));
  SDG_TRY(
      activation_open(m, to, SDG_GRAPH_NORM_OF_DY, &to->tensor[SDG_NORM_DY]));
  return activation_open(m, to, SDG_GRAPH_NORM_RESULT,
                         &to->tensor[back ? SDG_NORM_DX : SDG_NORM_Y]);
}

// ---- which ranks -----------------------------------------------------------

static sdg_axes_t shared_axes(const sdg_graph_norm_t *norm) {
  sdg_axes_t axes = 0;
  for (int d = 0; d < norm->x->dims; d++)
    if (norm->cut[d] && norm->shared[d])
      axes |= sdg_split_all_axes(&norm->x->split[d]);
  return axes;
}

static int64_t elements_of(const sdg_norm_maker_t *to, const sdg_box_t *box) {
  int64_t count = 1;
  for (int d = 0; d < box->dims; d++)
    if (d > 1 || (d == 0 && !to->per_sample))
      count *= sdg_box_length(box, d);
  return count;
}

static void ranks_read(const sdg_graph_maker_t *m, sdg_norm_maker_t *to) {
  const sdg_placement_t *x = m->norm->x;
  sdg_box_t all = {.dims = x->dims};
  int rank[SDG_RANKS_MAX];
  for (int d = 0; d < x->dims; d++)
    all.dim[d] = (sdg_range_t){0, sdg_placement_extent(x, d)};
  to->count = elements_of(to, &to->own);
  to->total = elements_of(to, &all);
  to->ranks =
      sdg_mesh_group(m->tagging->mesh, m->tagging->rank, to->axes, rank);
  to->even = to->ranks > 1 && !to->per_sample;
  for (int i = 0; i < to->ranks; i++) {
    sdg_box_t box = sdg_placement_box(x, m->tagging->mesh, rank[i]);
    to->even &= elements_of(to, &box) * to->ranks == to->total;
    if (rank[i] == m->tagging->rank)
      to->place = i;
  }
}

// ---- the steps -------------------------------------------------------------

// The legacy API updates running statistics in place. The old ones may be there
// already.
static sdg_status_t running_move(sdg_graph_maker_t *m, sdg_norm_maker_t *to,
                                 sdg_norm_tensor_t which, sdg_role_t role) {
  int from = operand_in(m, role, false);
  if (to->norm->operand[which] < 0)
    return SDG_OK;
  if (from < 0)
    return sdg_fail(SDG_E_NO_RULE, "%s without old running statistics",
                    m->call->entry_name);
  sdg_subcall_tensor_t old =
      sdg_subcall_slab(m->plan, m->operand_slab[from], to->type);
  return sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MAX, 1, &old, 1, &old, 0,
                        &to->tensor[which]);
}

sdg_status_t sdg_graph_norm_steps(sdg_graph_maker_t *m) {
  bool instance = m->norm->kind.mode == CUDNN_INSTANCE_NORM;
  sdg_norm_t norm;
  norm_fill(m, &norm);
  sdg_axes_t parts = sdg_graph_norm_part_axes(m->norm) & m->tagging->sum_axes;
  sdg_norm_maker_t to = {.call = m->call,
                         .norm = &norm,
                         .plan = m->plan,
                         .type = CUDNN_DATA_FLOAT,
                         .axes = shared_axes(m->norm),
                         .own = m->boxes.level[SDG_GRAPH_LEVEL_X],
                         .per_sample = instance,
                         .rows = instance ? 2 : 0};
  to.sum = parts & to.axes;
  to.more = parts & ~to.axes;
  to.params.dims = to.own.dims;
  for (int d = 0; d < to.own.dims; d++)
    to.params.dim[d] = (sdg_range_t){0, 1};
  to.params.dim[0].hi = instance ? sdg_box_length(&to.own, 0) : 1;
  to.params.dim[1].hi = sdg_box_length(&to.own, 1);
  ranks_read(m, &to);
  SDG_TRY(tensors_open(m, &to));
  if (m->norm->kind.backward) {
    SDG_TRY(sdg_norm_backward(&to));
    return result_close(m, &to.tensor[SDG_NORM_DX]);
  }
  SDG_TRY(running_move(m, &to, SDG_NORM_MEAN, SDG_ROLE_MEAN));
  SDG_TRY(running_move(m, &to, SDG_NORM_VARIANCE, SDG_ROLE_VARIANCE));
  SDG_TRY(sdg_norm_forward(&to));
  return result_close(m, &to.tensor[SDG_NORM_Y]);
}
