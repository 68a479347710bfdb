// SPDX-License-Identifier: Apache-2.0
// The structure of graphs: nodes, dependencies, copies.
#include "src/host/cudart/graph/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// The graphs that exist, by their addresses. Destroying a graph twice is an
// error of the program that CUDA answers with a status.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUgraph_st *existing;

cudaGraph_t host_graph_create(void) {
  cudaGraph_t graph = calloc(1, sizeof(struct CUgraph_st));
  if (!graph)
    return NULL;
  graph->self = graph;
  pthread_mutex_lock(&lock);
  HASH_ADD(hh, existing, self, sizeof graph->self, graph);
  pthread_mutex_unlock(&lock);
  return graph;
}

bool host_graph_exists(cudaGraph_t graph) {
  struct CUgraph_st *found;
  pthread_mutex_lock(&lock);
  HASH_FIND(hh, existing, &graph, sizeof graph, found);
  pthread_mutex_unlock(&lock);
  return found != NULL;
}

static void node_destroy(cudaGraphNode_t node) {
  host_deed_drop(&node->deed);
  free(node->needs);
  free(node);
}

void host_graph_destroy(cudaGraph_t graph) {
  if (!graph)
    return;
  pthread_mutex_lock(&lock);
  HASH_DEL(existing, graph);
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < graph->count; i++)
    node_destroy(graph->nodes[i]);
  host_kept_drop(graph);
  free(graph->nodes);
  free(graph);
}

// Makes room for one more element.
static bool room_for(void *array, size_t count, size_t *room) {
  if (count < *room)
    return true;
  size_t more = *room ? 2 * *room : 8;
  void **at = array, *moved = realloc(*at, more * sizeof(void *));
  if (!moved)
    return false;
  *at = moved;
  *room = more;
  return true;
}

bool host_node_add_need(cudaGraphNode_t node, cudaGraphNode_t need) {
  if (!room_for(&node->needs, node->need_count, &node->need_room))
    return false;
  node->needs[node->need_count++] = need;
  return true;
}

cudaError_t host_graph_add(cudaGraph_t graph, const cudaGraphNode_t *needs,
                           size_t need_count, host_deed_t deed,
                           cudaGraphNode_t *out_node) {
  cudaError_t error = cudaErrorInvalidValue;
  cudaGraphNode_t node = NULL;
  if (!graph || !out_node || (need_count > 0 && !needs))
    goto refused;
  for (size_t i = 0; i < need_count; i++) {
    if (!needs[i] || needs[i]->graph != graph)
      goto refused;
    for (size_t k = 0; k < i; k++)
      if (needs[k] == needs[i])
        goto refused;
  }
  error = host_deed_check(&deed);
  if (error)
    goto refused;
  error = cudaErrorMemoryAllocation;
  node = calloc(1, sizeof *node);
  if (!node || !room_for(&graph->nodes, graph->count, &graph->room))
    goto refused;
  node->graph = graph;
  for (size_t i = 0; i < need_count; i++)
    if (!host_node_add_need(node, needs[i]))
      goto refused;
  node->deed = deed;
  graph->nodes[graph->count++] = node;
  *out_node = node;
  return cudaSuccess;
refused:
  if (node)
    free(node->needs);
  free(node);
  host_deed_drop(&deed);
  return error;
}

size_t host_node_index(const struct CUgraphNode_st *node) {
  size_t i = 0;
  while (node->graph->nodes[i] != node)
    i++;
  return i;
}

cudaGraph_t host_graph_copy(cudaGraph_t graph) {
  cudaGraph_t copy = host_graph_create();
  if (!copy)
    return NULL;
  copy->origin = graph;
  if (!host_kept_copy(graph, copy))
    goto failed;
  for (size_t i = 0; i < graph->count; i++) {
    cudaGraphNode_t made;
    host_deed_t deed;
    if (!host_deed_copy(&graph->nodes[i]->deed, &deed) ||
        host_graph_add(copy, NULL, 0, deed, &made) != cudaSuccess)
      goto failed;
    made->origin = graph->nodes[i];
    graph->nodes[i]->mark = i;
  }
  for (size_t i = 0; i < graph->count; i++) {
    const struct CUgraphNode_st *from = graph->nodes[i];
    copy->nodes[i]->disabled = from->disabled;
    for (size_t k = 0; k < from->need_count; k++)
      if (!host_node_add_need(copy->nodes[i],
                              copy->nodes[from->needs[k]->mark]))
        goto failed;
  }
  return copy;
failed:
  host_graph_destroy(copy);
  return NULL;
}

// ---- order ----

enum { WHITE, GREY, BLACK };

// Appends the nodes that come before the node, then the node; false for a
// cycle. Not recursive, because dependencies may be as deep as the whole graph.
static bool visit(cudaGraphNode_t start, cudaGraphNode_t *stack,
                  size_t *progress, cudaGraphNode_t *order, size_t *count) {
  size_t depth = 0;
  if (start->mark == BLACK)
    return true;
  stack[0] = start;
  progress[0] = 0;
  start->mark = GREY;
  for (;;) {
    cudaGraphNode_t node = stack[depth];
    if (progress[depth] < node->need_count) {
      cudaGraphNode_t need = node->needs[progress[depth]++];
      if (need->mark == GREY)
        return false;
      if (need->mark == BLACK)
        continue;
      need->mark = GREY;
      stack[++depth] = need;
      progress[depth] = 0;
      continue;
    }
    node->mark = BLACK;
    order[(*count)++] = node;
    if (depth-- == 0)
      return true;
  }
}

bool host_graph_sort(cudaGraph_t graph, cudaGraphNode_t *order) {
  size_t count = 0;
  cudaGraphNode_t *stack = malloc((graph->count + 1) * sizeof *stack);
  size_t *progress = malloc((graph->count + 1) * sizeof *progress);
  bool good = stack && progress;
  for (size_t i = 0; i < graph->count; i++)
    graph->nodes[i]->mark = WHITE;
  for (size_t i = 0; good && i < graph->count; i++)
    good = visit(graph->nodes[i], stack, progress, order, &count);
  free(stack);
  free(progress);
  return good;
}

bool host_node_precedes(cudaGraphNode_t node, cudaGraphNode_t start) {
  cudaGraph_t graph = start->graph;
  cudaGraphNode_t *order = malloc((graph->count + 1) * sizeof *order);
  cudaGraphNode_t *stack = malloc((graph->count + 1) * sizeof *stack);
  size_t *progress = malloc((graph->count + 1) * sizeof *progress);
  size_t count = 0;
  bool found = false;
  for (size_t i = 0; i < graph->count; i++)
    graph->nodes[i]->mark = WHITE;
  if (order && stack && progress)
    (void)visit(start, stack, progress, order, &count);
  for (size_t i = 0; i < count && !found; i++)
    found = order[i] == node;
  free(order);
  free(stack);
  free(progress);
  return found;
}

cudaError_t host_graph_push(cudaGraph_t graph, host_stream_t *stream) {
  cudaGraphNode_t *order = malloc((graph->count + 1) * sizeof(cudaGraphNode_t));
  cudaError_t error = order ? cudaSuccess : cudaErrorMemoryAllocation;
  if (order && !host_graph_sort(graph, order))
    error = cudaErrorInvalidValue;
  for (size_t i = 0; error == cudaSuccess && i < graph->count; i++)
    if (!order[i]->disabled)
      error = host_deed_push(&order[i]->deed, stream);
  free(order);
  return error;
}
