// SPDX-License-Identifier: Apache-2.0
// Finds the op in the middle of a graph's chain, and reads its window.
#include <string.h>

#include "rules/graph/chain/norm.h"
#include "rules/graph/chain/pattern.h"
#include "src/graph/names.h"

// ---- the table -------------------------------------------------------------

// An operand beside x, y and w.
typedef struct beside {
  cudnnBackendAttributeName_t name;
  sdg_graph_level_t level;
} beside_t;

enum { BESIDES = 3 };

// The name of no operand is 0; beta 0: nothing is added to.
typedef struct main_op {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t tensor[SDG_GRAPH_LEVELS]; // X, Y, W; 0: none
  cudnnBackendAttributeName_t beta;
  sdg_graph_level_t after;
  beside_t beside[BESIDES];
} main_op_t;

#define OPERATION(name) CUDNN_BACKEND_OPERATION_##name##_DESCRIPTOR
#define OPERAND(name)   CUDNN_ATTR_OPERATION_##name
static const main_op_t main_ops[] = {
    [SDG_GRAPH_FORWARD] = {.kind = OPERATION(CONVOLUTION_FORWARD),
                           .tensor = {OPERAND(CONVOLUTION_FORWARD_X),
                                      OPERAND(CONVOLUTION_FORWARD_Y),
                                      OPERAND(CONVOLUTION_FORWARD_W)},
                           .beta = OPERAND(CONVOLUTION_FORWARD_BETA),
                           .after = SDG_GRAPH_LEVEL_Y},
    [SDG_GRAPH_DGRAD] = {.kind = OPERATION(CONVOLUTION_BACKWARD_DATA),
                         .tensor = {OPERAND(CONVOLUTION_BWD_DATA_DX),
                                    OPERAND(CONVOLUTION_BWD_DATA_DY),
                                    OPERAND(CONVOLUTION_BWD_DATA_W)},
                         .beta = OPERAND(CONVOLUTION_BWD_DATA_BETA),
                         .after = SDG_GRAPH_LEVEL_X},
    [SDG_GRAPH_WGRAD] = {.kind = OPERATION(CONVOLUTION_BACKWARD_FILTER),
                         .tensor = {OPERAND(CONVOLUTION_BWD_FILTER_X),
                                    OPERAND(CONVOLUTION_BWD_FILTER_DY),
                                    OPERAND(CONVOLUTION_BWD_FILTER_DW)},
                         .beta = OPERAND(CONVOLUTION_BWD_FILTER_BETA),
                         .after = SDG_GRAPH_LEVEL_W},
    [SDG_GRAPH_POOL] = {.kind = OPERATION(RESAMPLE_FWD),
                        .tensor = {OPERAND(RESAMPLE_FWD_XDESC),
                                   OPERAND(RESAMPLE_FWD_YDESC)},
                        .beta = OPERAND(RESAMPLE_FWD_BETA),
                        .after = SDG_GRAPH_LEVEL_Y,
                        .beside = {{OPERAND(RESAMPLE_FWD_IDXDESC),
                                    SDG_GRAPH_LEVEL_Y}}},
    [SDG_GRAPH_POOL_BACK] =
        {.kind = OPERATION(RESAMPLE_BWD),
         .tensor = {OPERAND(RESAMPLE_BWD_DXDESC), OPERAND(RESAMPLE_BWD_DYDESC)},
         .beta = OPERAND(RESAMPLE_BWD_BETA),
         .after = SDG_GRAPH_LEVEL_X,
         .beside = {{OPERAND(RESAMPLE_BWD_IDXDESC), SDG_GRAPH_LEVEL_Y},
                    {OPERAND(RESAMPLE_BWD_YDESC), SDG_GRAPH_LEVEL_Y},
                    {OPERAND(RESAMPLE_BWD_XDESC), SDG_GRAPH_LEVEL_X}}},
    [SDG_GRAPH_PRODUCT] = {.kind = OPERATION(MATMUL),
                           .tensor = {OPERAND(MATMUL_ADESC),
                                      OPERAND(MATMUL_CDESC),
                                      OPERAND(MATMUL_BDESC)},
                           .after = SDG_GRAPH_LEVEL_Y},
    [SDG_GRAPH_NORM] = {.kind = OPERATION(NORM_FORWARD),
                        .tensor = {OPERAND(NORM_FWD_XDESC),
                                   OPERAND(NORM_FWD_YDESC)},
                        .after = SDG_GRAPH_LEVEL_Y},
    [SDG_GRAPH_NORM_BACK] = {.kind = OPERATION(NORM_BACKWARD),
                             .tensor = {OPERAND(NORM_BWD_XDESC),
                                        OPERAND(NORM_BWD_DXDESC)},
                             .after = SDG_GRAPH_LEVEL_Y,
                             .beside = {{OPERAND(NORM_BWD_DYDESC),
                                         SDG_GRAPH_LEVEL_X}}},
};
#undef OPERATION
#undef OPERAND
enum { MAIN_OPS = sizeof main_ops / sizeof *main_ops };
_Static_assert((int)MAIN_OPS == (int)SDG_GRAPH_POINTWISE,
               "a row for every kind of main op");

