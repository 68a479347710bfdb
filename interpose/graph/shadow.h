/* SPDX-License-Identifier: Apache-2.0 */
/* What the program has told cuDNN's backend API of its descriptors: cuDNN does
 * not give operation graphs and variant packs back.
 *
 * As in cuDNN, an attribute holds a reference to its descriptors: the program
 * may destroy an operation's tensors at once, and another descriptor may get
 * their addresses. A shadow lives as long as its descriptor or a shadow that
 * refers to it. Callable from any thread; one lock guards all shadows. */
#ifndef SDG_INTERPOSE_GRAPH_SHADOW_H
#define SDG_INTERPOSE_GRAPH_SHADOW_H

#include <cudnn.h>
#include <stdbool.h>

#include "rules/graph/chain/call.h"

/* Each function is called after cuDNN's own has succeeded, _destroyed before
 * it. A descriptor without a shadow is ignored. */
void sdg_shadow_created(const void *descriptor,
                        cudnnBackendDescriptorType_t kind);
void sdg_shadow_set(const void *descriptor, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *element);
/* An operation graph, its engines, configurations and plans get the graph's
 * pattern (rules/graph/chain/pattern.h) when they are finalized. */
void sdg_shadow_finalized(const void *descriptor);
/* cuDNN has filled `count` descriptors of the program, which belong to the same
 * graph as `descriptor`. */
void sdg_shadow_read(const void *descriptor, int64_t count,
                     const cudnnBackendDescriptor_t *filled);
void sdg_shadow_destroyed(const void *descriptor);

/* What an execution uses. False: the plan's graph is not known, or memory is
 * short. Otherwise out->pattern is a reference, which the caller drops with
 * sdg_graph_pattern_release. */
bool sdg_shadow_use(const void *plan, const void *pack,
                    sdg_graph_execution_t *out);

#endif
