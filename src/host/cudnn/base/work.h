/* SPDX-License-Identifier: Apache-2.0 */
/* Makes work from an entry's arguments and queues it on the handle's stream. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_WORK_H
#define SDG_SRC_HOST_CUDNN_BASE_WORK_H

#include "src/host/cudnn/descriptor/types.h"

/* The address for the host of a tensor (filter) at device address `pointer`;
 * NULL unless all of it lies in device, pinned or managed memory. */
void *host_tensor_resolve(const struct cudnnTensorStruct *tensor,
                          const void *pointer);
void *host_filter_resolve(const struct cudnnFilterStruct *filter,
                          const void *pointer);

/* Queues run(copy of the `bytes` at `job`) on the handle's stream. `run`
 * returns false if memory is short, which becomes the device's sticky error. */
cudnnStatus_t host_work_queue(cudnnHandle_t handle, bool (*run)(void *job),
                              const void *job, size_t bytes);

/* The value of a scaling parameter: alpha and beta are double for double
 * tensors and float for all others. */
double host_scalar(const void *value, cudnnDataType_t type);

#endif
