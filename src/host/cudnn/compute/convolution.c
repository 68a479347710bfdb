// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients, by the engines of the legacy calls.
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"
#include "src/host/cudnn/convolution/engine/engine.h"

// A node's convolution. x, w and y are tensors, or their gradients.
typedef struct {
  host_conv_kind_t kind;
  int x, w, y;
  double alpha, beta;
  int rank; // spatial dimensions
  int64_t pad[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX], dilation[CUDNN_DIM_MAX];
  bool flip;
} conv_t;

#define OPERANDS(kind, x, w, y)                                                \
  CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##x,                               \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##w,                           \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##y,                           \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_ALPHA,                         \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_BETA

static const cudnnBackendAttributeName_t names[][5] = {
    [HOST_CONV_FORWARD] = {OPERANDS(FORWARD, X, W, Y)},
    [HOST_CONV_DATA] = {OPERANDS(BWD_DATA, DX, W, DY)},
    [HOST_CONV_WEIGHTS] = {OPERANDS(BWD_FILTER, X, DW, DY)},
};

static void numbers_get(const sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name, int64_t missing,
                        int rank, int64_t *out) {
  const sdg_graph_parameter_t *p = sdg_graph_parameter(node, name);
  for (int d = 0; d < rank; d++)
    out[d] = p && d < p->count ? p->value[d].integer : missing;
}

static conv_t conv_of(const sdg_graph_t *graph, const sdg_graph_node_t *node) {
  conv_t c = {
      .kind =
          node->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
              ? HOST_CONV_FORWARD
          : node->kind ==
                  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
              ? HOST_CONV_DATA
              : HOST_CONV_WEIGHTS};
  const cudnnBackendAttributeName_t *name = names[c.kind];
  c.x = sdg_graph_operand(node, name[0]);
  c.w = sdg_graph_operand(node, name[1]);
  c.y = sdg_graph_operand(node, name[2]);
  c.alpha = sdg_graph_real(node, name[3], 1);
  c.beta = sdg_graph_real(node, name[4], 0);
  c.rank = graph->tensor[c.x].rank - 2;
  c.flip = sdg_graph_integer(node, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                             CUDNN_CROSS_CORRELATION) == CUDNN_CONVOLUTION;
  numbers_get(node, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0, c.rank, c.pad);
  numbers_get(node, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1, c.rank, c.stride);
  numbers_get(node, CUDNN_ATTR_CONVOLUTION_DILATIONS, 1, c.rank, c.dilation);
  return c;
}

static int result_of(const conv_t *c) {
  return c->kind == HOST_CONV_FORWARD ? c->y
         : c->kind == HOST_CONV_DATA  ? c->x
                                      : c->w;
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  conv_t c = conv_of(graph, node);
  if (c.rank < 1 || c.rank > HOST_SPATIAL)
    return "a convolution in more than 3 dimensions";
  int result = result_of(&c);
  if (c.beta != 0 && graph->tensor[result].is_virtual)
    return "a convolution that adds to a virtual tensor";
  return NULL;
}

// ---- regions ---------------------------------------------------------------

