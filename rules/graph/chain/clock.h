/* SPDX-License-Identifier: Apache-2.0 */
/* One clock for the ranks while a program compares plans of one graph.
 *
 * Autotuners execute each plan until its time stops falling. If each rank went
 * by its own clock, the ranks would execute plans unequally often, and rows of
 * one execution would be taken for those of another. */
#ifndef SDG_RULES_GRAPH_CHAIN_CLOCK_H
#define SDG_RULES_GRAPH_CHAIN_CLOCK_H

#include <stdint.h>

#include "rules/graph/chain/pattern.h"

/* Another plan of the pattern was made. Any thread. */
void sdg_graph_clock_plan_made(sdg_graph_pattern_t *pattern);
/* Whether this rank has several plans of the pattern. */
bool sdg_graph_clock_compares(const sdg_graph_pattern_t *pattern);
/* What the ranks agreed on: `compares` of any rank. */
void sdg_graph_clock_agree(sdg_graph_pattern_t *pattern, bool compares);

/* Shard view: the calling thread has executed a graph, split. */
void sdg_graph_clock_executed(const sdg_graph_pattern_t *pattern);
/* Shard view: the calling thread has measured *io_ms, with a vendor's status.
 * If its last tagged call was an execution of a graph that has several plans,
 * this is collective over the agreement's group, and every rank gets the first
 * rank's time. An error breaks the job. */
sdg_status_t sdg_graph_clock_read(const char *entry_name, int status,
                                  float *io_ms) SDG_MUST_CHECK;

/* How many tagged calls this thread has made; 0 before the ranks have met. */
uint64_t sdg_graph_clock_calls(void);

#endif