// MAIN_OPS: the node is none.
static int main_of(const sdg_graph_node_t *node) {
  int kind = 0;
  while (kind < MAIN_OPS && main_ops[kind].kind != node->kind)
    kind++;
  return kind;
}

sdg_graph_level_t sdg_graph_main_level(const sdg_graph_pattern_t *pattern,
                                       cudnnBackendAttributeName_t name) {
  const main_op_t *op = &main_ops[pattern->kind];
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
    if (op->tensor[level] == name)
      return (sdg_graph_level_t)level;
  for (int i = 0; i < BESIDES; i++)
    if (op->beside[i].name == name)
      return op->beside[i].level;
  return sdg_graph_normalises(pattern) ? SDG_GRAPH_LEVEL_W : op->after;
}

bool sdg_graph_has_prologue(const sdg_graph_pattern_t *pattern) {
  return pattern->writer[pattern->tensor[SDG_GRAPH_LEVEL_X]] >= 0 &&
         !sdg_graph_is_back(pattern);
}

bool sdg_graph_is_sum(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
         node->kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
}

// ---- windows ---------------------------------------------------------------

static bool list_get(const sdg_graph_node_t *node,
                     cudnnBackendAttributeName_t name, int count,
                     int64_t *out) {
  const sdg_graph_parameter_t *list = sdg_graph_parameter(node, name);
  if (!list || list->count != count || list->type == CUDNN_TYPE_FRACTION)
    return false;
  for (int i = 0; i < count; i++)
    out[i] = list->value[i].integer;
  return true;
}

#define LIST(name, out) list_get(main, CUDNN_ATTR_##name, p->spatial, p->out)

static const char *convolution_read(sdg_graph_pattern_t *p,
                                    const sdg_graph_node_t *main) {
  const sdg_graph_tensor_t *w = &p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_W]];
  if (!LIST(CONVOLUTION_FILTER_STRIDES, stride) ||
      !LIST(CONVOLUTION_DILATIONS, dilation) ||
      !LIST(CONVOLUTION_PRE_PADDINGS, pre) ||
      !LIST(CONVOLUTION_POST_PADDINGS, post) || w->rank != p->spatial + 2)
    return "a convolution without paddings, strides or dilations";
  memcpy(p->kernel, w->dim + 2, sizeof *w->dim * (size_t)p->spatial);
  return NULL;
}

static const char *pooling_read(sdg_graph_pattern_t *p,
                                const sdg_graph_node_t *main) {
  bool indices =
      sdg_graph_operand(main, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC) >= 0;
  switch (sdg_graph_integer(main, CUDNN_ATTR_RESAMPLE_MODE, -1)) {
  case CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING:
    break;
  case CUDNN_RESAMPLE_MAXPOOL:
    p->whole_windows = p->kind == SDG_GRAPH_POOL_BACK && !indices;
    break;
  case CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING:
    p->whole_windows = p->kind == SDG_GRAPH_POOL_BACK;
    break;
  default:
    return "an interpolation";
  }
  // Pieces of these compute rows of other ranks, which would be counted twice.
  if (p->whole_windows && p->combines)
    return "a sum behind the gradient of a mean without its padding, or of a "
           "maximum without its indices";
  if (p->adds_old && p->kind == SDG_GRAPH_POOL_BACK)
    return "a pooling gradient that is added to old values (beta)";
  for (int s = 0; s < p->spatial; s++)
    p->dilation[s] = 1;
  return LIST(RESAMPLE_WINDOW_DIMS, kernel) && LIST(RESAMPLE_STRIDES, stride) &&
                 LIST(RESAMPLE_PRE_PADDINGS, pre) &&
                 LIST(RESAMPLE_POST_PADDINGS, post)
             ? NULL
             : "a pooling without windows, strides or paddings of integers";
}
#undef LIST

