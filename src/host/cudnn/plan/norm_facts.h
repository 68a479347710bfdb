/* SPDX-License-Identifier: Apache-2.0 */
/* A normalisation in a graph, for the rules that say which of them an engine of
 * cuDNN takes. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_NORM_FACTS_H
#define SDG_SRC_HOST_CUDNN_PLAN_NORM_FACTS_H

#include "src/host/cudnn/plan/facts.h"

#define HOST_TYPE(type)  (1u << CUDNN_DATA_##type)
#define HOST_FLOATS      (HOST_TYPE(FLOAT) | HOST_TYPE(HALF) | HOST_TYPE(BFLOAT16))
#define HOST_BYTE_FLOATS (HOST_TYPE(FP8_E4M3) | HOST_TYPE(FP8_E5M2))

typedef struct {
  const host_facts_t *f;
  const sdg_graph_node_t *node; /* the first one */
  int norms;
  int64_t mode;
  bool backward, training;
  /* Of the graph, -1 where there is none; y: the result, dx backward. */
  int x, y, dy, scale, bias, mean, inverse, dscale, dbias;
} host_norm_t;

typedef struct {
  bool (*holds)(const host_norm_t *norm);
  const char *text;
} host_norm_rule_t;

/* Of layer, RMS and adaptive layer norms, which normalise what lies side by
 * side in memory, and of batch and instance norms. A rule without text is the
 * last. */
extern const host_norm_rule_t host_norm_rows[], host_norm_planes[];

static inline const sdg_graph_tensor_t *host_norm_tensor(const host_norm_t *n,
                                                         int tensor) {
  return &n->f->graph->tensor[tensor];
}

static inline const sdg_graph_node_t *host_norm_writer(const host_norm_t *n,
                                                       int tensor) {
  int node = tensor < 0 ? -1 : host_facts_writer(n->f, tensor);
  return node < 0 ? NULL : &n->f->graph->node[node];
}

static inline bool host_norm_has_type(const host_norm_t *n, int tensor,
                                      unsigned types) {
  cudnnDataType_t type =
      tensor < 0 ? CUDNN_DATA_FLOAT : host_norm_tensor(n, tensor)->type;
  return tensor < 0 || ((unsigned)type < 32 && (types >> type & 1));
}

static inline bool host_norm_is_rows(const host_norm_t *n) {
  return n->mode == CUDNN_LAYER_NORM || n->mode == CUDNN_RMS_NORM ||
         n->mode == CUDNN_ADA_LAYER_NORM;
}

static inline int host_norm_mode(const sdg_graph_node_t *node) {
  return node && host_node_is_pointwise(node)
             ? (int)sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1)
             : -1;
}

static inline int host_norm_operand(const sdg_graph_node_t *node,
                                    cudnnBackendAttributeName_t name) {
  return node ? sdg_graph_operand(node, name) : -1;
}

#define HOST_PW(node, name)                                                    \
  host_norm_operand(node, CUDNN_ATTR_OPERATION_POINTWISE_##name)

static inline bool host_norm_is_mask(const host_norm_t *n,
                                     const sdg_graph_node_t *node) {
  int b = HOST_PW(node, BDESC), x = HOST_PW(node, XDESC);
  return host_norm_mode(node) == CUDNN_POINTWISE_MUL && b >= 0 && x >= 0 &&
         (host_norm_tensor(n, b)->type == CUDNN_DATA_BOOLEAN ||
          host_norm_tensor(n, x)->type == CUDNN_DATA_BOOLEAN);
}

#endif
