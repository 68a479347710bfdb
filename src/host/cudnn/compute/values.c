// SPDX-License-Identifier: Apache-2.0
// Elements of tensors between memory and dense arrays.
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"

void host_run_need(host_run_t *run, int tensor, const host_region_t *region) {
  host_region_hull(&run->tensor[tensor].need, region);
}

static host_view_t view_of(const sdg_graph_tensor_t *tensor, const char *data) {
  host_view_t view = {
      .type = tensor->type, .rank = tensor->rank, .data = (char *)data};
  memcpy(view.dim, tensor->dim, sizeof view.dim);
  memcpy(view.stride, tensor->stride, sizeof view.stride);
  return view;
}

void host_run_read(const sdg_graph_tensor_t *tensor, const void *from,
                   const host_region_t *region, double *to) {
  host_view_t view = view_of(tensor, from);
  int64_t extent[CUDNN_DIM_MAX];
  for (int d = 0; d < region->rank; d++)
    extent[d] = region->hi[d] - region->lo[d];
  host_view_load(&view, region->lo, extent, to);
}

host_rows_of_t host_rows_begin(const host_region_t *region) {
  host_rows_of_t rows = {.region = region,
                         .more = host_region_count(region) > 0};
  memcpy(rows.at, region->lo, sizeof rows.at);
  rows.width = region->hi[region->rank - 1] - region->lo[region->rank - 1];
  return rows;
}

void host_rows_next(host_rows_of_t *rows) {
  for (int d = rows->region->rank - 2; d >= 0; d--) {
    if (++rows->at[d] < rows->region->hi[d])
      return;
    rows->at[d] = rows->region->lo[d];
  }
  rows->more = false;
}

int64_t host_rows_offset(const host_rows_of_t *rows,
                         const sdg_graph_tensor_t *tensor,
                         const host_region_t *in, int64_t *out_step) {
  int64_t step[CUDNN_DIM_MAX], offset = 0;
  int last = in->rank - 1;
  host_region_steps(in, step);
  for (int d = 0; d <= last; d++)
    if (tensor->dim[d] > 1)
      offset += (rows->at[d] - in->lo[d]) * step[d];
  *out_step = tensor->dim[last] > 1;
  return offset;
}

void host_run_store(const host_run_t *run, int tensor,
                    const host_region_t *region) {
  const host_run_tensor_t *t = &run->tensor[tensor];
  const sdg_graph_tensor_t *of = host_run_of(run, tensor);
  host_view_t view = view_of(of, run->data[tensor]);
  int64_t row[CUDNN_DIM_MAX], step;
  for (int d = 0; d < region->rank; d++)
    row[d] = 1;
  for (host_rows_of_t rows = host_rows_begin(region); rows.more;
       host_rows_next(&rows)) {
    row[region->rank - 1] = rows.width;
    host_view_store(&view, rows.at, row, 1,
                    t->value + host_rows_offset(&rows, of, &t->need, &step), 0);
  }
}

void host_run_finish(host_run_t *run, int tensor) {
  host_run_tensor_t *t = &run->tensor[tensor];
  const sdg_graph_tensor_t *of = host_run_of(run, tensor);
  host_region_t all = host_region_all(of);
  host_elements_round(of->type, t->sums, host_region_count(&all));
  if (of->is_virtual)
    return;
  host_view_t view = view_of(of, run->data[tensor]);
  host_view_store(&view, all.lo, all.hi, 1, t->sums, 0);
}
