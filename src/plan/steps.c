// SPDX-License-Identifier: Apache-2.0
// What a plan's steps add up to: copies that one call may make, and bytes along
// each axis of the mesh.
#include "src/plan/steps.h"

#include <string.h>

// The bytes from a slab's first element to its last one.
static size_t slab_span(const sdg_slab_t *slab) {
  int64_t elements = 1;
  for (int d = 0; d < slab->box.dims; d++)
    elements +=
        (slab->box.dim[d].hi - slab->box.dim[d].lo - 1) * slab->stride[d];
  return sdg_box_empty(&slab->box) ? 0 : (size_t)(elements * slab->elem_bytes);
}

// For slabs of the same memory.
static bool slabs_apart(const sdg_slab_t *a, const sdg_slab_t *b) {
  return a->offset_bytes + slab_span(a) <= b->offset_bytes ||
         b->offset_bytes + slab_span(b) <= a->offset_bytes;
}

static bool shapes_equal(const sdg_plan_t *plan, const sdg_step_t *a,
                         const sdg_step_t *b) {
  const sdg_slab_t *a_from = &plan->slab[a->slab], *a_to = &plan->slab[a->to];
  const sdg_slab_t *b_from = &plan->slab[b->slab], *b_to = &plan->slab[b->to];
  if (a->box.dims != b->box.dims || a_from->elem_bytes != b_from->elem_bytes)
    return false;
  for (int d = 0; d < a->box.dims; d++) {
    int64_t extent = a->box.dim[d].hi - a->box.dim[d].lo;
    if (b->box.dim[d].hi - b->box.dim[d].lo != extent ||
        (extent > 1 && (a_from->stride[d] != b_from->stride[d] ||
                        a_to->stride[d] != b_to->stride[d])))
      return false;
  }
  return true;
}

static bool targets_apart(const sdg_plan_t *plan, const sdg_step_t *a,
                          const sdg_step_t *b) {
  if (a->to != b->to)
    return slabs_apart(&plan->slab[a->to], &plan->slab[b->to]);
  sdg_box_t one = sdg_box_shift(&a->box, a->shift);
  sdg_box_t other = sdg_box_shift(&b->box, b->shift);
  sdg_box_t common = sdg_box_intersect(&one, &other);
  return sdg_box_empty(&common);
}

// Whether `writer` changes nothing that `reader` copies. Two operands may be
// the same memory of the program.
static bool source_safe(const sdg_plan_t *plan, const sdg_step_t *writer,
                        const sdg_step_t *reader) {
  const sdg_slab_t *to = &plan->slab[writer->to];
  const sdg_slab_t *from = &plan->slab[reader->slab];
  if (to->operand >= 0 && from->operand >= 0)
    return false;
  return to->operand != from->operand || slabs_apart(to, from);
}

static bool joinable(const sdg_plan_t *plan, const sdg_step_t *a,
                     const sdg_step_t *b) {
  return a->kind == SDG_STEP_COPY && b->kind == SDG_STEP_COPY &&
         a->lane == b->lane &&
         plan->slab[a->slab].operand == plan->slab[b->slab].operand &&
         plan->slab[a->to].operand == plan->slab[b->to].operand &&
         shapes_equal(plan, a, b) && targets_apart(plan, a, b) &&
         source_safe(plan, a, b) && source_safe(plan, b, a);
}

static bool joinable_to_all(const sdg_plan_t *plan, int first, int next) {
  for (int i = first; i < next; i++)
    if (!joinable(plan, &plan->step[i], &plan->step[next]))
      return false;
  return true;
}

void sdg_plan_group_copies(sdg_plan_t *plan) {
  for (int first = 0, next; first < plan->steps; first = next) {
    next = first + 1;
    while (next < plan->steps && next < first + SDG_COPIES_MAX &&
           joinable_to_all(plan, first, next))
      next++;
    for (int i = first; i < next; i++)
      plan->step[i].copies = next - i;
  }
}

// ---- bytes along each axis --------------------------------------------------

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
