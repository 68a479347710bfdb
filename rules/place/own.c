// SPDX-License-Identifier: Apache-2.0
// Refuses calls of a rank alone whose memory or parameters are those of a
// piece.
#include "rules/place/own.h"

#include <stdio.h>

#include "src/control/parted.h"
#include "src/job/job.h"

static size_t width_of(const sdg_operand_t *operand) {
  return sdg_operand_access(operand, true, false).width;
}

// Whether the call reads the operand, and no tag of its own names it.
static bool reads_unsaid(const sdg_operand_t *operand) {
  return sdg_role_is_activation(operand->role) && !operand->is_output &&
         !operand->label && operand->data && operand->elem_bytes > 0;
}

// The axes over which memory with this hint is in pieces, unless the rules say
// that values of one piece are meant.
static sdg_axes_t axes_of(sdg_hint_t hint) {
  int rank[SDG_RANKS_MAX];
  sdg_axes_t axes = hint & SDG_HINT_AXES;
  return axes && !(hint & SDG_HINT_LOCAL) &&
                 sdg_mesh_group(sdg_job_mesh(), sdg_job_rank(), axes, rank) > 1
             ? axes
             : 0;
}

// The first of these axes.
static const char *axis_name(sdg_axes_t axes) {
  int axis = 0;
  while (!(axes >> axis & 1))
    axis++;
  return sdg_job_mesh()->name[axis];
}

static void extents_format(const sdg_operand_t *operand, char *out,
                           size_t bytes) {
  size_t used = 0;
  out[0] = 0;
  for (int d = 0; d < operand->dims && used < bytes; d++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%lld", d ? " x " : "",
                             (long long)operand->extent[d]);
}

static sdg_status_t piece_fail(const sdg_call_t *call,
                               const sdg_operand_t *operand, sdg_axes_t axes) {
  return sdg_job_fail(sdg_fail(
      SDG_E_OWN_PIECE,
      "a [local] section makes %s each rank's own, but a tagged call wrote %s "
      "at %p as this rank's piece over %s. If it is in pieces, no [local] "
      "section may name it. If it is each rank's own, or if a pool returned "
      "this memory again and a kernel of the program has written it since, tag "
      "%s's descriptor \"local\" (sundog_tag), or write values = local into "
      "the section that splits it",
      call->entry_name, sdg_role_name(operand->role), operand->data,
      axis_name(axes), sdg_role_name(operand->role)));
}

sdg_status_t sdg_own_check(const sdg_call_t *call, const sdg_op_t *op) {
  if (!sdg_op_knows(op, call))
    return SDG_OK;
  if (op->shard && op->shard->own)
    SDG_TRY(op->shard->own(call));
  if (!sdg_family_is(call->family, SDG_FAMILY_WINDOWED) || call->is_query ||
      !sdg_hint_any() || !sdg_job_joined())
    return SDG_OK;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_axes_t axes =
        reads_unsaid(operand)
            ? axes_of(sdg_hint_of(operand->data, width_of(operand)))
            : 0;
    if (axes)
      return piece_fail(call, operand, axes);
  }
  return SDG_OK;
}

sdg_status_t sdg_own_check_value(const sdg_call_t *call) {
  char extents[96];
  if (!sdg_family_is(call->family, SDG_FAMILY_REDUCES) || call->is_query ||
      !sdg_hint_any() || !sdg_job_joined())
    return SDG_OK;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!reads_unsaid(operand))
      continue;
    sdg_hint_t hint = sdg_hint_within(operand->data, width_of(operand));
    if (hint & SDG_HINT_LOCAL)
      sdg_parted_note(call->entry_name);
    if (!axes_of(hint))
      continue;
    extents_format(operand, extents, sizeof extents);
    return sdg_fail(
        SDG_E_PIECE_REDUCED,
        "%s of %s of %s at %p: a tagged call wrote this memory as this rank's "
        "piece over %s, but no section matches a tensor of these extents. For "
        "the result of all pieces write a [shard] section that matches, or tag "
        "%s's descriptor (sundog_tag). For each rank's own result write a "
        "[local] section, or values = local into the section that splits the "
        "tensor",
        call->entry_name, sdg_role_name(operand->role), extents, operand->data,
        axis_name(axes_of(hint)), sdg_role_name(operand->role));
  }
  return SDG_OK;
}

sdg_status_t sdg_own_check_copies(const sdg_call_t *call) {
  char extents[96];
  if (!sdg_hint_any())
    return SDG_OK;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!reads_unsaid(operand) ||
        sdg_hint_of(operand->data, width_of(operand)) != SDG_HINT_KNOWN)
      continue;
    extents_format(operand, extents, sizeof extents);
    return sdg_job_fail(
        sdg_fail(SDG_E_WHOLE_REDUCED,
                 "%s of %s of %s at %p, which every rank has according to the "
                 "tagged call that wrote it. Tag it \"local\", or let no "
                 "[shard] section match these extents",
                 sdg_role_name(operand->role), call->entry_name, extents,
                 operand->data));
  }
  return SDG_OK;
}
