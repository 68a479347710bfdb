// SPDX-License-Identifier: Apache-2.0
// Descriptors of recurrent networks and of their data.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/descriptor/life.h"

LIFE(RNN, rnn, .set = false)

static bool types_fit(cudnnDataType_t type, cudnnDataType_t compute) {
  switch ((int)type) {
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_BFLOAT16:
    return compute == CUDNN_DATA_FLOAT;
  case CUDNN_DATA_DOUBLE:
    return compute == CUDNN_DATA_DOUBLE;
  case CUDNN_DATA_HALF:
    return compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_HALF;
  }
  return false;
}

// Whether a persistent algorithm supports this network.
static bool persists(cudnnRNNAlgo_t algo, cudnnRNNBiasMode_t bias,
                     cudnnDataType_t compute, bool whole) {
  return bias == CUDNN_RNN_DOUBLE_BIAS && whole &&
         (compute == CUDNN_DATA_FLOAT ||
          (compute == CUDNN_DATA_DOUBLE &&
           algo == CUDNN_RNN_ALGO_PERSIST_DYNAMIC));
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algo, cudnnRNNMode_t cell,
    cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
    cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t compute,
    cudnnMathType_t math, int32_t input_size, int32_t hidden_size,
    int32_t projected_size, int32_t layers, cudnnDropoutDescriptor_t dropout,
    uint32_t flags) {
  REFUSE_IF(!rnn, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(algo, 0, CUDNN_RNN_ALGO_COUNT - 1),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(cell, CUDNN_RNN_RELU, CUDNN_GRU),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(bias, CUDNN_RNN_NO_BIAS, CUDNN_RNN_SINGLE_REC_BIAS),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(direction, 0, 1) || !host_in_range(input, 0, 1),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(math, CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(input_size < 1 || hidden_size < 1 || layers < 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(projected_size < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(flags & ~CUDNN_RNN_PADDED_IO_ENABLED, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(algo != CUDNN_RNN_ALGO_STANDARD &&
                !persists(algo, bias, compute, hidden_size == projected_size),
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!types_fit(type, compute), CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(projected_size > hidden_size, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(projected_size != hidden_size && cell != CUDNN_LSTM,
            CUDNN_STATUS_NOT_SUPPORTED);
  *rnn = (struct cudnnRNNStruct){.set = true,
                                 .algo = algo,
                                 .cell = cell,
                                 .bias = bias,
                                 .direction = direction,
                                 .input = input,
                                 .type = type,
                                 .compute_type = compute,
                                 .math = math,
                                 .input_size = input_size,
                                 .hidden_size = hidden_size,
                                 .projected_size = projected_size,
                                 .layers = layers,
                                 .dropout = dropout,
                                 .flags = flags};
  return CUDNN_STATUS_SUCCESS;
}

#define GIVE(pointer, value)                                                   \
  do {                                                                         \
    if (pointer)                                                               \
      *(pointer) = (value);                                                    \
  } while (0)

cudnnStatus_t cudnnGetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t *algo, cudnnRNNMode_t *cell,
    cudnnRNNBiasMode_t *bias, cudnnDirectionMode_t *direction,
    cudnnRNNInputMode_t *input, cudnnDataType_t *type, cudnnDataType_t *compute,
    cudnnMathType_t *math, int32_t *input_size, int32_t *hidden_size,
    int32_t *projected_size, int32_t *layers, cudnnDropoutDescriptor_t *dropout,
    uint32_t *flags) {
  REFUSE_IF(!rnn, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!rnn->set, CUDNN_STATUS_NOT_INITIALIZED);
  GIVE(algo, rnn->algo);
  GIVE(cell, rnn->cell);
  GIVE(bias, rnn->bias);
  GIVE(direction, rnn->direction);
  GIVE(input, rnn->input);
  GIVE(type, rnn->type);
  GIVE(compute, rnn->compute_type);
  GIVE(math, rnn->math);
  GIVE(input_size, rnn->input_size);
  GIVE(hidden_size, rnn->hidden_size);
  GIVE(projected_size, rnn->projected_size);
  GIVE(layers, rnn->layers);
  GIVE(dropout, rnn->dropout);
  GIVE(flags, rnn->flags);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnn,
                                 cudnnRNNClipMode_t mode,
                                 cudnnNanPropagation_t nan, double low,
                                 double high) {
  REFUSE_IF(!rnn || low > high || isnan(low) || isnan(high),
            CUDNN_STATUS_BAD_PARAM);
  rnn->clip = mode;
  rnn->clip_nan = nan;
  rnn->clip_low = low;
  rnn->clip_high = high;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnn,
                                 cudnnRNNClipMode_t mode, double low,
                                 double high) {
  return cudnnRNNSetClip_v8(rnn, mode, CUDNN_PROPAGATE_NAN, low, high);
}

cudnnStatus_t cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnn,
                                 cudnnRNNClipMode_t *mode,
                                 cudnnNanPropagation_t *nan, double *low,
                                 double *high) {
  REFUSE_IF(!rnn, CUDNN_STATUS_BAD_PARAM);
  GIVE(mode, rnn->clip);
  GIVE(nan, rnn->clip_nan);
  GIVE(low, rnn->clip_low);
  GIVE(high, rnn->clip_high);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNGetClip_v9(cudnnRNNDescriptor_t rnn,
                                 cudnnRNNClipMode_t *mode, double *low,
                                 double *high) {
  return cudnnRNNGetClip_v8(rnn, mode, NULL, low, high);
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *data) {
  REFUSE_IF(!data, CUDNN_STATUS_BAD_PARAM);
  *data = calloc(1, sizeof **data);
  REFUSE_IF(!*data, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  if (data)
    free(data->length);
  free(data);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data,
                                        cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int time,
                                        int batch, int vector,
                                        const int length[], void *fill) {
  REFUSE_IF(!data || !length || !host_type_bytes(type), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE &&
                type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!host_in_range(layout, 0, 2), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(time < 1 || batch < 1 || vector < 1, CUDNN_STATUS_BAD_PARAM);
  bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  int longest = 0;
  for (int i = 0; i < batch; i++) {
    REFUSE_IF(length[i] < 0 || length[i] > time, CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(packed && length[i] == 0, CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(packed && i && length[i] > length[i - 1], CUDNN_STATUS_BAD_PARAM);
    longest = length[i] > longest ? length[i] : longest;
  }
  REFUSE_IF(packed && longest != time, CUDNN_STATUS_BAD_PARAM);
  int *kept = malloc((size_t)batch * sizeof *kept);
  REFUSE_IF(!kept, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  memcpy(kept, length, (size_t)batch * sizeof *kept);
  free(data->length);
  *data = (struct cudnnRNNDataStruct){
      .type = type,
      .layout = layout,
      .time = time,
      .batch = batch,
      .vector = vector,
      .length = kept,
  };
  if (fill)
    memcpy(data->fill, fill, host_type_bytes(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t data,
                                        cudnnDataType_t *type,
                                        cudnnRNNDataLayout_t *layout, int *time,
                                        int *batch, int *vector, int requested,
                                        int length[], void *fill) {
  REFUSE_IF(!data || requested < 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!type || !layout || !time || !batch || !vector ||
                (requested && !length) || !fill,
            CUDNN_STATUS_BAD_PARAM);
  *type = data->type;
  *layout = data->layout;
  *time = data->time;
  *batch = data->batch;
  *vector = data->vector;
  for (int i = 0; i < requested; i++)
    length[i] = i < data->batch ? data->length[i] : 0;
  memcpy(fill, data->fill, host_type_bytes(data->type));
  return CUDNN_STATUS_SUCCESS;
}
