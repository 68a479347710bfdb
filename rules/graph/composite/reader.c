// SPDX-License-Identifier: Apache-2.0
// Nodes with plain parameters, and the roles of tensors.
#include "rules/graph/composite/reader.h"

#include <string.h>

#define AT(name) CUDNN_ATTR_OPERATION_##name

bool sdg_reader_lacks(sdg_reader_t *r, const char *text) {
  if (!r->lacks)
    r->lacks = text;
  return false;
}

int sdg_reader_operand(const sdg_graph_node_t *node,
                       cudnnBackendAttributeName_t name) {
  return node ? sdg_graph_operand(node, name) : -1;
}

// ---- tensors ---------------------------------------------------------------

static bool has_extents(const sdg_reader_t *r, int t, const int64_t *dim) {
  return t >= 0 && r->graph->tensor[t].rank == 4 &&
         memcmp(r->graph->tensor[t].dim, dim, 4 * sizeof *dim) == 0;
}

bool sdg_reader_is_score(const sdg_reader_t *r, int t) {
  return has_extents(r, t, r->scores);
}

bool sdg_reader_is_row(const sdg_reader_t *r, int t) {
  return has_extents(r, t, r->rows);
}

bool sdg_reader_is_number(const sdg_reader_t *r, int t) {
  if (t < 0 || r->writer[t] >= 0 || !r->graph->tensor[t].is_by_value)
    return false;
  for (int d = 0; d < r->graph->tensor[t].rank; d++)
    if (r->graph->tensor[t].dim[d] != 1)
      return false;
  return true;
}

bool sdg_reader_is_input(const sdg_reader_t *r, int t) {
  return t >= 0 && r->writer[t] < 0 && !r->graph->tensor[t].is_by_value &&
         !r->graph->tensor[t].is_virtual;
}

static bool is_output(sdg_composite_role_t role, bool backward) {
  switch (role) {
  case SDG_COMPOSITE_O:
  case SDG_COMPOSITE_STATS:
    return !backward;
  case SDG_COMPOSITE_DQ:
  case SDG_COMPOSITE_DK:
  case SDG_COMPOSITE_DV:
  case SDG_COMPOSITE_DELTA:
  case SDG_COMPOSITE_DQ_SUM:
  case SDG_COMPOSITE_DK_FULL:
  case SDG_COMPOSITE_DV_FULL:
    return true;
  default:
    return false;
  }
}

bool sdg_reader_role(sdg_reader_t *r, sdg_composite_role_t role, int t,
                     bool turned) {
  int *is = &r->out->tensor[role];
  if (r->lacks)
    return false;
  if (t < 0 || (*is >= 0 && *is != t))
    return sdg_reader_lacks(r, "products of tensors that do not belong to each "
                               "other");
  const sdg_graph_tensor_t *tensor = &r->graph->tensor[t];
  if (tensor->is_virtual || tensor->is_by_value || tensor->rank != 4 ||
      is_output(role, r->out->backward) != (r->writer[t] >= 0))
    return sdg_reader_lacks(r, "queries, keys, values or results that are not "
                               "tensors in memory of 4 dimensions");
  if (*is >= 0 && r->out->turned[role] != turned)
    return sdg_reader_lacks(r, "a tensor that is read in two orders");
  *is = t;
  r->out->turned[role] = turned;
  r->known[t] = true;
  return true;
}

bool sdg_reader_number(sdg_reader_t *r, int t, int *count, int *list) {
  if (r->lacks)
    return false;
  if (!sdg_reader_is_number(r, t))
    return sdg_reader_lacks(r, "a number in device memory");
  r->known[t] = true;
  for (int i = 0; i < *count; i++)
    if (list[i] == t)
      return true;
  if (*count == SDG_COMPOSITE_NUMBERS_MAX)
    return sdg_reader_lacks(r, "more numbers than attention has");
  list[(*count)++] = t;
  return true;
}

// ---- nodes -----------------------------------------------------------------

bool sdg_reader_has_mode(const sdg_graph_node_t *node,
                         cudnnPointwiseMode_t mode) {
  return node && node->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
         sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1) ==
             (int64_t)mode;
}

int sdg_reader_other(const sdg_graph_node_t *node, int t) {
  int x = SDG_OPERAND(node, POINTWISE_XDESC);
  int b = SDG_OPERAND(node, POINTWISE_BDESC);
  return x == t ? b : b == t ? x : -1;
}

static const sdg_graph_node_t *written_by(const sdg_reader_t *r, int t,
                                          int kind) {
  int n = t < 0 || r->lacks ? -1 : r->writer[t];
  return n >= 0 && (int)r->graph->node[n].kind == kind ? &r->graph->node[n]
                                                       : NULL;
}

static const sdg_graph_node_t *take(sdg_reader_t *r,
                                    const sdg_graph_node_t *node) {
  r->taken[node - r->graph->node] = true;
  return node;
}

// Clips and slopes are those of other modes.
static bool parameters_are_plain(const sdg_graph_node_t *node) {
  for (int i = 0; i < node->parameter_count; i++)
    switch ((int)node->parameter[i].name) {
    case CUDNN_ATTR_POINTWISE_MODE:
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
    case CUDNN_ATTR_POINTWISE_NAN_PROPAGATION:
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP:
    case CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP:
    case CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE:
    case CUDNN_ATTR_POINTWISE_ELU_ALPHA:
    case CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA:
    case CUDNN_ATTR_POINTWISE_SWISH_BETA:
    case CUDNN_ATTR_POINTWISE_AXIS:
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1:
    case CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2:
      break;
    default:
      return false;
    }
  return sdg_graph_real(node, AT(POINTWISE_ALPHA1), 1) == 1 &&
         sdg_graph_real(node, AT(POINTWISE_ALPHA2), 1) == 1;
}

