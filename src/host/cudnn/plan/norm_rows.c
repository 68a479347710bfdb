// SPDX-License-Identifier: Apache-2.0
// Which layer, RMS and adaptive layer normalisations an engine of cuDNN 9.19
// takes on an H100.
#include "src/host/cudnn/plan/norm_facts.h"

static bool rows_are_floats(const host_norm_t *n) {
  return host_norm_has_type(n, n->x, HOST_FLOATS) &&
         host_norm_has_type(n, n->y, HOST_FLOATS) &&
         host_norm_has_type(n, n->dy, HOST_FLOATS);
}

static bool rows_keep_types(const host_norm_t *n) {
  return !n->backward ||
         ((host_norm_tensor(n, n->y)->type == host_norm_tensor(n, n->x)->type ||
           host_norm_tensor(n, n->y)->is_virtual) &&
          (n->dscale < 0 || host_norm_tensor(n, n->dscale)->type ==
                                host_norm_tensor(n, n->scale)->type));
}

// Whether x is normalised over a dimension: the scale has its extent.
static bool is_within(const host_norm_t *n, int d) {
  if (n->scale < 0)
    return d > 0;
  return (d > 0 || n->mode != CUDNN_ADA_LAYER_NORM) &&
         host_norm_tensor(n, n->scale)->dim[d] > 1;
}

// The dimensions with more than one element, innermost first; false if there is
// room between elements.
static bool order_of(const sdg_graph_tensor_t *t, int *out_count, int *out) {
  int64_t stride = 1;
  *out_count = 0;
  for (;;) {
    int next = -1;
    for (int d = 0; d < t->rank; d++) {
      bool used = t->dim[d] < 2;
      for (int i = 0; i < *out_count; i++)
        used |= out[i] == d;
      if (!used && (next < 0 || t->stride[d] < t->stride[next]))
        next = d;
    }
    if (next < 0)
      return true;
    if (t->stride[next] != stride)
      return false;
    stride *= t->dim[next];
    out[(*out_count)++] = next;
  }
}

static bool rows_are_innermost(const host_norm_t *n) {
  int count, order[CUDNN_DIM_MAX];
  const sdg_graph_tensor_t *x = host_norm_tensor(n, n->x);
  bool outside = false;
  if ((n->scale >= 0 && host_norm_tensor(n, n->scale)->rank != x->rank) ||
      !order_of(x, &count, order))
    return false;
  for (int i = 0; i < count; i++) {
    if (is_within(n, order[i]) && outside)
      return false;
    outside |= !is_within(n, order[i]);
  }
  return x->rank > 1 && (outside || n->mode != CUDNN_ADA_LAYER_NORM);
}

static bool samples_have_scales(const host_norm_t *n) {
  const sdg_graph_tensor_t *x = host_norm_tensor(n, n->x);
  if (n->mode != CUDNN_ADA_LAYER_NORM)
    return true;
  bool rows = false, columns = false;
  for (int d = 1; d < x->rank && n->scale >= 0; d++) {
    rows |= x->dim[d] > 1 && !is_within(n, d);
    columns |= x->dim[d] > 1 && is_within(n, d);
  }
  return n->scale >= 0 && host_norm_tensor(n, n->scale)->dim[0] == x->dim[0] &&
         rows && columns;
}

// Operations on x of floats; in front of gradients, sums and, of floats, masks.
static bool rows_prologue(const host_norm_t *n) {
  bool is_float = host_norm_tensor(n, n->x)->type == CUDNN_DATA_FLOAT &&
                  host_norm_tensor(n, n->y)->type == CUDNN_DATA_FLOAT;
  const sdg_graph_node_t *dy = host_norm_writer(n, n->dy);
  if (host_norm_writer(n, n->bias) ||
      (host_norm_writer(n, n->x) && (n->backward || !is_float)))
    return false;
  return !dy || host_norm_mode(dy) == CUDNN_POINTWISE_ADD ||
         (is_float && host_norm_is_mask(n, dy));
}

static int readers_of(const host_norm_t *n, int tensor) {
  int count = 0;
  for (int i = 0; i < n->f->graph->node_count; i++)
    count += host_node_is_pointwise(&n->f->graph->node[i]) &&
             host_node_reads(&n->f->graph->node[i], tensor);
  return count;
}

// One operation reads the result, which has no memory then.
static bool rows_chain(const host_norm_t *n) {
  for (int i = 0; i < n->f->graph->node_count; i++)
    if (host_node_reads(&n->f->graph->node[i], n->y) &&
        (!host_norm_tensor(n, n->y)->is_virtual || readers_of(n, n->y) != 1))
      return false;
  return true;
}

// Behind halves, one operation that makes 8-bit floats.
static bool rows_epilogue(const host_norm_t *n) {
  if (n->backward || host_norm_tensor(n, n->x)->type == CUDNN_DATA_FLOAT ||
      !host_norm_tensor(n, n->y)->is_virtual)
    return true;
  for (int i = 0; i < n->f->graph->node_count; i++) {
    const sdg_graph_node_t *node = &n->f->graph->node[i];
    if (!host_node_is_pointwise(node) || !host_node_reads(node, n->y))
      continue;
    int result = HOST_PW(node, YDESC);
    return n->mode != CUDNN_ADA_LAYER_NORM && result >= 0 &&
           host_norm_has_type(n, result, HOST_BYTE_FLOATS);
  }
  return false;
}

// The program's scale is less 1, or the like.
static bool samples_scale(const host_norm_t *n) {
  return n->backward || n->mode != CUDNN_ADA_LAYER_NORM ||
         !host_norm_writer(n, n->scale);
}

const host_norm_rule_t host_norm_rows[] = {
    {rows_are_floats, "layer normalisations of f32, f16 or bf16"},
    {rows_keep_types,
     "gradients of layer normalisations in the types of x and of the scale"},
    {rows_are_innermost,
     "layer normalisations over the innermost dimensions, which the scale has, "
     "of packed tensors"},
    {samples_have_scales,
     "adaptive layer normalisations with a scale of each sample, for several "
     "rows of it"},
    {rows_prologue,
     "in front of layer normalisations, operations on the scale (and on "
     "floats); of gradients, sums (of floats, masks)"},
    {samples_scale, "scales in memory for adaptive layer normalisations"},
    {rows_chain,
     "one operation that reads a layer normalisation's result, which has no "
     "memory then"},
    {rows_epilogue,
     "behind layer normalisations of halves, one operation that makes 8-bit "
     "floats"},
    {NULL, NULL},
};
