// SPDX-License-Identifier: Apache-2.0
// Which graphs of attention an engine takes.
#include "src/host/cudnn/plan/attention.h"
#include "src/host/cudnn/plan/facts.h"

#define AT(name) CUDNN_ATTR_OPERATION_##name

// q, k, v, o of the operation; of the products by their place. Backward, o is
// the gradient of q, which the last product computes.
typedef struct {
  const sdg_graph_t *graph;
  host_attention_kind_t kind;
  const sdg_graph_tensor_t *q, *k, *v, *o;    // NULL: none
  const sdg_graph_tensor_t *scores, *weights; // not of one operation
} attention_t;

static const sdg_graph_tensor_t *operand(const sdg_graph_t *graph,
                                         const sdg_graph_node_t *node,
                                         cudnnBackendAttributeName_t name) {
  int tensor = node ? sdg_graph_operand(node, name) : -1;
  return tensor < 0 ? NULL : &graph->tensor[tensor];
}

static bool is_reshaped(const sdg_graph_t *graph, int tensor) {
  for (int n = 0; n < graph->node_count; n++)
    if ((int)graph->node[n].kind ==
            CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR &&
        sdg_graph_operand(&graph->node[n], AT(RESHAPE_YDESC)) == tensor)
      return true;
  return false;
}

// The gradients of keys and values are products of turned weights and slopes,
// that of queries is one of slopes as they are.
static const sdg_graph_node_t *queries_product(const sdg_graph_t *graph,
                                               const sdg_graph_node_t *power) {
  for (int i = 0; host_attention_product(graph, i); i++) {
    const sdg_graph_node_t *product = host_attention_product(graph, i);
    if (host_attention_comes_from(graph, product, power) &&
        !is_reshaped(graph, sdg_graph_operand(product, AT(MATMUL_ADESC))))
      return product;
  }
  return NULL;
}

// Forward: q k, weights v. Backward, in any order: q k, which the weights come
// from; the weights and do; do v, the other one of tensors in memory; slopes
// and q, slopes and k.
static attention_t attention_of(const sdg_graph_t *graph,
                                host_attention_kind_t kind) {
  attention_t a = {.graph = graph, .kind = kind};
  const sdg_graph_node_t *first_one = host_attention_product(graph, 0),
                         *power = host_attention_power(graph), *last;
  if (kind == HOST_ATTENTION_ONE) {
    const sdg_graph_node_t *one = graph->node;
    a.q = operand(graph, one, AT(SDPA_FWD_QDESC));
    a.k = operand(graph, one, AT(SDPA_FWD_KDESC));
    a.v = operand(graph, one, AT(SDPA_FWD_VDESC));
    a.o = operand(graph, one, AT(SDPA_FWD_ODESC));
    return a;
  }
  // Both the scores and their slopes are products of tensors in memory.
  for (int i = 0; i < 5 && host_attention_product(graph, i); i++)
    if (host_attention_comes_from(graph, power,
                                  host_attention_product(graph, i)))
      first_one = host_attention_product(graph, i);
  last = kind == HOST_ATTENTION_FORWARD ? host_attention_product(graph, 1)
                                        : queries_product(graph, power);
  a.q = operand(graph, first_one, AT(MATMUL_ADESC));
  a.k = operand(graph, first_one, AT(MATMUL_BDESC));
  a.scores = operand(graph, first_one, AT(MATMUL_CDESC));
  a.weights = operand(graph, last, AT(MATMUL_ADESC));
  a.o = operand(graph, last, AT(MATMUL_CDESC));
  if (kind == HOST_ATTENTION_FORWARD)
    a.v = operand(graph, last, AT(MATMUL_BDESC));
  for (int i = 0; kind == HOST_ATTENTION_BACKWARD && i < 5; i++)
    if (host_attention_product(graph, i) != first_one &&
        !host_attention_comes_from(graph, host_attention_product(graph, i),
                                   power))
      a.v = operand(graph, host_attention_product(graph, i), AT(MATMUL_BDESC));
  return a;
}

static bool alone(const attention_t *a) {
  return a->kind != HOST_ATTENTION_ONE || a->graph->node_count == 1;
}

static bool complete(const attention_t *a) {
  return a->q && a->k && a->v && a->o && a->q->rank == 4 && a->k->rank == 4 &&
         a->v->rank == 4 && a->o->rank == 4;
}

