/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph of cuDNN's backend API, for the program `random` of this
 * folder. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_RANDOM_GRAPH_H
#define SDG_TESTS_CLIENTS_GRAPHS_RANDOM_GRAPH_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

enum { DIMS = 5, TENSORS = 24, OPS = 12, CHAIN = 4 };
enum { X, W, Y, CONV_TENSORS };

/* The op in the middle. */
typedef enum {
  MAIN_CONV,
  MAIN_POOL,
  MAIN_NONE,
  MAIN_PRODUCT,
  MAIN_NORM
} main_t;

typedef struct {
  int64_t whole[DIMS], dim[DIMS], first[DIMS], stride[DIMS];
  bool is_virtual, is_result;
  int like;        /* product: X, W or Y, whose dimensions it has (A, B, C) */
  bool is_by_cols; /* product: its rows are neighbours in memory */
  cudnnDataType_t type;
  double *value; /* of the whole tensor, last dimension innermost */
  double *old;   /* of a result: values that are read before; or NULL */
  void *device;  /* of the piece; NULL: it is that of another one, lies_in */
  int lies_in;
  int64_t places; /* elements in device memory */
} tensor_t;

typedef struct {
  cudnnPointwiseMode_t mode;
  int x, b, y; /* b -1: none */
} op_t;

typedef struct {
  cudnnReduceTensorOp_t op;
  int x, y, squares; /* squares -1: a reduction; else statistics */
} sum_t;

enum { EPSILON, FACTOR, NUMBERS };

/* A normalisation of conv[X]; backward of that and dy. Tensors: -1: none. */
typedef struct {
  cudnnBackendNormMode_t mode;
  bool backward, inference;
  bool far;          /* means beside which the deviations are small */
  bool shared[DIMS]; /* elements along it share a mean */
  int dy, scale, bias, mean, inverse, dscale, dbias;
  int old[2], new[2];    /* running mean and variance */
  float number[NUMBERS]; /* by value */
} norm_t;

typedef struct {
  int dims;
  main_t main;
  int kind;   /* of X, W, Y: the one that is computed */
  bool last;  /* channels last */
  bool inner; /* samples of one element are neighbours in memory */
  int64_t pad[DIMS], post[DIMS], step[DIMS], dilation[DIMS], groups;
  int64_t window[DIMS];     /* of a pooling */
  cudnnResampleMode_t mode; /* of a pooling */
  /* Pooling: where each maximum is in its window (-1: not asked for), and what
   * the gradient reads beside dy (-1: nothing). */
  int indices, of_x, of_y;
  float beta;
  norm_t norm;
  tensor_t tensor[TENSORS];
  int tensors, conv[CONV_TENSORS]; /* the main op's; -1: none */
  op_t op[OPS];
  int ops, before; /* ops in front of the main op */
  sum_t sum[2];
  int sums;
} graph_t;

/* What the command line asks for. */
typedef struct {
  main_t main;
  bool in_half, with_statistics, wraps, ones, for_hopper, data;
  char split, second; /* second 0: one dimension */
} asked_t;
extern asked_t asked;

static inline int64_t count_of(const graph_t *g, const int64_t *dim) {
  int64_t count = 1;
  for (int d = 0; d < g->dims; d++)
    count *= dim[d];
  return count;
}
/* The indices of element `i`, and the element of these indices; dimensions of
 * extent 1 are broadcast. */
void place_of(const graph_t *g, const int64_t *dim, int64_t i, int64_t *out);
int64_t index_of(const graph_t *g, const int64_t *dim, const int64_t *at);
int dimension_of(const graph_t *g, char letter);
/* The same of a tensor of a product; -1: it has no such dimension. */
int product_dimension(const graph_t *g, int like, char letter);

/* For the parts of graph_draw: a random number from lo to hi; a new tensor; ops
 * of tensor x, whose results `ends` may have memory; a sum. */
int64_t draw_in(int64_t lo, int64_t hi);
int draw_tensor(graph_t *g, const int64_t *whole, bool is_virtual,
                bool is_result);
int draw_chain(graph_t *g, int x, int length, bool ends, int residual);
void draw_sum(graph_t *g, int x);
/* C = A B with ops in front and behind. */
void product_draw(graph_t *g);
/* A tensor that is combined with x. */
int product_partner(graph_t *g, int x);
void product_run(const graph_t *g);
/* A normalisation with ops in front and behind. */
void norm_draw(graph_t *g);
void norm_run(const graph_t *g);
/* The unique id of a number by value. */
static inline int64_t number_uid(int number) {
  return 90 + number;
}

/* The graph of a seed, with values in tensors that are read. */
graph_t graph_draw(uint64_t seed);
/* Fills in the values of all results, by loops in double precision. */
void graph_compute(const graph_t *g);
/* Gives this rank its piece of all tensors, in device memory. */
void pieces_put(graph_t *g);
/* The largest difference of a result, relative to the largest value. */
double tensor_off(const graph_t *g, const tensor_t *t);
/* The operation graph. */
build_t graph_of(cudnnHandle_t handle, const graph_t *g);

#endif
