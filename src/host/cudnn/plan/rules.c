// SPDX-License-Identifier: Apache-2.0
// Which graphs an engine takes: as long as the host device models cuDNN 9.19 on
// an H100, those that have an engine there. Here are the rules for all graphs
// and for fused convolutions; other families have files of their own. What is
// not computed here yet is planned, and refused by its name when it is
// executed. tests/host/planner compares these rules with NVIDIA's planner.
#include "src/host/cudnn/model/model.h"
#include "src/host/cudnn/plan/attention.h"
#include "src/host/cudnn/plan/families.h"
#include "src/host/cudnn/plan/norms.h"
#include "src/host/cudnn/plan/patterns.h"
#include "src/host/cudnn/plan/plan.h"

static const sdg_graph_node_t *end_of(const host_facts_t *f) {
  return f->graph->node + f->graph->node_count;
}

static bool is_one_of(cudnnDataType_t type, unsigned types) {
  return (unsigned)type < 32 && (types >> type & 1);
}

#define BIT(type) (1u << CUDNN_DATA_##type)
#define HALVES    (BIT(HALF) | BIT(BFLOAT16))
#define BYTES     (BIT(INT8) | BIT(FP8_E4M3) | BIT(FP8_E5M2))

static cudnnDataType_t type_of(const sdg_graph_node_t *node,
                               cudnnBackendAttributeName_t name) {
  return (cudnnDataType_t)sdg_graph_integer(node, name, CUDNN_DATA_FLOAT);
}

// ---- every graph -----------------------------------------------------------

static bool one_convolution(const host_facts_t *f) {
  return f->convolutions <= 1;
}

static bool sums_end_it(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    for (int k = 0; k < node->operand_count; k++) {
      int n = host_facts_writer(f, node->operand[k].tensor);
      if (n >= 0 && &f->graph->node[n] != node &&
          (host_node_is_reduction(&f->graph->node[n]) ||
           host_node_is_statistics(&f->graph->node[n])))
        return false;
    }
  return true;
}

static bool statistics_follow(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    if (host_node_is_statistics(node) && !f->conv)
      return false;
  return true;
}

// ---- fusing engines --------------------------------------------------------

// Sums of bytes may stay integers where no more than their sign changes.
static bool stays_integer(const host_facts_t *f, const sdg_graph_node_t *node) {
  if (!f->conv ||
      type_of(node, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_INT32 ||
      type_of(f->conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_INT32)
    return false;
  switch (sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1)) {
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_ABS:
  case CUDNN_POINTWISE_NEG:
    return true;
  }
  return false;
}

static bool floats_only(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f);
       node++) {
    if (host_node_is_pointwise(node) && !stays_integer(f, node) &&
        type_of(node, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT)
      return false;
    if (host_node_is_reduction(node) &&
        type_of(node, CUDNN_ATTR_REDUCTION_COMP_TYPE) != CUDNN_DATA_FLOAT)
      return false;
  }
  return true;
}

static bool unscaled(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    if (sdg_graph_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1) != 1 ||
        sdg_graph_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1) != 1)
      return false;
  return true;
}

static bool sums_are_float(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    for (int k = 0; k < node->operand_count; k++)
      if ((host_node_is_reduction(node) || host_node_is_statistics(node)) &&
          sdg_graph_writes(node, node->operand[k].name) &&
          f->graph->tensor[node->operand[k].tensor].type != CUDNN_DATA_FLOAT)
        return false;
  return true;
}

// The tensors that the convolution reads.
static void inputs_of(const host_facts_t *f, const sdg_graph_tensor_t *out[2]) {
  out[0] = f->kind == HOST_CONV_DATA ? f->w : f->x;
  out[1] = f->kind == HOST_CONV_FORWARD ? f->w : f->y;
}

static bool inputs_alike(const host_facts_t *f) {
  const sdg_graph_tensor_t *in[2];
  inputs_of(f, in);
  static const unsigned sets[] = {BIT(FLOAT), HALVES, BYTES};
  if (f->kind != HOST_CONV_FORWARD && in[0]->type == CUDNN_DATA_FP8_E4M3 &&
      in[1]->type == CUDNN_DATA_FP8_E4M3)
    return false;
  for (int i = 0; i < 3; i++)
    if (is_one_of(in[0]->type, sets[i]) && is_one_of(in[1]->type, sets[i]))
      return true;
  return false;
}

