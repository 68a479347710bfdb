// SPDX-License-Identifier: Apache-2.0
// Reads an operation graph as a chain with one convolution.
#include "rules/graph/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/call/tag.h"

// ---- the convolution -------------------------------------------------------

// The attributes of the three convolutions, level by level.
typedef struct convolution {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t tensor[SDG_GRAPH_LEVELS], beta;
  sdg_graph_level_t after;
} convolution_t;

static const convolution_t convolutions[] = {
    [SDG_GRAPH_FORWARD] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
         SDG_GRAPH_LEVEL_Y},
    [SDG_GRAPH_DGRAD] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
         SDG_GRAPH_LEVEL_X},
    [SDG_GRAPH_WGRAD] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
         SDG_GRAPH_LEVEL_W},
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

// Which convolution a node is; CONVOLUTIONS: none.
static int convolution_of(const sdg_graph_node_t *node) {
  int kind = 0;
  while (kind < CONVOLUTIONS && convolutions[kind].kind != node->kind)
    kind++;
  return kind;
}

bool sdg_graph_is_main(const sdg_graph_pattern_t *pattern, int level,
                       cudnnBackendAttributeName_t name) {
  return convolutions[pattern->kind].tensor[level] == name;
}

bool sdg_graph_has_prologue(const sdg_graph_pattern_t *pattern) {
  return pattern->writer[pattern->tensor[SDG_GRAPH_LEVEL_X]] >= 0 &&
         pattern->kind != SDG_GRAPH_DGRAD;
}

static bool list_get(const sdg_graph_node_t *node,
                     cudnnBackendAttributeName_t name, int count,
                     int64_t *out) {
  const sdg_graph_parameter_t *list = sdg_graph_parameter(node, name);
  if (!list || list->count != count)
    return false;
  for (int i = 0; i < count; i++)
    out[i] = list->value[i].integer;
  return true;
}

static bool is_sum(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
         node->kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
}

// The operators that cuDNN 9.19 takes in a graph.
static bool is_combined(const sdg_graph_node_t *node) {
  switch (sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1)) {
  case CUDNN_REDUCE_TENSOR_ADD:
  case CUDNN_REDUCE_TENSOR_MUL:
  case CUDNN_REDUCE_TENSOR_MIN:
  case CUDNN_REDUCE_TENSOR_MAX:
  case CUDNN_REDUCE_TENSOR_AMAX:
    return true;
  }
  return false;
}

static const char *main_find(sdg_graph_pattern_t *p) {
  const sdg_graph_t *graph = p->graph;
  int found = 0;
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    int kind = convolution_of(node);
    if (node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
        !is_combined(node))
      return "a mean or a norm";
    if (kind < CONVOLUTIONS) {
      p->main = n;
      p->kind = (sdg_graph_kind_t)kind;
      found++;
    } else if (!is_sum(node) &&
               (node->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
                sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1) ==
                    CUDNN_POINTWISE_GEN_INDEX)) {
      return sdg_graph_node_name(node);
    }
  }
  if (found != 1)
    return found ? "several convolutions" : "no convolution";
  const sdg_graph_node_t *main = &graph->node[p->main];
  p->after = convolutions[p->kind].after;
  p->adds_old = sdg_graph_real(main, convolutions[p->kind].beta, 0) != 0;
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
    p->tensor[level] =
        sdg_graph_operand(main, convolutions[p->kind].tensor[level]);
  // A plan's JSON does not have CONVOLUTION_SPATIAL_DIMS.
  const sdg_graph_parameter_t *stride =
      sdg_graph_parameter(main, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  p->spatial = stride ? stride->count : 0;
  bool known = p->spatial >= 1 && p->spatial + 2 <= SDG_DIMS_MAX;
#define LIST(name, out)                                                        \
  known = known &&                                                             \
          list_get(main, CUDNN_ATTR_CONVOLUTION_##name, p->spatial, p->out)
  LIST(FILTER_STRIDES, stride);
  LIST(DILATIONS, dilation);
  LIST(PRE_PADDINGS, pre);
  LIST(POST_PADDINGS, post);
#undef LIST
  return known ? NULL : "a convolution without paddings, strides or dilations";
}

// ---- levels ----------------------------------------------------------------

static bool writes(const sdg_graph_node_t *node, int operand) {
  return sdg_graph_writes(node, node->operand[operand].name);
}

// Whether a node is the convolution, or reads what is computed of its result.
static bool is_after(const sdg_graph_pattern_t *p, int n) {
  const sdg_graph_node_t *node = &p->graph->node[n];
  for (int i = 0; i < node->operand_count; i++) {
    int from = p->writer[node->operand[i].tensor];
    if (from >= 0 && from != n && (p->node_levels[from] & SDG_GRAPH_AFTER))
      return true;
  }
  return n == p->main;
}

// All that is computed of the convolution's result is on the result's level,
// and has its extents.
static const char *after_mark(sdg_graph_pattern_t *p) {
  const sdg_graph_t *graph = p->graph;
  const sdg_graph_tensor_t *like = &graph->tensor[p->tensor[p->after]];
  size_t bytes = sizeof *like->dim * (size_t)like->rank;
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    bool sums = is_sum(node);
    if (!is_after(p, n)) {
      if (sums)
        return "a sum of what is not computed of the convolution's result";
      continue;
    }
    p->node_levels[n] =
        1u << p->after | SDG_GRAPH_AFTER | (sums ? SDG_GRAPH_SUM : 0);
    for (int i = 0; i < node->operand_count; i++) {
      int t = node->operand[i].tensor;
      if (p->tensor_levels[t] & SDG_GRAPH_SUM)
        return "an op that reads a sum";
      if (!writes(node, i))
        continue;
      p->tensor_levels[t] = p->node_levels[n];
      if (sums && graph->tensor[t].is_virtual)
        return "a sum without memory";
      if (!sums && memcmp(graph->tensor[t].dim, like->dim, bytes) != 0)
        return "a result of other extents than the convolution's";
    }
  }
  return NULL;
}

