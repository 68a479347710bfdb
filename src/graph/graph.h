/* SPDX-License-Identifier: Apache-2.0 */
/* An operation graph of cuDNN's backend API as plain data: what remains of the
 * program's descriptors once the graph is finalized. The host device computes
 * it, and rules/graph divides it between ranks.
 *
 * Operands and parameters are named by the attributes of the API, which are
 * unique over all kinds of descriptors. A node has the parameters of its
 * operation and those of the descriptor that the operation refers to
 * (convolution, pointwise, matmul, reduction, resample, rng). */
#ifndef SDG_SRC_GRAPH_GRAPH_H
#define SDG_SRC_GRAPH_GRAPH_H

/* The host device defines and exports what this header declares. */
#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int64_t uid; /* unique in the graph; -1: the program set none */
  cudnnDataType_t type;
  int rank;
  int64_t dim[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX]; /* elements */
  int64_t alignment;                                 /* bytes */
  int64_t vector_count, vector_dimension; /* 1 and -1: not vectorised */
  cudnnBackendTensorReordering_t reordering;
  bool is_virtual;  /* has no memory: exists between two nodes only */
  bool is_by_value; /* the variant pack's pointer is the host's */
  bool is_ragged;
  bool has_unknown; /* the program set an attribute that is none of these */
} sdg_graph_tensor_t;

/* `tensor` is an index into the graph's tensors. An attribute that takes
 * several tensors (CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS) has several
 * operands in a row. */
typedef struct {
  cudnnBackendAttributeName_t name;
  int tensor;
} sdg_graph_operand_t;

/* Numbers of integer, boolean and enumeration attributes are in `integer`, of
 * float and double attributes in `real`. */
typedef struct {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type; /* as the program set it */
  int count;
  union {
    int64_t integer;
    double real;
  } value[CUDNN_DIM_MAX];
} sdg_graph_parameter_t;

/* The numbers of a parameter as the API takes them. */
typedef union {
  int64_t large[CUDNN_DIM_MAX];
  int32_t small[CUDNN_DIM_MAX]; /* enumerations, too */
  float single[CUDNN_DIM_MAX];
  double twice[CUDNN_DIM_MAX];
  bool flag[CUDNN_DIM_MAX];
} sdg_graph_values_t;

typedef struct {
  cudnnBackendDescriptorType_t kind; /* of the operation's descriptor */
  int operand_count, parameter_count;
  sdg_graph_operand_t *operand;     /* owned */
  sdg_graph_parameter_t *parameter; /* owned */
} sdg_graph_node_t;

/* Constant once it is made. Nodes are in topological order: a node that writes
 * a tensor comes before every node that reads it. */
typedef struct {
  int tensor_count, node_count;
  sdg_graph_tensor_t *tensor; /* owned */
  sdg_graph_node_t *node;     /* owned */
  int references;             /* atomic; of plans and descriptors */
} sdg_graph_t;

/* An engine (CUDNN_ATTR_ENGINE_GLOBAL_INDEX) with its knobs' values. */
enum { SDG_GRAPH_KNOBS = 64 };
typedef struct {
  cudnnBackendKnobType_t type;
  int64_t value;
} sdg_graph_knob_t;
typedef struct {
  int64_t engine;
  int knob_count;
  sdg_graph_knob_t knob[SDG_GRAPH_KNOBS];
} sdg_graph_config_t;

/* The version of a plan's JSON that sdg_graph_read reads. */
enum { SDG_GRAPH_SCHEMA = 4 };
typedef enum {
  SDG_GRAPH_READ,
  SDG_GRAPH_NO_JSON, /* the text is none, or memory is short */
  SDG_GRAPH_UNKNOWN, /* of another version, or with a key that is not known: it
                        could change the result */
} sdg_graph_reading_t;
/* Reads EXECUTION_PLAN_JSON_REPRESENTATION; *out_graph is the caller's. */
sdg_graph_reading_t sdg_graph_read(const char *text, int64_t length,
                                   sdg_graph_t **out_graph,
                                   sdg_graph_config_t *out_config);

sdg_graph_t *sdg_graph_retain(sdg_graph_t *graph);
/* Frees the graph with its last reference. NULL is allowed. */
void sdg_graph_release(sdg_graph_t *graph);

/* The tensor's index, or -1 if the node has no such operand. */
int sdg_graph_operand(const sdg_graph_node_t *node,
                      cudnnBackendAttributeName_t name);
/* NULL if the program did not set it. */
const sdg_graph_parameter_t *
sdg_graph_parameter(const sdg_graph_node_t *node,
                    cudnnBackendAttributeName_t name);
/* The first value of a parameter, or `missing` if it was not set. */
int64_t sdg_graph_integer(const sdg_graph_node_t *node,
                          cudnnBackendAttributeName_t name, int64_t missing);
double sdg_graph_real(const sdg_graph_node_t *node,
                      cudnnBackendAttributeName_t name, double missing);
/* All values of a parameter. */
void sdg_graph_values(const sdg_graph_parameter_t *parameter,
                      sdg_graph_values_t *out);

/* Whether a node of this kind can write the operand. */
bool sdg_graph_is_output(cudnnBackendDescriptorType_t kind,
                         cudnnBackendAttributeName_t name);
/* Whether this node writes the operand: a backward pointwise op reads y, and a
 * normalisation in inference reads the statistics. */
bool sdg_graph_writes(const sdg_graph_node_t *node,
                      cudnnBackendAttributeName_t name);

/* Sorts the nodes so that each one comes after those that write what it reads,
 * in the order given where that leaves a choice. False if there is a circle, or
 * if memory is short. */
bool sdg_graph_sort(sdg_graph_t *graph);

/* Bytes of one element; of a vector in vectorised types, 1 for types smaller
 * than a byte, 0 for an unknown type. */
size_t sdg_graph_type_bytes(cudnnDataType_t type);
/* Whether two elements share a byte. */
bool sdg_graph_type_is_half(cudnnDataType_t type);

/* The index of the tensor with this uid, or -1. */
int sdg_graph_find(const sdg_graph_t *graph, int64_t uid);

#endif