static bool convolution_math(const host_facts_t *f) {
  cudnnDataType_t math = type_of(f->conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  const sdg_graph_tensor_t *in[2];
  inputs_of(f, in);
  if (math == CUDNN_DATA_FLOAT)
    return true;
  if (f->kind == HOST_CONV_FORWARD)
    return in[0]->type != CUDNN_DATA_FLOAT &&
           is_one_of(math, BIT(HALF) | BIT(INT32));
  return f->kind == HOST_CONV_DATA && math == CUDNN_DATA_HALF &&
         in[0]->type == CUDNN_DATA_HALF && in[1]->type == CUDNN_DATA_HALF;
}

static bool plain_convolution(const host_facts_t *f) {
  static const cudnnBackendAttributeName_t names[][2] = {
      [HOST_CONV_FORWARD] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      [HOST_CONV_DATA] = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      [HOST_CONV_FILTER] = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  return sdg_graph_real(f->conv, names[f->kind][0], 1) == 1 &&
         sdg_graph_real(f->conv, names[f->kind][1], 0) == 0 &&
         sdg_graph_integer(f->conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                           CUDNN_CROSS_CORRELATION) == CUDNN_CROSS_CORRELATION;
}

static bool two_or_three_dimensions(const host_facts_t *f) {
  return f->x->rank == 4 || f->x->rank == 5;
}

static bool has_prologue(const host_facts_t *f) {
  for (int n = 0; n < f->graph->node_count; n++)
    if (f->before[n])
      return true;
  return false;
}

// Forward engines read x and w in any order, and write any order of what is
// NHWC but for its end.
static bool channels_innermost(const host_facts_t *f) {
  const sdg_graph_tensor_t *const own[] = {f->x, f->w, f->y};
  bool all = true, gathers = false;
  for (int i = 0; i < 3; i++)
    all &= host_tensor_is_last(own[i]);
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    gathers |= host_node_is_statistics(node);
  if ((f->kind != HOST_CONV_FORWARD || gathers || has_prologue(f)) && !all)
    return false;
  for (int n = 0; n < f->graph->node_count; n++) {
    const sdg_graph_node_t *node = &f->graph->node[n];
    for (int k = 0; !f->before[n] && k < node->operand_count; k++) {
      const sdg_graph_tensor_t *t = &f->graph->tensor[node->operand[k].tensor];
      bool is_result = sdg_graph_writes(node, node->operand[k].name);
      bool forgiven = all && is_result && f->kind != HOST_CONV_FILTER;
      if (host_node_is_pointwise(node) && !t->is_virtual && !forgiven &&
          host_tensor_same(t, f->result) && !host_tensor_is_last(t))
        return false;
    }
  }
  return true;
}

static bool filter_gradient_ungrouped(const host_facts_t *f) {
  return f->kind != HOST_CONV_FILTER || host_facts_groups(f) == 1;
}

// Extents of what is combined with the convolution's result: all, those of its
// channels (of a filter: of its first dimension), or 1.
static bool broadcasts(const host_facts_t *f, const sdg_graph_tensor_t *t) {
  const sdg_graph_tensor_t *all = f->result;
  bool one = true, channels = true;
  for (int d = 0; d < t->rank; d++) {
    bool own = f->kind == HOST_CONV_FILTER ? d == 0 : d == 1;
    one &= t->dim[d] == 1;
    channels &= t->dim[d] == (own ? all->dim[d] : 1);
  }
  bool images = f->kind == HOST_CONV_FILTER && t->dim[0] == 1;
  for (int d = 1; d < t->rank; d++)
    images &= t->dim[d] == all->dim[d];
  return one || channels || images || host_tensor_same(t, all);
}

static bool gradients_broadcast(const host_facts_t *f) {
  for (int n = 0; f->kind != HOST_CONV_FORWARD && n < f->graph->node_count;
       n++) {
    const sdg_graph_node_t *node = &f->graph->node[n];
    if (!host_node_is_pointwise(node) || f->before[n])
      continue;
    for (int k = 0; k < node->operand_count; k++)
      if (!broadcasts(f, &f->graph->tensor[node->operand[k].tensor]))
        return false;
  }
  return true;
}

// Engines of gradients load 4 bytes of channels, 16 in 3 spatial dimensions.
static bool channels_whole(const host_facts_t *f) {
  int64_t bytes = f->x->rank > 4 ? 16 : 4;
  int64_t unit = bytes / (is_one_of(f->y->type, HALVES) ? 2 : 4);
  return f->w->dim[0] % unit == 0 && f->w->dim[1] % unit == 0;
}

static bool filter_gradient_channels(const host_facts_t *f) {
  bool plain = true; // no pointwise operation
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    plain &= !host_node_is_pointwise(node);
  return f->kind != HOST_CONV_FILTER ||
         (channels_whole(f) && (plain || f->w->dim[1] > 1));
}

static bool forward_channels(const host_facts_t *f) {
  if (f->kind != HOST_CONV_FORWARD)
    return true;
  bool bf16 =
      f->x->type == CUDNN_DATA_BFLOAT16 || f->w->type == CUDNN_DATA_BFLOAT16;
  if (is_one_of(f->x->type, BYTES))
    return f->w->dim[1] > 1 || f->w->dim[0] > 1;
  return !is_one_of(f->x->type, HALVES) || f->w->dim[1] % 2 == 0 ||
         (!has_prologue(f) &&
          (host_facts_groups(f) == 1 || (!bf16 && f->sums == 0)));
}

static bool any_above_one(const host_facts_t *f,
                          cudnnBackendAttributeName_t name) {
  const sdg_graph_parameter_t *p = sdg_graph_parameter(f->conv, name);
  for (int d = 0; p && d < p->count; d++)
    if (p->value[d].integer > 1)
      return true;
  return false;
}

static bool packed(const host_facts_t *f) {
  for (int t = 0; t < f->graph->tensor_count; t++)
    if (!f->graph->tensor[t].is_virtual &&
        !host_tensor_is_packed(&f->graph->tensor[t]))
      return false;
  return true;
}

static bool filter_gradient_packed(const host_facts_t *f) {
  return f->kind != HOST_CONV_FILTER || packed(f);
}

// Two engines.
static bool data_gradient_fits(const host_facts_t *f) {
  if (f->kind != HOST_CONV_DATA)
    return true;
  bool is_bf16 =
      f->w->type == CUDNN_DATA_BFLOAT16 || f->y->type == CUDNN_DATA_BFLOAT16;
  bool strided = any_above_one(f, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  bool dilated = any_above_one(f, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  bool in_step = !strided || !dilated;
  if (f->x->rank == 4 && f->sums == 0 && !is_bf16 && (in_step || packed(f)))
    return true;
  return packed(f) && in_step && !(strided && f->x->rank > 4) &&
         host_facts_groups(f) == 1 && channels_whole(f) && f->w->dim[1] > 1 &&
         type_of(f->conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT;
}

static bool prologue_of_x(const host_facts_t *f) {
  if (!has_prologue(f))
    return true;
  if (f->kind != HOST_CONV_FORWARD)
    return false;
  return f->x->type == f->w->type &&
         host_facts_writer(f, (int)(f->w - f->graph->tensor)) < 0;
}

static bool prologue_unwritten(const host_facts_t *f) {
  for (int n = 0; n < f->graph->node_count; n++)
    if (f->before[n] &&
        !host_node_result(f->graph, &f->graph->node[n])->is_virtual)
      return false;
  return true;
}

// ---- sums ------------------------------------------------------------------

// Which dimensions of x (a convolution's result, or what a graph without one
// computes) stay: none, the channels (of a filter: the first), all but the
// channels, and in forward convolutions the images.
static bool sum_fits(const host_facts_t *f, const sdg_graph_tensor_t *x,
                     const sdg_graph_tensor_t *y) {
  bool all = true, channels = true, over = true, images = true;
  for (int d = 0; d < x->rank; d++) {
    all &= y->dim[d] == 1;
    channels &= y->dim[d] == (d == 1 ? x->dim[d] : 1);
    over &= y->dim[d] == (d == 1 ? 1 : x->dim[d]);
    images &= y->dim[d] == (d == 0 ? x->dim[d] : 1);
  }
  if (f->kind == HOST_CONV_FILTER)
    return all || images;
  return all || channels || over || (images && f->kind == HOST_CONV_FORWARD);
}

static bool sums_fit(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f);
       node++) {
    if (!host_node_is_reduction(node))
      continue;
    int x = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    if (x >= 0 &&
        !sum_fits(f, &f->graph->tensor[x], host_node_result(f->graph, node)))
      return false;
  }
  return true;
}

static bool sums_ungrouped(const host_facts_t *f) {
  bool reduces = false;
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f); node++)
    reduces |= host_node_is_reduction(node);
  return !reduces || host_facts_groups(f) == 1;
}

static bool statistics_of_bfloat(const host_facts_t *f) {
  for (const sdg_graph_node_t *node = f->graph->node; node < end_of(f);
       node++) {
    if (!host_node_is_statistics(node) || f->kind == HOST_CONV_FORWARD ||
        f->y->type != CUDNN_DATA_BFLOAT16)
      continue;
    int x = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
    if (x < 0 || f->graph->tensor[x].type != CUDNN_DATA_FLOAT)
      return false;
  }
  return true;
}

// ---- the table -------------------------------------------------------------

typedef enum {
  EVERY, /* graph */
  FUSED, /* with a convolution, and no pattern with compiled kernels */
  BOTH,  /* FUSED, or pointwise operations and reductions only */
  MAPS,  /* BOTH, or a product with such operations at most */
} scope_t;

typedef struct {
  scope_t scope;
  bool (*holds)(const host_facts_t *facts);
  const char *text;
} rule_t;

static const rule_t rules[] = {
    {EVERY, one_convolution, "at most one convolution in a graph"},
    {EVERY, sums_end_it,
     "no operation that reads the result of a reduction or of statistics in "
     "the same graph"},
    {EVERY, statistics_follow, "statistics of a convolution's result only"},
    {BOTH, floats_only,
     "pointwise operations and reductions in float (absolute values and signs "
     "of convolutions in i32: in i32, too)"},
    {MAPS, unscaled, "pointwise operations whose alpha1 and alpha2 are 1"},
    {MAPS, sums_are_float, "results of reductions and statistics in float"},
    {BOTH, sums_fit,
     "reductions that keep no dimension, the channels, or all but them (of a "
     "filter: the first), or the images of a forward convolution"},
    {FUSED, inputs_alike,
     "fused convolutions of two floats, of two of f16 and bf16, or of bytes"},
    {FUSED, convolution_math,
     "fused convolutions computed in float (forward ones of shorter types: in "
     "f16 or i32, too)"},
    {FUSED, plain_convolution,
     "fused convolutions that correlate, with alpha 1 and beta 0"},
    {FUSED, two_or_three_dimensions,
     "fused convolutions of 2 or 3 spatial dimensions"},
    {FUSED, channels_innermost,
     "fused convolutions in NHWC (but for the pattern of bias and activation)"},
    {FUSED, filter_gradient_packed,
     "fused filter gradients of packed NHWC tensors"},
    {FUSED, filter_gradient_ungrouped, "fused filter gradients of one group"},
    {FUSED, gradients_broadcast,
     "behind gradients, operands of the result's extents, of its channels', or "
     "of one element"},
    {FUSED, filter_gradient_channels,
     "fused filter gradients of channels that come in 4 bytes (16 in 3 spatial "
     "dimensions), more than one in front of operations"},
    {FUSED, forward_channels,
     "even numbers of channels in halves with groups (bf16, or in front of "
     "sums) or behind operations, and more than one of bytes"},
    {FUSED, data_gradient_fits,
     "fused data gradients of f16 or f32 in 2 spatial dimensions without sums; "
     "or packed ones of one group, of channels that come in 4 bytes (16 in 3 "
     "spatial dimensions), without strides where there are dilations or 3 "
     "spatial dimensions"},
    {FUSED, prologue_of_x,
     "operations in front of a forward convolution's x only, which has the "
     "type of w"},
    {FUSED, prologue_unwritten,
     "no result in memory in front of the convolution"},
    {FUSED, sums_ungrouped, "reductions behind convolutions of one group"},
    {FUSED, statistics_of_bfloat,
     "statistics of gradients of bf16 before they are rounded"},
};

static bool is_about(scope_t scope, const host_facts_t *f, bool compiled) {
  if (scope == EVERY)
    return true;
  if (scope == MAPS && f->product)
    return true;
  return !f->strange && !compiled && (scope != FUSED || f->conv);
}

const char *host_plan_refuses(const sdg_graph_t *graph) {
  host_facts_t f;
  const char *text = NULL;
  if (!host_model_is_hopper())
    return NULL;
  host_attention_kind_t attention = host_attention_kind(graph);
  if (attention != HOST_ATTENTION_NONE)
    return host_attention_refuses(graph, attention);
  if (!host_facts_init(graph, &f))
    return "as much memory as there is";
  bool compiled = host_pattern_is_alone(&f) || host_pattern_is_bias(&f) ||
                  host_pattern_is_statistics(&f) || host_pattern_is_filter(&f);
  for (size_t i = 0; i < sizeof rules / sizeof *rules && !text; i++)
    if (is_about(rules[i].scope, &f, compiled) && !rules[i].holds(&f))
      text = rules[i].text;
  text = text ? text : host_plain_refuses(&f);
  text = text ? text : host_pools_refuse(&f);
  text = text ? text : host_product_refuses(&f);
  text = text ? text : host_pairs_refuse(&f);
  text = text ? text : host_norms_refuse(&f);
  host_facts_fini(&f);
  return text;
}
