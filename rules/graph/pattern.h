/* SPDX-License-Identifier: Apache-2.0 */
/* An operation graph as a chain, which is all that cuDNN's engines take:
 * pointwise ops, one convolution, pointwise ops, reductions. Made once for a
 * graph; does not depend on its extents.
 *
 * Where a tensor is in the chain says which box of it a rank computes: a level
 * has one box. A tensor that two levels read (y = conv(x) + x) is on both, and
 * is two tensors in a piece's graph. */
#ifndef SDG_RULES_GRAPH_PATTERN_H
#define SDG_RULES_GRAPH_PATTERN_H

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/graph/graph.h"

typedef enum sdg_graph_level {
  SDG_GRAPH_LEVEL_X, /* tensors like the convolution's x */
  SDG_GRAPH_LEVEL_Y, /* tensors like its y */
  SDG_GRAPH_LEVEL_W, /* tensors like its filter: all of them on every rank */
  SDG_GRAPH_LEVELS,
} sdg_graph_level_t;
enum {
  SDG_GRAPH_AFTER = 1 << SDG_GRAPH_LEVELS,
  SDG_GRAPH_SUM = 2 << SDG_GRAPH_LEVELS
};

/* Which of the three convolutions it is. */
typedef enum sdg_graph_kind {
  SDG_GRAPH_FORWARD, /* y of x and w */
  SDG_GRAPH_DGRAD,   /* dx of dy and w; dx is `x` below, dy is `y` */
  SDG_GRAPH_WGRAD,   /* dw of x and dy; dw is `w` below, dy is `y` */
} sdg_graph_kind_t;

enum { SDG_GRAPH_TENSORS_MAX = 64 };

typedef struct sdg_graph_pattern {
  int references;     /* atomic */
  sdg_graph_t *graph; /* a reference */
  const char *name;   /* "conv+add+relu"; lives as long as the process */
  /* NULL: rules/graph can split it; otherwise what it has that cannot be, for
   * people: "a matmul". Then nothing below is set. */
  const char *lacks;
  uint64_t hash; /* of ops, parameters, types and connections; of no extents */
  sdg_graph_kind_t kind;
  bool adds_old; /* the convolution adds to old values of its result (beta) */
  int main;      /* the convolution's node */
  int tensor[SDG_GRAPH_LEVELS]; /* the convolution's x, y and w */
  sdg_graph_level_t after; /* level of all that is computed of its result */
  /* Of the convolution, for each spatial dimension. */
  int spatial;
  int64_t stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
  int64_t pre[SDG_DIMS_MAX], post[SDG_DIMS_MAX]; /* paddings */
  sdg_call_window_t window;                      /* the same, for reports */
  /* Bits 1 << level; SDG_GRAPH_AFTER: computed of the convolution's result;
   * SDG_GRAPH_SUM: by a reduction or statistics, which end the chain. Owned. */
  unsigned *tensor_levels, *node_levels;
  int *writer; /* of each tensor, -1: none; owned */
  /* The call's operands: the tensors that have memory. The first one is the
   * activation that the graph begins with. */
  int operands;
  int operand[SDG_OPERANDS_MAX]; /* tensor of each */
  sdg_role_t role[SDG_OPERANDS_MAX];
  int result; /* the first operand that is written and no sum; -1: none */
} sdg_graph_pattern_t;

/* Takes a reference to `graph`, whose tensors get tags (src/call/tag.h): the
 * key of tensor t's tag is &graph->tensor[t]. NULL when memory is short. */
sdg_graph_pattern_t *sdg_graph_pattern_create(sdg_graph_t *graph);
sdg_graph_pattern_t *sdg_graph_pattern_retain(sdg_graph_pattern_t *pattern);
/* Frees it with its last reference; the tags go, too. NULL is allowed. */
void sdg_graph_pattern_release(sdg_graph_pattern_t *pattern);

/* Whether ops compute what the convolution reads as its x. */
bool sdg_graph_has_prologue(const sdg_graph_pattern_t *pattern);

/* Whether `name` is the attribute of the convolution's tensor on `level`. */
bool sdg_graph_is_main(const sdg_graph_pattern_t *pattern, int level,
                       cudnnBackendAttributeName_t name);

/* A short name of a node's op: "conv", "matmul", "relu_fwd". */
const char *sdg_graph_node_name(const sdg_graph_node_t *node);
/* A graph's name, "conv+add+relu"; lives as long as the process. */
const char *sdg_graph_name(const sdg_graph_t *graph);

#endif
