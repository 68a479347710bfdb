/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of a graph's call: its tensors that have memory. Inside
 * rules/graph/chain only, while a pattern is read. */
#ifndef SDG_RULES_GRAPH_CHAIN_OPERANDS_H
#define SDG_RULES_GRAPH_CHAIN_OPERANDS_H

#include "rules/graph/chain/pattern.h"

/* The activation that a level's tensors are computed of: what the main op
 * reads, otherwise the largest; -1: none. Takes levels and writers. */
int sdg_graph_lead_find(const sdg_graph_pattern_t *pattern,
                        sdg_graph_level_t level);
/* Sets operands, roles and the result of a pattern whose kind is known, and but
 * for attention its levels. NULL, or what it has that cannot be split. */
const char *sdg_graph_operands_find(sdg_graph_pattern_t *pattern);

#endif
