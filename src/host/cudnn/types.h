/* SPDX-License-Identifier: Apache-2.0 */
/* The objects behind cuDNN's opaque pointers, and how an entry refuses. */
#ifndef SDG_SRC_HOST_CUDNN_TYPES_H
#define SDG_SRC_HOST_CUDNN_TYPES_H

/* The whole work-alike is compiled with hidden visibility; what <cudnn.h>
 * declares is what it exports. */
#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cudnnContext {
  cudaStream_t stream;
};

/* Fresh descriptors are all zero unless their create says otherwise. Extents
 * are elements, strides are in elements (vectors of elements in vectorised
 * layouts). A refused set may leave the values before the bad one behind:
 * programs can read them back from NVIDIA's library, so they can here. */
struct cudnnTensorStruct {
  cudnnDataType_t type;
  int rank;
  int dim[CUDNN_DIM_MAX];
  int stride[CUDNN_DIM_MAX];
  int vector_length; /* elements of C per stored vector; 0 and 1: none */
  uint64_t reach;    /* elements from the lowest address to the highest */
};

struct cudnnFilterStruct {
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int rank;
  int dim[CUDNN_DIM_MAX];
};

/* More spatial dimensions than this are refused, as by NVIDIA's library. */
#define HOST_CONV_RANK 6

struct cudnnConvolutionStruct {
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute_type;
  cudnnMathType_t math;
  cudnnReorderType_t reorder;
  int groups;
  int rank;
  int pad[HOST_CONV_RANK];
  int stride[HOST_CONV_RANK];
  int dilation[HOST_CONV_RANK];
};

struct cudnnActivationStruct {
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coefficient;
  double swish_beta;
};

struct cudnnOpTensorStruct {
  cudnnOpTensorOp_t op;
  cudnnDataType_t compute_type;
  cudnnNanPropagation_t nan;
};

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int rank;
  int window[CUDNN_DIM_MAX];
  int pad[CUDNN_DIM_MAX];
  int stride[CUDNN_DIM_MAX];
};

struct cudnnReduceTensorStruct {
  cudnnReduceTensorOp_t op;
  cudnnDataType_t compute_type;
  cudnnNanPropagation_t nan;
  cudnnReduceTensorIndices_t indices;
  cudnnIndicesType_t index_type;
};

struct cudnnLRNStruct {
  unsigned n;
  double alpha, beta, k;
};

/* Bytes of one element (of one vector in vectorised types); 0 if `type` is not
 * one of the types that descriptors accept. */
size_t host_type_bytes(cudnnDataType_t type);

/* Elements of C in one vector of `type`; 1 for scalar types. */
int host_type_vector(cudnnDataType_t type);

/* Keeps `expression` for cudnnGetLastErrorString of this thread and returns
 * `status`. */
cudnnStatus_t host_refuse(cudnnStatus_t status, const char *expression);

/* Refuses with `status` where `condition` holds. */
#define REFUSE_IF(condition, status)                                           \
  do {                                                                         \
    if (condition)                                                             \
      return host_refuse((status), #condition);                                \
  } while (0)

#endif
