/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of a convolution and of its gradients: which there are, their
 * workspace and their speed. x, w and y are the tensors or their gradients. */
#ifndef SDG_SRC_HOST_CUDNN_CONVOLUTION_ALGORITHM_H
#define SDG_SRC_HOST_CUDNN_CONVOLUTION_ALGORITHM_H

#include "src/host/cudnn/convolution/engine/engine.h"

/* Refuses a call of `function`: BAD_PARAM if `algo` does not exist or the
 * workspace (bytes) is too small, NOT_SUPPORTED if cuDNN has the algorithm only
 * for other problems. asker: host_model_check_convolution. */
cudnnStatus_t host_algorithm_check(host_conv_kind_t kind, const char *function,
                                   const void *asker,
                                   const host_conv_t *problem, int algo,
                                   size_t workspace);

cudnnStatus_t host_algorithm_workspace(
    cudnnHandle_t handle, host_conv_kind_t kind, const char *function,
    const void *asker, const struct cudnnTensorStruct *x,
    const struct cudnnFilterStruct *w,
    const struct cudnnConvolutionStruct *conv,
    const struct cudnnTensorStruct *y, int algo, size_t *size);
cudnnStatus_t host_algorithm_count(cudnnHandle_t handle, host_conv_kind_t kind,
                                   int *count);

/* Whether the convolution is computed, to be timed: on the program's memory, or
 * on memory of its own. */
typedef enum {
  HOST_TIME_NOT,
  HOST_TIME_ELSEWHERE,
  HOST_TIME_THERE
} host_algorithm_time_t;
typedef struct {
  const void *x, *w, *y;
} host_algorithm_data_t;

/* `out` has room for `requested` results of the kind's type. */
cudnnStatus_t host_algorithm_list(cudnnHandle_t handle, host_conv_kind_t kind,
                                  host_algorithm_time_t time,
                                  const struct cudnnTensorStruct *x,
                                  const struct cudnnFilterStruct *w,
                                  const struct cudnnConvolutionStruct *conv,
                                  const struct cudnnTensorStruct *y,
                                  host_algorithm_data_t data, int requested,
                                  int *returned, void *out);

#endif
