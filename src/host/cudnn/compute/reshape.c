// SPDX-License-Identifier: Apache-2.0
// Nodes that give a tensor's elements other indices.
//
// The result's elements are those of x in the order of memory, which both
// tensors' strides say, also where they have no memory. With the same extents
// and exchanged strides it is x transposed. Example: x 2 x 3 with strides 3, 1
// and y 3 x 2 with strides 1, 3: y[i][j] is x[j][i]; with strides 2, 1 it is
// element 2 i + j of x.
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"

// Dimensions with more than one element, outermost in memory first.
typedef struct {
  int count, dim[CUDNN_DIM_MAX];
} order_t;

// False if elements share memory.
static bool order_of(const sdg_graph_tensor_t *t, order_t *out) {
  out->count = 0;
  for (int d = 0; d < t->rank; d++) {
    if (t->dim[d] < 2)
      continue;
    int at = out->count++;
    for (; at > 0 && t->stride[out->dim[at - 1]] < t->stride[d]; at--)
      out->dim[at] = out->dim[at - 1];
    out->dim[at] = d;
  }
  for (int i = 0; i < out->count; i++) {
    int d = out->dim[i], inner = i + 1 < out->count ? out->dim[i + 1] : -1;
    int64_t behind = inner < 0 ? 1 : t->dim[inner] * t->stride[inner];
    if (t->stride[d] < behind)
      return false;
  }
  return true;
}

// Neighbouring dimensions of x and of y that have as many elements together.
typedef struct {
  const int *x_dim, *y_dim;
  int x_count, y_count;
} group_t;

typedef struct {
  const sdg_graph_tensor_t *x, *y;
  order_t x_order, y_order;
  int count;
  group_t group[CUDNN_DIM_MAX];
} reshape_t;

static int x_of(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
}

static int y_of(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
}

// For tensors that have elements.
static void groups_make(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                        reshape_t *out) {
  *out = (reshape_t){.x = &graph->tensor[x_of(node)],
                     .y = &graph->tensor[y_of(node)]};
  (void)order_of(out->x, &out->x_order);
  (void)order_of(out->y, &out->y_order);
  for (int i = 0, j = 0; i < out->x_order.count; out->count++) {
    const int *x = &out->x_order.dim[i], *y = &out->y_order.dim[j];
    int64_t here = out->x->dim[*x], there = out->y->dim[*y];
    group_t group = {x, y, 1, 1};
    while (here != there)
      if (here < there)
        here *= out->x->dim[x[group.x_count++]];
      else
        there *= out->y->dim[y[group.y_count++]];
    out->group[out->count] = group;
    i += group.x_count;
    j += group.y_count;
  }
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  int x = x_of(node), y = y_of(node);
  order_t order;
  if (x < 0 || y < 0)
    return "a reshape without one of its tensors";
  host_region_t from = host_region_all(&graph->tensor[x]),
                to = host_region_all(&graph->tensor[y]);
  if (host_region_count(&from) != host_region_count(&to))
    return "a reshape to another number of elements";
  if (!order_of(&graph->tensor[x], &order) ||
      !order_of(&graph->tensor[y], &order))
    return "a reshape of tensors whose elements share memory";
  return NULL;
}

// The number of an element in its group.
static int64_t number_of(const reshape_t *r, const group_t *group,
                         const int64_t *y) {
  int64_t number = 0;
  for (int i = 0; i < group->y_count; i++)
    number = number * r->y->dim[group->y_dim[i]] + y[group->y_dim[i]];
  return number;
}

// The elements from `lo` to `last` of a group, and others between.
static void group_need(const reshape_t *r, const group_t *group, int64_t lo,
                       int64_t last, host_region_t *io_x) {
  int64_t inner = 1;
  for (int i = 0; i < group->x_count; i++)
    inner *= r->x->dim[group->x_dim[i]];
  for (int i = 0; i < group->x_count; i++) {
    int d = group->x_dim[i];
    inner /= r->x->dim[d];
    io_x->lo[d] = lo / inner;
    io_x->hi[d] = last / inner + 1;
    if (lo / inner != last / inner)
      return; // all of the dimensions within
    lo %= inner;
    last %= inner;
  }
}

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  reshape_t r;
  const host_region_t *y = &run->tensor[y_of(node)].need;
  int64_t last[CUDNN_DIM_MAX];
  groups_make(run->graph, node, &r);
  host_region_t x = host_region_all(r.x);
  for (int d = 0; d < y->rank; d++)
    last[d] = y->hi[d] - 1;
  for (int i = 0; i < r.count; i++)
    group_need(&r, &r.group[i], number_of(&r, &r.group[i], y->lo),
               number_of(&r, &r.group[i], last), &x);
  host_run_need(run, x_of(node), &x);
}

// Where element `y` lies among the values of x.
static int64_t offset_of(const reshape_t *r, const host_region_t *x,
                         const int64_t *step, const int64_t *y) {
  int64_t offset = 0;
  for (int i = 0; i < r->count; i++) {
    const group_t *group = &r->group[i];
    int64_t number = number_of(r, group, y);
    for (int k = group->x_count - 1; k >= 0; k--) {
      int d = group->x_dim[k];
      offset += (number % r->x->dim[d] - x->lo[d]) * step[d];
      number /= r->x->dim[d];
    }
  }
  return offset;
}

// From one element to the next along a dimension of y; -1 if it varies.
static int64_t step_along(const reshape_t *r, const int64_t *step, int y_dim) {
  for (int i = 0; i < r->count; i++) {
    const group_t *group = &r->group[i];
    for (int k = 0; k < group->y_count; k++)
      if (group->y_dim[k] == y_dim)
        return group->y_count == 1 && group->x_count == 1
                   ? step[group->x_dim[0]]
                   : -1;
  }
  return 0;
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  reshape_t r;
  host_run_tensor_t *to = &run->tensor[y_of(node)];
  const host_run_tensor_t *from = &run->tensor[x_of(node)];
  int64_t step[CUDNN_DIM_MAX];
  double *out = to->value;
  groups_make(run->graph, node, &r);
  host_region_steps(&from->need, step);
  int last = to->need.rank - 1;
  int64_t along = step_along(&r, step, last);
  for (host_rows_of_t rows = host_rows_begin(&to->need); rows.more;
       host_rows_next(&rows)) {
    int64_t first = rows.at[last];
    const double *row = from->value + offset_of(&r, &from->need, step, rows.at);
    for (int64_t i = 0; i < rows.width; i++) {
      rows.at[last] = first + i;
      *out++ = along >= 0
                   ? row[i * along]
                   : from->value[offset_of(&r, &from->need, step, rows.at)];
    }
    rows.at[last] = first;
  }
  host_elements_round(host_run_of(run, y_of(node))->type, to->value,
                      host_region_count(&to->need));
  return true;
}

const host_node_kind_t host_node_reshape = {
    .kind = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
    .lacks = lacks,
    .need = need,
    .compute = compute};
