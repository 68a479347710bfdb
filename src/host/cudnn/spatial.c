// SPDX-License-Identifier: Apache-2.0
// Descriptors of spatial transformers.
#include <string.h>

#include "src/host/cudnn/life.h"

LIFE(SpatialTransformer, transformer, .rank = 0)

/* Extents are checked where they are used. */
cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer, cudnnSamplerType_t sampler,
    cudnnDataType_t type, const int rank, const int dim[]) {
  REFUSE_IF(!transformer || !dim, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(type == CUDNN_DATA_INT8, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(sampler != CUDNN_SAMPLER_BILINEAR, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(type, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF),
            CUDNN_STATUS_BAD_PARAM);
  transformer->type = type;
  transformer->rank = rank;
  for (int i = 0; i < rank && i < CUDNN_DIM_MAX; i++)
    transformer->dim[i] = dim[i];
  return CUDNN_STATUS_SUCCESS;
}
