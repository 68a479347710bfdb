/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that differ from another one in one thing. */
#ifndef SDG_TESTS_UNIT_GRAPH_COMPOSITE_MUTATE_H
#define SDG_TESTS_UNIT_GRAPH_COMPOSITE_MUTATE_H

#include "src/graph/graph.h"

/* Called with each mutant, and with one line about it. `must`: attention never
 * has this: it must be refused. */
typedef void mutate_each_t(const sdg_graph_t *mutant, const char *text,
                           bool must, void *of);

void mutate(const sdg_graph_t *graph, mutate_each_t *each, void *of);

#endif