// From the last node to the first: what a node reads is needed on the node's
// levels.
static void needs_mark(sdg_graph_pattern_t *p) {
  unsigned levels = SDG_GRAPH_AFTER - 1;
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
    p->tensor_levels[p->tensor[level]] |= 1u << level;
  for (int n = p->graph->node_count - 1; n >= 0; n--) {
    const sdg_graph_node_t *node = &p->graph->node[n];
    for (int i = 0; i < node->operand_count; i++)
      if (writes(node, i))
        p->node_levels[n] |= p->tensor_levels[node->operand[i].tensor];
    for (int i = 0; i < node->operand_count && n != p->main; i++)
      if (!writes(node, i))
        p->tensor_levels[node->operand[i].tensor] |= p->node_levels[n] & levels;
  }
}

// What cannot be split of tensors and their places; NULL: nothing.
static const char *tensors_lack(const sdg_graph_pattern_t *p) {
  for (int t = 0; t < p->graph->tensor_count; t++) {
    const sdg_graph_tensor_t *tensor = &p->graph->tensor[t];
    if (tensor->vector_count > 1)
      return "a tensor whose channels are stored as vectors";
    if (tensor->reordering != CUDNN_TENSOR_REORDERING_NONE)
      return "a reordered tensor";
    if (tensor->is_ragged)
      return "a ragged tensor";
    if (p->tensor_levels[t] == 0)
      return "an op that has nothing to do with the convolution";
    if (tensor->is_by_value)
      continue;
    if (tensor->rank != p->spatial + 2)
      return "tensors of different numbers of dimensions";
    if (tensor->is_virtual)
      continue;
    if (tensor->uid < 0)
      return "a tensor without a unique id";
    if (p->writer[t] >= 0 && !(p->tensor_levels[t] & SDG_GRAPH_AFTER))
      return "a result that is not computed of the convolution's";
  }
  return NULL;
}

// The sum over ranks comes after all that is computed of their parts, so that
// it has to be linear.
static const char *gradient_lacks(const sdg_graph_pattern_t *p) {
  if (p->kind != SDG_GRAPH_WGRAD)
    return NULL;
  if (p->adds_old)
    return "a filter gradient that is added to old values (beta)";
  for (int n = 0; n < p->graph->node_count; n++) {
    const sdg_graph_node_t *node = &p->graph->node[n];
    int64_t mode = sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1);
    int results = 0;
    for (int i = 0; i < node->operand_count; i++)
      results += !writes(node, i) &&
                 (p->tensor_levels[node->operand[i].tensor] & SDG_GRAPH_AFTER);
    if ((p->node_levels[n] & SDG_GRAPH_AFTER) && n != p->main &&
        (results > 1 || is_sum(node) ||
         (mode != CUDNN_POINTWISE_MUL && mode != CUDNN_POINTWISE_IDENTITY)))
      return "an op on a filter gradient that is not a factor";
  }
  return NULL;
}

