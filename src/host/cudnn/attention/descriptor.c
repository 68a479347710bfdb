// SPDX-License-Identifier: Apache-2.0
// Descriptors of multi-head attention and of the sequences it works on.
#include <string.h>

#include "src/host/cudnn/descriptor/life.h"

LIFE(Attn, attention, .heads = 0)

static bool known(cudnnDataType_t type) {
  return host_in_range(type, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF) ||
         type == CUDNN_DATA_BFLOAT16;
}

static bool types_fit(cudnnDataType_t type, cudnnDataType_t compute) {
  if (type == CUDNN_DATA_DOUBLE || compute == CUDNN_DATA_DOUBLE)
    return type == compute;
  return compute == CUDNN_DATA_FLOAT ||
         (compute == CUDNN_DATA_HALF && type == CUDNN_DATA_HALF);
}

cudnnStatus_t cudnnSetAttnDescriptor(
    cudnnAttnDescriptor_t attention, unsigned mode, int heads, double scale,
    cudnnDataType_t type, cudnnDataType_t compute, cudnnMathType_t math,
    cudnnDropoutDescriptor_t dropout, cudnnDropoutDescriptor_t post_dropout,
    int q_size, int k_size, int v_size, int q_projected, int k_projected,
    int v_projected, int o_projected, int qo_time, int kv_time, int batch,
    int beam) {
  REFUSE_IF(!attention, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      mode & ~(CUDNN_ATTN_QUERYMAP_ONE_TO_ONE | CUDNN_ATTN_ENABLE_PROJ_BIASES),
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(heads < 1 || scale < 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!known(type), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(compute, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(math, CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(q_size < 1 || k_size < 1 || v_size < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(q_projected < 0 || v_projected < 0 || o_projected < 0,
            CUDNN_STATUS_BAD_PARAM);
  // A size of 0 means no projection. Queries and keys must have equal lengths.
  REFUSE_IF(k_projected < 0 || (q_projected ? q_projected : q_size) !=
                                   (k_projected ? k_projected : k_size),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(qo_time < 1 || kv_time < 1 || batch < 1 || beam < 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!types_fit(type, compute), CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF((mode & CUDNN_ATTN_QUERYMAP_ONE_TO_ONE) && beam > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  *attention = (struct cudnnAttnStruct){
      mode,    heads,       scale,        type,        compute,
      math,    dropout,     post_dropout, q_size,      k_size,
      v_size,  q_projected, k_projected,  v_projected, o_projected,
      qo_time, kv_time,     batch,        beam};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetAttnDescriptor(
    cudnnAttnDescriptor_t attention, unsigned *mode, int *heads, double *scale,
    cudnnDataType_t *type, cudnnDataType_t *compute, cudnnMathType_t *math,
    cudnnDropoutDescriptor_t *dropout, cudnnDropoutDescriptor_t *post_dropout,
    int *q_size, int *k_size, int *v_size, int *q_projected, int *k_projected,
    int *v_projected, int *o_projected, int *qo_time, int *kv_time, int *batch,
    int *beam) {
  REFUSE_IF(!attention, CUDNN_STATUS_BAD_PARAM);
  const struct cudnnAttnStruct *a = attention;
  if (mode)
    *mode = a->mode;
  if (scale)
    *scale = a->scale;
  if (type)
    *type = a->type;
  if (compute)
    *compute = a->compute_type;
  if (math)
    *math = a->math;
  if (dropout)
    *dropout = a->dropout;
  if (post_dropout)
    *post_dropout = a->post_dropout;
  int *const out[] = {heads,       q_size,      k_size,      v_size,
                      q_projected, k_projected, v_projected, o_projected,
                      qo_time,     kv_time,     batch,       beam};
  const int value[] = {a->heads,       a->q_size,      a->k_size,
                       a->v_size,      a->q_projected, a->k_projected,
                       a->v_projected, a->o_projected, a->qo_time,
                       a->kv_time,     a->batch,       a->beam};
  for (size_t i = 0; i < sizeof out / sizeof *out; i++)
    if (out[i])
      *out[i] = value[i];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateSeqDataDescriptor(cudnnSeqDataDescriptor_t *data) {
  REFUSE_IF(!data, CUDNN_STATUS_BAD_PARAM);
  *data = calloc(1, sizeof **data);
  REFUSE_IF(!*data, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroySeqDataDescriptor(cudnnSeqDataDescriptor_t data) {
  if (data)
    free(data->length);
  free(data);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetSeqDataDescriptor(cudnnSeqDataDescriptor_t data,
                                        cudnnDataType_t type, int rank,
                                        const int dim[],
                                        const cudnnSeqDataAxis_t axes[],
                                        size_t sequences, const int length[],
                                        void *fill) {
  REFUSE_IF(!data || !dim || !axes || !length || rank < 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_type_bytes(type), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank != CUDNN_SEQDATA_DIM_COUNT, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!known(type), CUDNN_STATUS_INTERNAL_ERROR);
  unsigned seen = 0;
  for (int i = 0; i < rank; i++) {
    REFUSE_IF(dim[i] < 1, CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(!host_in_range(axes[i], 0, rank - 1), CUDNN_STATUS_BAD_PARAM);
    seen |= 1U << axes[i];
  }
  REFUSE_IF(seen != 15 || axes[3] != CUDNN_SEQDATA_VECT_DIM,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(sequences != (size_t)dim[CUDNN_SEQDATA_BATCH_DIM] *
                             (size_t)dim[CUDNN_SEQDATA_BEAM_DIM],
            CUDNN_STATUS_BAD_PARAM);
  for (size_t i = 0; i < sequences; i++)
    REFUSE_IF(length[i] < 1 || length[i] > dim[CUDNN_SEQDATA_TIME_DIM],
              CUDNN_STATUS_BAD_PARAM);
  int *kept = malloc(sequences * sizeof *kept);
  REFUSE_IF(!kept, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  memcpy(kept, length, sequences * sizeof *kept);
  free(data->length);
  *data = (struct cudnnSeqDataStruct){
      .type = type, .sequences = sequences, .length = kept};
  memcpy(data->dim, dim, sizeof data->dim);
  memcpy(data->axis, axes, sizeof data->axis);
  if (fill)
    memcpy(data->fill, fill, host_type_bytes(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetSeqDataDescriptor(
    const cudnnSeqDataDescriptor_t data, cudnnDataType_t *type, int *rank,
    int requested, int dim[], cudnnSeqDataAxis_t axes[], size_t *sequences,
    size_t sequences_requested, int length[], void *fill) {
  REFUSE_IF(!data || requested < 0, CUDNN_STATUS_BAD_PARAM);
  if (type)
    *type = data->type;
  if (rank)
    *rank = CUDNN_SEQDATA_DIM_COUNT;
  for (int i = 0; i < requested && i < CUDNN_SEQDATA_DIM_COUNT; i++) {
    if (dim)
      dim[i] = data->dim[i];
    if (axes)
      axes[i] = data->axis[i];
  }
  if (sequences)
    *sequences = data->sequences;
  for (size_t i = 0; length && i < sequences_requested && i < data->sequences;
       i++)
    length[i] = data->length[i];
  if (fill)
    memcpy(fill, data->fill, host_type_bytes(data->type));
  return CUDNN_STATUS_SUCCESS;
}
