/* SPDX-License-Identifier: Apache-2.0 */
/* The objects behind cuDNN's opaque pointers, and how an entry refuses a call.
 */
#ifndef SDG_SRC_HOST_CUDNN_DESCRIPTOR_TYPES_H
#define SDG_SRC_HOST_CUDNN_DESCRIPTOR_TYPES_H

/* The whole work-alike is compiled with hidden visibility; it exports the
 * functions that <cudnn.h> declares. */
#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cudnnContext {
  cudaStream_t stream;
};

/* New descriptors are all zero unless their create function says otherwise.
 * Extents are elements; strides are elements (vectors in vectorised layouts). A
 * refused set may keep the values before the invalid one: programs can read
 * them back from NVIDIA's library, so they can here. */
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

struct cudnnTensorTransformStruct {
  cudnnTensorFormat_t format;
  bool unfold;
  int before[CUDNN_DIM_MAX], after[CUDNN_DIM_MAX];
  unsigned fold[CUDNN_DIM_MAX - 2];
};

struct cudnnSpatialTransformerStruct {
  cudnnDataType_t type;
  int rank;
  int dim[CUDNN_DIM_MAX]; /* of the grid: N C H W */
};

struct cudnnDropoutStruct {
  float probability;
  void *states; /* device address; NULL until set */
  size_t states_bytes;
  unsigned long long seed;
};

struct cudnnRNNStruct {
  bool set;
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t cell;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input;
  cudnnDataType_t type, compute_type;
  cudnnMathType_t math;
  int input_size, hidden_size, projected_size, layers;
  cudnnDropoutDescriptor_t dropout;
  uint32_t flags;
  cudnnRNNClipMode_t clip;
  cudnnNanPropagation_t clip_nan;
  double clip_low, clip_high;
};

struct cudnnRNNDataStruct {
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int time, batch, vector;
  int *length; /* of each of the `batch` sequences; owned */
  unsigned char fill[8];
};

struct cudnnSeqDataStruct {
  cudnnDataType_t type;
  int dim[CUDNN_SEQDATA_DIM_COUNT];                 /* by axis */
  cudnnSeqDataAxis_t axis[CUDNN_SEQDATA_DIM_COUNT]; /* outermost first */
  size_t sequences;
  int *length; /* of each sequence; owned */
  unsigned char fill[8];
};

struct cudnnAttnStruct {
  unsigned mode;
  int heads;
  double scale;
  cudnnDataType_t type, compute_type;
  cudnnMathType_t math;
  cudnnDropoutDescriptor_t dropout, post_dropout;
  int q_size, k_size, v_size;
  int q_projected, k_projected, v_projected, o_projected;
  int qo_time, kv_time, batch, beam;
};

struct cudnnCTCLossStruct {
  cudnnDataType_t compute_type;
  cudnnLossNormalizationMode_t norm;
  cudnnNanPropagation_t gradient; /* v9 reads it as skipping or zeroing */
  int label_length;
};

/* Bytes of one element (of one vector in vectorised types); 0 if `type` is not
 * one of the types that descriptors accept. */
size_t host_type_bytes(cudnnDataType_t type);

/* Elements of C in one vector of `type`; 1 for scalar types. */
int host_type_vector(cudnnDataType_t type);

/* Stores `expression` for this thread's cudnnGetLastErrorString and returns
 * `status`. */
cudnnStatus_t host_refuse(cudnnStatus_t status, const char *expression);

/* True if one of the pointers is NULL. These are results with no address, where
 * NVIDIA's library crashes. */
#define ANY_NULL(...)                                                          \
  host_any_null((const void *const[]){__VA_ARGS__},                            \
                sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
static inline bool host_any_null(const void *const pointers[], size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!pointers[i])
      return true;
  return false;
}

/* Refuses with `status` if `condition` holds. */
#define REFUSE_IF(condition, status)                                           \
  do {                                                                         \
    if (condition)                                                             \
      return host_refuse((status), #condition);                                \
  } while (0)

#endif
