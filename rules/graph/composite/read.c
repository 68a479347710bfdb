// SPDX-License-Identifier: Apache-2.0
// Whether a graph is attention, and that nothing of it is left unexplained.
#include <stdlib.h>
#include <string.h>

#include "rules/graph/composite/reader.h"
#include "src/graph/names.h"

// ---- what attention here never has -----------------------------------------

static const char *tensor_lacks(const sdg_graph_tensor_t *tensor) {
  if (tensor->is_ragged)
    return "a ragged tensor";
  if (tensor->has_unknown)
    return "a tensor with an attribute that is not known";
  if (tensor->vector_count > 1)
    return "a vectorised tensor";
  switch ((int)tensor->type) {
  case CUDNN_DATA_FP8_E4M3:
  case CUDNN_DATA_FP8_E5M2:
  case CUDNN_DATA_FP8_E8M0:
  case CUDNN_DATA_FP4_E2M1:
    return "FP8 or FP4";
  }
  return NULL;
}

static const char *node_lacks(const sdg_graph_node_t *node) {
  switch ((int)node->kind) {
  case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
    return "dropout";
  case CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR:
    return "paged keys or values";
  case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
    return "the op SDPA_BWD";
  case CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR:
    return "FP8 or FP4";
  }
  if (node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
      sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1) ==
          CUDNN_REDUCE_TENSOR_AMAX)
    return "a largest absolute value (FP8)";
  if (sdg_reader_has_mode(node, CUDNN_POINTWISE_TANH_FWD))
    return "scores with a soft cap";
  return NULL;
}

static const char *graph_lacks(const sdg_graph_t *graph) {
  if (graph->tensor_count > SDG_READER_TENSORS ||
      graph->node_count > SDG_READER_NODES)
    return "more ops than attention has";
  for (int t = 0; t < graph->tensor_count; t++)
    if (tensor_lacks(&graph->tensor[t]))
      return tensor_lacks(&graph->tensor[t]);
  for (int n = 0; n < graph->node_count; n++)
    if (node_lacks(&graph->node[n]))
      return node_lacks(&graph->node[n]);
  return NULL;
}

// ---- whether it is attention -----------------------------------------------

static int count_of(const sdg_graph_t *graph, int kind) {
  int count = 0;
  for (int n = 0; n < graph->node_count; n++)
    count += (int)graph->node[n].kind == kind;
  return count;
}

// What a node reads or writes: 1: it comes from a product; 2: from an
// exponential of one. Returns the largest of what it reads.
static int stage_of(const sdg_graph_node_t *node, const int *stage) {
  int most = 0;
  for (int i = 0; i < node->operand_count; i++)
    if (!sdg_graph_writes(node, node->operand[i].name) &&
        stage[node->operand[i].tensor] > most)
      most = stage[node->operand[i].tensor];
  return most;
}

// A product of exponentials of a product. Nodes are in topological order.
static bool is_attention(const sdg_graph_t *graph) {
  bool is = count_of(graph, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) > 0 ||
            count_of(graph, CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR) > 0;
  int *stage = calloc((size_t)graph->tensor_count + 1, sizeof *stage);
  for (int n = 0; stage && n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    bool multiplies = node->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    int reached = stage_of(node, stage);
    is |= multiplies && reached == 2;
    if (multiplies && reached == 0)
      reached = 1;
    if (reached == 1 && sdg_reader_has_mode(node, CUDNN_POINTWISE_EXP))
      reached = 2;
    for (int i = 0; i < node->operand_count; i++)
      if (sdg_graph_writes(node, node->operand[i].name))
        stage[node->operand[i].tensor] = reached;
  }
  free(stage);
  return is;
}

// ---- what is left over -----------------------------------------------------

static const char *left_over(const sdg_reader_t *r,
                             const sdg_graph_node_t *node) {
  if (node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
      sdg_reader_is_score(r, SDG_OPERAND(node, REDUCTION_XDESC)))
    return "the gradient of a bias";
  return "an op beside those of attention";
}

