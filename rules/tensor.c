// SPDX-License-Identifier: Apache-2.0
// Sets tensor descriptors.
#include "rules/tensor.h"

#include "rules/vendor.h"

sdg_status_t sdg_tensor_set(cudnnTensorDescriptor_t descriptor, int type,
                            const sdg_box_t *box, const int64_t *stride) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  int extent[SDG_DIMS_MAX], step[SDG_DIMS_MAX];
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  for (int d = 0; d < box->dims; d++) {
    if (stride[d] > INT32_MAX)
      return sdg_fail(SDG_E_VENDOR_CALL,
                      "shard and halo together have a stride of %lld elements",
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
