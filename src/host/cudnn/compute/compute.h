/* SPDX-License-Identifier: Apache-2.0 */
/* Computes an operation graph on the CPU. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_COMPUTE_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_COMPUTE_H

#include "src/graph/graph.h"
#include "src/host/cudnn/descriptor/types.h"

/* The name of the first thing in the graph that cannot be computed here, as a
 * sentence for the log ("operation RESHAPE", "RNG", ...); NULL if all can. */
const char *host_graph_lacks(const sdg_graph_t *graph);

/* Computes all non-virtual tensors that nodes write. data[t]: where element 0
 * of tensor t lies, readable by the CPU; NULL for virtual tensors. Tensors
 * passed by value were copied before. Runs on the stream's thread. False when
 * memory is short. */
bool host_graph_compute(const sdg_graph_t *graph, void *const *data);

#endif