static bool types_fit(const sdg_reader_t *r, const sdg_graph_node_t *node,
                      sdg_reader_value_t value) {
  int64_t in =
      sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  int64_t to =
      r->graph->tensor[sdg_graph_operand(node, AT(POINTWISE_YDESC))].type;
  switch (value) {
  case SDG_READER_SCORE:
    return in == CUDNN_DATA_FLOAT && to == CUDNN_DATA_FLOAT;
  case SDG_READER_ANY:
    return in == CUDNN_DATA_FLOAT;
  case SDG_READER_INDEX:
    return (in == CUDNN_DATA_FLOAT || in == CUDNN_DATA_INT32) &&
           (to == CUDNN_DATA_FLOAT || to == CUDNN_DATA_INT32);
  case SDG_READER_TRUTH:
    return (in == CUDNN_DATA_FLOAT || in == CUDNN_DATA_INT32 ||
            in == CUDNN_DATA_BOOLEAN) &&
           (to == CUDNN_DATA_BOOLEAN || to == CUDNN_DATA_INT32);
  }
  return false;
}

static int operands_of(cudnnPointwiseMode_t mode) {
  switch ((int)mode) {
  case CUDNN_POINTWISE_BINARY_SELECT:
    return 4;
  case CUDNN_POINTWISE_EXP:
  case CUDNN_POINTWISE_LOG:
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_GEN_INDEX:
    return 2;
  default:
    return 3;
  }
}

const sdg_graph_node_t *sdg_reader_pointwise(sdg_reader_t *r, int t,
                                             cudnnPointwiseMode_t mode,
                                             sdg_reader_value_t value) {
  const sdg_graph_node_t *node =
      written_by(r, t, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  int operands = operands_of(mode);
  if (!sdg_reader_has_mode(node, mode))
    return NULL;
  if (node->operand_count != operands ||
      sdg_graph_operand(node, AT(POINTWISE_XDESC)) < 0 ||
      sdg_graph_operand(node, AT(POINTWISE_YDESC)) != t ||
      (sdg_graph_operand(node, AT(POINTWISE_BDESC)) >= 0) != (operands > 2) ||
      (sdg_graph_operand(node, AT(POINTWISE_TDESC)) >= 0) != (operands > 3) ||
      !parameters_are_plain(node) || !types_fit(r, node, value)) {
    sdg_reader_lacks(r, "a pointwise op with parameters or types that "
                        "attention does not have");
    return NULL;
  }
  return take(r, node);
}

const sdg_graph_node_t *sdg_reader_reduction(sdg_reader_t *r, int t,
                                             cudnnReduceTensorOp_t op) {
  const sdg_graph_node_t *node =
      written_by(r, t, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  if (!node ||
      sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1) != (int64_t)op)
    return NULL;
  if (sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_COMP_TYPE,
                        CUDNN_DATA_FLOAT) != CUDNN_DATA_FLOAT ||
      node->operand_count != 2) {
    sdg_reader_lacks(r, "a reduction that is not in float");
    return NULL;
  }
  return take(r, node);
}

static bool multiplies_plainly(const sdg_graph_node_t *node) {
  for (int i = 0; i < node->parameter_count; i++)
    if (node->parameter[i].name != CUDNN_ATTR_MATMUL_COMP_TYPE &&
        node->parameter[i].name != CUDNN_ATTR_MATMUL_PADDING_VALUE)
      return false;
  return sdg_graph_integer(node, CUDNN_ATTR_MATMUL_COMP_TYPE,
                           CUDNN_DATA_FLOAT) == CUDNN_DATA_FLOAT &&
         sdg_graph_real(node, CUDNN_ATTR_MATMUL_PADDING_VALUE, 0) == 0;
}

const sdg_graph_node_t *sdg_reader_matmul(sdg_reader_t *r, int t) {
  const sdg_graph_node_t *node =
      written_by(r, t, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  if (node && !multiplies_plainly(node)) {
    sdg_reader_lacks(r, "a product that is not in float, or with padding");
    return NULL;
  }
  return node ? take(r, node) : NULL;
}

bool sdg_reader_overrides(sdg_reader_t *r, const sdg_graph_node_t *product,
                          int m, int n, int k) {
  return (SDG_OPERAND(product, MATMUL_GEMM_M_OVERRIDE_DESC) == m &&
          SDG_OPERAND(product, MATMUL_GEMM_N_OVERRIDE_DESC) == n &&
          SDG_OPERAND(product, MATMUL_GEMM_K_OVERRIDE_DESC) == k) ||
         sdg_reader_lacks(r, "products and masks with different lengths");
}

const sdg_graph_node_t *sdg_reader_turn(sdg_reader_t *r, int t) {
  const sdg_graph_node_t *node =
      written_by(r, t, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  if (!node)
    return NULL;
  int from = sdg_graph_operand(node, AT(RESHAPE_XDESC));
  const sdg_graph_tensor_t *y = &r->graph->tensor[t];
  const sdg_graph_tensor_t *x = &r->graph->tensor[from < 0 ? t : from];
  bool turns = from >= 0 && node->operand_count == 2 &&
               node->parameter_count == 0 && x->rank == 4 && y->rank == 4;
  for (int d = 0; turns && d < 4; d++) {
    int of = d < 2 ? d : 5 - d;
    turns = y->dim[d] == x->dim[of] &&
            (y->dim[d] == 1 || y->stride[d] == x->stride[of]);
  }
  if (!turns) {
    sdg_reader_lacks(r, "a reshape that is no transposition");
    return NULL;
  }
  return take(r, node);
}
