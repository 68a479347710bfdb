/* SPDX-License-Identifier: Apache-2.0 */
/* What finalizing asks of each kind of descriptor, as NVIDIA's library does. */
#ifndef SDG_SRC_HOST_CUDNN_BACKEND_CHECK_H
#define SDG_SRC_HOST_CUDNN_BACKEND_CHECK_H

#include "src/host/cudnn/backend/object.h"

/* The extents of a tensor descriptor, finalized or not. Rank 0: not set. */
typedef struct {
  int rank;
  int64_t dim[CUDNN_DIM_MAX];
} host_extents_t;

host_extents_t host_extents(const host_object_t *tensor);
/* The extents of an operand; rank 0 if it is not set. */
host_extents_t host_extents_of(host_object_t *op,
                               cudnnBackendAttributeName_t name);
bool host_extents_same(const host_extents_t *a, const host_extents_t *b);
/* Whether the operand is set. */
bool host_operand_there(host_object_t *op, cudnnBackendAttributeName_t name);
/* Whether it is set and finalized. */
bool host_operand_final(host_object_t *op, cudnnBackendAttributeName_t name);
/* Value `at` of a list, or `missing` beyond its end. */
int64_t host_list_at(host_object_t *object, cudnnBackendAttributeName_t name,
                     int at, int64_t missing);

cudnnStatus_t host_check_tensor(host_object_t *tensor);
cudnnStatus_t host_check_convolution(host_object_t *convolution);
cudnnStatus_t host_check_forward(host_object_t *op);
cudnnStatus_t host_check_backward_data(host_object_t *op);
cudnnStatus_t host_check_backward_filter(host_object_t *op);
cudnnStatus_t host_check_resample(host_object_t *resample);
cudnnStatus_t host_check_resample_forward(host_object_t *op);
cudnnStatus_t host_check_resample_backward(host_object_t *op);
cudnnStatus_t host_check_pointwise(host_object_t *op);
bool host_pointwise_is_known(int64_t mode);
cudnnStatus_t host_check_matmul(host_object_t *op);
cudnnStatus_t host_check_reduction(host_object_t *reduction);
cudnnStatus_t host_check_reduction_op(host_object_t *op);
cudnnStatus_t host_check_reshape(host_object_t *op);
cudnnStatus_t host_check_concat(host_object_t *op);
cudnnStatus_t host_check_rng(host_object_t *rng);
cudnnStatus_t host_check_rng_op(host_object_t *op);
cudnnStatus_t host_check_norm_forward(host_object_t *op);
cudnnStatus_t host_check_norm_backward(host_object_t *op);
cudnnStatus_t host_check_pack(host_object_t *pack);

/* Makes the graph of an OPERATIONGRAPH descriptor. */
cudnnStatus_t host_build_graph(host_object_t *graph);

#endif
