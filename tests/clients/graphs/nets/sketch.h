/* SPDX-License-Identifier: Apache-2.0 */
/* Networks all of whose ops are graphs of cuDNN's backend API: tensors, graphs
 * in few lines, and the ways in which frameworks come to a plan. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_NETS_SKETCH_H
#define SDG_TESTS_CLIENTS_GRAPHS_NETS_SKETCH_H

#include "tests/clients/graphs/build.h"

/* How a program comes to a plan. */
typedef enum manner {
  MANNER_TORCH,     /* the first plan that executes, of two lists */
  MANNER_BENCHMARK, /* the fastest of both lists, for convolutions */
  MANNER_XLA,       /* engine and knobs read back, the plan through text */
} manner_t;

typedef struct net {
  cudnnHandle_t handle;
  manner_t manner;
} net_t;

/* Channels last, packed. A number by value is in host memory. */
typedef struct tensor {
  int64_t uid, dim[BUILD_DIMS];
  cudnnDataType_t type;
  bool is_by_value;
  void *at;
} tensor_t;

/* Zeros in device memory. */
tensor_t tensor_make(cudnnDataType_t type, int64_t n, int64_t c, int64_t h,
                     int64_t w);
/* A float by value, or a whole number. */
tensor_t tensor_number(float value);
tensor_t tensor_count(int64_t value);
/* Another tensor in the same memory, for results in place. */
tensor_t tensor_again(const tensor_t *t);
tensor_t tensor_like(const tensor_t *t);
void tensor_free(tensor_t *t);
int64_t tensor_elements(const tensor_t *t);

enum { SKETCH_OPS = 8, SKETCH_TENSORS = 24 };

/* A graph while it is made. */
typedef struct sketch {
  build_t op[SKETCH_OPS], made[2 * SKETCH_TENSORS];
  const tensor_t *tensor[SKETCH_TENSORS];
  build_t of[SKETCH_TENSORS];
  int ops, mades, tensors;
  bool convolves;
} sketch_t;

/* The descriptor of a tensor, one for each. */
build_t sketch_tensor(sketch_t *s, const tensor_t *t);
/* The same in other dimensions. */
build_t sketch_strided(sketch_t *s, const tensor_t *t, int64_t dims,
                       const int64_t *dim, const int64_t *stride);
/* A virtual tensor of these extents. */
build_t sketch_between(sketch_t *s, const int64_t dim[BUILD_DIMS]);

build_t sketch_virtual(sketch_t *s, int64_t dims, const int64_t *dim,
                       const int64_t *stride);

/* Takes the op. */
void sketch_add(sketch_t *s, build_t op);
void sketch_conv(sketch_t *s, build_conv_t what, int64_t stride,
                 int64_t padding, build_t x, build_t w, build_t y);

/* A graph with a plan, which it gets when it is executed first; or a call. */
typedef struct op {
  build_t graph, plan;
  void *zeroed; /* memory that is zeroed before an execution; NULL: none */
  size_t zeroed_bytes;
  void (*call)(const void *what); /* in place of a graph */
  void *what;                     /* malloc'd */
  int64_t space_bytes, uid[SKETCH_TENSORS], tensors;
  void *pointer[SKETCH_TENSORS];
  bool convolves, has_numbers;
} op_t;

/* Ends the sketch. */
op_t op_make(const net_t *net, sketch_t *s);
void op_run(const net_t *net, op_t *op);
void op_free(op_t *op);

#endif
