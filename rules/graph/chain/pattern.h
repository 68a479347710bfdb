/* SPDX-License-Identifier: Apache-2.0 */
/* An operation graph as a chain, which is all that cuDNN's engines take:
 * pointwise ops, one op with a window or one product of matrices, pointwise
 * ops, reductions. The op in the middle may be missing. Made once for a graph;
 * does not depend on its extents.
 *
 * Where a tensor is in the chain says which box of it a rank computes: a level
 * has one box. A tensor that two levels read (y = conv(x) + x) is on both, and
 * is two tensors in a piece's graph. */
#ifndef SDG_RULES_GRAPH_CHAIN_PATTERN_H
#define SDG_RULES_GRAPH_CHAIN_PATTERN_H

#include "rules/graph/composite/composite.h"
#include "src/base/status.h"
#include "src/call/call.h"
#include "src/call/tag.h"
#include "src/graph/graph.h"

typedef enum sdg_graph_level {
  SDG_GRAPH_LEVEL_X, /* tensors like the main op's x */
  SDG_GRAPH_LEVEL_Y, /* tensors like its y; all of a graph without a main op */
  SDG_GRAPH_LEVEL_W, /* tensors like its filter: all of them on every rank;
                        or like the second factor of a product */
  SDG_GRAPH_LEVELS,
} sdg_graph_level_t;
enum {
  SDG_GRAPH_AFTER = 1 << SDG_GRAPH_LEVELS,
  SDG_GRAPH_SUM = 2 << SDG_GRAPH_LEVELS
};

/* The main op. */
typedef enum sdg_graph_kind {
  SDG_GRAPH_FORWARD,   /* convolution: y of x and w */
  SDG_GRAPH_DGRAD,     /* dx of dy and w; dx is `x` below, dy is `y` */
  SDG_GRAPH_WGRAD,     /* dw of x and dy; dw is `w` below, dy is `y` */
  SDG_GRAPH_POOL,      /* y of x; no `w` */
  SDG_GRAPH_POOL_BACK, /* dx of dy, and of x and y; dx is `x`, dy is `y` */
  SDG_GRAPH_PRODUCT,   /* C of A and B, which are y, x and `w` */
  SDG_GRAPH_NORM,      /* normalisation: y of x; all else is on the `w` level */
  SDG_GRAPH_NORM_BACK, /* dx, which is `y`, of x and dy, on the `x` level */
  SDG_GRAPH_POINTWISE, /* none: pointwise ops and reductions alone */
  SDG_GRAPH_ATTENTION, /* no chain: rules/graph/composite. Nothing of levels is
                          set */
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
  sdg_composite_t *attention; /* of this kind; owned */
  bool adds_old; /* the main op adds to old values of its result (beta) */
  int main;      /* the main op's node; -1: none */
  /* The main op's x, y and w; -1: none. Without a main op x and y are the
   * activation that the graph begins with. */
  int tensor[SDG_GRAPH_LEVELS];
  sdg_graph_level_t after; /* level of all that is computed of its result */
  bool combines;           /* there are reductions or statistics */
  /* Of the main op, for each spatial dimension. */
  int spatial;
  int64_t kernel[SDG_DIMS_MAX], stride[SDG_DIMS_MAX], dilation[SDG_DIMS_MAX];
  int64_t pre[SDG_DIMS_MAX], post[SDG_DIMS_MAX]; /* paddings */
  /* Every window must be in a piece as a whole, because what an element of dx
   * gets depends on the others in its window. */
  bool whole_windows;
  sdg_call_window_t window; /* the same, for reports */
  /* Bits 1 << level; SDG_GRAPH_AFTER: computed of the main op's result;
   * SDG_GRAPH_SUM: by a reduction or statistics, which end the chain; of
   * tensors also what a normalisation writes beside its result. Owned. */
  unsigned *tensor_levels, *node_levels;
  int *writer; /* of each tensor, -1: none; owned */
  /* The call's operands: the tensors that have memory. The first one is the
   * activation that the graph begins with. */
  int operands;
  int operand[SDG_OPERANDS_MAX]; /* tensor of each */
  sdg_role_t role[SDG_OPERANDS_MAX];
  int result; /* the largest operand that is written and no sum; -1: none */
  struct sdg_graph_tagged *tagged; /* rules/graph/chain/tagged.c */
  /* Atomic, rules/graph/chain/clock.h: plans that were made of it; whether the
   * ranks take the program to compare them. */
  int plans;
  bool compares;
} sdg_graph_pattern_t;

