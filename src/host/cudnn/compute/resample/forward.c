// SPDX-License-Identifier: Apache-2.0
// Nodes that resample images.
#include "src/host/cudnn/compute/resample/resample.h"

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  host_resample_node_t n = host_resample_node(node);
  host_resample_t how = host_resample_how(run->graph, node, &n);
  const int result[] = {n.y, n.index};
  for (int i = 0; i < 2; i++)
    if (result[i] >= 0 && host_region_count(&run->tensor[result[i]].need) > 0) {
      host_region_t x = host_resample_under(&how, &run->tensor[result[i]].need);
      host_run_need(run, n.x, &x);
    }
}

static bool result_compute(host_run_t *run, const host_resample_t *how,
                           const host_resample_node_t *n, int result) {
  host_run_tensor_t *to = &run->tensor[result];
  host_windows_t windows[HOST_RESAMPLE_RANK];
  int64_t taps = how->taps[0] * how->taps[1] * how->taps[2];
  host_box_of_t x = host_resample_box(run, n->x);
  bool good = host_windows_make(how, &to->need, windows);
  double *out = to->value, value;
  for (host_rows_of_t rows = host_rows_begin(&to->need); good && rows.more;
       host_rows_next(&rows)) {
    int64_t *last = &rows.at[how->rank - 1], first = *last;
    for (int64_t i = 0; i < rows.width; i++) {
      *last = first + i;
      host_window_t w = host_window_at(how, windows, rows.at);
      int64_t image = host_resample_image(&x, rows.at), found = 0;
      if (host_resample_is_most(how))
        found = host_window_most(&w, &x, image, taps, &value);
      else
        value = host_window_sum(&w, &x, image, taps);
      if (result == n->y)
        *out++ = n->alpha * value;
      else
        *out++ = found < 0 ? 0 : (double)found;
    }
    *last = first;
  }
  host_windows_free(windows);
  return good;
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  host_resample_node_t n = host_resample_node(node);
  host_resample_t how = host_resample_how(run->graph, node, &n);
  const int result[] = {n.y, n.index};
  for (int i = 0; i < 2; i++) {
    if (result[i] < 0 || host_region_count(&run->tensor[result[i]].need) == 0)
      continue;
    if (!result_compute(run, &how, &n, result[i]))
      return false;
    host_resample_round(run, node, result[i]);
  }
  return true;
}

const host_node_kind_t host_node_resample_forward = {
    .kind = CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
    .lacks = host_resample_lacks,
    .need = need,
    .compute = compute};