static bool in_memory(const attention_t *a) {
  return !a->q->is_virtual && !a->k->is_virtual && !a->v->is_virtual &&
         !a->o->is_virtual;
}

static bool ends(const attention_t *a) {
  for (int n = 0; a->kind == HOST_ATTENTION_FORWARD && n < a->graph->node_count;
       n++)
    if (host_node_reads(&a->graph->node[n], (int)(a->o - a->graph->tensor)))
      return false;
  return true;
}

static bool scores_are_virtual(const attention_t *a) {
  return !a->scores || a->scores->is_virtual;
}

static bool types_fit(const attention_t *a) {
  cudnnDataType_t type = a->q->type;
  bool half = type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  bool single = type == CUDNN_DATA_FLOAT && a->kind != HOST_ATTENTION_BACKWARD;
  return half || single;
}

static bool types_alike(const attention_t *a) {
  if (a->kind == HOST_ATTENTION_BACKWARD)
    return true;
  return a->k->type == a->q->type &&
         (a->kind == HOST_ATTENTION_ONE ||
          (a->v->type == a->q->type && a->weights->type == a->q->type));
}

// Indices and masks are computed in integers and truth values.
static bool in_float(const attention_t *a) {
  for (int n = 0; n < a->graph->node_count; n++) {
    const sdg_graph_node_t *node = &a->graph->node[n];
    int64_t plain = sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MATH_PREC,
                                      CUDNN_DATA_FLOAT);
    if (sdg_graph_integer(node, CUDNN_ATTR_MATMUL_COMP_TYPE,
                          CUDNN_DATA_FLOAT) != CUDNN_DATA_FLOAT ||
        (a->kind == HOST_ATTENTION_BACKWARD &&
         (plain == CUDNN_DATA_HALF || plain == CUDNN_DATA_BFLOAT16)))
      return false;
  }
  return true;
}

// Elements of a vector of q and k, and of one of v. In products, k is turned;
// backward, v is, too.
static void depths(const attention_t *a, int64_t out[2]) {
  out[0] = a->q->dim[3];
  out[1] = a->v->dim[a->kind == HOST_ATTENTION_BACKWARD ? 2 : 3];
}

static bool depths_fit(const attention_t *a) {
  int64_t depth[2];
  depths(a, depth);
  return depth[0] % 8 == 0 && depth[1] % 8 == 0;
}

static bool depths_of_gradients(const attention_t *a) {
  enum { MOST = 256 }; // on other devices than an H100: 128
  int64_t depth[2];
  depths(a, depth);
  return a->kind != HOST_ATTENTION_BACKWARD ||
         (depth[0] <= MOST && depth[1] <= MOST);
}

static bool vectors_are_dense(const attention_t *a) {
  int k = a->kind == HOST_ATTENTION_ONE ? 3 : 2;
  int v = a->kind == HOST_ATTENTION_BACKWARD ? 2 : 3;
  return a->q->stride[3] == 1 && a->k->stride[k] == 1 && a->v->stride[v] == 1 &&
         a->o->stride[3] == 1;
}

static const struct {
  bool (*holds)(const attention_t *attention);
  const char *text;
} rules[] = {
    {alone, "attention as one operation in a graph without others"},
    {complete, "attention on tensors of 4 dimensions"},
    {in_memory, "attention on tensors in memory"},
    {ends, "no operation behind attention"},
    {scores_are_virtual, "scores of attention that are virtual"},
    {types_fit, "attention on f16 and bf16 (forward: f32, too)"},
    {types_alike, "attention on queries, keys, weights and (but as one "
                  "operation) values of one type"},
    {in_float, "products of attention, and pointwise operations of its "
               "gradients, in float"},
    {depths_fit, "attention on vectors of a multiple of 8 elements"},
    {depths_of_gradients,
     "gradients of attention on vectors of at most 256 elements"},
    {vectors_are_dense, "attention on vectors whose elements are neighbours"},
};

const char *host_attention_refuses(const sdg_graph_t *graph,
                                   host_attention_kind_t kind) {
  attention_t a = attention_of(graph, kind);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (!rules[i].holds(&a))
      return rules[i].text;
  return NULL;
}