static const char *product_read(const sdg_graph_pattern_t *p,
                                const sdg_graph_node_t *main) {
  static const cudnnBackendAttributeName_t overrides[] = {
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
      CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};
  for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++)
    if (sdg_graph_operand(main, overrides[i]) >= 0)
      return "a product of matrices whose extents are read from memory";
  if (sdg_graph_integer(
          main, CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT,
          1) > 1)
    return "a product of matrices with an irregular batch";
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
    if (p->tensor[level] < 0)
      return "a product of matrices without one of them";
  return NULL;
}

// ---- finding it ------------------------------------------------------------

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

// Attention in parts has two products, and a softmax between them.
static const char *products_read(const sdg_graph_t *graph) {
  int products = 0;
  for (int n = 0; n < graph->node_count; n++)
    products += main_of(&graph->node[n]) == SDG_GRAPH_PRODUCT;
  return products > 1 ? "several products of matrices, as attention in parts "
                        "has: sundog splits one product in a graph"
                      : NULL;
}

static const char *nodes_read(sdg_graph_pattern_t *p, int *out_found) {
  for (int n = 0; n < p->graph->node_count; n++) {
    const sdg_graph_node_t *node = &p->graph->node[n];
    int kind = main_of(node);
    p->combines |= sdg_graph_is_sum(node);
    if ((kind < MAIN_OPS || sdg_graph_is_sum(node) ||
         node->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) &&
        !sdg_graph_is_known(node))
      return "an op with an attribute that is not known";
    if (node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
        !is_combined(node))
      return "a mean or a norm";
    if (kind < MAIN_OPS) {
      p->main = n;
      p->kind = (sdg_graph_kind_t)kind;
      ++*out_found;
    } else if (!sdg_graph_is_sum(node) &&
               (node->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
                sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1) ==
                    CUDNN_POINTWISE_GEN_INDEX)) {
      return sdg_graph_node_name(node);
    }
  }
  return *out_found > 1 ? "several convolutions, poolings, products or norms"
                        : NULL;
}

const char *sdg_graph_main_find(sdg_graph_pattern_t *p) {
  int found = 0;
  p->kind = SDG_GRAPH_POINTWISE;
  p->after = SDG_GRAPH_LEVEL_Y;
  p->main = -1;
  const char *lacks = products_read(p->graph);
  if (!lacks)
    lacks = nodes_read(p, &found);
  if (lacks || p->main < 0)
    return lacks;
  const sdg_graph_node_t *main = &p->graph->node[p->main];
  const main_op_t *op = &main_ops[p->kind];
  p->after = op->after;
  p->adds_old = op->beta && sdg_graph_real(main, op->beta, 0) != 0;
  for (int level = 0; level < SDG_GRAPH_LEVELS; level++)
    p->tensor[level] =
        op->tensor[level] ? sdg_graph_operand(main, op->tensor[level]) : -1;
  if (sdg_graph_normalises(p) && (lacks = sdg_graph_norm_read(main)))
    return lacks;
  p->spatial = p->graph->tensor[p->tensor[SDG_GRAPH_LEVEL_X]].rank - 2;
  if (p->kind == SDG_GRAPH_PRODUCT)
    return p->spatial < 0 || p->spatial + 2 > SDG_DIMS_MAX
               ? "a product of matrices with that many dimensions"
               : product_read(p, main);
  if (p->spatial < 1 || p->spatial + 2 > SDG_DIMS_MAX)
    return "tensors without D, H or W";
  if (sdg_graph_normalises(p))
    return NULL;
  return sdg_graph_mixes(p) ? convolution_read(p, main) : pooling_read(p, main);
}
