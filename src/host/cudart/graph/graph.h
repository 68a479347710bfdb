/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of work: nodes that a capture or the program adds. As in CUDA, one
 * thread at a time uses a graph. */
#ifndef SDG_SRC_HOST_CUDART_GRAPH_GRAPH_H
#define SDG_SRC_HOST_CUDART_GRAPH_GRAPH_H

#include <uthash.h>

#include "src/host/cudart/internal.h"

/* Work of another library (cuDNN, NCCL, cuBLAS), shared by copied nodes.
 * again(argument) makes the argument of one launch. */
typedef struct host_task {
  _Atomic int references;
  cudaError_t (*run)(void *argument);
  void *argument;
  void (*release)(void *argument);
  void *(*again)(const void *argument);
} host_task_t;

struct host_graph_memory; /* defined in memory.h */

/* A memset. cudaMemset3D may capture several slices. */
typedef struct host_fill {
  struct cudaMemsetParams set;
  size_t slice, depth;
} host_fill_t;

/* The work of a node. */
typedef struct host_deed {
  enum cudaGraphNodeType type;
  union {
    struct cudaMemcpy3DParms copy;
    host_fill_t fill;
    struct cudaHostNodeParams host;
    cudaEvent_t event;
    cudaGraph_t child; /* a graph that the node owns */
    host_task_t *task; /* for type Kernel */
    struct host_graph_memory
        *memory; /* a reference; for types MemAlloc and MemFree */
  };
} host_deed_t;

struct CUgraphNode_st {
  cudaGraph_t graph;
  cudaGraphNode_t origin; /* the node that this one was copied from, or NULL */
  host_deed_t deed;
  bool disabled;          /* in an executable graph: the node does nothing */
  cudaGraphNode_t *needs; /* the nodes that come before this one */
  size_t need_count, need_room;
  size_t mark; /* scratch of searches */
};

/* A graph's references to one of the program's objects. */
typedef struct host_kept {
  struct host_kept *next;
  cudaUserObject_t object;
  unsigned count;
} host_kept_t;

struct CUgraph_st {
  cudaGraphNode_t *nodes; /* in the order of creation */
  size_t count, room;
  cudaGraph_t origin; /* the graph that this one was copied from, or NULL */
  host_kept_t *kept;
  cudaGraph_t self; /* the key in the set of graphs that exist */
  UT_hash_handle hh;
};

#pragma GCC visibility push(hidden)

cudaGraph_t host_graph_create(void);
void host_graph_destroy(cudaGraph_t graph);
/* Whether the graph was made and is not yet destroyed. */
bool host_graph_exists(cudaGraph_t graph);
/* NULL if memory is short. */
cudaGraph_t host_graph_copy(cudaGraph_t graph);
/* Adds a node. Takes over the child graph or the reference to the task, also
 * after an error. */
cudaError_t host_graph_add(cudaGraph_t graph, const cudaGraphNode_t *needs,
                           size_t need_count, host_deed_t deed,
                           cudaGraphNode_t *out_node);
bool host_node_add_need(cudaGraphNode_t node, cudaGraphNode_t need);
/* True if `node` is `start` or comes before it. */
bool host_node_precedes(cudaGraphNode_t node, cudaGraphNode_t start);
/* Fills `order` (graph->count elements); false if there is a cycle. */
bool host_graph_sort(cudaGraph_t graph, cudaGraphNode_t *order);
size_t host_node_index(const struct CUgraphNode_st *node);

/* cudaErrorInvalidValue for work that cannot be copied or set. */
cudaError_t host_deed_check(const host_deed_t *deed);
/* Adds the work to a stream that is not captured. */
cudaError_t host_deed_push(const host_deed_t *deed, host_stream_t *stream);
/* Releases what the work holds. */
void host_deed_drop(host_deed_t *deed);
/* A copy with references of its own; false if memory is short. */
bool host_deed_copy(const host_deed_t *deed, host_deed_t *out_deed);

host_task_t *host_task_create(cudaError_t (*run)(void *argument),
                              void *argument, void (*release)(void *argument),
                              void *(*again)(const void *argument));

/* user_object.c: _drop releases the graph's references, _copy gives a copied
 * graph its own. */
void host_kept_drop(cudaGraph_t graph);
bool host_kept_copy(cudaGraph_t from, cudaGraph_t to);
/* Keeps the references of the graph and its child graphs until the work that is
 * in the stream now has ended. */
cudaError_t host_kept_launch(cudaGraph_t graph, host_stream_t *stream);
void host_kept_swap(cudaGraph_t a, cudaGraph_t b);

/* Launches every node of the graph in an order that its needs allow. */
cudaError_t host_graph_push(cudaGraph_t graph, host_stream_t *stream);

/* The node of the executable graph that was copied from this node, also from a
 * node of a child graph; NULL if there is none. */
cudaGraphNode_t host_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node);

#pragma GCC visibility pop

#endif
