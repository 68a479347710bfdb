/* SPDX-License-Identifier: Apache-2.0 */
/* Computes graphs of attention node by node, in double, without roundings. */
#ifndef SDG_TESTS_UNIT_GRAPH_ATTENTION_COMPUTE_H
#define SDG_TESTS_UNIT_GRAPH_ATTENTION_COMPUTE_H

#include "src/graph/graph.h"

enum { COMPUTE_TENSORS = 128 };

int64_t compute_elements(const sdg_graph_tensor_t *tensor);

/* value[t]: elements of tensor t in the order of its dimensions, whatever its
 * strides are. Those that a node writes
 * are allocated here where they are NULL. False if there is
 * an op that nothing here computes. */
bool compute_graph(const sdg_graph_t *graph, double *value[COMPUTE_TENSORS]);

#endif