static int64_t floor_of(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

static int64_t clip(int64_t value, int64_t high) {
  return value < 0 ? 0 : value > high ? high : value;
}

static int64_t span_of(const host_run_t *run, const conv_t *c, int d) {
  return c->dilation[d] * (host_run_of(run, c->w)->dim[2 + d] - 1) + 1;
}

// The rows of x under rows of y, without those outside of x.
static host_region_t x_under(const host_run_t *run, const conv_t *c,
                             const host_region_t *y) {
  host_region_t x = host_region_all(host_run_of(run, c->x));
  x.lo[0] = y->lo[0];
  x.hi[0] = y->hi[0];
  for (int d = 0; d < c->rank; d++) {
    int64_t extent = x.hi[2 + d], lo = y->lo[2 + d] * c->stride[d] - c->pad[d];
    int64_t hi =
        (y->hi[2 + d] - 1) * c->stride[d] - c->pad[d] + span_of(run, c, d);
    x.lo[2 + d] = clip(lo, extent);
    x.hi[2 + d] = clip(hi, extent);
  }
  return x;
}

// The rows of y that see rows of x. A row more in front, where windows that
// begin behind the first row of x would give a negative padding.
static host_region_t y_over(const host_run_t *run, const conv_t *c,
                            const host_region_t *x) {
  host_region_t y = host_region_all(host_run_of(run, c->y));
  y.lo[0] = x->lo[0];
  y.hi[0] = x->hi[0];
  for (int d = 0; d < c->rank; d++) {
    int64_t extent = y.hi[2 + d], s = c->stride[d];
    int64_t first = x->lo[2 + d] + c->pad[d] - span_of(run, c, d) + 1;
    int64_t lo = -floor_of(-first, s);
    int64_t hi = floor_of(x->hi[2 + d] - 1 + c->pad[d], s) + 1;
    if (lo > 0 && lo * s - c->pad[d] > x->lo[2 + d])
      lo--;
    y.lo[2 + d] = clip(lo, extent);
    y.hi[2 + d] = clip(hi, extent);
  }
  return y;
}

static void forward_need(host_run_t *run, const sdg_graph_node_t *node,
                         const host_region_t *part) {
  (void)part;
  conv_t c = conv_of(run->graph, node);
  host_region_t w = host_region_all(host_run_of(run, c.w));
  // Channels are never cut: the order of additions depends on their number.
  host_region_t *y = &run->tensor[c.y].need;
  y->lo[1] = 0;
  y->hi[1] = host_run_of(run, c.y)->dim[1];
  host_region_t x = x_under(run, &c, y);
  host_run_need(run, c.x, &x);
  host_run_need(run, c.w, &w);
}

static void data_need(host_run_t *run, const sdg_graph_node_t *node,
                      const host_region_t *part) {
  (void)part;
  conv_t c = conv_of(run->graph, node);
  host_region_t w = host_region_all(host_run_of(run, c.w));
  host_region_t *x = &run->tensor[c.x].need;
  x->lo[1] = 0;
  x->hi[1] = host_run_of(run, c.x)->dim[1];
  host_region_t y = y_over(run, &c, x);
  host_run_need(run, c.y, &y);
  host_run_need(run, c.w, &w);
}

static void filter_need(host_run_t *run, const sdg_graph_node_t *node,
                        const host_region_t *part) {
  conv_t c = conv_of(run->graph, node);
  host_region_t x = x_under(run, &c, part);
  host_run_need(run, c.x, &x);
  host_run_need(run, c.y, part);
}

// ---- engines ---------------------------------------------------------------

// A problem without pointers and strides, for these rows of x and y.
static host_conv_t problem_of(const host_run_t *run, const conv_t *c,
                              const host_region_t *x, const host_region_t *y) {
  const sdg_graph_tensor_t *w = host_run_of(run, c->w);
  int groups = (int)(host_run_of(run, c->x)->dim[1] / w->dim[1]);
  host_conv_t p = {.images = (int)(y->hi[0] - y->lo[0]),
                   .groups = groups,
                   .c = (int)w->dim[1],
                   .k = (int)w->dim[0] / groups,
                   .flip = c->flip,
                   .alpha = c->alpha};
  for (int i = 0; i < HOST_SPATIAL; i++)
    p.in[i] = p.out[i] = p.window[i] = p.stride[i] = p.dilation[i] = 1;
  for (int d = 0; d < c->rank; d++) {
    int i = HOST_SPATIAL - c->rank + d;
    p.in[i] = x->hi[2 + d] - x->lo[2 + d];
    p.out[i] = y->hi[2 + d] - y->lo[2 + d];
    p.window[i] = (int)w->dim[2 + d];
    p.stride[i] = (int)c->stride[d];
    p.dilation[i] = (int)c->dilation[d];
    p.pad[i] = (int)(x->lo[2 + d] - (y->lo[2 + d] * c->stride[d] - c->pad[d]));
  }
  return p;
}

// Strides of N C D H W, where missing dimensions have 0.
static void strides_five(int rank, const int64_t *stride, int64_t out[5]) {
  memset(out, 0, 5 * sizeof *out);
  for (int d = 0; d < rank; d++)
    out[d < 2 ? d : 5 - rank + d] = stride[d];
}

static bool in_double(const host_run_t *run, const conv_t *c) {
  cudnnDataType_t type =
      host_run_of(run, c->kind == HOST_CONV_DATA ? c->y : c->x)->type;
  return type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_INT8 ||
         type == CUDNN_DATA_UINT8 || type == CUDNN_DATA_INT32;
}

static bool floats_get(host_run_t *run, int64_t count) {
  if (count <= run->room)
    return true;
  free(run->floats);
  run->floats = malloc((size_t)count * sizeof *run->floats);
  run->room = run->floats ? count : 0;
  return run->floats;
}

static void narrow(const double *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i++)
    to[i] = (float)from[i];
}