// ---- operands --------------------------------------------------------------

static int64_t elements(const sdg_graph_tensor_t *tensor) {
  int64_t count = 1;
  for (int d = 0; d < tensor->rank; d++)
    count *= tensor->dim[d];
  return count;
}

static bool has_memory(const sdg_graph_pattern_t *p, int t) {
  return !p->graph->tensor[t].is_virtual && !p->graph->tensor[t].is_by_value;
}

// The activation that a level's tensors are computed of: the largest.
static int lead_find(const sdg_graph_pattern_t *p, sdg_graph_level_t level) {
  int lead = -1;
  for (int t = 0; t < p->graph->tensor_count; t++)
    if (has_memory(p, t) && p->writer[t] < 0 &&
        (p->tensor_levels[t] >> level & 1) &&
        (lead < 0 ||
         elements(&p->graph->tensor[t]) > elements(&p->graph->tensor[lead])))
      lead = t;
  return lead;
}

static bool lead_fits(const sdg_graph_pattern_t *p, int lead,
                      sdg_graph_level_t level) {
  const sdg_graph_tensor_t *tensor = &p->graph->tensor[p->tensor[level]];
  return lead < 0 || memcmp(p->graph->tensor[lead].dim, tensor->dim,
                            sizeof *tensor->dim * (size_t)tensor->rank) == 0;
}

static void operand_add(sdg_graph_pattern_t *p, int t, sdg_role_t role) {
  if (p->operands < SDG_OPERANDS_MAX) {
    p->operand[p->operands] = t;
    p->role[p->operands] = role;
  }
  p->operands++;
}

static const char *operands_find(sdg_graph_pattern_t *p) {
  bool sums = false;
  static const sdg_role_t result[] = {[SDG_GRAPH_LEVEL_X] = SDG_ROLE_DX,
                                      [SDG_GRAPH_LEVEL_Y] = SDG_ROLE_Y,
                                      [SDG_GRAPH_LEVEL_W] = SDG_ROLE_DW};
  int x = p->kind == SDG_GRAPH_DGRAD ? -1 : lead_find(p, SDG_GRAPH_LEVEL_X);
  int dy = p->kind == SDG_GRAPH_FORWARD ? -1 : lead_find(p, SDG_GRAPH_LEVEL_Y);
  if ((x < 0 && p->kind != SDG_GRAPH_DGRAD) ||
      (dy < 0 && p->kind != SDG_GRAPH_FORWARD))
    return "no input with memory";
  if (!lead_fits(p, x, SDG_GRAPH_LEVEL_X) ||
      !lead_fits(p, dy, SDG_GRAPH_LEVEL_Y))
    return "an input of other extents than the convolution's";
  if (x >= 0)
    operand_add(p, x, SDG_ROLE_X);
  if (dy >= 0 && dy != x)
    operand_add(p, dy, SDG_ROLE_DY);
  p->result = -1;
  for (int t = 0; t < p->graph->tensor_count; t++) {
    if (!has_memory(p, t) || t == x || t == dy)
      continue;
    bool filter = p->tensor_levels[t] == 1u << SDG_GRAPH_LEVEL_W;
    bool sum = p->tensor_levels[t] & SDG_GRAPH_SUM;
    if (p->writer[t] >= 0 && p->result < 0 && !sum)
      p->result = p->operands;
    operand_add(p, t,
                sum                 ? SDG_ROLE_SUM
                : p->writer[t] >= 0 ? result[p->after]
                : filter            ? SDG_ROLE_W
                                    : SDG_ROLE_SCALE);
    sums |= sum;
  }
  if (p->operands > SDG_OPERANDS_MAX)
    return "too many tensors";
  // Without y its parts follow from x's; dx has to be there.
  bool without = sums && p->kind == SDG_GRAPH_FORWARD;
  return p->result < 0 && !without ? "no result with memory" : NULL;
}

// ---- what must be equal on all ranks ---------------------------------------

