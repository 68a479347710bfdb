/* SPDX-License-Identifier: Apache-2.0 */
/* The names of enumerations and parameters in a plan's JSON. */
#ifndef SDG_SRC_GRAPH_NAMES_H
#define SDG_SRC_GRAPH_NAMES_H

#include "src/graph/graph.h"

typedef enum {
  SDG_GRAPH_KEY_DATA_TYPE,
  SDG_GRAPH_KEY_CONVOLUTION_MODE,
  SDG_GRAPH_KEY_POINTWISE_MODE,
  SDG_GRAPH_KEY_REDUCTION_OPERATOR,
  SDG_GRAPH_KEY_RESAMPLE_MODE,
  SDG_GRAPH_KEY_PADDING_MODE,
  SDG_GRAPH_KEY_NAN_PROPAGATION,
  SDG_GRAPH_KEY_BN_FINALIZE_MODE,
  SDG_GRAPH_KEY_NORM_MODE,
  SDG_GRAPH_KEY_NORM_PHASE,
  SDG_GRAPH_KEY_KNOB_TYPE,
  SDG_GRAPH_KEY_REORDERING,
  SDG_GRAPH_KEY_TYPE,      /* in which the next key's number was set */
  SDG_GRAPH_KEY_OPERATION, /* kinds of descriptors */
  SDG_GRAPH_KEY_ENUMS,     /* those above have names */
  SDG_GRAPH_KEY_REAL = SDG_GRAPH_KEY_ENUMS,
  SDG_GRAPH_KEY_LIST, /* of integers, one for each spatial dimension */
  SDG_GRAPH_KEY_FRACTIONS,
  SDG_GRAPH_KEY_INTEGER,
  SDG_GRAPH_KEY_BOOLEAN,
  SDG_GRAPH_KEY_OPERAND,  /* the name of a tensor */
  SDG_GRAPH_KEY_OPERANDS, /* a list of such names */
} sdg_graph_key_type_t;

typedef struct {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t attribute;
  const char *key;
  sdg_graph_key_type_t type;
} sdg_graph_key_t;

extern const sdg_graph_key_t sdg_graph_keys[];
extern const int sdg_graph_key_count;

/* The name of a value, or NULL. */
const char *sdg_graph_name_of(sdg_graph_key_type_t type, int64_t value);
/* The value of a name; false if there is no such name. */
bool sdg_graph_name_find(sdg_graph_key_type_t type, const char *name,
                         int64_t *out);

/* Whether all operands and parameters of the node are known to sundog: those of
 * later versions of cuDNN could change what it computes. Of a kind without keys
 * nothing is known. */
bool sdg_graph_is_known(const sdg_graph_node_t *node);

/* The type in which the API sets the attribute. */
cudnnBackendAttributeType_t
sdg_graph_key_attribute_type(sdg_graph_key_type_t type);

#endif
