// SPDX-License-Identifier: Apache-2.0
// Makes a call from the arguments of sundog_halo, and carries it out.
#include "rules/view/halo.h"

#include <stdlib.h>
#include <string.h>

#include "rules/file/value.h"
#include "rules/halo/halo.h"
#include "rules/memory/memory.h"
#include "rules/place/label.h"
#include "rules/vendor/tensor.h"
#include "rules/view/descriptor.h"
#include "rules/view/registry.h"
#include "rules/view/whole/full.h"
#include "src/call/tag.h"
#include "src/job/job.h"

static const char name[] = "sundog_halo";
enum { DIMS = sizeof(((sundog_tensor_t *)0)->extent) / sizeof(int64_t) };

// What tensors with the same descriptor have in common: `x` by itself, and with
// `halo` that of `out`. Bytes that no member has are 0.
typedef struct shape {
  const sdg_tag_label_t *label; // NULL: the rules decide
  int type, dims, version;      // dims: of the operand
  int at[DIMS];                 // the operand's dimension of the tensor's
  int64_t extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
} shape_t;
typedef struct around {
  shape_t x;
  sdg_halo_t halo;
  int64_t extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX]; // of `out`
} around_t;

static sdg_status_t number_fail(const char *what, int i, int64_t value) {
  return sdg_fail(SDG_E_HALO, "%s: %s of dimension %d is %lld", name, what, i,
                  (long long)value);
}

// ---- the tensor ------------------------------------------------------------

// Reads "H W".
static sdg_status_t dims_read(const char *text, sdg_dim_t *out_dim,
                              int *out_count) {
  sdg_location_t location = {name, 0};
  sdg_word_t word;
  int count = 0;
  if (!text)
    return sdg_fail(SDG_E_HALO, "%s: the tensor's dims are NULL", name);
  while (sdg_word_next(&text, " \t,", &word)) {
    sdg_dim_t dim;
    if (count == DIMS)
      return sdg_fail(SDG_E_HALO, "%s: more than %d dimensions", name, DIMS);
    SDG_TRY(sdg_dim_parse(&location, word, &dim));
    if (dim > SDG_DIM_W)
      return sdg_fail(SDG_E_HALO, "%s: %s is none of N C D H W", name,
                      sdg_dim_name(dim));
    for (int i = 0; i < count; i++)
      if (out_dim[i] == dim)
        return sdg_fail(SDG_E_HALO, "%s: two dimensions %s", name,
                        sdg_dim_name(dim));
    out_dim[count++] = dim;
  }
  *out_count = count;
  return count > 0
             ? SDG_OK
             : sdg_fail(SDG_E_HALO, "%s: the tensor has no dimension", name);
}

// The operand's dimensions are N C H W, with D before H if the tensor has it.
static void dims_place(const sdg_dim_t *dim, int count, shape_t *out) {
  out->dims = 4;
  for (int i = 0; i < count; i++)
    if (dim[i] == SDG_DIM_D)
      out->dims = 5;
  for (int i = 0; i < count; i++)
    out->at[i] = sdg_dim_index(SDG_FAMILY_HALO, dim[i], out->dims);
}

// Each dimension lies outside all whose strides are smaller, so that no two
// elements share memory.
static sdg_status_t strides_check(const shape_t *shape, int count,
                                  const int64_t *extent,
                                  const int64_t *stride) {
  for (int i = 0; i < count; i++) {
    int64_t inside = 0, d = shape->at[i];
    for (int k = 0; k < count; k++) {
      int64_t e = shape->at[k], reach;
      bool is_inside =
          stride[e] < stride[d] || (stride[e] == stride[d] && k > i);
      if (__builtin_mul_overflow(stride[e], sdg_max64(extent[e] - 1, 0),
                                 &reach) ||
          (is_inside && __builtin_add_overflow(inside, reach, &inside)))
        return number_fail("the stride", k, stride[e]);
    }
    if (extent[d] > 1 && inside >= stride[d])
      return number_fail("the stride", i, stride[d]);
  }
  return SDG_OK;
}

// The operand's strides: those that the tensor says or, if all of these are 0,
// those of packed memory.
static sdg_status_t strides_read(const int64_t *said, const shape_t *shape,
                                 int count, const int64_t *extent,
                                 int64_t *out_stride) {
  int64_t packed = 1, all = 0;
  for (int i = 0; i < count; i++)
    all |= said[i];
  for (int d = 0; d < shape->dims; d++)
    out_stride[d] = 1;
  for (int i = count - 1; i >= 0; i--) {
    int d = shape->at[i];
    if (all && said[i] < 1)
      return number_fail("the stride", i, said[i]);
    out_stride[d] = all ? said[i] : packed;
    if (__builtin_mul_overflow(packed, sdg_max64(extent[d], 1), &packed))
      return number_fail("the extent", i, extent[d]);
  }
  return strides_check(shape, count, extent, out_stride);
}