/* Takes a reference to `graph`, whose tensors get tags (src/call/tag.h): the
 * key of tensor t's tag is &graph->tensor[t]. NULL when memory is short. */
sdg_graph_pattern_t *sdg_graph_pattern_create(sdg_graph_t *graph);
sdg_graph_pattern_t *sdg_graph_pattern_retain(sdg_graph_pattern_t *pattern);
/* Frees it with its last reference; the tags go, too. NULL is allowed. */
void sdg_graph_pattern_release(sdg_graph_pattern_t *pattern);

/* Finds the main op and reads its window. NULL, or what the graph has that
 * cannot be split. Inside rules/graph only, as what follows. */
const char *sdg_graph_main_find(sdg_graph_pattern_t *pattern);
/* The level of the main op's operand `name`. */
sdg_graph_level_t sdg_graph_main_level(const sdg_graph_pattern_t *pattern,
                                       cudnnBackendAttributeName_t name);
/* Whether its result is like x: a gradient of data. */
static inline bool sdg_graph_is_back(const sdg_graph_pattern_t *pattern) {
  return pattern->after == SDG_GRAPH_LEVEL_X;
}
/* Whether it is a convolution or a gradient of one. */
static inline bool sdg_graph_convolves(const sdg_graph_pattern_t *pattern) {
  return pattern->kind <= SDG_GRAPH_WGRAD;
}
/* Whether it is a pooling or a gradient of one. */
static inline bool sdg_graph_pools(const sdg_graph_pattern_t *pattern) {
  return pattern->kind == SDG_GRAPH_POOL ||
         pattern->kind == SDG_GRAPH_POOL_BACK;
}
/* Whether it is a normalisation or its gradient. */
static inline bool sdg_graph_normalises(const sdg_graph_pattern_t *pattern) {
  return pattern->kind == SDG_GRAPH_NORM ||
         pattern->kind == SDG_GRAPH_NORM_BACK;
}
/* Whether every output sees all channels of x. */
static inline bool sdg_graph_mixes(const sdg_graph_pattern_t *pattern) {
  return sdg_graph_convolves(pattern);
}
/* What stands for the product of a graph that has one in the tag table. */
static inline const void *
sdg_graph_product_key(const sdg_graph_pattern_t *pattern) {
  return &pattern->graph->node[pattern->main];
}
/* What stands for tensor `t` in the tag table where its memory has a label
 * (sundog_tag_range): tensors with another label, or with none, are others,
 * although a plan is about all of them. NULL when memory is short. Any thread.
 */
const void *sdg_graph_tagged_get(sdg_graph_pattern_t *pattern, int t,
                                 const sdg_tag_label_t *label);
void sdg_graph_tagged_fini(sdg_graph_pattern_t *pattern);

/* Whether ops compute what the main op reads as its x. */
bool sdg_graph_has_prologue(const sdg_graph_pattern_t *pattern);
/* Whether a node is a reduction or statistics. */
bool sdg_graph_is_sum(const sdg_graph_node_t *node);

/* A short name of a node's op: "conv", "matmul", "relu_fwd". */
const char *sdg_graph_node_name(const sdg_graph_node_t *node);
/* A graph's name, "conv+add+relu"; lives as long as the process. */
const char *sdg_graph_name(const sdg_graph_t *graph);

#endif
