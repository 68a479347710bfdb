// SPDX-License-Identifier: Apache-2.0
// Which elements lie around a piece; and the call on one rank.
#include <string.h>

#include "rules/halo/halo.h"
#include "src/exchange/device.h"
#include "src/geometry/transfer.h"
#include "src/sundog.h"

sdg_box_t sdg_halo_box(const sdg_halo_t *halo, const sdg_box_t *own) {
  sdg_box_t box = *own;
  for (int d = 0; d < box.dims && !sdg_box_empty(own); d++) {
    box.dim[d].lo -= halo->before[d];
    box.dim[d].hi += halo->after[d];
  }
  return box;
}

// Cuts the box at the ends of dimensions with another border than `border`.
static sdg_box_t cut(const sdg_halo_t *halo, const sdg_box_t *own,
                     const int64_t *whole, unsigned keeps) {
  sdg_box_t box = sdg_halo_box(halo, own);
  for (int d = 0; d < box.dims && !sdg_box_empty(own); d++)
    if (!(keeps >> halo->border[d] & 1)) {
      box.dim[d].lo = sdg_max64(box.dim[d].lo, 0);
      box.dim[d].hi = sdg_min64(box.dim[d].hi, whole[d]);
    }
  return box;
}

sdg_box_t sdg_halo_need(const sdg_halo_t *halo, const sdg_box_t *own,
                        const int64_t *whole) {
  return cut(halo, own, whole, 1u << SUNDOG_WRAP);
}

void sdg_halo_periods(const sdg_halo_t *halo, int dims, const int64_t *whole,
                      int64_t *out_period) {
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    out_period[d] = d < dims && halo->border[d] == SUNDOG_WRAP ? whole[d] : 0;
}

int sdg_halo_zeros(const sdg_halo_t *halo, const sdg_box_t *own,
                   const int64_t *whole, sdg_box_t *out_boxes) {
  sdg_box_t all = cut(halo, own, whole, 1u << SUNDOG_WRAP | 1u << SUNDOG_ZERO);
  int boxes = 0;
  for (int d = 0; d < all.dims && !sdg_box_empty(own); d++) {
    const sdg_range_t beyond[2] = {{all.dim[d].lo, 0},
                                   {whole[d], all.dim[d].hi}};
    for (int side = 0; side < 2; side++)
      if (halo->border[d] == SUNDOG_ZERO && !sdg_range_empty(beyond[side])) {
        out_boxes[boxes] = all;
        out_boxes[boxes++].dim[d] = beyond[side];
      }
  }
  return boxes;
}

// ---- one rank --------------------------------------------------------------

// The element of an operand at `at`, if its first one is at `first`.
static sdg_region_t region_at(const sdg_operand_t *operand,
                              const sdg_box_t *first, const sdg_box_t *at) {
  int64_t offset = 0;
  for (int d = 0; d < at->dims; d++)
    offset += (at->dim[d].lo - first->dim[d].lo) * operand->stride[d];
  return (sdg_region_t){(char *)operand->data + offset * operand->elem_bytes,
                        operand->stride};
}

static void lengths_get(const sdg_box_t *box, int64_t *out) {
  for (int d = 0; d < box->dims; d++)
    out[d] = sdg_box_length(box, d);
}

// Where x lies in `out` already, there is nothing to copy.
static bool in_place(const sdg_operand_t *x, const sdg_region_t *from,
                     const sdg_region_t *to) {
  bool same = from->data == to->data;
  for (int d = 0; d < x->dims; d++)
    same &= x->extent[d] <= 1 || from->stride[d] == to->stride[d];
  return same;
}

sdg_status_t sdg_halo_alone(const sdg_call_t *call, cudaStream_t stream) {
  const sdg_halo_t *halo = call->args;
  const sdg_operand_t *x = &call->operand[SDG_HALO_X];
  const sdg_operand_t *out = &call->operand[SDG_HALO_OUT];
  sdg_box_t own = sdg_operand_box(x), box = sdg_halo_box(halo, &own);
  sdg_box_t need = sdg_halo_need(halo, &own, x->extent);
  sdg_box_t zero[2 * SDG_DIMS_MAX];
  int64_t period[SDG_DIMS_MAX], length[SDG_DIMS_MAX];
  sdg_transfer_t transfer;
  sdg_status_t status = SDG_OK;
  int zeros = sdg_halo_zeros(halo, &own, x->extent, zero);
  sdg_halo_periods(halo, x->dims, x->extent, period);
  SDG_TRY(sdg_transfer_plan(&own, &need, 1, 0, period, &transfer));
  for (int i = 0; i < zeros && status == SDG_OK; i++) {
    sdg_region_t to = region_at(out, &box, &zero[i]);
    lengths_get(&zero[i], length);
    status = sdg_device_zero(&to, length, x->dims, x->elem_bytes, stream);
  }
  for (int i = 0; i < transfer.locals && status == SDG_OK; i++) {
    const sdg_message_t *local = &transfer.local[i];
    sdg_box_t at = sdg_box_shift(&local->box, local->shift);
    sdg_region_t from = region_at(x, &own, &local->box);
    sdg_region_t to = region_at(out, &box, &at);
    lengths_get(&at, length);
    if (!in_place(x, &from, &to))
      status =
          sdg_device_copy(&from, &to, length, x->dims, x->elem_bytes, stream);
  }
  sdg_transfer_fini(&transfer);
  return status;
}
