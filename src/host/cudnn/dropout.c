// SPDX-License-Identifier: Apache-2.0
// Descriptors of dropout and the sizes of what it keeps.
#include "src/host/cudnn/life.h"

LIFE(Dropout, dropout, .states = NULL)

/* One bit per element, whole words of 4 bytes. */
cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x,
                                              size_t *bytes) {
  REFUSE_IF(!x || !bytes, CUDNN_STATUS_BAD_PARAM);
  size_t elements = 1;
  for (int i = 0; i < x->rank; i++)
    elements *= (size_t)x->dim[i];
  *bytes = (elements + 31) / 32 * 4;
  return CUDNN_STATUS_SUCCESS;
}
