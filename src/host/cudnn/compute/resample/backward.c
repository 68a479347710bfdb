// SPDX-License-Identifier: Apache-2.0
// Nodes that compute gradients of resampled images.
#include <string.h>

#include "src/host/cudnn/compute/resample/resample.h"

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  host_resample_node_t n = host_resample_node(node);
  host_resample_t how = host_resample_how(run->graph, node, &n);
  host_region_t y = host_resample_over(&how, &run->tensor[n.x].need);
  host_run_need(run, n.y, &y);
  if (!host_resample_is_most(&how))
    return;
  host_region_t x = host_resample_under(&how, &y);
  if (n.index >= 0)
    host_run_need(run, n.index, &y);
  else
    host_run_need(run, n.from, &x);
}

// Adds to an element of dx if it is among those that are computed.
static void give(const host_window_t *w, const host_box_of_t *dx,
                 const int64_t *index, int64_t k, double gradient) {
  const int64_t *taps = w->how->taps;
  const int64_t tap[] = {k / taps[2] / taps[1], k / taps[2] % taps[1],
                         k % taps[2]};
  int64_t to = host_resample_image(dx, index);
  for (int d = 0; d < HOST_RESAMPLE_RANK; d++) {
    int64_t i = w->at[d][tap[d]], at = w->how->rank - HOST_RESAMPLE_RANK + d;
    if (i < 0 ||
        (at >= 2 && (i < dx->region->lo[at] || i >= dx->region->hi[at])))
      return;
    gradient *= w->weight[d][tap[d]];
    to += host_resample_offset(w->how, dx, d, i);
  }
  dx->value[to] += gradient;
}

// What element `index` of dy gives to dx.
static void spread(const host_run_t *run, const host_resample_node_t *n,
                   const host_window_t *w, const host_box_of_t *dx,
                   const int64_t *index, double gradient) {
  int64_t taps = w->how->taps[0] * w->how->taps[1] * w->how->taps[2], found;
  double value;
  if (!host_resample_is_most(w->how)) {
    if (host_resample_is_mean(w->how))
      gradient = w->counted > 0 ? gradient / w->counted : 0;
    for (int64_t k = 0; k < taps; k++)
      give(w, dx, index, k, gradient);
    return;
  }
  host_box_of_t in = host_resample_box(run, n->index >= 0 ? n->index : n->from);
  int64_t at = host_resample_image(&in, index);
  if (n->index >= 0) {
    for (int d = 2; d < w->how->rank; d++)
      at += (index[d] - in.region->lo[d]) * in.step[d];
    found = (int64_t)in.value[at];
  } else {
    found = host_window_most(w, &in, at, taps, &value);
  }
  if (found >= 0 && found < taps)
    give(w, dx, index, found, gradient);
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  host_resample_node_t n = host_resample_node(node);
  host_resample_t how = host_resample_how(run->graph, node, &n);
  host_windows_t windows[HOST_RESAMPLE_RANK];
  // dy may have more images and channels than dx needs.
  host_region_t y = host_resample_over(&how, &run->tensor[n.x].need);
  host_box_of_t dx = host_resample_box(run, n.x),
                dy = host_resample_box(run, n.y);
  int64_t step;
  memset(dx.value, 0, (size_t)host_region_count(dx.region) * sizeof *dx.value);
  if (host_region_count(&y) > 0) {
    bool good = host_windows_make(&how, &y, windows);
    for (host_rows_of_t rows = host_rows_begin(&y); good && rows.more;
         host_rows_next(&rows)) {
      const double *from =
          dy.value +
          host_rows_offset(&rows, host_run_of(run, n.y), dy.region, &step);
      int64_t *last = &rows.at[how.rank - 1], first = *last;
      for (int64_t i = 0; i < rows.width; i++) {
        *last = first + i;
        host_window_t w = host_window_at(&how, windows, rows.at);
        spread(run, &n, &w, &dx, rows.at, n.alpha * from[i * step]);
      }
      *last = first;
    }
    host_windows_free(windows);
    if (!good)
      return false;
  }
  host_resample_round(run, node, n.x);
  return true;
}

const host_node_kind_t host_node_resample_backward = {
    .kind = CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
    .lacks = host_resample_lacks,
    .need = need,
    .compute = compute};
