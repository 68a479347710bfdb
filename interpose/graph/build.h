/* SPDX-License-Identifier: Apache-2.0 */
/* From the shadows of an operation graph's descriptors to plain data. Inside
 * interpose/graph only. */
#ifndef SDG_INTERPOSE_GRAPH_BUILD_H
#define SDG_INTERPOSE_GRAPH_BUILD_H

#include <uthash.h>

#include "rules/graph/chain/pattern.h"

/* The value of an attribute, as it was set last. */
typedef struct sdg_shadow_value {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  void *data;                 /* owned; NULL for descriptors */
  struct sdg_shadow **shadow; /* of descriptors: references; owned */
} sdg_shadow_value_t;

typedef struct sdg_shadow {
  const void *key; /* the descriptor; may be another one's by now */
  cudnnBackendDescriptorType_t kind;
  int references;
  int values;
  sdg_shadow_value_t *value;    /* owned */
  sdg_graph_pattern_t *pattern; /* a reference, or NULL */
  sdg_graph_config_t *config;   /* of a plan from JSON; owned */
  UT_hash_handle hh;
} sdg_shadow_t;

/* Bytes of one value of this type. */
size_t sdg_shadow_value_bytes(cudnnBackendAttributeType_t type);
/* NULL if the attribute was not set. */
const sdg_shadow_value_t *sdg_shadow_value(const sdg_shadow_t *shadow,
                                           cudnnBackendAttributeName_t name);
/* The first descriptor of the attribute; NULL if it has none. */
const sdg_shadow_t *sdg_shadow_child(const sdg_shadow_t *shadow,
                                     cudnnBackendAttributeName_t name);

/* The graph that `shadow`, an operation graph's, has been finalized to. The
 * caller releases it. NULL: memory is short, or it has ops or tensors that were
 * made before sundog looked. */
sdg_graph_t *sdg_shadow_graph(const sdg_shadow_t *shadow);

#endif
