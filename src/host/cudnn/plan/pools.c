// SPDX-License-Identifier: Apache-2.0
// Which graphs with one pooling, or its gradient, an engine of cuDNN 9.19 takes
// on an H100.
#include "src/host/cudnn/plan/families.h"

static bool is_backward(const host_facts_t *f) {
  return f->pool->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
}

static const sdg_graph_tensor_t *pooled(const host_facts_t *f,
                                        cudnnBackendAttributeName_t forward,
                                        cudnnBackendAttributeName_t backward) {
  int t = sdg_graph_operand(f->pool, is_backward(f) ? backward : forward);
  return t < 0 ? NULL : &f->graph->tensor[t];
}

#define POOLED(f, name)                                                        \
  pooled((f), CUDNN_ATTR_OPERATION_RESAMPLE_FWD_##name,                        \
         CUDNN_ATTR_OPERATION_RESAMPLE_BWD_D##name)

static bool is_fused(const host_facts_t *f) {
  return f->graph->node_count > 1;
}

static bool pooling_is_last(const host_facts_t *f) {
  const sdg_graph_tensor_t *x = POOLED(f, XDESC), *y = POOLED(f, YDESC);
  return !is_fused(f) || !x || !y || host_tensor_is_last(x) ||
         host_tensor_is_last(y);
}

static bool pooling_channels(const host_facts_t *f) {
  const sdg_graph_tensor_t *x = POOLED(f, XDESC);
  return !is_fused(f) || !x || x->dim[1] > 1;
}

static bool pooling_gradient_first(const host_facts_t *f) {
  int y = sdg_graph_operand(f->pool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC);
  return !is_backward(f) || y < 0 || host_facts_writer(f, y) < 0;
}

static bool pooling_indices(const host_facts_t *f) {
  const sdg_graph_tensor_t *x = POOLED(f, XDESC), *y = POOLED(f, YDESC);
  return !is_backward(f) || !x || !y ||
         sdg_graph_operand(f->pool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC) <
             0 ||
         host_tensor_is_last(x) || host_tensor_is_last(y);
}

static const host_rule_t rules[] = {
    {pooling_is_last, "poolings beside operations in NHWC"},
    {pooling_channels, "poolings beside operations of more than one channel"},
    {pooling_gradient_first, "no operations in front of a pooling's gradient"},
    {pooling_indices, "gradients of poolings with indices in NHWC"},
};

const char *host_pools_refuse(const host_facts_t *facts) {
  return facts->pool
             ? host_rules_broken(rules, sizeof rules / sizeof *rules, facts)
             : NULL;
}
