// SPDX-License-Identifier: Apache-2.0
// Reads a call of neighbourhood attention, and checks whether it is possible.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/kit/merge.h"
#include "rules/neighborhood/plan.h"
#include "rules/place/tagging.h"

// Largest kernel and dilation: they must fit a plan's key.
enum { WINDOW_MAX = (1 << 20) - 1 };

sdg_status_t sdg_neighborhood_check(const sundog_neighborhood_t *how) {
  if (!how || how->dims < 1 || how->dims > SDG_NEIGHBORHOOD_GRID_MAX ||
      how->heads < 1 || !isfinite(how->scale))
    return sdg_fail(
        SDG_E_NEIGHBORHOOD,
        "%d dimensions of the grid (1 to %d), %d heads (at least 1), a scale "
        "of %g",
        how ? how->dims : 0, (int)SDG_NEIGHBORHOOD_GRID_MAX,
        how ? how->heads : 0, how ? how->scale : 0);
  for (int d = 0; d < how->dims; d++)
    if (how->kernel[d] < 1 || how->kernel[d] > WINDOW_MAX ||
        how->dilation[d] < 1 || how->dilation[d] > WINDOW_MAX)
      return sdg_fail(SDG_E_NEIGHBORHOOD,
                      "kernel %d and dilation %d in dimension %d of the grid; "
                      "both must be from 1 to %d",
                      how->kernel[d], how->dilation[d], d, (int)WINDOW_MAX);
  return SDG_OK;
}

static bool extents_equal(const sdg_placement_t *a, const sdg_placement_t *b,
                          bool channels) {
  if (a->dims != b->dims)
    return false;
  for (int d = 0; d < a->dims; d++)
    if ((channels || d != 1) &&
        sdg_placement_extent(a, d) != sdg_placement_extent(b, d))
      return false;
  return true;
}

// Whether the channels of b are cut at the same heads as those of a, and all
// other dimensions at the same places.
static bool cut_by_heads(const sdg_placement_t *a, int64_t a_channels,
                         const sdg_placement_t *b, int64_t b_channels) {
  for (int d = 0; d < a->dims; d++) {
    if (d != 1 && !sdg_part_equal(&a->part[d], &b->part[d]))
      return false;
    if (a->part[d].pieces != b->part[d].pieces)
      return false;
  }
  for (int p = 0; p <= a->part[1].pieces; p++)
    if (a->part[1].offset[p] * b_channels != b->part[1].offset[p] * a_channels)
      return false;
  return true;
}

static sdg_status_t tensors_check(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging) {
  const sdg_placement_t *at = tagging->placement;
  const sdg_operand_t *q = &call->operand[SDG_NEIGHBORHOOD_Q];
  // The operand whose extents each operand must have.
  static const int like[] = {
      [SDG_NEIGHBORHOOD_K] = SDG_NEIGHBORHOOD_Q,
      [SDG_NEIGHBORHOOD_V] = SDG_NEIGHBORHOOD_O,
      [SDG_NEIGHBORHOOD_DQ] = SDG_NEIGHBORHOOD_Q,
      [SDG_NEIGHBORHOOD_DK] = SDG_NEIGHBORHOOD_K,
      [SDG_NEIGHBORHOOD_DV] = SDG_NEIGHBORHOOD_V,
  };
  if (q->dims != 4 && q->dims != 5)
    return sdg_fail(SDG_E_NEIGHBORHOOD,
                    "tensors of %d dimensions; all need 3, all 4, or all 5",
                    q->dims);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    bool grid = i == SDG_NEIGHBORHOOD_Q || i == SDG_NEIGHBORHOOD_O;
    if (operand->type != q->type || sdg_merge_type(operand->type) < 0)
      return sdg_fail(SDG_E_TENSOR_TYPE, "%s of cudnnDataType_t %d",
                      sdg_role_name(operand->role), operand->type);
    if (!extents_equal(&at[i], &at[grid ? SDG_NEIGHBORHOOD_Q : like[i]], !grid))
      return sdg_tagging_differ(call, tagging, i,
                                grid ? SDG_NEIGHBORHOOD_Q : like[i]);
    // Gradients are placed like their tensors.
    if (i >= SDG_NEIGHBORHOOD_DQ && !sdg_placement_equal(&at[i], &at[like[i]]))
      return sdg_tagging_differ(call, tagging, i, like[i]);
  }
  return SDG_OK;
}

// The square root by Newton's method, because the library is not linked with
// libm. From a start above the root, the steps decrease until they converge.
static double root(double square) {
  double now = square, next = (square + 1) / 2;
  while (next < now) {
    now = next;
    next = (now + square / now) / 2;
  }
  return now;
}

static sdg_status_t window_derive(const sundog_neighborhood_t *how, int d,
                                  int64_t extent,
                                  sdg_neighborhood_window_t *out) {
  *out =
      (sdg_neighborhood_window_t){.extent = extent, .kernel = 1, .dilation = 1};
  if (d >= how->dims)
    return extent == 1 ? SDG_OK
                       : sdg_fail(SDG_E_NEIGHBORHOOD,
                                  "the grid has %d dimensions, but the "
                                  "tensor's next one has an extent of %lld",
                                  how->dims, (long long)extent);
  out->kernel = how->kernel[d];
  out->dilation = how->dilation[d];
  out->causal = how->causal[d] != 0;
  out->cut = how->cut != 0;
  if (!out->cut && out->kernel * out->dilation > extent)
    return sdg_fail(
        SDG_E_NEIGHBORHOOD,
        "kernel %lld and dilation %lld in a grid of %lld; their product must "
        "not exceed it, unless windows are cut",
        (long long)out->kernel, (long long)out->dilation, (long long)extent);
  return SDG_OK;
}

