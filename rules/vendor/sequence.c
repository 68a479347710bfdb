// SPDX-License-Identifier: Apache-2.0
// Reads and makes descriptors of sequences.
#include "rules/vendor/sequence.h"

#include <stdlib.h>

#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "src/call/tag.h"

typedef struct shape {
  cudnnDataType_t type;
  int dims, extent[SDG_SEQUENCE_DIMS];
  cudnnSeqDataAxis_t axis[SDG_SEQUENCE_DIMS]; // outermost first
  size_t sequences;
} shape_t;

// length: `room` of them, NULL if none is wanted.
static bool shape_read(const void *descriptor, int *length, size_t room,
                       shape_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  double fill;
  int none;
  return cudnn &&
         cudnn->cudnnGetSeqDataDescriptor(
             (cudnnSeqDataDescriptor_t)(uintptr_t)descriptor, &out->type,
             &out->dims, SDG_SEQUENCE_DIMS, out->extent, out->axis,
             &out->sequences, length ? room : 0, length ? length : &none,
             &fill) == CUDNN_STATUS_SUCCESS &&
         out->dims == SDG_SEQUENCE_DIMS;
}

bool sdg_sequence_get(sdg_operand_t *operand) {
  shape_t shape;
  if (!shape_read(operand->descriptor, NULL, 0, &shape))
    return false;
  operand->type = (sdg_type_t)shape.type;
  operand->elem_bytes = sdg_type_bytes(shape.type);
  operand->dims = shape.dims;
  int64_t stride = 1;
  for (int i = shape.dims - 1; i >= 0; i--) {
    unsigned d = (unsigned)shape.axis[i];
    if (d >= SDG_SEQUENCE_DIMS)
      return false;
    operand->extent[d] = shape.extent[d];
    operand->stride[d] = stride;
    stride *= shape.extent[d];
  }
  return true;
}

bool sdg_sequence_lengths(const sdg_operand_t *operand, int *out_length) {
  shape_t shape;
  size_t count = (size_t)(operand->extent[SDG_SEQUENCE_BATCH] *
                          operand->extent[SDG_SEQUENCE_BEAM]);
  return sdg_tag_said(operand->descriptor, operand->generation, count,
                      out_length) ||
         shape_read(operand->descriptor, out_length, count, &shape);
}

int *sdg_sequence_nonzero(const int *length, size_t count) {
  int *given = NULL;
  for (size_t i = 0; i < count; i++)
    if (length[i] < 0)
      return NULL;
  for (size_t i = 0; i < count && !given; i++)
    if (length[i] == 0)
      given = malloc(count * sizeof *given);
  for (size_t i = 0; given && i < count; i++)
    given[i] = length[i] > 0 ? length[i] : 1;
  return given;
}

// Whether the program gave operand->descriptor a length of 0.
static bool has_zero_length(const sdg_operand_t *operand) {
  return operand->kind == SDG_OPERAND_SEQUENCE &&
         sdg_tag_said(operand->descriptor, operand->generation, 0, NULL);
}

sdg_status_t sdg_sequence_whole(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (has_zero_length(&call->operand[i]))
      return sdg_fail(SDG_E_ATTENTION,
                      "%s: %s has a sequence without elements, which only a "
                      "rank's piece can have, but this tensor is not in pieces",
                      call->entry_name, sdg_role_name(call->operand[i].role));
  return SDG_OK;
}

// The axes as these strides nest them, the vector last. Those of extent 1 lie
// anywhere.
static void axes_find(const int64_t *stride, cudnnSeqDataAxis_t *out) {
  for (int d = 0; d < SDG_SEQUENCE_VECTOR; d++) {
    int i = d;
    for (; i > 0 && stride[out[i - 1]] < stride[d]; i--)
      out[i] = out[i - 1];
    out[i] = (cudnnSeqDataAxis_t)d;
  }
  out[SDG_SEQUENCE_VECTOR] = CUDNN_SEQDATA_VECT_DIM;
}

bool sdg_sequence_packed(const sdg_box_t *box, const int64_t *stride) {
  cudnnSeqDataAxis_t axis[SDG_SEQUENCE_DIMS];
  int64_t packed = 1;
  axes_find(stride, axis);
  for (int i = SDG_SEQUENCE_DIMS - 1; i >= 0; i--) {
    int64_t extent = box->dim[axis[i]].hi - box->dim[axis[i]].lo;
    if (extent > 1 && stride[axis[i]] != packed)
      return false;
    packed *= extent;
  }
  return true;
}

sdg_status_t sdg_sequence_create(sdg_type_t type, const sdg_box_t *box,
                                 const int64_t *stride, const int *length,
                                 cudnnSeqDataDescriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnSeqDataAxis_t axis[SDG_SEQUENCE_DIMS];
  int extent[SDG_SEQUENCE_DIMS];
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  axes_find(stride, axis);
  for (int d = 0; d < SDG_SEQUENCE_DIMS; d++)
    extent[d] = (int)(box->dim[d].hi - box->dim[d].lo);
  size_t sequences =
      (size_t)extent[SDG_SEQUENCE_BATCH] * (size_t)extent[SDG_SEQUENCE_BEAM];
  int *full = length ? NULL : malloc(sequences * sizeof *full);
  if (!length && !full)
    return sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", sequences);
  for (size_t i = 0; full && i < sequences; i++)
    full[i] = extent[SDG_SEQUENCE_TIME];
  cudnnStatus_t got = cudnn->cudnnCreateSeqDataDescriptor(out);
  if (got == CUDNN_STATUS_SUCCESS) {
    got = cudnn->cudnnSetSeqDataDescriptor(
        *out, (cudnnDataType_t)type, SDG_SEQUENCE_DIMS, extent, axis, sequences,
        full ? full : length, NULL);
    if (got != CUDNN_STATUS_SUCCESS)
      (void)cudnn->cudnnDestroySeqDataDescriptor(*out);
  }
  free(full);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL,
                        "cudnnSetSeqDataDescriptor: status %d", (int)got);
}
