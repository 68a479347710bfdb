// SPDX-License-Identifier: Apache-2.0
// Steps that copy boxes of slabs, or fill them with zeros.
#include "src/exchange/copies.h"

#include <string.h>

#include "src/exchange/device.h"

static void extent_of(const sdg_box_t *box, int64_t *out_extent) {
  for (int d = 0; d < box->dims; d++)
    out_extent[d] = box->dim[d].hi - box->dim[d].lo;
}

// The two ends of a copy.
typedef struct ends {
  char *from, *to;
} ends_t;

static ends_t ends_of(const sdg_exec_t *exec, const sdg_step_t *step) {
  return (ends_t){
      sdg_exec_element(exec, step->slab, &step->box),
      sdg_exec_element_moved(exec, step->to, &step->box, step->shift)};
}

// Whether the box is where it is to be already.
static bool is_there(const sdg_step_t *step, ends_t at, const sdg_slab_t *from,
                     const sdg_slab_t *to) {
  bool same = at.from == at.to;
  for (int d = 0; d < step->box.dims && same; d++)
    same =
        sdg_box_length(&step->box, d) <= 1 || from->stride[d] == to->stride[d];
  return same;
}

// The copy of `step`, and of as many as are `count`, each `next` behind the one
// before.
static sdg_status_t copy_enqueue(const sdg_exec_t *exec, const sdg_step_t *step,
                                 ends_t at, int count, ends_t next,
                                 cudaStream_t stream) {
  const sdg_slab_t *from = &exec->plan->slab[step->slab];
  const sdg_slab_t *to = &exec->plan->slab[step->to];
  int64_t extent[SDG_COPY_DIMS_MAX];
  int64_t from_stride[SDG_COPY_DIMS_MAX], to_stride[SDG_COPY_DIMS_MAX];
  int dims = step->box.dims;
  if (is_there(step, at, from, to) && count == 1)
    return SDG_OK;
  extent_of(&step->box, extent);
  memcpy(from_stride, from->stride, sizeof from->stride);
  memcpy(to_stride, to->stride, sizeof to->stride);
  if (count > 1) {
    extent[dims] = count;
    from_stride[dims] = (next.from - at.from) / from->elem_bytes;
    to_stride[dims] = (next.to - at.to) / from->elem_bytes;
    dims++;
  }
  sdg_region_t source = {at.from, from_stride}, target = {at.to, to_stride};
  return sdg_device_copy(&source, &target, extent, dims, from->elem_bytes,
                         stream);
}

sdg_status_t sdg_copies_one(const sdg_exec_t *exec, const sdg_step_t *step,
                            cudaStream_t stream) {
  ends_t at = ends_of(exec, step);
  return copy_enqueue(exec, step, at, 1, at, stream);
}

static bool memories_equal(const sdg_plan_t *plan, const sdg_step_t *a,
                           const sdg_step_t *b) {
  return plan->slab[a->slab].operand == plan->slab[b->slab].operand &&
         plan->slab[a->to].operand == plan->slab[b->to].operand;
}

// How many of the group's copies, from `step` on, are equally far apart, all in
// the same direction; sets the ends of the first two, swapped if they go down.
static int copies_apart(const sdg_exec_t *exec, const sdg_step_t *step,
                        ends_t *out_first, ends_t *out_next) {
  ends_t first = ends_of(exec, step), last = first, next = first;
  ptrdiff_t from = 0, to = 0;
  int count = 1;
  for (; count < step->copies; count++, last = next) {
    if (!memories_equal(exec->plan, step, step + count))
      break;
    next = ends_of(exec, step + count);
    if (count == 1)
      from = next.from - last.from, to = next.to - last.to;
    if (next.from - last.from != from || next.to - last.to != to || from == 0 ||
        (from > 0) != (to > 0))
      break;
  }
  bool down = count > 1 && from < 0;
  *out_first = down ? last : first;
  *out_next = (ends_t){out_first->from + (down ? -from : from),
                       out_first->to + (down ? -to : to)};
  return count;
}

// Enqueues the copy of `step` and those of its group that one copy can do.
// *out_count: how many these are.
static sdg_status_t copies_enqueue(const sdg_exec_t *exec,
                                   const sdg_step_t *step, cudaStream_t stream,
                                   int *out_count) {
  ends_t first, next;
  if (step->copies <= 1) {
    *out_count = 1;
    return sdg_copies_one(exec, step, stream);
  }
  *out_count = copies_apart(exec, step, &first, &next);
  return copy_enqueue(exec, step, first, *out_count, next, stream);
}

static sdg_status_t step_zero(const sdg_exec_t *exec, const sdg_step_t *step,
                              cudaStream_t stream) {
  const sdg_slab_t *slab = &exec->plan->slab[step->slab];
  int64_t extent[SDG_DIMS_MAX];
  extent_of(&step->box, extent);
  sdg_region_t region = {sdg_exec_element(exec, step->slab, &step->box),
                         slab->stride};
  return sdg_device_zero(&region, extent, step->box.dims, slab->elem_bytes,
                         stream);
}

sdg_status_t sdg_copies_next(const sdg_exec_t *exec, const sdg_step_t *step,
                             cudaStream_t stream, int *out_done) {
  *out_done = 1;
  return step->kind == SDG_STEP_ZERO
             ? step_zero(exec, step, stream)
             : copies_enqueue(exec, step, stream, out_done);
}

sdg_status_t sdg_copies_run(const sdg_exec_t *exec, int first, int end,
                            cudaStream_t stream) {
  for (int i = first, done; i < end; i += done)
    SDG_TRY(sdg_copies_next(exec, &exec->plan->step[i], stream, &done));
  return SDG_OK;
}