static void widen(const float *from, int64_t count, double *to) {
  for (int64_t i = 0; i < count; i++)
    to[i] = from[i];
}

// Computes tensor `out`, one of the convolution's, from the values of the other
// two. All are dense; `values` receives the result.
static bool engine_run(host_run_t *run, const conv_t *c,
                       const host_region_t region[3], int out, double *values) {
  const int tensor[3] = {c->x, c->w, c->y};
  int64_t count[3], steps[CUDNN_DIM_MAX], total = 0;
  host_conv_t p = problem_of(run, c, &region[0], &region[2]);
  int64_t *const strides[3] = {p.x_stride, p.w_stride, p.y_stride};
  void *at[3];
  p.is_double = in_double(run, c);
  p.x_type = p.w_type = p.y_type =
      p.is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  for (int i = 0; i < 3; i++) {
    count[i] = host_region_count(&region[i]);
    host_region_steps(&region[i], steps);
    strides_five(region[i].rank, steps, strides[i]);
    at[i] = i == out ? values : run->tensor[tensor[i]].value;
    total += count[i];
  }
  if (!p.is_double) {
    if (!floats_get(run, total))
      return false;
    float *room = run->floats;
    for (int i = 0; i < 3; i++, room += count[i - 1]) {
      if (i != out)
        narrow(at[i], count[i], room);
      at[i] = room;
    }
  }
  p.x = at[0];
  p.w = at[1];
  p.y = at[2];
  p.old = p.y;
  memcpy(p.old_stride, p.y_stride, sizeof p.y_stride);
  bool good = host_conv_any(c->kind, &p);
  if (!p.is_double)
    widen(at[out], count[out], values);
  return good;
}

// Adds beta times what is in memory, and rounds. Engines give elements that no
// window sees either zero, by the extents of the region: 0 it is.
static bool blend(const host_run_t *run, const conv_t *c, int result,
                  const host_region_t *region, double *values) {
  const sdg_graph_tensor_t *of = host_run_of(run, result);
  int64_t count = host_region_count(region);
  for (int64_t i = 0; i < count; i++)
    values[i] += 0.0;
  if (c->beta != 0) {
    double *old = malloc((size_t)count * sizeof *old);
    if (!old)
      return false;
    host_run_read(of, run->data[result], region, old);
    for (int64_t i = 0; i < count; i++)
      values[i] += c->beta * old[i];
    free(old);
  }
  host_elements_round(of->type, values, count);
  return true;
}

static bool conv_compute(host_run_t *run, const sdg_graph_node_t *node) {
  conv_t c = conv_of(run->graph, node);
  int result = result_of(&c);
  host_region_t region[3] = {run->tensor[c.x].need, run->tensor[c.w].need,
                             run->tensor[c.y].need};
  host_run_tensor_t *t = &run->tensor[result];
  if (host_region_count(&region[c.kind == HOST_CONV_DATA ? 2 : 0]) == 0)
    memset(t->value, 0, (size_t)host_region_count(&t->need) * sizeof *t->value);
  else if (!engine_run(run, &c, region, c.kind == HOST_CONV_DATA ? 0 : 2,
                       t->value))
    return false;
  return blend(run, &c, result, &t->need, t->value);
}

// ---- the gradient of the filter --------------------------------------------

