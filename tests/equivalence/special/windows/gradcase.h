/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions, the pieces of their tensors, and their whole gradients
 * in float64. */
#ifndef EQUIVALENCE_GRADCASE_H
#define EQUIVALENCE_GRADCASE_H

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"

enum { GRAD_DIMS = 5, GRAD_PIECES = 8 };

typedef struct {
  int rank, pieces[GRAD_DIMS], piece[GRAD_DIMS]; /* of N C D H W */
  int sums_here, sums_batch, periodic, doubles;
  const char *what;
} grad_task_t;

/* One convolution: N C D H W, D is 1 where the descriptors have four. */
typedef struct {
  int dims, x[GRAD_DIMS], y[GRAD_DIMS], w[GRAD_DIMS], groups;
  int pad[GRAD_DIMS], stride[GRAD_DIMS], dilation[GRAD_DIMS];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t type;
  int last, gap; /* channels last; gaps between lines */
  double alpha, beta;
  int x_first[GRAD_DIMS][GRAD_PIECES + 1], y_first[GRAD_DIMS][GRAD_PIECES + 1];
} grad_conv_t;

/* A rank's piece of a tensor. */
typedef struct {
  int first[GRAD_DIMS], extent[GRAD_DIMS];
  long stride[GRAD_DIMS], span;
  cudnnDataType_t type;
  char *host, *device;
} grad_tensor_t;

/* Sums, and those of their terms' magnitudes. */
typedef struct {
  double *sum, *terms; /* dense */
} grad_exact_t;

enum { SALT_X = 1, SALT_Y, SALT_W, SALT_OLD };

/* Of random numbers, the same on every rank. */
void grad_seed(unsigned long long seed);
/* One that is legal, and of which every piece has outputs. */
void grad_conv_draw(const grad_task_t *task, grad_conv_t *c);

/* Small numbers with few bits, exact in every type: by what they are of and
 * where they lie. */
double grad_value(int salt, const int at[GRAD_DIMS]);

int grad_size_of(cudnnDataType_t type);
/* Element i of memory of this type. */
double grad_get(cudnnDataType_t type, const void *data, long i);

/* A piece, in the convolution's layout with lines `gap` apart; to be freed. */
void grad_tensor_make(const grad_conv_t *c, const int *first, const int *extent,
                      int gap, grad_tensor_t *t);
void grad_tensor_free(grad_tensor_t *t);
/* Its values, times `factor`, in host memory. */
void grad_tensor_fill(grad_tensor_t *t, int salt, double factor);
cudnnTensorDescriptor_t grad_tensor_describe(const grad_conv_t *c,
                                             const grad_tensor_t *t);
/* Extents without D where descriptors have none. */
void grad_squeeze(const grad_conv_t *c, const int *from, int *to);
/* The next place in row-major order; 0 past the last. */
int grad_next(const int extent[GRAD_DIMS], int at[GRAD_DIMS]);
/* Of a place of a piece in its memory, and in dense memory: elements. */
long grad_offset(const grad_tensor_t *t, const int at[GRAD_DIMS]);
long grad_dense(const int extent[GRAD_DIMS], const int at[GRAD_DIMS]);

/* Zeros; to be freed. */
grad_exact_t grad_exact_make(const int extent[GRAD_DIMS]);
void grad_exact_free(grad_exact_t *e);
/* Gradients of x, w and b over outputs `first` .. `first + extent`. */
void grad_exact_fill(const grad_conv_t *c, const grad_task_t *task,
                     const int *first, const int *extent, grad_exact_t *ex,
                     grad_exact_t *ew, grad_exact_t *eb);

#endif