static const char *output_beside(const sdg_graph_node_t *node) {
  if (node->kind != CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
    return "an output of an inner tensor";
  return sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1) ==
                 CUDNN_REDUCE_TENSOR_MAX
             ? "the largest scores as an output"
             : "the sums of exponentials as an output";
}

// Every node has a meaning, and every tensor that has memory.
static bool all_is_known(sdg_reader_t *r) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    if (!r->taken[n])
      return sdg_reader_lacks(r, left_over(r, node));
    if (!sdg_graph_is_known(node))
      return sdg_reader_lacks(r, "an op with an attribute that is not known");
    for (int i = 0; i < node->operand_count; i++) {
      int t = node->operand[i].tensor;
      const sdg_graph_tensor_t *tensor = &r->graph->tensor[t];
      if (tensor->is_virtual ? r->writer[t] < 0 : !r->known[t])
        return sdg_reader_lacks(r, r->writer[t] == n
                                       ? output_beside(node)
                                       : "an input that is not known");
      // Nobody but cuDNN reads the sum that DQ is made of.
      if (tensor->reordering != CUDNN_TENSOR_REORDERING_NONE &&
          t != r->out->tensor[SDG_COMPOSITE_DQ_SUM])
        return sdg_reader_lacks(r, "a reordered tensor");
    }
  }
  return true;
}

// ---- extents and types -----------------------------------------------------

sdg_composite_extents_t sdg_composite_extents(const sdg_composite_t *c,
                                              const sdg_graph_t *graph) {
  const int *role = c->tensor;
  const sdg_graph_tensor_t *q = &graph->tensor[role[SDG_COMPOSITE_Q]];
  const sdg_graph_tensor_t *k = &graph->tensor[role[SDG_COMPOSITE_K]];
  const sdg_graph_tensor_t *v = &graph->tensor[role[SDG_COMPOSITE_V]];
  return (sdg_composite_extents_t){
      .batch = q->dim[0],
      .heads = q->dim[1],
      .k_heads = k->dim[1],
      .v_heads = v->dim[1],
      .queries = q->dim[2],
      .keys = k->dim[c->turned[SDG_COMPOSITE_K] ? 3 : 2],
      .depth = q->dim[3],
      .v_depth = v->dim[c->turned[SDG_COMPOSITE_V] ? 2 : 3]};
}

static bool has(const sdg_reader_t *r, sdg_composite_role_t role, int64_t heads,
                int64_t rows, int64_t columns) {
  int t = r->out->tensor[role];
  bool turned = r->out->turned[role];
  const int64_t *dim = t < 0 ? NULL : r->graph->tensor[t].dim;
  return !dim ||
         (dim[0] == r->graph->tensor[r->out->tensor[SDG_COMPOSITE_Q]].dim[0] &&
          dim[1] == heads && dim[2] == (turned ? columns : rows) &&
          dim[3] == (turned ? rows : columns));
}

