// SPDX-License-Identifier: Apache-2.0
// Reads and makes descriptors of sequences.
#include "rules/sequence.h"

#include <stdlib.h>

#include "rules/tensor.h"
#include "rules/vendor.h"

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

sdg_status_t sdg_sequence_is_full(const sdg_operand_t *operand,
                                  bool *out_full) {
  shape_t shape;
  size_t count = (size_t)(operand->extent[SDG_SEQUENCE_BATCH] *
                          operand->extent[SDG_SEQUENCE_BEAM]);
  int *length = calloc(count, sizeof *length);
  if (!length)
    return sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", count);
  *out_full = shape_read(operand->descriptor, length, count, &shape);
  for (size_t i = 0; i < count; i++)
    *out_full &= length[i] == operand->extent[SDG_SEQUENCE_TIME];
  free(length);
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

// NULL without memory. `extent`: of the elements that are meant.
static int *lengths_make(const sdg_operand_t *of, const int *extent,
                         size_t sequences) {
  shape_t shape;
  int *length = malloc(sequences * sizeof *length);
  bool all = true;
  for (int d = 0; d < SDG_SEQUENCE_VECTOR; d++)
    all &= of->extent[d] == extent[d];
  if (length && !(all && shape_read(of->descriptor, length, sequences, &shape)))
    for (size_t i = 0; i < sequences; i++)
      length[i] = extent[SDG_SEQUENCE_TIME];
  return length;
}

sdg_status_t sdg_sequence_create(const sdg_operand_t *of, const sdg_box_t *box,
                                 const int64_t *stride,
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
  int *length = lengths_make(of, extent, sequences);
  if (!length)
    return sdg_fail(SDG_E_NO_MEMORY, "lengths of %zu sequences", sequences);
  cudnnStatus_t got = cudnn->cudnnCreateSeqDataDescriptor(out);
  if (got == CUDNN_STATUS_SUCCESS) {
    got = cudnn->cudnnSetSeqDataDescriptor(*out, (cudnnDataType_t)of->type,
                                           SDG_SEQUENCE_DIMS, extent, axis,
                                           sequences, length, NULL);
    if (got != CUDNN_STATUS_SUCCESS)
      (void)cudnn->cudnnDestroySeqDataDescriptor(*out);
  }
  free(length);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL,
                        "cudnnSetSeqDataDescriptor: status %d", (int)got);
}
