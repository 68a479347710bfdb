/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of graphs: inputs with rows of other ranks are assembled, and the
 * piece's graph computes all that the rank owns ("extend"). Inside rules/graph
 * only. */
#ifndef SDG_RULES_GRAPH_PLAN_H
#define SDG_RULES_GRAPH_PLAN_H

#include "rules/place/op.h"

/* Shard view. Collective over the agreement's group: the ranks agree that each
 * of them has a plan for its piece. SDG_E_GRAPH_ENGINE, on all ranks, if one
 * has none; the errors of sdg_graph_main_init. */
sdg_status_t sdg_graph_plan(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* Whole view: as sdg_op_t's share. The piece works in place, on a part of the
 * full tensors ("window"). */
sdg_status_t sdg_graph_share(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* The same, once it is known what the main op is. */
struct sdg_graph_maker;
sdg_status_t sdg_graph_share_make(struct sdg_graph_maker *m,
                                  sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
