/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that belongs to graphs: allocated by one node, freed by another one,
 * or by the program. */
#ifndef SDG_SRC_HOST_CUDART_GRAPH_MEMORY_H
#define SDG_SRC_HOST_CUDART_GRAPH_MEMORY_H

#include "src/host/cudart/graph/graph.h"

/* One allocation. Its address stays the same, and memory is behind it, from the
 * making of the node until no node is left and the program has freed it. */
typedef struct host_graphmem {
  struct host_graphmem *next;
  struct cudaMemAllocNodeParams params; /* with the address */
  int nodes;                            /* that refer to it */
  bool live;      /* a launch allocated it, and nothing freed it yet */
  bool instanced; /* by a graph that can be launched */
} host_graphmem_t;

#pragma GCC visibility push(hidden)

/* With one node; an error for parameters that are not those of memory of the
 * device. */
cudaError_t host_graphmem_create(const struct cudaMemAllocNodeParams *params,
                                 host_graphmem_t **out_memory);
/* One node more for the memory at this address; NULL if it is no graph's. */
host_graphmem_t *host_graphmem_find(const void *pointer);
void host_graphmem_hold(host_graphmem_t *memory);
void host_graphmem_drop(host_graphmem_t *memory);

/* The program frees memory of a graph, now or (release) when a stream comes to
 * it; false if it is no such memory. *out_error: it was not allocated. */
bool host_graphmem_free(const void *pointer, cudaError_t *out_error);
void host_graphmem_release(const void *pointer);

/* Nodes of this kind do not go everywhere. */
bool host_graph_has_memory(cudaGraph_t graph);
bool host_node_has_memory(const struct CUgraphNode_st *node);

/* cudaErrorNotSupported while another instance of the graph is there. */
cudaError_t host_graphmem_instance(cudaGraph_t graph);
void host_graphmem_uninstance(cudaGraph_t graph);
/* What the launch of a graph means to its memory: cudaErrorInvalidValue where
 * it would be allocated or freed twice. */
cudaError_t host_graphmem_launch(cudaGraph_t graph, bool frees_before);

void host_graphmem_close_all(void);

#pragma GCC visibility pop

#endif
