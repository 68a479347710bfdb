// SPDX-License-Identifier: Apache-2.0
// Which batch and instance normalisations an engine of cuDNN 9.19 takes on an
// H100.
#include "src/host/cudnn/plan/norm_facts.h"

static bool planes_types(const host_norm_t *n) {
  return host_norm_has_type(n, n->x,
                            HOST_FLOATS | HOST_BYTE_FLOATS | HOST_TYPE(INT8)) &&
         (n->backward || host_norm_tensor(n, n->y)->is_virtual ||
          host_norm_tensor(n, n->y)->type == host_norm_tensor(n, n->x)->type);
}

static bool batch_trains(const host_norm_t *n) {
  return n->mode != CUDNN_BATCH_NORM || n->backward || n->training;
}

static bool batch_extents(const host_norm_t *n) {
  const sdg_graph_tensor_t *x = host_norm_tensor(n, n->x);
  int unit =
      x->type == CUDNN_DATA_HALF || x->type == CUDNN_DATA_BFLOAT16 ? 8 : 4;
  return n->mode != CUDNN_BATCH_NORM ||
         ((x->rank == 4 || x->rank == 5) && x->dim[1] % unit == 0);
}

// Nothing in front, but a mask of dy.
static bool planes_prologue(const host_norm_t *n) {
  const int of[] = {n->x, n->scale, n->bias, n->mean, n->inverse};
  for (int i = 0; i < 5; i++)
    if (host_norm_writer(n, of[i]) && host_norm_writer(n, of[i]) != n->node)
      return false;
  const sdg_graph_node_t *mask = host_norm_writer(n, n->dy);
  return !mask ||
         (host_norm_is_mask(n, mask) &&
          !host_norm_writer(n, HOST_PW(mask, XDESC)) &&
          host_norm_tensor(n, n->dy)->type == host_norm_tensor(n, n->x)->type);
}

static const sdg_graph_node_t *host_norm_reader(const host_norm_t *n,
                                                int tensor) {
  for (int i = 0; i < n->f->graph->node_count; i++)
    if (host_node_reads(&n->f->graph->node[i], tensor))
      return &n->f->graph->node[i];
  return NULL;
}

// [ADD ->] RELU [-> CMP_GT], in memory from there on.
static bool planes_epilogue(const host_norm_t *n) {
  int y = n->y, behind = 0, own = host_norm_writer(n, n->dy) != NULL;
  const sdg_graph_node_t *node = host_norm_reader(n, y);
  if (node && (n->backward || !host_norm_tensor(n, y)->is_virtual))
    return false;
  if (host_norm_mode(node) == CUDNN_POINTWISE_ADD &&
      host_norm_tensor(n, HOST_PW(node, YDESC))->is_virtual) {
    y = HOST_PW(node, YDESC);
    node = host_norm_reader(n, y);
    behind++;
  }
  if (host_norm_mode(node) == CUDNN_POINTWISE_RELU_FWD) {
    y = HOST_PW(node, YDESC);
    node = host_norm_reader(n, y);
    behind++;
    if (host_norm_mode(node) == CUDNN_POINTWISE_CMP_GT)
      behind++;
    if (host_norm_tensor(n, y)->is_virtual)
      return false;
  } else if (behind || node) {
    return false;
  }
  return n->f->graph->node_count == 1 + own + behind;
}

const host_norm_rule_t host_norm_planes[] = {
    {planes_types,
     "batch and instance normalisations of f32, f16, bf16 or bytes, whose "
     "result has x's type"},
    {batch_trains, "batch normalisations in training"},
    {batch_extents,
     "batch normalisations in 2 or 3 spatial dimensions, of a multiple of 4 "
     "channels (halves: of 8)"},
    {planes_prologue,
     "nothing in front of batch and instance normalisations but a mask of dy, "
     "whose result has x's type"},
    {planes_epilogue,
     "behind batch and instance normalisations, an addition or nothing, RELU, "
     "and the comparison that makes its mask"},
    {NULL, NULL},
};