static uint64_t parameter_hash(uint64_t hash,
                               const sdg_graph_parameter_t *parameter) {
  hash = sdg_hash_word(hash, (uint64_t)parameter->name << 8 |
                                 (uint64_t)parameter->type);
  for (int i = 0; i < parameter->count; i++)
    hash = sdg_hash_word(hash, (uint64_t)parameter->value[i].integer);
  return hash;
}

static uint64_t graph_hash(const sdg_graph_t *graph) {
  uint64_t hash = SDG_HASH_SEED;
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    hash = sdg_hash_word(hash, (uint64_t)node->kind);
    for (int i = 0; i < node->operand_count; i++)
      hash = sdg_hash_word(hash, (uint64_t)node->operand[i].name << 16 |
                                     (uint64_t)node->operand[i].tensor);
    for (int i = 0; i < node->parameter_count; i++)
      hash = parameter_hash(hash, &node->parameter[i]);
  }
  for (int t = 0; t < graph->tensor_count; t++)
    hash = sdg_hash_word(hash, (uint64_t)graph->tensor[t].type << 8 |
                                   (uint64_t)graph->tensor[t].is_virtual << 1 |
                                   (uint64_t)graph->tensor[t].is_by_value);
  return hash;
}

// ---- life ------------------------------------------------------------------

static void writers_find(sdg_graph_pattern_t *p) {
  for (int t = 0; t < p->graph->tensor_count; t++)
    p->writer[t] = -1;
  for (int n = 0; n < p->graph->node_count; n++)
    for (int i = 0; i < p->graph->node[n].operand_count; i++)
      if (writes(&p->graph->node[n], i))
        p->writer[p->graph->node[n].operand[i].tensor] = n;
}

static void window_fill(sdg_graph_pattern_t *p) {
  const sdg_graph_tensor_t *w = &p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_W]];
  p->window.spatial = p->spatial;
  for (int s = 0; s < p->spatial; s++) {
    p->window.kernel[s] = (int)w->dim[s + 2];
    p->window.pad[s] = (int)p->pre[s];
    p->window.stride[s] = (int)p->stride[s];
    p->window.dilation[s] = (int)p->dilation[s];
  }
}

static const char *pattern_read(sdg_graph_pattern_t *p) {
  writers_find(p);
  p->name = sdg_graph_name(p->graph);
  p->hash = graph_hash(p->graph);
  if (p->graph->tensor_count > SDG_GRAPH_TENSORS_MAX)
    return "too many tensors";
  const char *lacks = main_find(p);
  if (lacks || (lacks = after_mark(p)))
    return lacks;
  needs_mark(p);
  if (!(lacks = tensors_lack(p)) && !(lacks = gradient_lacks(p)))
    lacks = operands_find(p);
  if (!lacks)
    window_fill(p);
  return lacks;
}

sdg_graph_pattern_t *sdg_graph_pattern_create(sdg_graph_t *graph) {
  size_t tensors = (size_t)graph->tensor_count;
  size_t nodes = (size_t)graph->node_count;
  sdg_graph_pattern_t *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  p->references = 1;
  p->graph = sdg_graph_retain(graph);
  p->tensor_levels = calloc(tensors + 1, sizeof *p->tensor_levels);
  p->node_levels = calloc(nodes + 1, sizeof *p->node_levels);
  p->writer = calloc(tensors + 1, sizeof *p->writer);
  if (!p->tensor_levels || !p->node_levels || !p->writer) {
    sdg_graph_pattern_release(p);
    return NULL;
  }
  p->lacks = pattern_read(p);
  for (int t = 0; t < graph->tensor_count && !p->lacks; t++)
    sdg_tag_touch(&graph->tensor[t]);
  return p;
}

sdg_graph_pattern_t *sdg_graph_pattern_retain(sdg_graph_pattern_t *p) {
  if (p)
    __atomic_fetch_add(&p->references, 1, __ATOMIC_RELAXED);
  return p;
}

void sdg_graph_pattern_release(sdg_graph_pattern_t *p) {
  if (!p || __atomic_fetch_sub(&p->references, 1, __ATOMIC_ACQ_REL) != 1)
    return;
  for (int t = 0; t < p->graph->tensor_count && !p->lacks; t++)
    sdg_tag_forget(&p->graph->tensor[t]);
  sdg_graph_release(p->graph);
  free(p->tensor_levels);
  free(p->node_levels);
  free(p->writer);
  free(p);
}
