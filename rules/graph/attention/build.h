/* SPDX-License-Identifier: Apache-2.0 */
/* Adds tensors and nodes to a graph that is being made. Functions that add a
 * node return the tensor that it writes. After memory ran short they do
 * nothing of use, so that only the end has to look at it. Inside
 * rules/graph/attention only. */
#ifndef SDG_RULES_GRAPH_ATTENTION_BUILD_H
#define SDG_RULES_GRAPH_ATTENTION_BUILD_H

#include "rules/graph/attention/state.h"

typedef struct sdg_builder {
  const sdg_attention_shape_t *shape;
  sdg_attention_state_t *out;
  int64_t scores[4], rows[4]; /* extents of a score each, and a row each */
  bool failed;                /* memory is short */
} sdg_builder_t;

/* ---- tensors ------------------------------------------------------------- */

/* In memory, and virtual. */
int sdg_build_packed(sdg_builder_t *builder, cudnnDataType_t type,
                     const int64_t dim[4]);
int sdg_build_virtual(sdg_builder_t *builder, cudnnDataType_t type,
                      const int64_t dim[4]);
/* A virtual tensor like the scores, and one of f32 like the rows' sums. */
int sdg_build_score(sdg_builder_t *builder, cudnnDataType_t type);
int sdg_build_row(sdg_builder_t *builder);
/* A number of the program, and one of the graph's own: f32, i32. */
int sdg_build_by_value(sdg_builder_t *builder, cudnnDataType_t type);
int sdg_build_real(sdg_builder_t *builder, float value);
int sdg_build_whole(sdg_builder_t *builder, int64_t value);
/* The extents of a role's tensor, rows before columns. */
void sdg_build_extents(const sdg_attention_shape_t *shape,
                       sdg_composite_role_t role, int64_t out[4]);
/* The tensors that the shape has; writes builder->out->tensor. */
void sdg_build_roles(sdg_builder_t *builder);

/* ---- nodes --------------------------------------------------------------- */

sdg_graph_node_t *sdg_build_node(sdg_builder_t *builder,
                                 cudnnBackendDescriptorType_t kind);
/* Nothing if there is no tensor (-1). */
void sdg_build_operand(sdg_builder_t *builder, sdg_graph_node_t *node,
                       cudnnBackendAttributeName_t name, int tensor);
void sdg_build_parameter(sdg_builder_t *builder, sdg_graph_node_t *node,
                         cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t value);

/* y = mode(x, with); computed in `in`, or in float. `with`: -1 for none. */
int sdg_build_pointwise_in(sdg_builder_t *builder, cudnnDataType_t in,
                           cudnnPointwiseMode_t mode, int x, int with, int y);
int sdg_build_pointwise(sdg_builder_t *builder, cudnnPointwiseMode_t mode,
                        int x, int with, int y);
/* A truth for each score. */
int sdg_build_truth(sdg_builder_t *builder, cudnnPointwiseMode_t mode, int x,
                    int with);
int sdg_build_reduction(sdg_builder_t *builder, cudnnReduceTensorOp_t op, int x,
                        int y);
/* Tensors of the sequences' lengths; -1: none. */
typedef struct sdg_build_lengths {
  int rows, columns, depth;
} sdg_build_lengths_t;
/* z = x y */
int sdg_build_product(sdg_builder_t *builder, int x, int y, int z,
                      sdg_build_lengths_t lengths);
/* The tensor with its last two dimensions exchanged, virtual. */
int sdg_build_turn(sdg_builder_t *builder, int x, cudnnDataType_t type);

#endif