static sdg_status_t shape_read(const sundog_tensor_t *tensor, shape_t *out,
                               int *out_count) {
  sdg_dim_t dim[DIMS];
  memset(out, 0, sizeof *out);
  if (!tensor)
    return sdg_fail(SDG_E_HALO, "%s: the tensor is NULL", name);
  out->type = (int)tensor->type;
  out->version = tensor->version;
  if (sdg_type_bytes(out->type) == 0)
    return sdg_fail(SDG_E_HALO, "%s: the type is %d", name, out->type);
  SDG_TRY(dims_read(tensor->dims, dim, out_count));
  dims_place(dim, *out_count, out);
  for (int d = 0; d < out->dims; d++)
    out->extent[d] = 1;
  for (int i = 0; i < *out_count; i++) {
    if (tensor->extent[i] < 0 || tensor->extent[i] > INT32_MAX)
      return number_fail("the extent", i, tensor->extent[i]);
    out->extent[out->at[i]] = tensor->extent[i];
  }
  return strides_read(tensor->stride, out, *out_count, out->extent,
                      out->stride);
}

static bool is_empty(const shape_t *shape) {
  bool empty = false;
  for (int d = 0; d < shape->dims; d++)
    empty |= shape->extent[d] == 0;
  return empty;
}

static sdg_status_t widths_read(const sundog_widths_t *widths, int count,
                                around_t *io) {
  bool empty = is_empty(&io->x);
  if (!widths)
    return sdg_fail(SDG_E_HALO, "%s: the widths are NULL", name);
  memcpy(io->extent, io->x.extent, sizeof io->extent);
  for (int i = 0; i < count; i++) {
    int d = io->x.at[i];
    if (widths->before[i] < 0 || widths->before[i] > INT32_MAX)
      return number_fail("the width before", i, widths->before[i]);
    if (widths->after[i] < 0 || widths->after[i] > INT32_MAX)
      return number_fail("the width after", i, widths->after[i]);
    if ((int)widths->border[i] < SUNDOG_LEAVE ||
        (int)widths->border[i] > SUNDOG_ZERO)
      return number_fail("the border", i, widths->border[i]);
    io->halo.before[d] = widths->before[i];
    io->halo.after[d] = widths->after[i];
    io->halo.border[d] = (int)widths->border[i];
    if (!empty)
      io->extent[d] += widths->before[i] + widths->after[i];
    if (io->extent[d] > INT32_MAX)
      return number_fail("the extent with widths", i, io->extent[d]);
  }
  return strides_read(widths->stride, &io->x, count, io->extent, io->stride);
}

// ---- the call --------------------------------------------------------------

static sdg_status_t label_get(const char *split, const sdg_tag_label_t **out) {
  *out = NULL;
  if (!split || !sdg_job_asked() || sdg_job_disarmed())
    return SDG_OK;
  SDG_TRY(sdg_label_placement(split, out));
  return sdg_label_pends(*out)
             ? sdg_fail(SDG_E_TAG, "only sundog_redistribute() takes '%s'",
                        split)
             : SDG_OK;
}

static sdg_status_t operand_make(const shape_t *shape, const void *key,
                                 size_t bytes, const int64_t *extent,
                                 const int64_t *stride, void *data,
                                 sdg_operand_t *out) {
  *out = (sdg_operand_t){
      .data = data,
      .descriptor_at = SDG_NOWHERE,
      .data_at = SDG_NOWHERE,
      .type = shape->type,
      .elem_bytes = sdg_type_bytes(shape->type),
      .dims = shape->dims,
  };
  memcpy(out->extent, extent, sizeof out->extent);
  memcpy(out->stride, stride, sizeof out->stride);
  SDG_TRY(sdg_descriptor_get(key, bytes, &out->descriptor));
  out->generation = sdg_tag_generation(out->descriptor);
  return SDG_OK;
}

// Whether the piece lies in `out` already, where it is to be.
static bool is_in_place(const around_t *around, const sdg_operand_t *x,
                        const sdg_operand_t *out) {
  int64_t offset = 0;
  bool same = true;
  for (int d = 0; d < x->dims; d++) {
    offset += around->halo.before[d] * out->stride[d];
    same &= x->extent[d] <= 1 || x->stride[d] == out->stride[d];
  }
  return same && (char *)x->data == (char *)out->data + offset * x->elem_bytes;
}

