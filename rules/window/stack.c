// SPDX-License-Identifier: Apache-2.0
// Finds strips of equal extents, and lays them out as images of one tensor.
#include "rules/window/stack.h"

bool sdg_window_stack_alike(const sdg_box_t *a, const sdg_box_t *b) {
  for (int d = 0; d < a->dims; d++)
    if (a->dim[d].hi - a->dim[d].lo != b->dim[d].hi - b->dim[d].lo)
      return false;
  return a->dims == b->dims;
}

static bool stackable(const sdg_window_piece_t *a,
                      const sdg_window_piece_t *b) {
  for (int d = 0; d < a->x.dims; d++)
    if (a->pad[d] != b->pad[d])
      return false;
  return sdg_window_stack_alike(&a->x, &b->x) &&
         sdg_window_stack_alike(&a->y, &b->y);
}

sdg_box_t sdg_window_stack_box(const sdg_box_t *box, int count) {
  sdg_box_t all = *box;
  all.dim[0].hi = all.dim[0].lo + count * (box->dim[0].hi - box->dim[0].lo);
  return all;
}

bool sdg_window_stack_fits(const sdg_box_t *box, const int64_t *like) {
  int64_t stride[SDG_DIMS_MAX];
  sdg_box_t two = sdg_window_stack_box(box, 2);
  sdg_slab_pack(&two, like, stride);
  int64_t image = 1;
  for (int d = 1; d < box->dims; d++)
    image *= box->dim[d].hi - box->dim[d].lo;
  return stride[0] == image;
}

void sdg_window_stacks_find(const sdg_window_piece_t *strip, int strips,
                            const int64_t *const *like, int likes,
                            int *out_lead) {
  for (int i = 0; i < strips; i++) {
    bool can = true;
    for (int l = 0; l < likes; l++)
      can &= sdg_window_stack_fits(l == 0 ? &strip[i].x : &strip[i].y, like[l]);
    out_lead[i] = i;
    for (int j = 0; can && j < i && out_lead[i] == i; j++)
      if (out_lead[j] == j && stackable(&strip[i], &strip[j]))
        out_lead[i] = j;
  }
}

int sdg_window_stack_size(const int *lead, int strips, int first) {
  int size = 0;
  for (int i = first; i < strips; i++)
    size += lead[i] == first;
  return size;
}

sdg_window_piece_t sdg_window_stack_piece(const sdg_window_piece_t *strip,
                                          int count) {
  sdg_window_piece_t all = *strip;
  all.x = sdg_window_stack_box(&strip->x, count);
  all.y = sdg_window_stack_box(&strip->y, count);
  return all;
}

static sdg_status_t tensor_open(sdg_plan_t *plan, const sdg_box_t *box,
                                int size, int like, int *io_all) {
  sdg_box_t all = sdg_window_stack_box(box, size);
  return like < 0 ? SDG_OK : sdg_plan_scratch(plan, &all, like, io_all);
}

sdg_status_t sdg_window_stack_open(sdg_plan_t *plan,
                                   const sdg_window_piece_t *strip, int size,
                                   const sdg_window_slabs_t *like,
                                   sdg_window_slabs_t *io_all) {
  SDG_TRY(tensor_open(plan, &strip->x, size, like->x, &io_all->x));
  SDG_TRY(tensor_open(plan, &strip->y, size, like->y, &io_all->y));
  return tensor_open(plan, &strip->y, size, like->z, &io_all->z);
}

static sdg_status_t tensor_strip(sdg_plan_t *plan, int all, int at,
                                 const sdg_box_t *box, int like, int *io_slab) {
  if (like < 0)
    return SDG_OK;
  *io_slab = all;
  if (sdg_box_equal(&plan->slab[all].box, box))
    return SDG_OK;
  size_t bytes =
      (size_t)sdg_box_count(box) * (size_t)plan->slab[all].elem_bytes;
  return sdg_plan_within(plan, all, (size_t)at * bytes, box, like, io_slab);
}

sdg_status_t sdg_window_stack_strip(sdg_plan_t *plan,
                                    const sdg_window_slabs_t *all, int at,
                                    const sdg_window_piece_t *strip,
                                    const sdg_window_slabs_t *like,
                                    sdg_window_slabs_t *io_slabs) {
  SDG_TRY(tensor_strip(plan, all->x, at, &strip->x, like->x, &io_slabs->x));
  SDG_TRY(tensor_strip(plan, all->y, at, &strip->y, like->y, &io_slabs->y));
  return tensor_strip(plan, all->z, at, &strip->y, like->z, &io_slabs->z);
}