static int filter_over(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
}

static bool filter_begin(host_run_t *run, const sdg_graph_node_t *node) {
  int w = conv_of(run->graph, node).w;
  host_region_t all = host_region_all(host_run_of(run, w));
  run->tensor[w].sums =
      calloc((size_t)host_region_count(&all) + 1, sizeof *run->tensor[w].sums);
  return run->tensor[w].sums;
}

static bool filter_add(host_run_t *run, const sdg_graph_node_t *node,
                       const host_region_t *part) {
  conv_t c = conv_of(run->graph, node);
  const host_region_t region[3] = {
      run->tensor[c.x].need, host_region_all(host_run_of(run, c.w)), *part};
  int64_t count = host_region_count(&region[1]);
  if (host_region_count(&region[0]) == 0)
    return true;
  double *sums = malloc((size_t)count * sizeof *sums);
  bool good = sums && engine_run(run, &c, region, 1, sums);
  for (int64_t i = 0; i < count && good; i++)
    run->tensor[c.w].sums[i] += sums[i];
  free(sums);
  return good;
}

static bool filter_end(host_run_t *run, const sdg_graph_node_t *node) {
  conv_t c = conv_of(run->graph, node);
  host_region_t all = host_region_all(host_run_of(run, c.w));
  if (!blend(run, &c, c.w, &all, run->tensor[c.w].sums))
    return false;
  host_run_finish(run, c.w);
  return true;
}

// ---- whole convolutions in memory ------------------------------------------

static bool engine_takes(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE ||
         type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ||
         type == CUDNN_DATA_INT8 || type == CUDNN_DATA_UINT8;
}

bool host_conv_in_memory(host_run_t *run, const sdg_graph_node_t *node,
                         bool *out_done) {
  const host_node_kind_t *kind = host_node_kind(node->kind);
  *out_done = false;
  if (kind != &host_node_conv_forward && kind != &host_node_conv_data &&
      kind != &host_node_conv_filter)
    return true;
  conv_t c = conv_of(run->graph, node);
  const int tensor[3] = {c.x, c.w, c.y};
  int result = result_of(&c);
  host_region_t region[3];
  host_conv_t p;
  void *at[3];
  for (int i = 0; i < 3; i++) {
    const sdg_graph_tensor_t *of = host_run_of(run, tensor[i]);
    region[i] = host_region_all(of);
    at[i] = tensor[i] == result ? run->data[result]
                                : (void *)run->tensor[tensor[i]].source;
    if (!at[i] || !engine_takes(of->type) || host_region_count(&region[i]) == 0)
      return true;
  }
  p = problem_of(run, &c, &region[0], &region[2]);
  int64_t *const strides[3] = {p.x_stride, p.w_stride, p.y_stride};
  for (int i = 0; i < 3; i++)
    strides_five(region[i].rank, host_run_of(run, tensor[i])->stride,
                 strides[i]);
  p.is_double = in_double(run, &c);
  p.x_type = host_run_of(run, c.x)->type;
  p.w_type = host_run_of(run, c.w)->type;
  p.y_type = host_run_of(run, c.y)->type;
  p.gamma = c.beta;
  p.x = at[0];
  p.w = at[1];
  p.y = at[2];
  p.old = p.y;
  memcpy(p.old_stride, p.y_stride, sizeof p.y_stride);
  *out_done = true;
  run->tensor[result].source = run->data[result];
  if (c.kind == HOST_CONV_WEIGHTS)
    run->done[node - run->graph->node] = true;
  return host_conv_any(c.kind, &p);
}

const host_node_kind_t host_node_conv_forward = {
    .kind = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    .lacks = lacks,
    .need = forward_need,
    .compute = conv_compute};
const host_node_kind_t host_node_conv_data = {
    .kind = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    .lacks = lacks,
    .need = data_need,
    .compute = conv_compute};
const host_node_kind_t host_node_conv_filter = {
    .kind = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    .lacks = lacks,
    .need = filter_need,
    .over = filter_over,
    .begin = filter_begin,
    .add = filter_add,
    .end = filter_end};