sdg_status_t sdg_neighborhood_edges(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging) {
  unsigned wrap = tagging->section ? tagging->section->wrap : 0;
  for (int d = 2; d < call->operand[SDG_NEIGHBORHOOD_Q].dims; d++) {
    sdg_dim_t dim =
        sdg_dim_at(call->family, d, call->operand[SDG_NEIGHBORHOOD_Q].dims);
    if (dim != SDG_DIM_COUNT && (wrap >> dim & 1))
      return sdg_fail(SDG_E_NEIGHBORHOOD, "%s is periodic", sdg_dim_name(dim));
  }
  return SDG_OK;
}

sdg_status_t sdg_neighborhood_shape(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_neighborhood_t *out) {
  const sundog_neighborhood_t *how = call->args;
  const sdg_placement_t *q = &tagging->placement[SDG_NEIGHBORHOOD_Q];
  const sdg_placement_t *o = &tagging->placement[SDG_NEIGHBORHOOD_O];
  SDG_TRY(tensors_check(call, tagging));
  int64_t channels[2] = {sdg_placement_extent(q, 1),
                         sdg_placement_extent(o, 1)};
  *out = (sdg_neighborhood_t){.grid = q->dims - 2, .heads = how->heads};
  if (how->dims > out->grid)
    return sdg_fail(
        SDG_E_NEIGHBORHOOD,
        "a grid of %d dimensions, but tensors with N, C and %d more", how->dims,
        out->grid);
  if (channels[0] % how->heads != 0 || channels[1] % how->heads != 0)
    return sdg_fail(SDG_E_NEIGHBORHOOD,
                    "%d heads do not divide the channels: q has %lld, o %lld",
                    how->heads, (long long)channels[0], (long long)channels[1]);
  out->q_channels = channels[0] / how->heads;
  out->v_channels = channels[1] / how->heads;
  out->scale = how->scale != 0 ? how->scale : 1 / root((double)out->q_channels);
  for (int d = 0; d < out->grid; d++)
    SDG_TRY(
        window_derive(how, d, sdg_placement_extent(q, 2 + d), &out->dim[d]));
  for (int p = 0; p < q->part[1].pieces; p++)
    if (q->part[1].offset[p] % out->q_channels != 0)
      return sdg_fail(
          SDG_E_NEIGHBORHOOD,
          "channels of q are cut at %lld, inside a head of %lld channels",
          (long long)q->part[1].offset[p], (long long)out->q_channels);
  return cut_by_heads(q, out->q_channels, o, out->v_channels)
             ? SDG_OK
             : sdg_tagging_differ(call, tagging, SDG_NEIGHBORHOOD_O,
                                  SDG_NEIGHBORHOOD_Q);
}

sdg_box_t sdg_neighborhood_need(const sdg_neighborhood_t *shape,
                                const sdg_box_t *queries, bool of_values) {
  sdg_box_t need = {.dims = queries->dims};
  if (sdg_box_empty(queries))
    return need;
  need.dim[0] = queries->dim[0];
  need.dim[1] = queries->dim[1];
  if (of_values) {
    need.dim[1].lo = need.dim[1].lo / shape->q_channels * shape->v_channels;
    need.dim[1].hi = need.dim[1].hi / shape->q_channels * shape->v_channels;
  }
  for (int d = 0; d < shape->grid; d++)
    need.dim[2 + d] =
        sdg_neighborhood_window_need(&shape->dim[d], queries->dim[2 + d]);
  return need;
}

// ---- tensors of three dimensions -------------------------------------------

static sdg_status_t placement_pad(const sdg_placement_t *from,
                                  const sdg_mesh_t *mesh,
                                  sdg_placement_t *out) {
  int64_t extent[SDG_DIMS_MAX];
  int dim[SDG_DIMS_MAX];
  for (int d = 0; d <= from->dims; d++) {
    extent[d] = d < from->dims ? sdg_placement_extent(from, d) : 1;
    dim[d] = d < from->dims ? d : -1;
  }
  return sdg_placement_like(from->dims + 1, extent, mesh, from, dim, out);
}

sdg_status_t sdg_neighborhood_pad(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  sdg_neighborhood_padded_t **out) {
  sdg_neighborhood_padded_t *padded = malloc(sizeof *padded);
  sdg_status_t status = SDG_OK;
  if (!padded)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  padded->call = *call;
  padded->tagging = *tagging;
  memset(padded->tagging.placement, 0, sizeof padded->tagging.placement);
  for (int i = 0; i < call->operands && status == SDG_OK; i++) {
    sdg_operand_t *operand = &padded->call.operand[i];
    operand->extent[operand->dims] = operand->stride[operand->dims] = 1;
    operand->nesting[operand->dims++] = 0; // the innermost
    status = placement_pad(&tagging->placement[i], tagging->mesh,
                           &padded->tagging.placement[i]);
  }
  if (status == SDG_OK)
    *out = padded;
  else
    sdg_neighborhood_unpad(padded);
  return status;
}

void sdg_neighborhood_unpad(sdg_neighborhood_padded_t *padded) {
  if (!padded)
    return;
  for (int i = 0; i < padded->call.operands; i++)
    sdg_placement_fini(&padded->tagging.placement[i]);
  free(padded);
}
