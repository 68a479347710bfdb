/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's piece of a graph: the graph's ops on other extents, and paddings of
 * its own, as an execution plan of cuDNN. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_PIECE_H
#define SDG_RULES_GRAPH_PIECE_H

#include <string.h>

#include "rules/graph/chain/call.h"

/* Which of a graph's ops a piece has. */
typedef enum sdg_graph_part {
  SDG_GRAPH_ALL,
  SDG_GRAPH_PROLOGUE, /* those in front of the main op */
  SDG_GRAPH_REST,     /* the others, on a prologue's result in memory */
  SDG_GRAPH_TERMS,    /* the main op, and those in front of it */
  SDG_GRAPH_EPILOGUE, /* those behind the main op, on its result in memory */
} sdg_graph_part_t;

/* A tensor on one level, as the piece has it. */
typedef struct sdg_graph_shape {
  cudnnDataType_t type;
  bool is_virtual;
  int64_t dim[SDG_DIMS_MAX], stride[SDG_DIMS_MAX]; /* elements */
  int64_t alignment;                               /* bytes */
} sdg_graph_shape_t;

/* The program's tensor. */
static inline sdg_graph_shape_t
sdg_graph_shape_of(const sdg_graph_tensor_t *tensor) {
  sdg_graph_shape_t shape = {.type = tensor->type,
                             .is_virtual = tensor->is_virtual,
                             .alignment = tensor->alignment};
  memcpy(shape.dim, tensor->dim, sizeof shape.dim);
  memcpy(shape.stride, tensor->stride, sizeof shape.stride);
  return shape;
}

/* What to build; large. */
typedef struct sdg_graph_extents {
  const sdg_graph_pattern_t *pattern;
  sdg_graph_part_t part;
  int64_t pre[SDG_DIMS_MAX], post[SDG_DIMS_MAX]; /* per spatial dimension */
  int rank; /* of all shapes; 0: that of the graph's tensors */
  /* Of each tensor on each of its levels. */
  sdg_graph_shape_t shape[SDG_GRAPH_TENSORS_MAX][SDG_GRAPH_LEVELS];
} sdg_graph_extents_t;

/* A tensor that the piece wants a pointer for. */
typedef struct sdg_graph_slot {
  int tensor;
  sdg_graph_level_t level;
} sdg_graph_slot_t;

enum { SDG_GRAPH_SLOTS_MAX = 2 * SDG_GRAPH_TENSORS_MAX };

typedef struct sdg_graph_piece {
  cudnnBackendDescriptor_t plan;
  size_t workspace_bytes;
  int slots;
  sdg_graph_slot_t slot[SDG_GRAPH_SLOTS_MAX];
  int64_t uid[SDG_GRAPH_SLOTS_MAX];
  /* The variant pack of the last run, and its pointers. */
  cudnnBackendDescriptor_t pack;
  void *pointer[SDG_GRAPH_SLOTS_MAX], *workspace;
} sdg_graph_piece_t;

/* Builds the piece's graph, and a plan by the engine and knobs of the program's
 * plan; if cuDNN refuses these, by the first configuration of its heuristics
 * whose numerical notes the program's engine has, too. *out_refusal: cuDNN's
 * status if no engine takes the piece; then *out is NULL and the result SDG_OK.
 * SDG_E_NO_MEMORY. The caller owns *out. */
sdg_status_t sdg_graph_piece_create(const sdg_graph_extents_t *extents,
                                    const sdg_call_t *call,
                                    sdg_graph_piece_t **out,
                                    int *out_refusal) SDG_MUST_CHECK;
void sdg_graph_piece_destroy(sdg_graph_piece_t *piece);
/* The same for a piece in the caller's storage. */
void sdg_graph_piece_fini(sdg_graph_piece_t *piece);

/* Runs it on the handle's stream; pointer[i] is that of slot i. Returns cuDNN's
 * status. */
int sdg_graph_piece_run(sdg_graph_piece_t *piece, cudnnHandle_t handle,
                        void *const *pointer, void *workspace);
/* The next run makes its variant pack anew, although pointers may be the same:
 * a number of the host is another one. */
void sdg_graph_piece_forget(sdg_graph_piece_t *piece);

#endif