// Elsewhere in `out`, elements would be overwritten before they are sent.
static sdg_status_t overlap_check(const around_t *around,
                                  const sdg_operand_t *x,
                                  const sdg_operand_t *out) {
  sdg_layout_t x_layout = sdg_operand_layout(x);
  sdg_layout_t out_layout = sdg_operand_layout(out);
  uintptr_t at = (uintptr_t)x->data, to = (uintptr_t)out->data;
  bool apart = at + sdg_layout_bytes(&x_layout) <= to ||
               to + sdg_layout_bytes(&out_layout) <= at;
  return apart || is_in_place(around, x, out)
             ? SDG_OK
             : sdg_fail(SDG_E_HALO,
                        "%s: the piece at %p overlaps `out` at %p, and is not "
                        "where `out` is to have it",
                        name, x->data, out->data);
}

static sdg_status_t call_make(const around_t *around, void *data, void *out,
                              sdg_call_t *call) {
  const shape_t *x = &around->x;
  sdg_operand_t *operand = call->operand;
  SDG_TRY(operand_make(x, x, sizeof *x, x->extent, x->stride, data,
                       &operand[SDG_HALO_X]));
  SDG_TRY(operand_make(x, around, sizeof *around, around->extent,
                       around->stride, out, &operand[SDG_HALO_OUT]));
  operand[SDG_HALO_X].role = SDG_ROLE_X;
  operand[SDG_HALO_X].label = x->label;
  operand[SDG_HALO_OUT].role = SDG_ROLE_EXTENDED;
  operand[SDG_HALO_OUT].is_output = true;
  operand[SDG_HALO_OUT].is_updated = true; // beyond an end it may keep elements
  call->operands = SDG_HALO_OPERANDS;
  if (!is_empty(x) && (!data || !out))
    return sdg_fail(SDG_E_HALO, "%s: %s is NULL", name,
                    data ? "`out`" : "`data`");
  return is_empty(x) ? SDG_OK
                     : overlap_check(around, &operand[SDG_HALO_X],
                                     &operand[SDG_HALO_OUT]);
}

// Whole view: what a call that every rank makes in full does to memory.
static void memory_make(const sdg_call_t *call, sdg_memory_access_t *out) {
  *out = (sdg_memory_access_t){.name = call->entry_name,
                               .stream_kind = call->stream_kind,
                               .stream = call->stream};
  for (int i = 0; i < call->operands; i++)
    out->access[out->accesses++] =
        sdg_operand_access(&call->operand[i], true, i == SDG_HALO_OUT);
}

// *out_done: a rule was about the call, and it is carried out.
static sdg_status_t by_rules(sdg_call_t *call, bool *out_done) {
  sdg_memory_access_t memory;
  memory_make(call, &memory);
  call->memory = &memory;
  sdg_status_t status = sdg_registry_carry_out(call, out_done);
  call->memory = NULL;
  // Another process of this rank joined first, so this one is not a rank.
  return sdg_job_disarmed() ? SDG_OK : status;
}

sdg_status_t sdg_halo(const void *stream, const sundog_tensor_t *tensor,
                      const void *data, const sundog_widths_t *widths,
                      void *out) {
  around_t around;
  int count;
  bool done = false;
  memset(&around, 0, sizeof around);
  SDG_TRY(shape_read(tensor, &around.x, &count));
  SDG_TRY(widths_read(widths, count, &around));
  SDG_TRY(label_get(tensor->split, &around.x.label));
  sdg_call_t call = {
      .entry = -1,
      .entry_name = name,
      .family = SDG_FAMILY_HALO,
      .stream_kind = SDG_STREAM_GIVEN,
      .stream = stream,
      .args = &around.halo,
  };
  SDG_TRY(call_make(&around, (void *)(uintptr_t)data, out, &call));
  if (sdg_job_asked() && !sdg_job_disarmed())
    SDG_TRY(by_rules(&call, &done));
  sdg_status_t status =
      done ? SDG_OK : sdg_halo_alone(&call, (cudaStream_t)(uintptr_t)stream);
  sdg_full_end();
  return status;
}

int sdg_halo_place(const sundog_tensor_t *tensor, int64_t *first,
                   int64_t *whole) {
  shape_t shape;
  const void *descriptor;
  int count;
  if (shape_read(tensor, &shape, &count) != SDG_OK ||
      label_get(tensor->split, &shape.label) != SDG_OK ||
      sdg_descriptor_get(&shape, sizeof shape, &descriptor) != SDG_OK)
    return 0;
  sdg_tag_place_t place = sdg_tag_place(descriptor);
  bool alone = !sdg_job_asked() || sdg_job_disarmed();
  if (place.dims == 0 && !alone)
    return 0;
  for (int i = 0; i < count; i++) {
    int d = shape.at[i];
    first[i] = alone ? 0 : place.first[d];
    whole[i] = alone ? shape.extent[d] : place.extent[d];
  }
  return count;
}
