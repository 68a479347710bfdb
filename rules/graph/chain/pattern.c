// SPDX-License-Identifier: Apache-2.0
// Reads an operation graph as a chain: which boxes its tensors are in.
#include "rules/graph/chain/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "rules/graph/chain/operands.h"
#include "src/base/hash.h"
#include "src/call/tag.h"

// ---- levels ----------------------------------------------------------------

static bool writes(const sdg_graph_node_t *node, int operand) {
  return sdg_graph_writes(node, node->operand[operand].name);
}

// Whether a node is the main op, or reads what is computed of its result.
static bool is_after(const sdg_graph_pattern_t *p, int n) {
  const sdg_graph_node_t *node = &p->graph->node[n];
  for (int i = 0; i < node->operand_count; i++) {
    int from = p->writer[node->operand[i].tensor];
    if (from >= 0 && from != n && (p->node_levels[from] & SDG_GRAPH_AFTER))
      return true;
  }
  return n == p->main;
}

// Whether a norm writes the operand beside its result.
static bool is_beside_norm(const sdg_graph_pattern_t *p, int n, int operand) {
  return n == p->main && sdg_graph_normalises(p) &&
         p->graph->node[n].operand[operand].tensor != p->tensor[p->after];
}

// Marks what a node writes. `like`: the extents that results have; NULL: any.
static const char *results_mark(sdg_graph_pattern_t *p, int n,
                                const sdg_graph_tensor_t *like) {
  const sdg_graph_node_t *node = &p->graph->node[n];
  bool sums = sdg_graph_is_sum(node);
  for (int i = 0; i < node->operand_count; i++) {
    int t = node->operand[i].tensor;
    const sdg_graph_tensor_t *tensor = &p->graph->tensor[t];
    if (p->tensor_levels[t] & SDG_GRAPH_SUM)
      return "an op that reads a sum";
    if (!writes(node, i))
      continue;
    p->tensor_levels[t] = p->node_levels[n];
    if (is_beside_norm(p, n, i)) {
      p->tensor_levels[t] = 1u << SDG_GRAPH_LEVEL_W | SDG_GRAPH_AFTER |
                            SDG_GRAPH_SUM; // nothing may read it here
      continue;
    }
    if (sums && tensor->is_virtual)
      return "a sum without memory";
    if (!sums && like &&
        memcmp(tensor->dim, like->dim,
               sizeof *like->dim * (size_t)like->rank) != 0)
      return "a result of other extents than the convolution's, pooling's, "
             "product's or norm's";
  }
  return NULL;
}

// All that is computed of the main op's result is on the result's level, and
// has its extents.
static const char *after_mark(sdg_graph_pattern_t *p) {
  const sdg_graph_t *graph = p->graph;
  const sdg_graph_tensor_t *like = &graph->tensor[p->tensor[p->after]];
  for (int n = 0; n < graph->node_count; n++) {
    bool sums = sdg_graph_is_sum(&graph->node[n]);
    if (!is_after(p, n)) {
      if (sums)
        return "a sum of what is not computed of the result of the "
               "convolution, pooling, product or norm";
      continue;
    }
    p->node_levels[n] =
        1u << p->after | SDG_GRAPH_AFTER | (sums ? SDG_GRAPH_SUM : 0);
    const char *lacks = results_mark(p, n, like);
    if (lacks)
      return lacks;
  }
  return NULL;
}

// From the last node to the first: what a node reads is needed on the node's
// levels.
static void needs_mark(sdg_graph_pattern_t *p) {
  unsigned levels = SDG_GRAPH_AFTER - 1;
  const sdg_graph_node_t *main = &p->graph->node[p->main];
  for (int i = 0; i < main->operand_count; i++)
    p->tensor_levels[main->operand[i].tensor] |=
        1u << sdg_graph_main_level(p, main->operand[i].name);
  for (int n = p->graph->node_count - 1; n >= 0; n--) {
    const sdg_graph_node_t *node = &p->graph->node[n];
    for (int i = 0; i < node->operand_count; i++)
      if (writes(node, i) && !is_beside_norm(p, n, i))
        p->node_levels[n] |= p->tensor_levels[node->operand[i].tensor];
    for (int i = 0; i < node->operand_count && n != p->main; i++)
      if (!writes(node, i))
        p->tensor_levels[node->operand[i].tensor] |= p->node_levels[n] & levels;
  }
}

