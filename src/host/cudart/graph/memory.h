/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate: by one node; freed by another node or by the
 * program. */
#ifndef SDG_SRC_HOST_CUDART_GRAPH_MEMORY_H
#define SDG_SRC_HOST_CUDART_GRAPH_MEMORY_H

#include "src/host/cudart/graph/graph.h"

/* One allocation. Its address and memory exist from the creation of the node
 * until no node refers to it and the program has freed it. */
typedef struct host_graph_memory {
  struct host_graph_memory *next;
  struct cudaMemAllocNodeParams params; /* includes the address */
  int nodes;                            /* number of nodes that refer to it */
  bool live;      /* a launch has allocated it, and nothing has freed it yet */
  bool instanced; /* an executable graph uses it */
} host_graph_memory_t;

#pragma GCC visibility push(hidden)

/* Creates the memory with one reference by a node. Fails for parameters that do
 * not describe device memory. */
cudaError_t
host_graph_memory_create(const struct cudaMemAllocNodeParams *params,
                         host_graph_memory_t **out_memory);
/* Adds a reference by a node to the memory at this address; NULL if no graph
 * allocated it. */
host_graph_memory_t *host_graph_memory_find(const void *pointer);
void host_graph_memory_hold(host_graph_memory_t *memory);
void host_graph_memory_drop(host_graph_memory_t *memory);

/* The program frees a graph's memory, now or (release) in stream order. False
 * if no graph allocated it. *out_error is set if it is not allocated now. */
bool host_graph_memory_free(const void *pointer, cudaError_t *out_error);
void host_graph_memory_release(const void *pointer);

/* Whether the graph has such nodes, which some functions do not allow. */
bool host_graph_has_memory(cudaGraph_t graph);
bool host_node_has_memory(const struct CUgraphNode_st *node);

/* cudaErrorNotSupported while another executable graph of it exists. */
cudaError_t host_graph_memory_instance(cudaGraph_t graph);
void host_graph_memory_uninstance(cudaGraph_t graph);
/* Marks the memory as a launch of the graph changes it: cudaErrorInvalidValue
 * if the launch would allocate or free it twice. */
cudaError_t host_graph_memory_launch(cudaGraph_t graph, bool frees_before);

void host_graph_memory_close_all(void);

#pragma GCC visibility pop

#endif