static bool extents_fit(const sdg_reader_t *r) {
  sdg_composite_extents_t e = sdg_composite_extents(r->out, r->graph);
  const int64_t scores[] = {e.batch, e.heads, e.queries, e.keys};
#define HAS(role, heads, rows, columns)                                        \
  has(r, SDG_COMPOSITE_##role, heads, rows, columns)
  return e.k_heads > 0 && e.v_heads > 0 && e.heads % e.k_heads == 0 &&
         e.heads % e.v_heads == 0 &&
         (r->out->unified || memcmp(scores, r->scores, sizeof scores) == 0) &&
         HAS(K, e.k_heads, e.keys, e.depth) &&
         HAS(V, e.v_heads, e.keys, e.v_depth) &&
         HAS(O, e.heads, e.queries, e.v_depth) &&
         HAS(DO, e.heads, e.queries, e.v_depth) &&
         HAS(DQ, e.heads, e.queries, e.depth) &&
         HAS(DQ_SUM, e.heads, e.queries, e.depth) &&
         HAS(DK, e.k_heads, e.keys, e.depth) &&
         HAS(DV, e.v_heads, e.keys, e.v_depth) &&
         HAS(DK_FULL, e.heads, e.keys, e.depth) &&
         HAS(DV_FULL, e.heads, e.keys, e.v_depth) &&
         HAS(STATS, e.heads, e.queries, 1) &&
         HAS(DELTA, e.heads, e.queries, 1) && HAS(LENGTH_Q, 1, 1, 1) &&
         HAS(LENGTH_KV, 1, 1, 1);
#undef HAS
}

// cuDNN reads the first rows and columns of a bias that has more.
static bool bias_fits(const sdg_reader_t *r) {
  int t = r->out->tensor[SDG_COMPOSITE_BIAS];
  for (int d = 0; t >= 0 && d < 4; d++)
    if (r->graph->tensor[t].dim[d] != 1 &&
        r->graph->tensor[t].dim[d] < r->scores[d])
      return false;
  return true;
}

static bool type_is(const sdg_reader_t *r, sdg_composite_role_t role,
                    cudnnDataType_t type) {
  int t = r->out->tensor[role];
  return t < 0 || r->graph->tensor[t].type == type;
}

// cuDNN computes statistics and sums of slopes in float.
static bool types_fit(const sdg_reader_t *r) {
  return type_is(r, SDG_COMPOSITE_STATS, CUDNN_DATA_FLOAT) &&
         type_is(r, SDG_COMPOSITE_LENGTH_Q, CUDNN_DATA_INT32) &&
         type_is(r, SDG_COMPOSITE_LENGTH_KV, CUDNN_DATA_INT32);
}

// ---- the graph -------------------------------------------------------------

static bool reader_init(sdg_reader_t *r) {
  for (int t = 0; t < r->graph->tensor_count; t++)
    r->writer[t] = -1;
  for (int n = 0; n < r->graph->node_count; n++)
    for (int i = 0; i < r->graph->node[n].operand_count; i++) {
      int t = r->graph->node[n].operand[i].tensor;
      if (!sdg_graph_writes(&r->graph->node[n],
                            r->graph->node[n].operand[i].name))
        continue;
      if (r->writer[t] >= 0 || r->graph->tensor[t].is_by_value)
        return sdg_reader_lacks(r, "a tensor that two ops write");
      r->writer[t] = n;
    }
  return true;
}

// Nodes are in topological order, but one may work in place.
static bool order_check(sdg_reader_t *r) {
  for (int n = 0; n < r->graph->node_count; n++)
    for (int i = 0; i < r->graph->node[n].operand_count; i++) {
      const sdg_graph_operand_t *operand = &r->graph->node[n].operand[i];
      if (r->writer[operand->tensor] >= n &&
          !sdg_graph_writes(&r->graph->node[n], operand->name))
        return sdg_reader_lacks(r, "an op that works in place");
    }
  return true;
}

static bool kind_read(sdg_reader_t *r) {
  if (count_of(r->graph, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) > 0)
    return sdg_reader_unified(r);
  switch (count_of(r->graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)) {
  case 2:
    return sdg_reader_forward(r);
  case 5:
    return sdg_reader_backward(r);
  }
  return sdg_reader_lacks(r, "more or fewer products than attention");
}

const char *sdg_composite_read(const sdg_graph_t *graph, bool *out_is,
                               sdg_composite_t *out) {
  const char *lacks = graph_lacks(graph);
  *out = (sdg_composite_t){.scale = -1, .right_bound = -1, .left_bound = -1};
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    out->tensor[role] = -1;
  *out_is = is_attention(graph);
  if (!*out_is)
    return "no attention";
  if (lacks)
    return lacks;
  sdg_reader_t r = {.graph = graph, .out = out};
  // The first text stays: whatever is false without one is told here.
  if (!(reader_init(&r) && order_check(&r) && kind_read(&r) &&
        all_is_known(&r)))
    sdg_reader_lacks(&r, "attention that is stated in another way");
  else if (!extents_fit(&r) || !bias_fits(&r))
    sdg_reader_lacks(&r, "extents that do not fit");
  else if (!types_fit(&r))
    sdg_reader_lacks(&r, "statistics or lengths of another type");
  return r.lacks;
}
