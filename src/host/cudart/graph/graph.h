/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of work: nodes with what each does, recorded by a capture or made one
 * by one. As in CUDA, one graph is used by one thread at a time. */
#ifndef SDG_SRC_HOST_CUDART_GRAPH_GRAPH_H
#define SDG_SRC_HOST_CUDART_GRAPH_GRAPH_H

#include "src/host/cudart/internal.h"

/* Work of another work-alike, shared by the nodes that were copied from one
 * another: again(argument) makes the argument of one launch. */
typedef struct host_task {
  _Atomic int references;
  cudaError_t (*run)(void *argument);
  void *argument;
  void (*release)(void *argument);
  void *(*again)(const void *argument);
} host_task_t;

struct host_graphmem; /* graphmem.h */

/* A memset; cudaMemset3D captures more than one slice. */
typedef struct host_fill {
  struct cudaMemsetParams set;
  size_t slice, depth;
} host_fill_t;

/* What a node does. */
typedef struct host_deed {
  enum cudaGraphNodeType type;
  union {
    struct cudaMemcpy3DParms copy;
    host_fill_t fill;
    struct cudaHostNodeParams host;
    cudaEvent_t event;
    cudaGraph_t child;            /* the node's own */
    host_task_t *task;            /* of type Kernel */
    struct host_graphmem *memory; /* held; of types MemAlloc, MemFree */
  };
} host_deed_t;

struct CUgraphNode_st {
  cudaGraph_t graph;
  cudaGraphNode_t origin; /* what this node was copied from, or NULL */
  host_deed_t deed;
  bool disabled;          /* in an executable graph: does nothing */
  cudaGraphNode_t *needs; /* the nodes that come before */
  size_t need_count, need_room;
  size_t mark; /* scratch of searches */
};

/* References that a graph has to an object of the program's. */
typedef struct host_kept {
  struct host_kept *next;
  cudaUserObject_t object;
  unsigned count;
} host_kept_t;

struct CUgraph_st {
  cudaGraphNode_t *nodes; /* in the order of their making */
  size_t count, room;
  cudaGraph_t origin; /* what this graph was copied from, or NULL */
  host_kept_t *kept;
};

#pragma GCC visibility push(hidden)

cudaGraph_t host_graph_create(void);
void host_graph_destroy(cudaGraph_t graph);
/* NULL if memory is short. */
cudaGraph_t host_graph_copy(cudaGraph_t graph);
/* Adds a node; takes over the child graph or the reference to the task, in
 * case of an error, too. */
cudaError_t host_graph_add(cudaGraph_t graph, const cudaGraphNode_t *needs,
                           size_t need_count, host_deed_t deed,
                           cudaGraphNode_t *out_node);
bool host_node_add_need(cudaGraphNode_t node, cudaGraphNode_t need);
/* True if `node` is `start` or comes before it. */
bool host_node_precedes(cudaGraphNode_t node, cudaGraphNode_t start);
/* Fills `order` (graph->count long), false if there is a circle. */
bool host_graph_sort(cudaGraph_t graph, cudaGraphNode_t *order);
size_t host_node_index(const struct CUgraphNode_st *node);

/* cudaErrorInvalidValue for what cannot be copied or set. */
cudaError_t host_deed_check(const host_deed_t *deed);
/* Makes the deed part of a stream that is not captured. */
cudaError_t host_deed_push(const host_deed_t *deed, host_stream_t *stream);
/* Gives back what the deed holds. */
void host_deed_drop(host_deed_t *deed);
/* A deed of its own; false if memory is short. */
bool host_deed_copy(const host_deed_t *deed, host_deed_t *out_deed);

host_task_t *host_task_create(cudaError_t (*run)(void *argument),
                              void *argument, void (*release)(void *argument),
                              void *(*again)(const void *argument));

/* userobject.c: gives up the graph's references; gives a copy its own. */
void host_kept_drop(cudaGraph_t graph);
bool host_kept_copy(cudaGraph_t from, cudaGraph_t to);

/* Launches every node of the graph in an order that its needs allow. */
cudaError_t host_graph_push(cudaGraph_t graph, host_stream_t *stream);

/* The node of the executable graph that stands for a node of the graph it was
 * made from, or of a graph inside that; NULL if there is none. */
cudaGraphNode_t host_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node);

#pragma GCC visibility pop

#endif
