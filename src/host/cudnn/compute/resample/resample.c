// SPDX-License-Identifier: Apache-2.0
// What resampling nodes say of themselves.
#include "src/host/cudnn/compute/resample/resample.h"

#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/view.h"

#define FORWARD(name)  CUDNN_ATTR_OPERATION_RESAMPLE_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_RESAMPLE_BWD_##name

bool host_resample_is_mean(const host_resample_t *how) {
  return how->mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING ||
         how->mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
}

bool host_resample_is_most(const host_resample_t *how) {
  return how->mode == CUDNN_RESAMPLE_MAXPOOL;
}

// ---- what the descriptor says ----------------------------------------------

// Fractions are reals.
static double number(const sdg_graph_parameter_t *p, int d, double missing) {
  if (!p || d >= p->count)
    return missing;
  return p->type == CUDNN_TYPE_FRACTION ? p->value[d].real
                                        : (double)p->value[d].integer;
}

static bool is_whole(double value) {
  return value == floor(value) && fabs(value) < 0x1p31;
}

static const char *dimension_init(const sdg_graph_node_t *node, int i, int d,
                                  host_resample_t *out) {
  double window =
      number(sdg_graph_parameter(node, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS), i, 0);
  double stride =
      number(sdg_graph_parameter(node, CUDNN_ATTR_RESAMPLE_STRIDES), i, 0);
  double pad =
      number(sdg_graph_parameter(node, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS), i, 0);
  bool pools = host_resample_is_mean(out) || host_resample_is_most(out);
  if (!(window > 0) || !(stride > 0) || !(pad >= 0) || !is_whole(window))
    return "a resampling without windows";
  if (pools && (!is_whole(stride) || !is_whole(pad)))
    return "pooling by fractions of elements";
  if (out->mode == CUDNN_RESAMPLE_BILINEAR && window != 2)
    return "an interpolation between other than two elements";
  out->taps[d] = out->mode == CUDNN_RESAMPLE_NEAREST ? 1 : (int64_t)window;
  out->stride[d] = stride;
  out->pad[d] = pad;
  return NULL;
}

static const char *init(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                        int x, int y, host_resample_t *out) {
  if (x < 0 || y < 0)
    return "a resampling without one of its tensors";
  const sdg_graph_tensor_t *from = &graph->tensor[x], *to = &graph->tensor[y];
  *out = (host_resample_t){
      .mode = (cudnnResampleMode_t)sdg_graph_integer(
          node, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_RESAMPLE_NEAREST),
      .padding = (cudnnPaddingMode_t)sdg_graph_integer(
          node, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_ZERO_PAD),
      .propagates_nan =
          sdg_graph_integer(node, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION,
                            CUDNN_NOT_PROPAGATE_NAN) == CUDNN_PROPAGATE_NAN,
      .rank = from->rank};
  if (from->rank != to->rank || from->rank < 3 || from->rank > 5 ||
      from->dim[0] != to->dim[0] || from->dim[1] != to->dim[1])
    return "a resampling in other than 1 to 3 dimensions";
  if ((int)out->mode < CUDNN_RESAMPLE_NEAREST ||
      (int)out->mode > CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING)
    return "this mode of a resampling";
  if (out->padding == CUDNN_NEG_INF_PAD && !host_resample_is_most(out) &&
      out->mode != CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING)
    return "a sum with a padding of negative infinity";
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++) {
    int at = from->rank - HOST_RESAMPLE_RANK + d;
    out->taps[d] = out->in[d] = out->out[d] = 1;
    out->stride[d] = 1;
    // Of an interpolation: element 0 itself.
    out->pad[d] = out->mode <= CUDNN_RESAMPLE_BILINEAR ? 0.5 : 0;
    if (at < 2)
      continue;
    out->in[d] = from->dim[at];
    out->out[d] = to->dim[at];
    const char *lacks = dimension_init(node, at - 2, d, out);
    if (lacks)
      return lacks;
  }
  return NULL;
}

// ---- the node --------------------------------------------------------------

host_resample_node_t host_resample_node(const sdg_graph_node_t *node) {
  if (node->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR)
    return (host_resample_node_t){
        .x = sdg_graph_operand(node, FORWARD(XDESC)),
        .y = sdg_graph_operand(node, FORWARD(YDESC)),
        .index = sdg_graph_operand(node, FORWARD(IDXDESC)),
        .from = -1,
        .alpha = sdg_graph_real(node, FORWARD(ALPHA), 1)};
  return (host_resample_node_t){
      .backward = true,
      .x = sdg_graph_operand(node, BACKWARD(DXDESC)),
      .y = sdg_graph_operand(node, BACKWARD(DYDESC)),
      .index = sdg_graph_operand(node, BACKWARD(IDXDESC)),
      .from = sdg_graph_operand(node, BACKWARD(XDESC)),
      .alpha = sdg_graph_real(node, BACKWARD(ALPHA), 1)};
}

host_resample_t host_resample_how(const sdg_graph_t *graph,
                                  const sdg_graph_node_t *node,
                                  const host_resample_node_t *n) {
  host_resample_t how;
  (void)init(graph, node, n->x, n->y, &how);
  return how;
}

static bool same_extents(const sdg_graph_tensor_t *a,
                         const sdg_graph_tensor_t *b) {
  return a->rank == b->rank &&
         memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

// Whether the type has the number of each element of a window.
static bool has_positions(const sdg_graph_tensor_t *index,
                          const host_resample_t *how) {
  double last = (double)(how->taps[0] * how->taps[1] * how->taps[2] - 1);
  double kept = last;
  if (!host_element_bytes(index->type))
    return false;
  host_elements_round(index->type, &kept, 1);
  return kept == last;
}

const char *host_resample_lacks(const sdg_graph_t *graph,
                                const sdg_graph_node_t *node) {
  host_resample_node_t n = host_resample_node(node);
  host_resample_t how;
  const char *text = init(graph, node, n.x, n.y, &how);
  if (text)
    return text;
  if (sdg_graph_real(node, n.backward ? BACKWARD(BETA) : FORWARD(BETA), 0) != 0)
    return "a resampling that adds to old values";
  bool most = host_resample_is_most(&how);
  if (n.index >= 0 && !most)
    return "positions of other than the largest elements";
  if (n.index >= 0 &&
      (!same_extents(&graph->tensor[n.index], &graph->tensor[n.y]) ||
       !has_positions(&graph->tensor[n.index], &how)))
    return "positions that do not fit their tensor";
  if (n.backward && most && n.index < 0 &&
      (n.from < 0 ||
       !same_extents(&graph->tensor[n.from], &graph->tensor[n.x])))
    return "a gradient of largest elements without their positions or x";
  return NULL;
}

void host_resample_round(host_run_t *run, const sdg_graph_node_t *node,
                         int result) {
  host_run_tensor_t *to = &run->tensor[result];
  int64_t count = host_region_count(&to->need);
  if (sdg_graph_integer(node, CUDNN_ATTR_RESAMPLE_COMP_TYPE,
                        CUDNN_DATA_FLOAT) == CUDNN_DATA_FLOAT)
    host_elements_round(CUDNN_DATA_FLOAT, to->value, count);
  host_elements_round(host_run_of(run, result)->type, to->value, count);
}
