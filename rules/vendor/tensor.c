// SPDX-License-Identifier: Apache-2.0
// Sets tensor descriptors, and reads the program's.
#include "rules/vendor/tensor.h"

#include "rules/vendor/vendor.h"

sdg_status_t sdg_tensor_set(cudnnTensorDescriptor_t descriptor, int type,
                            const sdg_box_t *box, const int64_t *stride) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  int extent[SDG_DIMS_MAX], step[SDG_DIMS_MAX];
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  for (int d = 0; d < box->dims; d++) {
    if (stride[d] > INT32_MAX)
      return sdg_fail(SDG_E_VENDOR_CALL,
                      "the shard with its halo has a stride of %lld elements, "
                      "and the vendor's library takes at most 2147483647",
                      (long long)stride[d]);
    extent[d] = (int)(box->dim[d].hi - box->dim[d].lo);
    step[d] = (int)stride[d];
  }
  cudnnStatus_t got = cudnn->cudnnSetTensorNdDescriptor(
      descriptor, (cudnnDataType_t)type, box->dims, extent, step);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL,
                        "cudnnSetTensorNdDescriptor: status %d", (int)got);
}

int sdg_type_bytes(int type) {
  switch ((cudnnDataType_t)type) {
  case CUDNN_DATA_DOUBLE:
  case CUDNN_DATA_INT64:
    return 8;
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_UINT8:
  case CUDNN_DATA_BOOLEAN:
  case CUDNN_DATA_FP8_E4M3:
  case CUDNN_DATA_FP8_E5M2:
    return 1;
  default:
    return 0;
  }
}

bool sdg_tensor_get(sdg_operand_t *operand) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnDataType_t type;
  int dims, extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
  cudnnTensorDescriptor_t descriptor =
      (cudnnTensorDescriptor_t)operand->descriptor;
  if (!cudnn ||
      cudnn->cudnnGetTensorNdDescriptor(descriptor, SDG_DIMS_MAX, &type, &dims,
                                        extent,
                                        stride) != CUDNN_STATUS_SUCCESS ||
      dims < 0 || dims > SDG_DIMS_MAX)
    return false;
  operand->type = (sdg_type_t)type;
  operand->elem_bytes = sdg_type_bytes(type);
  operand->dims = dims;
  for (int i = 0; i < dims; i++) {
    operand->extent[i] = extent[i];
    operand->stride[i] = stride[i];
  }
  return true;
}

// Filters are packed: their layout gives the strides. In NHWC memory C varies
// fastest.
bool sdg_filter_get(sdg_operand_t *operand) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int dims, extent[SDG_DIMS_MAX];
  cudnnFilterDescriptor_t descriptor =
      (cudnnFilterDescriptor_t)operand->descriptor;
  if (!cudnn ||
      cudnn->cudnnGetFilterNdDescriptor(descriptor, SDG_DIMS_MAX, &type,
                                        &format, &dims,
                                        extent) != CUDNN_STATUS_SUCCESS ||
      dims < 2 || dims > SDG_DIMS_MAX)
    return false;
  operand->type = (sdg_type_t)type;
  operand->elem_bytes =
      format == CUDNN_TENSOR_NCHW_VECT_C ? 0 : sdg_type_bytes(type);
  operand->dims = dims;
  bool last = format == CUDNN_TENSOR_NHWC;
  int64_t stride = last ? extent[1] : 1;
  for (int i = dims - 1; i >= 0; i--) {
    operand->extent[i] = extent[i];
    if (last && i == 1) {
      operand->stride[i] = 1;
      continue;
    }
    operand->stride[i] = stride;
    stride *= extent[i];
  }
  return true;
}

bool sdg_coordinates_get(sdg_operand_t *operand) {
  if (!sdg_tensor_get(operand) || operand->dims < 3)
    return false;
  operand->descriptor = NULL;
  operand->descriptor_at = SDG_NOWHERE;
  operand->label = NULL;
  int64_t stride = operand->extent[1] = operand->dims - 2;
  operand->stride[1] = 1;
  for (int d = operand->dims - 1; d >= 0; d--)
    if (d != 1) {
      operand->stride[d] = stride;
      stride *= operand->extent[d];
    }
  return true;
}
