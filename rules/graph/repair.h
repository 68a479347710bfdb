/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy "repair" of graphs whose results overwrite, shard view. Inside
 * rules/graph only. */
#ifndef SDG_RULES_GRAPH_REPAIR_H
#define SDG_RULES_GRAPH_REPAIR_H

#include "rules/graph/maker.h"

/* Why no graph like this one can be repaired, for reports; NULL: it can. */
const char *sdg_graph_repair_lacks(const sdg_graph_maker_t *m);
/* Sets m->repairs if the section, or with `auto` the model of costs, wants it,
 * and the graph allows it on this rank; and m->price, m->why and m->strip. Each
 * rank may decide alone: it sends, reads and writes the same elements either
 * way. */
sdg_status_t sdg_graph_repair_choose(sdg_graph_maker_t *m) SDG_MUST_CHECK;
/* After sdg_graph_inputs_open: plans the strips. *out_refusal: cuDNN's status
 * if no engine takes one of them. */
sdg_status_t sdg_graph_repair_open(sdg_graph_maker_t *m,
                                   int *out_refusal) SDG_MUST_CHECK;
/* Adds all steps. */
sdg_status_t sdg_graph_repair_compute(sdg_graph_maker_t *m) SDG_MUST_CHECK;
void sdg_graph_repair_fini(sdg_graph_maker_t *m);

#endif