// Without a main op all is on one level.
static const char *pointwise_mark(sdg_graph_pattern_t *p) {
  for (int n = 0; n < p->graph->node_count; n++) {
    bool sums = sdg_graph_is_sum(&p->graph->node[n]);
    p->node_levels[n] = 1u << SDG_GRAPH_LEVEL_Y | (sums ? SDG_GRAPH_SUM : 0);
    const char *lacks = results_mark(p, n, NULL);
    if (lacks)
      return lacks;
  }
  for (int t = 0; t < p->graph->tensor_count; t++)
    p->tensor_levels[t] |= 1u << SDG_GRAPH_LEVEL_Y;
  int lead = sdg_graph_lead_find(p, SDG_GRAPH_LEVEL_Y);
  if (lead < 0)
    return "no input with memory";
  p->tensor[SDG_GRAPH_LEVEL_X] = p->tensor[SDG_GRAPH_LEVEL_Y] = lead;
  p->tensor[SDG_GRAPH_LEVEL_W] = -1;
  p->spatial = p->graph->tensor[lead].rank - 2;
  if (p->spatial < 1 || p->spatial + 2 > SDG_DIMS_MAX)
    return "tensors without D, H or W";
  for (int s = 0; s < p->spatial; s++)
    p->kernel[s] = p->stride[s] = p->dilation[s] = 1;
  return NULL;
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
    if (tensor->has_unknown)
      return "a tensor with an attribute that is not known";
    if (p->tensor_levels[t] == 0)
      return "an op that has nothing to do with the convolution, pooling, "
             "product or norm";
    if (tensor->is_by_value)
      continue;
    if (tensor->rank != p->spatial + 2)
      return "tensors of different numbers of dimensions";
    if (tensor->is_virtual)
      continue;
    if (tensor->uid < 0)
      return "a tensor without a unique id";
    // What a norm reads is in the same pieces as its result.
    bool alike = sdg_graph_normalises(p) &&
                 (p->tensor_levels[t] >> SDG_GRAPH_LEVEL_X & 1);
    if (p->main >= 0 && p->writer[t] >= 0 && !alike &&
        !(p->tensor_levels[t] & SDG_GRAPH_AFTER))
      return "a result that is not computed of the convolution's, pooling's, "
             "product's or norm's";
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
        (results > 1 || sdg_graph_is_sum(node) ||
         (mode != CUDNN_POINTWISE_MUL && mode != CUDNN_POINTWISE_IDENTITY)))
      return "an op on a filter gradient that is not a factor";
  }
  return NULL;
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
  p->window.spatial = p->spatial;
  for (int s = 0; s < p->spatial; s++) {
    p->window.kernel[s] = (int)p->kernel[s];
    p->window.pad[s] = (int)p->pre[s];
    p->window.stride[s] = (int)p->stride[s];
    p->window.dilation[s] = (int)p->dilation[s];
  }
}

// *out_is: whether the graph is attention. NULL, or what of it cannot be split.
static const char *attention_read(sdg_graph_pattern_t *p, bool *out_is) {
  p->attention = calloc(1, sizeof *p->attention);
  if (!p->attention)
    return *out_is = true, "too little memory to read it";
  const char *lacks = sdg_composite_read(p->graph, out_is, p->attention);
  if (!*out_is || lacks)
    return lacks;
  p->kind = SDG_GRAPH_ATTENTION;
  p->name = p->attention->backward ? "attention_backward" : "attention";
  p->main = -1;
  return sdg_graph_operands_find(p);
}

static const char *pattern_read(sdg_graph_pattern_t *p) {
  bool attention;
  writers_find(p);
  p->name = sdg_graph_name(p->graph);
  p->hash = graph_hash(p->graph);
  if (p->graph->tensor_count > SDG_GRAPH_TENSORS_MAX)
    return "too many tensors";
  const char *why = attention_read(p, &attention);
  if (attention)
    return why;
  const char *lacks = sdg_graph_main_find(p);
  if (!lacks)
    lacks = p->main < 0 ? pointwise_mark(p) : after_mark(p);
  if (lacks)
    return lacks;
  if (p->main >= 0)
    needs_mark(p);
  if (!(lacks = tensors_lack(p)) && !(lacks = gradient_lacks(p)))
    lacks = sdg_graph_operands_find(p);
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
  if (!p->lacks && p->kind == SDG_GRAPH_PRODUCT)
    sdg_tag_touch(sdg_graph_product_key(p));
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
  if (!p->lacks && p->kind == SDG_GRAPH_PRODUCT)
    sdg_tag_forget(sdg_graph_product_key(p));
  sdg_graph_tagged_fini(p);
  sdg_graph_release(p->graph);
  free(p->attention);
  free(p->tensor_levels);
  free(p->node_levels);
  free(p->writer);
  free(p);
}
