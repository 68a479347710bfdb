/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbourhood attention: its call and its plan. Inside rules/ only. */
#ifndef SDG_RULES_NEIGHBORHOOD_PLAN_H
#define SDG_RULES_NEIGHBORHOOD_PLAN_H

#include "rules/neighborhood/window.h"
#include "rules/place/op.h"
#include "src/sundog.h"

/* Operand indices. Forward has the first four; in backward O is the gradient of
 * the output. */
enum {
  SDG_NEIGHBORHOOD_Q,
  SDG_NEIGHBORHOOD_K,
  SDG_NEIGHBORHOOD_V,
  SDG_NEIGHBORHOOD_O,
  SDG_NEIGHBORHOOD_DQ,
  SDG_NEIGHBORHOOD_DK,
  SDG_NEIGHBORHOOD_DV,
  SDG_NEIGHBORHOOD_OPERANDS,
};
enum { SDG_NEIGHBORHOOD_GRID_MAX = 3 };

/* A call, in global extents. */
typedef struct sdg_neighborhood {
  int grid; /* spatial dimensions of the descriptors, 2 or 3 */
  /* Of these dimensions; kernel 1 if the program's grid has fewer. */
  sdg_neighborhood_window_t dim[SDG_NEIGHBORHOOD_GRID_MAX];
  int64_t heads;
  /* Channels of a head: of q and k, of v and o. */
  int64_t q_channels, v_channels;
  double scale;
} sdg_neighborhood_t;

/* Checks the program's request before anything is known of the other ranks.
 * SDG_E_NEIGHBORHOOD. */
sdg_status_t
sdg_neighborhood_check(const sundog_neighborhood_t *how) SDG_MUST_CHECK;

/* Fills the call's shape from the placements, and checks that these are
 * possible and consistent: SDG_E_NEIGHBORHOOD, SDG_E_OPERANDS_DIFFER,
 * SDG_E_TENSOR_TYPE. */
sdg_status_t sdg_neighborhood_shape(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_neighborhood_t *out) SDG_MUST_CHECK;

/* SDG_E_NEIGHBORHOOD if a dimension of the grid is periodic: windows are
 * shifted or cut at edges, which such a dimension does not have. */
sdg_status_t
sdg_neighborhood_edges(const sdg_call_t *call,
                       const sdg_tagging_t *tagging) SDG_MUST_CHECK;

/* A call on tensors of three dimensions (N, C and a sequence), rewritten for
 * tensors of four, which all of cuDNN's functions accept. _pad creates it;
 * _unpad frees it. */
typedef struct sdg_neighborhood_padded {
  sdg_call_t call;
  sdg_tagging_t tagging;
} sdg_neighborhood_padded_t;
sdg_status_t
sdg_neighborhood_pad(const sdg_call_t *call, const sdg_tagging_t *tagging,
                     sdg_neighborhood_padded_t **out) SDG_MUST_CHECK;
void sdg_neighborhood_unpad(sdg_neighborhood_padded_t *padded);

/* Cuts C of `io`, whose heads have `to` channels each, between the same heads
 * as C of `like`, whose heads have `from` channels. *out_can is false if `like`
 * is cut inside a head. */
sdg_status_t sdg_neighborhood_heads(const sdg_placement_t *like, int64_t from,
                                    int64_t to, const sdg_mesh_t *mesh,
                                    bool *out_can,
                                    sdg_placement_t *io) SDG_MUST_CHECK;

/* The boxes of k, or of v if `of_values`, that the queries in a box see. Their
 * channels are those of the queries' heads. Empty for no queries. */
sdg_box_t sdg_neighborhood_need(const sdg_neighborhood_t *shape,
                                const sdg_box_t *queries, bool of_values);

/* Adds this rank's steps to an empty plan: it fetches keys and values,
 * computes, and scatters gradients to their owners. In the whole view the plan
 * has a share, which makes all inputs available on the rank. */
sdg_status_t sdg_neighborhood_fill(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t *plan) SDG_MUST_CHECK;

/* Computes the whole call on this rank, without the others; call->result is the
 * vendor's status. SDG_E_NEIGHBORHOOD and the errors of a plan. Any thread may
 * call it. */
sdg_status_t sdg_neighborhood_alone(sdg_call_t *call) SDG_MUST_CHECK;

/* The op's plan and share. */
sdg_op_plan_t sdg_neighborhood_share SDG_MUST_CHECK;
struct sdg_colocation;
/* See colocate() of sdg_op_t. */
sdg_status_t sdg_neighborhood_colocate(const sdg_call_t *call,
                                       struct sdg_colocation *colocation,
                                       int lead) SDG_MUST_CHECK;
sdg_op_plan_t sdg_neighborhood_plan SDG_MUST_CHECK;

#endif
