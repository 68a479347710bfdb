/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors on the device for tests of any operation: any type, random strides
 * with gaps, values known as doubles. */
#ifndef SDG_TESTS_HOST_CUDNN_TENSOR_H
#define SDG_TESTS_HOST_CUDNN_TENSOR_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  cudnnTensorDescriptor_t desc;
  cudnnDataType_t type;
  int rank, dim[8], stride[8];
  int64_t count;      /* values */
  size_t bytes, unit; /* of all memory, of an element */
  void *device;
  unsigned char *before; /* what lay there when it was made */
  double *value;         /* the values, last dimension innermost */
} tensor_t;

/* Values in -2 .. 2 (integers in -9 .. 9), rounded to the type; NaN one time
 * in `nans` where that is not 0. Strides by case_range(). */
void tensor_create(tensor_t *t, cudnnDataType_t type, int rank, const int *dim,
                   int nans);
/* The same layout and type, other values. */
void tensor_create_like(tensor_t *t, const tensor_t *like);
/* 1 x 1 x count, packed. */
tensor_t tensor_vector(cudnnDataType_t type, int count);
void tensor_destroy(tensor_t *t);

/* Writes `value` to the device. */
void tensor_upload(tensor_t *t);
/* Reads the device into `value`. */
void tensor_download(tensor_t *t);

/* Returns the first value on the device that differs from want[i] by more than
 * `factor` roundings of the type at scale[i] (at least at want[i]; NULL: at
 * want[i]); -2 if a gap between values was written; -1 if there is neither. */
int64_t tensor_wrong(const tensor_t *t, const double *want, const double *scale,
                     double factor);

/* Index of a value from its coordinates and back. */
int64_t tensor_at(const tensor_t *t, const int *index);
void tensor_index(const tensor_t *t, int64_t at, int *index);

/* "half 2x3x4 strides 12,4,1" */
const char *tensor_text(const tensor_t *t);

/* A scaling parameter of the type that `type` wants, by value: point to it. */
typedef union {
  float f;
  double d;
} scalar_t;
scalar_t scalar(cudnnDataType_t type, double value);

#endif
