/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a graph that is being written, which may be put in another
 * order before the graph is made. Tensors are numbers; -1: none. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_DRAFT_H
#define SDG_TESTS_CLIENTS_GRAPHS_ATTENTION_DRAFT_H

#include "tests/clients/graphs/build.h"

enum { BATCH, HEADS, ROWS, DEPTH, DIMS }; /* of all arrays */

typedef struct {
  bool exists, is_result;
  cudnnDataType_t type;
  int64_t whole[DIMS], first[DIMS], dim[DIMS], stride[DIMS];
  double *value, *bound; /* of the whole; results: how far off one may be */
  void *memory;          /* of the piece; NULL: another array's */
  void *device;          /* where the first element is */
  int64_t places;        /* elements of `memory` */
} array_t;

enum { DRAFT_TENSORS = 96, DRAFT_OPS = 56, DRAFT_READS = 6 };

typedef struct {
  build_t op;
  int read[DRAFT_READS], reads, y;
} draft_op_t;

typedef struct {
  build_t tensor[DRAFT_TENSORS];
  int64_t dim[DRAFT_TENSORS][DIMS];
  int tensors, count; /* count: those with memory or a value */
  int64_t uid[DRAFT_TENSORS];
  void *pointer[DRAFT_TENSORS];
  bool by_value[DRAFT_TENSORS];
  double number[DRAFT_TENSORS]; /* room for one by value */
  draft_op_t op[DRAFT_OPS];
  int ops;
} draft_t;

/* An array in memory; `turned`: its last two dimensions are exchanged. */
int draft_array(draft_t *d, const array_t *a, bool turned);
/* stride NULL: the last dimension is innermost */
int draft_virtual(draft_t *d, cudnnDataType_t type, const int64_t dim[DIMS],
                  const int64_t *stride);
int draft_number(draft_t *d, cudnnDataType_t type, double value);

/* axis: of GEN_INDEX */
void draft_pointwise(draft_t *d, cudnnPointwiseMode_t mode,
                     cudnnDataType_t compute, int x, int b, int t, int axis,
                     int y);
void draft_reduction(draft_t *d, cudnnReduceTensorOp_t op, int x, int y);
/* limit: lengths of rows, columns and terms; NULL: none */
void draft_matmul(draft_t *d, int a, int b, int c, const int limit[3]);
void draft_reshape(draft_t *d, int x, int y);
/* tensors of the operation with the descriptor `op`, which it takes */
void draft_add(draft_t *d, build_t op, const int *read, int reads, int y);

/* Makes the graph and destroys what it was made of. seed: of a random order; 0:
 * operations stay in the order in which they were added. */
build_t draft_graph(draft_t *d, cudnnHandle_t handle, uint64_t seed);

#endif
