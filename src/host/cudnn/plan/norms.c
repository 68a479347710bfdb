// SPDX-License-Identifier: Apache-2.0
// Which graphs with a normalisation an engine of cuDNN 9.19 takes on an H100:
// what holds for all of them.
#include "src/host/cudnn/plan/norms.h"
#include "src/host/cudnn/plan/norm_facts.h"

#define FORWARD(name)  CUDNN_ATTR_OPERATION_NORM_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_NORM_BWD_##name

static bool is_norm(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR ||
         node->kind == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
}

static host_norm_t norm_of(const host_facts_t *f) {
  host_norm_t n = {.f = f};
  for (int i = f->graph->node_count; i-- > 0;)
    if (is_norm(&f->graph->node[i])) {
      n.norms++;
      n.node = &f->graph->node[i];
    }
  if (!n.node)
    return n;
  n.backward = n.node->kind == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
#define EITHER(name)                                                           \
  sdg_graph_operand(n.node, n.backward ? BACKWARD(name) : FORWARD(name))
  n.mode = sdg_graph_integer(n.node,
                             n.backward ? BACKWARD(MODE) : FORWARD(MODE), -1);
  n.training = !n.backward && sdg_graph_integer(n.node, FORWARD(PHASE),
                                                CUDNN_NORM_FWD_TRAINING) ==
                                  CUDNN_NORM_FWD_TRAINING;
  n.x = EITHER(XDESC);
  n.scale = EITHER(SCALE_DESC);
  n.mean = EITHER(MEAN_DESC);
  n.inverse = EITHER(INV_VARIANCE_DESC);
#undef EITHER
  n.y =
      sdg_graph_operand(n.node, n.backward ? BACKWARD(DXDESC) : FORWARD(YDESC));
  n.dy = sdg_graph_operand(n.node, BACKWARD(DYDESC));
  n.bias = sdg_graph_operand(n.node, FORWARD(BIAS_DESC));
  n.dscale = sdg_graph_operand(n.node, BACKWARD(DSCALE_DESC));
  n.dbias = sdg_graph_operand(n.node, BACKWARD(DBIAS_DESC));
  return n;
}

// ---- any normalisation -----------------------------------------------------

static bool has_engine(const host_norm_t *n) {
  return (host_norm_is_rows(n) || n->mode == CUDNN_BATCH_NORM ||
          n->mode == CUDNN_INSTANCE_NORM) &&
         n->x >= 0 && n->y >= 0 && (n->dy >= 0) == n->backward;
}

static bool is_alone(const host_norm_t *n) {
  const sdg_graph_t *graph = n->f->graph;
  for (int i = 0; i < graph->node_count; i++)
    if (!is_norm(&graph->node[i]) && !host_node_is_pointwise(&graph->node[i]) &&
        !host_node_is_reduction(&graph->node[i]))
      return false;
  return n->norms == 1;
}

static bool is_told(const host_norm_t *n) {
  return !n->training ||
         (n->inverse >= 0 && (n->mean >= 0 || n->mode == CUDNN_RMS_NORM));
}

static bool bias_has_scale(const host_norm_t *n) {
  return n->dbias < 0 || n->scale >= 0;
}

static bool statistics_are_floats(const host_norm_t *n) {
  const int of[] = {n->scale,   n->bias,   n->mean,
                    n->inverse, n->dscale, n->dbias};
  for (int i = 0; i < 6; i++)
    if (!host_norm_has_type(n, of[i], HOST_FLOATS))
      return false;
  return true;
}

// In memory, x and its result, and their gradients, lie alike.
static bool lies_alike(const host_norm_t *n) {
  const int of[] = {n->y, n->dy};
  const sdg_graph_tensor_t *x = host_norm_tensor(n, n->x);
  for (int i = 0; i < 2; i++) {
    const sdg_graph_tensor_t *t = of[i] < 0 ? x : host_norm_tensor(n, of[i]);
    for (int d = 0; d < x->rank && !t->is_virtual && !x->is_virtual; d++)
      if (t->rank != x->rank || (x->dim[d] > 1 && t->stride[d] != x->stride[d]))
        return false;
  }
  return true;
}

static bool in_float(const host_norm_t *n) {
  const sdg_graph_t *graph = n->f->graph;
  for (int i = 0; i < graph->node_count; i++)
    if (sdg_graph_integer(&graph->node[i], CUDNN_ATTR_POINTWISE_MATH_PREC,
                          CUDNN_DATA_FLOAT) != CUDNN_DATA_FLOAT)
      return false;
  return true;
}

// ---- gradients of parameters alone -----------------------------------------

static const sdg_graph_node_t *weights_of(const host_facts_t *f) {
  for (int i = 0; i < f->graph->node_count; i++)
    if (f->graph->node[i].kind ==
        CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR)
      return &f->graph->node[i];
  return NULL;
}

// They follow a data gradient that goes back through a RELU of what operations
// compute.
static bool weights_fit(const host_facts_t *f, const sdg_graph_node_t *node) {
  host_norm_t n = {.f = f};
  const sdg_graph_node_t *relu = host_norm_writer(
      &n, sdg_graph_operand(node, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC));
  return f->kind == HOST_CONV_DATA && f->convolutions == 1 &&
         host_norm_mode(relu) == CUDNN_POINTWISE_RELU_BWD &&
         host_norm_writer(&n, HOST_PW(relu, DYDESC)) == f->conv &&
         host_norm_mode(host_norm_writer(&n, HOST_PW(relu, XDESC))) >= 0;
}

// ---- all rules --------------------------------------------------------------

static const host_norm_rule_t all[] = {
    {has_engine,
     "layer, RMS, adaptive layer, batch and instance normalisations"},
    {is_alone,
     "one normalisation in a graph, with pointwise operations and reductions"},
    {is_told, "statistics as results of a normalisation in training"},
    {bias_has_scale, "gradients of a bias beside that of a scale"},
    {statistics_are_floats,
     "statistics, scales and biases of f32, f16 or bf16"},
    {lies_alike, "normalisations whose tensors have the same strides"},
    {in_float, "operations around normalisations in float"},
    {NULL, NULL},
};

static const char *broken(const host_norm_t *norm,
                          const host_norm_rule_t *rules) {
  while (rules->text && rules->holds(norm))
    rules++;
  return rules->text;
}

const char *host_norms_refuse(const host_facts_t *facts) {
  const sdg_graph_node_t *weights = weights_of(facts);
  if (weights && !weights_fit(facts, weights))
    return "gradients of a normalisation's parameters behind a data gradient "
           "and RELU_BWD only";
  host_norm_t norm = norm_of(facts);
  if (!norm.node)
    return NULL;
  const char *text = broken(&norm, all);
  if (text)
    return text;
  return broken(&norm,
                host_norm_is_rows(&norm) ? host_norm_rows : host_norm_planes);
}
