/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of any type and strides, read and written as dense doubles.
 * Operations without a kernel per type use this. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_VIEW_H
#define SDG_SRC_HOST_CUDNN_BASE_VIEW_H

#include "src/host/cudnn/descriptor/types.h"

typedef struct {
  cudnnDataType_t type;
  int rank;
  int64_t dim[CUDNN_DIM_MAX];
  int64_t stride[CUDNN_DIM_MAX]; /* elements, not negative */
  /* If not 0, that many channels are contiguous, and stride[1] is the distance
   * to the next such vector. */
  int64_t vector;
  char *data; /* the address for the host */
} host_view_t;

/* BAD_PARAM for NULL, NOT_SUPPORTED for vectorised tensors and negative
 * strides, EXECUTION_FAILED if `data` is not device memory. */
cudnnStatus_t host_view_init(const struct cudnnTensorStruct *tensor,
                             const void *data, host_view_t *out);

/* Two views; BAD_PARAM where types or extents differ. */
cudnnStatus_t host_view_pair(const struct cudnnTensorStruct *a,
                             const void *a_data,
                             const struct cudnnTensorStruct *b,
                             const void *b_data, host_view_t *out_a,
                             host_view_t *out_b);

/* As host_view_init, but a vectorised tensor becomes a view of its channels. */
cudnnStatus_t host_view_init_any(const struct cudnnTensorStruct *tensor,
                                 const void *data, host_view_t *out);

/* The type of one channel of a vectorised type. */
cudnnDataType_t host_type_scalar(cudnnDataType_t type);

/* Whether both have the same extents. */
bool host_view_same(const host_view_t *a, const host_view_t *b);

/* Number of elements. */
int64_t host_view_elements(const host_view_t *view);

/* to = the box of `extent` at `first`, last dimension innermost. */
void host_view_load(const host_view_t *view, const int64_t *first,
                    const int64_t *extent, double *to);

/* box = alpha * from + beta * box, rounded to the type once. Integers round to
 * nearest and saturate. The box is not read if beta is 0. */
void host_view_store(const host_view_t *view, const int64_t *first,
                     const int64_t *extent, double alpha, const double *from,
                     double beta);

/* The sum of a box, which cuts no vectors. */
double host_view_sum(const host_view_t *view, const int64_t *first,
                     const int64_t *extent);

/* Bytes of an element; 0 for types that the functions below do not know:
 * vectors, scales of blocks, and those of less than a byte. */
size_t host_element_bytes(cudnnDataType_t type);

/* `count` elements of any such type, `step` elements apart. */
void host_elements_load(cudnnDataType_t type, const void *from, int64_t step,
                        int64_t count, double *to);
void host_elements_store(cudnnDataType_t type, void *to, int64_t step,
                         int64_t count, double alpha, const double *from,
                         double beta);
/* Rounds numbers to a type, as a store followed by a load. */
void host_elements_round(cudnnDataType_t type, double *values, int64_t count);

#endif
