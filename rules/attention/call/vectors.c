// SPDX-License-Identifier: Apache-2.0
// Moves vectors between operands, rows and the matrices of heads.
#include "rules/attention/call/vectors.h"

#include <string.h>

#include "rules/kit/merge.h"

static const int64_t row_major[SDG_DIMS_MAX] = {4, 3, 2, 1};

static int64_t extent(const sdg_subcall_tensor_t *tensor, int dim) {
  return tensor->box.dim[dim].hi - tensor->box.dim[dim].lo;
}

static sdg_box_t box_of(const int64_t size[4]) {
  sdg_box_t box = {.dims = 4};
  for (int d = 0; d < 4; d++)
    box.dim[d].hi = size[d];
  return box;
}

sdg_status_t sdg_attention_rows_room(sdg_plan_t *plan, int64_t n,
                                     int64_t elements, sdg_type_t type,
                                     sdg_subcall_tensor_t *out) {
  sdg_box_t box = box_of((const int64_t[]){n, elements, 1, 1});
  int slab;
  SDG_TRY(sdg_plan_packed(plan, &box, row_major, sdg_merge_bytes(type), &slab));
  *out = sdg_subcall_slab(plan, slab, type);
  return SDG_OK;
}

// The memory of tensor `of`, seen as a tensor with another box and strides.
static sdg_status_t view(sdg_plan_t *plan, const sdg_subcall_tensor_t *of,
                         const sdg_box_t *box, const int64_t stride[4],
                         sdg_subcall_tensor_t *out) {
  int slab;
  SDG_TRY(sdg_plan_within(plan, of->slab, 0, box, of->slab, &slab));
  memcpy(plan->slab[slab].stride, stride, 4 * sizeof *stride);
  *out = sdg_subcall_slab(plan, slab, of->type);
  return SDG_OK;
}

sdg_status_t sdg_attention_rows_as(sdg_plan_t *plan,
                                   const sdg_subcall_tensor_t *rows,
                                   const int64_t size[4],
                                   sdg_subcall_tensor_t *out) {
  sdg_box_t box = box_of(size);
  int64_t stride[SDG_DIMS_MAX];
  sdg_slab_pack(&box, row_major, stride);
  return view(plan, rows, &box, stride, out);
}

sdg_status_t sdg_attention_rows_groups(sdg_plan_t *plan,
                                       const sdg_subcall_tensor_t *rows,
                                       int64_t times, int64_t groups,
                                       sdg_subcall_tensor_t *out) {
  int64_t wide = extent(rows, 0) * extent(rows, 1) / times;
  int64_t each = wide / groups;
  sdg_box_t box = box_of((const int64_t[]){times, each, groups, 1});
  return view(plan, rows, &box, (const int64_t[]){wide, 1, each, 1}, out);
}

// ---- operands --------------------------------------------------------------

// Rows as a tensor with the operand's four dimensions.
static sdg_status_t rows_in_box(sdg_plan_t *plan,
                                const sdg_subcall_tensor_t *rows,
                                const sdg_box_t *box,
                                sdg_subcall_tensor_t *out) {
  int64_t wide = extent(rows, 1),
          batch = sdg_box_length(box, SDG_SEQUENCE_BATCH);
  const int64_t stride[] = {[SDG_SEQUENCE_TIME] = batch * wide,
                            [SDG_SEQUENCE_BATCH] = wide,
                            [SDG_SEQUENCE_BEAM] = wide,
                            [SDG_SEQUENCE_VECTOR] = 1};
  return view(plan, rows, box, stride, out);
}

sdg_status_t sdg_attention_rows_read(const sdg_attention_project_t *p,
                                     int index, const sdg_box_t *own,
                                     const sdg_box_t *box,
                                     sdg_subcall_tensor_t *out) {
  sdg_plan_t *plan = p->m->plan;
  sdg_subcall_tensor_t there = {.box = *box,
                                .type = (sdg_type_t)p->m->a.desc.type};
  sdg_subcall_tensor_t here;
  int64_t wide = sdg_box_length(box, SDG_SEQUENCE_VECTOR);
  SDG_TRY(sdg_merge_operand(plan, p->m->call, index, own, &there.slab));
  SDG_TRY(sdg_attention_rows_room(plan, sdg_box_count(box) / wide, wide,
                                  p->type, out));
  SDG_TRY(rows_in_box(plan, out, box, &here));
  return sdg_subcall_transform(plan, 1, &there, 0, &here);
}

sdg_status_t sdg_attention_rows_store(const sdg_attention_project_t *p,
                                      const sdg_subcall_tensor_t *rows,
                                      int index, const sdg_box_t *own,
                                      const sdg_box_t *box) {
  sdg_plan_t *plan = p->m->plan;
  sdg_subcall_tensor_t there = {.box = *box,
                                .type = (sdg_type_t)p->m->a.desc.type};
  sdg_subcall_tensor_t here;
  SDG_TRY(sdg_merge_operand(plan, p->m->call, index, own, &there.slab));
  if (!sdg_box_equal(own, box))
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, there.slab, own));
  if (sdg_box_empty(box))
    return SDG_OK;
  SDG_TRY(rows_in_box(plan, rows, box, &here));
  return sdg_subcall_transform(plan, 1, &here, 0, &there);
}

