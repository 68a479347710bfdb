/* SPDX-License-Identifier: Apache-2.0 */
/* Operation graphs made by tests, with the memory of their tensors. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_MADE_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_MADE_H

#include "src/host/cudnn/compute/compute.h"

enum { MADE_TENSORS = 64, MADE_NODES = 40, MADE_RANK = 5 };

typedef enum {
  MADE_DENSE,    /* the last dimension innermost */
  MADE_CHANNELS, /* dimension 1 innermost */
  MADE_GAPS,     /* any order, room between elements */
  MADE_ONE,      /* all strides 0: one element, for inputs only */
} made_layout_t;

/* Memory that a tensor, or several, lie in. */
typedef struct {
  unsigned char *now, *before; /* before: as it was filled */
  size_t bytes;
} made_memory_t;

typedef struct {
  sdg_graph_t graph;
  void *data[MADE_TENSORS];    /* for host_graph_compute */
  int memory_of[MADE_TENSORS]; /* index, or -1 */
  bool written[MADE_TENSORS];  /* by a node */
  made_memory_t memory[MADE_TENSORS];
  int memories;
  int64_t part; /* elements that are computed at once; 0: as ever */
} made_t;

void made_create(made_t *m);
void made_destroy(made_t *m);

/* All return the tensor's index. Memory has values in -2 .. 2 (integers in
 * -9 .. 9, booleans 0 or 1) from case_real(). */
int made_real(made_t *m, cudnnDataType_t type, int rank, const int64_t *dim,
              made_layout_t layout);
int made_virtual(made_t *m, cudnnDataType_t type, int rank, const int64_t *dim);
/* By value: extents 1. */
int made_number(made_t *m, cudnnDataType_t type, int rank, double value);
/* Extents and strides of `like` in the same memory. */
int made_alias(made_t *m, int like);

/* Values of a tensor with memory, last dimension innermost. `before`: as it
 * was made. The caller frees them. */
double *made_values(const made_t *m, int tensor, bool before);
void made_fill(made_t *m, int tensor, const double *values);
int64_t made_count(const made_t *m, int tensor);
/* Byte at which element `i` lies. */
int64_t made_byte(const sdg_graph_tensor_t *t, int64_t i);
size_t made_unit(cudnnDataType_t type);
/* What memory of the type keeps of a value. */
double made_round(cudnnDataType_t type, double value);

/* Nodes. b, t: -1 if the mode has none. Backward modes: x, dy = b, dx = y. */
sdg_graph_node_t *made_pointwise(made_t *m, cudnnPointwiseMode_t mode,
                                 cudnnDataType_t compute, int x, int b, int t,
                                 int y);
typedef struct {
  cudnnBackendDescriptorType_t kind;
  cudnnDataType_t compute;
  bool flip;
  int64_t pre[3], post[3], stride[3], dilation[3];
  double alpha, beta;
} made_conv_t;
/* Attributes of the three kinds (forward, filter, data): x, w, y, alpha, beta,
 * where x, w and y stand for their gradients, too. */
extern const cudnnBackendAttributeName_t made_conv_names[3][5];
sdg_graph_node_t *made_conv(made_t *m, const made_conv_t *conv, int x, int w,
                            int y);
sdg_graph_node_t *made_reduction(made_t *m, cudnnReduceTensorOp_t op,
                                 cudnnDataType_t compute, int x, int y);
sdg_graph_node_t *made_statistics(made_t *m, cudnnDataType_t compute, int x,
                                  int sum, int squares);
sdg_graph_node_t *made_matmul(made_t *m, cudnnDataType_t compute, int a, int b,
                              int c);
typedef struct {
  bool backward;
  cudnnResampleMode_t mode;
  cudnnPaddingMode_t padding;
  bool nan; /* propagates */
  int64_t window[3];
  double stride[3], pre[3], post[3]; /* halves in interpolations */
} made_resample_t;
/* Backward: the gradients of x and y, and x itself as `from`, or -1. */
sdg_graph_node_t *made_resample(made_t *m, const made_resample_t *how, int x,
                                int y, int index, int from);
/* The elements of x in other indices, in the order of memory. */
sdg_graph_node_t *made_reshape(made_t *m, int x, int y);
sdg_graph_node_t *made_concat(made_t *m, int axis, int count, const int *x,
                              int y);
/* From Y_SUM to EXP_AVERATE_FACTOR, -1 where there is no tensor. */
enum { MADE_FINALIZE = 15 };
sdg_graph_node_t *made_finalize(made_t *m, cudnnBnFinalizeStatsMode_t mode,
                                const int tensor[MADE_FINALIZE]);
void made_set_integer(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, int64_t value);
void made_set_real(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                   double value);

/* Computes, and checks that nothing but the outputs' elements was written. */
void made_run(made_t *m);
/* Puts memory back as it was filled. */
void made_reset(made_t *m);

/* Lines that describe the graph; valid until the next call. */
const char *made_text(const made_t *m);

#endif
