/* SPDX-License-Identifier: Apache-2.0 */
/* One batch normalisation, read from the arguments of any of its entries.
 * Inside rules/ only. */
#ifndef SDG_RULES_NORM_CALL_H
#define SDG_RULES_NORM_CALL_H

#include <cudnn.h>

#include "rules/place/op.h"

typedef enum sdg_norm_kind {
  SDG_NORM_NONE, /* another entry, or a query */
  SDG_NORM_INFERENCE,
  SDG_NORM_TRAINING,
  SDG_NORM_BACKWARD,
} sdg_norm_kind_t;

/* Tensors by their role in the op. MEAN, VARIANCE: estimated or running;
 * SAVED_INVERSE: 1 / sqrt(variance + epsilon). */
typedef enum sdg_norm_tensor {
  SDG_NORM_X,
  SDG_NORM_Y,
  SDG_NORM_Z,
  SDG_NORM_DY,
  SDG_NORM_DX,
  SDG_NORM_DZ,
  SDG_NORM_SCALE,
  SDG_NORM_BIAS,
  SDG_NORM_MEAN,
  SDG_NORM_VARIANCE,
  SDG_NORM_SAVED_MEAN,
  SDG_NORM_SAVED_INVERSE,
  SDG_NORM_DSCALE,
  SDG_NORM_DBIAS,
  SDG_NORM_TENSORS,
} sdg_norm_tensor_t;

/* Numbers of the op; _PARAM: those of gradients of scale and bias. FACTOR: of
 * running statistics. */
typedef enum sdg_norm_number {
  SDG_NORM_ALPHA,
  SDG_NORM_BETA,
  SDG_NORM_ALPHA_PARAM,
  SDG_NORM_BETA_PARAM,
  SDG_NORM_EPSILON,
  SDG_NORM_FACTOR,
} sdg_norm_number_t;

/* The modes and operations of cudnnNormalization have the same numbers. */
typedef struct sdg_norm {
  sdg_norm_kind_t kind;
  cudnnBatchNormMode_t mode;
  cudnnBatchNormOps_t ops;
  int groups;
  double epsilon;
  /* Reads a number of any call of the op: NULL for the entries of the legacy
   * API. */
  double (*number)(const sdg_call_t *call, sdg_norm_number_t which);
  cudnnActivationDescriptor_t activation;
  int operand[SDG_NORM_TENSORS]; /* operand index; -1: the op does not use it */
} sdg_norm_t;

/* The kind of a call, from its entry alone. */
sdg_norm_kind_t sdg_norm_kind(const sdg_call_t *call);
/* Reads a call. Only kind, groups and operand are set if the kind is
 * SDG_NORM_NONE. */
void sdg_norm_read(const sdg_call_t *call, sdg_norm_t *out);

/* A number of a call that `norm` was read from, or of one like it. */
double sdg_norm_number(const sdg_call_t *call, const sdg_norm_t *norm,
                       sdg_norm_number_t which);

/* NULL if the call has no such tensor, or no data for it. */
void *sdg_norm_data(const sdg_call_t *call, const sdg_norm_t *norm,
                    sdg_norm_tensor_t which);

/* The status that the call returns on a single device for any data, because its
 * tensors or numbers do not match; 0 if no such error is known. */
int sdg_norm_refusal(const sdg_call_t *call, const sdg_norm_t *norm);

#endif