// ---- heads -----------------------------------------------------------------

sdg_status_t sdg_attention_rows_project(const sdg_attention_project_t *p,
                                        int part,
                                        const sdg_subcall_tensor_t *rows,
                                        sdg_subcall_tensor_t *out) {
  sdg_plan_t *plan = p->m->plan;
  int64_t heads = p->m->a.desc.heads, each = p->each[part];
  *out = *rows;
  if (!p->matrix[part].is_there && heads == 1)
    return SDG_OK;
  SDG_TRY(sdg_attention_rows_room(plan, extent(rows, 0), heads * each, p->type,
                                  out));
  if (p->matrix[part].is_there)
    return sdg_attention_project_right(p, part, rows, out);
  for (int64_t h = 0; h < heads; h++) {
    sdg_subcall_tensor_t head = *out;
    head.box.dim[1] = (sdg_range_t){h * each, (h + 1) * each};
    SDG_TRY(sdg_subcall_transform(plan, 1, rows, 0, &head));
  }
  return SDG_OK;
}

sdg_status_t sdg_attention_rows_project_back(const sdg_attention_project_t *p,
                                             int part,
                                             const sdg_subcall_tensor_t *rows,
                                             sdg_subcall_tensor_t *out) {
  sdg_plan_t *plan = p->m->plan;
  int64_t heads = p->m->a.desc.heads, each = p->each[part];
  int64_t n = extent(rows, 0);
  *out = *rows;
  if (p->matrix[part].is_there) {
    SDG_TRY(
        sdg_attention_rows_room(plan, n, p->matrix[part].rows, p->type, out));
    return sdg_attention_project_left(p, part, out, rows);
  }
  if (heads == 1)
    return SDG_OK;
  sdg_subcall_tensor_t terms, sum;
  SDG_TRY(sdg_attention_rows_room(plan, n, each, p->type, out));
  SDG_TRY(sdg_attention_rows_as(plan, rows,
                                (const int64_t[]){n, heads, each, 1}, &terms));
  SDG_TRY(
      sdg_attention_rows_as(plan, out, (const int64_t[]){n, 1, each, 1}, &sum));
  return sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_ADD, 1, &terms, 0, &sum);
}

// Rows are stored time by time, matrices group by group. Views both as tensors
// of times x groups x elements x 1.
static sdg_status_t both_view(const sdg_attention_project_t *p,
                              const sdg_subcall_tensor_t *rows,
                              const sdg_subcall_tensor_t *matrices,
                              sdg_subcall_tensor_t *out_rows,
                              sdg_subcall_tensor_t *out_matrices) {
  int64_t groups = extent(matrices, 1), times = extent(matrices, 2);
  int64_t each = extent(matrices, 3);
  sdg_box_t box = box_of((const int64_t[]){times, groups, each, 1});
  SDG_TRY(view(p->m->plan, rows, &box,
               (const int64_t[]){groups * each, each, 1, 1}, out_rows));
  return view(p->m->plan, matrices, &box,
              (const int64_t[]){each, times * each, 1, 1}, out_matrices);
}

sdg_status_t sdg_attention_rows_split(const sdg_attention_project_t *p,
                                      const sdg_subcall_tensor_t *rows,
                                      int64_t times, int64_t groups,
                                      sdg_subcall_tensor_t *out) {
  int64_t each = extent(rows, 0) * extent(rows, 1) / (times * groups);
  sdg_subcall_tensor_t from, to;
  SDG_TRY(
      sdg_attention_rows_room(p->m->plan, groups * times, each, p->type, &to));
  SDG_TRY(sdg_attention_rows_as(
      p->m->plan, &to, (const int64_t[]){1, groups, times, each}, out));
  SDG_TRY(both_view(p, rows, out, &from, &to));
  return sdg_subcall_transform(p->m->plan, 1, &from, 0, &to);
}

sdg_status_t sdg_attention_rows_join(const sdg_attention_project_t *p,
                                     const sdg_subcall_tensor_t *matrices,
                                     sdg_subcall_tensor_t *out) {
  int64_t heads = p->m->a.desc.heads, groups = extent(matrices, 1);
  int64_t each = extent(matrices, 3);
  int64_t n = extent(matrices, 2) * (groups / heads);
  sdg_subcall_tensor_t from, to;
  SDG_TRY(sdg_attention_rows_room(p->m->plan, n, heads * each, p->type, out));
  SDG_TRY(both_view(p, out, matrices, &to, &from));
  return sdg_subcall_transform(p->m->plan, 1, &from, 0, &to);
}
