// SPDX-License-Identifier: Apache-2.0
// Counts bytes by axis from the mesh coordinates of sender and receiver.
#include "src/plan/traffic.h"

#include <string.h>

static void along_add(int64_t *axis_bytes, const sdg_mesh_t *mesh,
                      sdg_axes_t axes, int64_t bytes) {
  for (int axis = 0; axis < mesh->axes; axis++)
    if (axes >> axis & 1 && mesh->size[axis] > 1)
      axis_bytes[axis] += bytes;
}

static sdg_axes_t axes_between(const sdg_mesh_t *mesh, int a, int b) {
  int at[SDG_AXES_MAX], to[SDG_AXES_MAX];
  sdg_axes_t axes = 0;
  sdg_mesh_coords(mesh, a, at);
  sdg_mesh_coords(mesh, b, to);
  for (int axis = 0; axis < mesh->axes; axis++)
    axes |= (sdg_axes_t)(at[axis] != to[axis]) << axis;
  return axes;
}

void sdg_traffic_count(sdg_plan_t *plan, const sdg_mesh_t *mesh, int rank) {
  memset(plan->axis_bytes, 0, sizeof plan->axis_bytes);
  memset(plan->sum_axis_bytes, 0, sizeof plan->sum_axis_bytes);
  plan->sum_bytes = 0;
  for (int i = 0; i < plan->steps; i++) {
    const sdg_step_t *step = &plan->step[i];
    int peers[SDG_RANKS_MAX];
    sdg_mesh_group(mesh, rank, step->axes, peers);
    for (int k = step->parcel; k < step->parcel + step->parcels; k++)
      if (!plan->parcel[k].is_send)
        along_add(plan->axis_bytes, mesh,
                  axes_between(mesh, rank, peers[plan->parcel[k].peer]),
                  (int64_t)plan->parcel[k].bytes);
    if (step->kind != SDG_STEP_REDUCE)
      continue;
    int64_t bytes =
        sdg_box_count(&step->box) * plan->slab[step->slab].elem_bytes;
    along_add(plan->axis_bytes, mesh, step->axes, bytes);
    along_add(plan->sum_axis_bytes, mesh, step->axes, bytes);
    plan->sum_bytes += bytes;
  }
}
