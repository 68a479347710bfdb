// SPDX-License-Identifier: Apache-2.0
// Operation graphs: their life, their operands and their order.
#include "src/graph/graph.h"

#include <stdlib.h>

sdg_graph_t *sdg_graph_retain(sdg_graph_t *graph) {
  if (graph)
    __atomic_fetch_add(&graph->references, 1, __ATOMIC_RELAXED);
  return graph;
}

void sdg_graph_release(sdg_graph_t *graph) {
  if (!graph ||
      __atomic_fetch_sub(&graph->references, 1, __ATOMIC_ACQ_REL) != 1)
    return;
  for (int i = 0; graph->node && i < graph->node_count; i++) {
    free(graph->node[i].operand);
    free(graph->node[i].parameter);
  }
  free(graph->node);
  free(graph->tensor);
  free(graph);
}

int sdg_graph_operand(const sdg_graph_node_t *node,
                      cudnnBackendAttributeName_t name) {
  for (int i = 0; i < node->operand_count; i++)
    if (node->operand[i].name == name)
      return node->operand[i].tensor;
  return -1;
}

const sdg_graph_parameter_t *
sdg_graph_parameter(const sdg_graph_node_t *node,
                    cudnnBackendAttributeName_t name) {
  for (int i = 0; i < node->parameter_count; i++)
    if (node->parameter[i].name == name)
      return &node->parameter[i];
  return NULL;
}

static bool is_real(const sdg_graph_parameter_t *parameter) {
  return parameter->type == CUDNN_TYPE_FLOAT ||
         parameter->type == CUDNN_TYPE_DOUBLE ||
         parameter->type == CUDNN_TYPE_FRACTION;
}

int64_t sdg_graph_integer(const sdg_graph_node_t *node,
                          cudnnBackendAttributeName_t name, int64_t missing) {
  const sdg_graph_parameter_t *parameter = sdg_graph_parameter(node, name);
  if (!parameter || parameter->count < 1)
    return missing;
  return is_real(parameter) ? (int64_t)parameter->value[0].real
                            : parameter->value[0].integer;
}

double sdg_graph_real(const sdg_graph_node_t *node,
                      cudnnBackendAttributeName_t name, double missing) {
  const sdg_graph_parameter_t *parameter = sdg_graph_parameter(node, name);
  if (!parameter || parameter->count < 1)
    return missing;
  return is_real(parameter) ? parameter->value[0].real
                            : (double)parameter->value[0].integer;
}

void sdg_graph_values(const sdg_graph_parameter_t *parameter,
                      sdg_graph_values_t *out) {
  for (int i = 0; i < parameter->count; i++)
    switch ((int)parameter->type) {
    case CUDNN_TYPE_FLOAT:
      out->single[i] = (float)parameter->value[i].real;
      break;
    case CUDNN_TYPE_DOUBLE:
      out->twice[i] = parameter->value[i].real;
      break;
    case CUDNN_TYPE_INT64:
      out->large[i] = parameter->value[i].integer;
      break;
    case CUDNN_TYPE_BOOLEAN:
      out->flag[i] = parameter->value[i].integer != 0;
      break;
    default:
      out->small[i] = (int32_t)parameter->value[i].integer;
    }
}

bool sdg_graph_is_output(cudnnBackendDescriptorType_t kind,
                         cudnnBackendAttributeName_t name) {
  (void)kind; // an attribute belongs to one kind
#define OUTPUT(name) case CUDNN_ATTR_OPERATION_##name:
  switch ((int)name) {
    OUTPUT(CONVOLUTION_FORWARD_Y)
    OUTPUT(CONVOLUTION_BWD_FILTER_DW)
    OUTPUT(CONVOLUTION_BWD_DATA_DX)
    OUTPUT(POINTWISE_YDESC)
    OUTPUT(POINTWISE_DXDESC)
    OUTPUT(GENSTATS_SUMDESC)
    OUTPUT(GENSTATS_SQSUMDESC)
    OUTPUT(MATMUL_CDESC)
    OUTPUT(BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC)
    OUTPUT(BN_FINALIZE_UPDATED_RUNNING_VAR_DESC)
    OUTPUT(BN_FINALIZE_SAVED_MEAN_DESC)
    OUTPUT(BN_FINALIZE_SAVED_INV_STD_DESC)
    OUTPUT(BN_FINALIZE_EQ_SCALE_DESC)
    OUTPUT(BN_FINALIZE_EQ_BIAS_DESC)
    OUTPUT(REDUCTION_YDESC)
    OUTPUT(BN_BWD_WEIGHTS_DBN_SCALE_DESC)
    OUTPUT(BN_BWD_WEIGHTS_DBN_BIAS_DESC)
    OUTPUT(BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC)
    OUTPUT(BN_BWD_WEIGHTS_EQ_X_SCALE_DESC)
    OUTPUT(BN_BWD_WEIGHTS_EQ_BIAS)
    OUTPUT(RESAMPLE_FWD_YDESC)
    OUTPUT(RESAMPLE_FWD_IDXDESC)
    OUTPUT(RESAMPLE_BWD_DXDESC)
    OUTPUT(CONCAT_OUTPUT_DESC)
    OUTPUT(SIGNAL_YDESC)
    OUTPUT(NORM_FWD_MEAN_DESC)
    OUTPUT(NORM_FWD_INV_VARIANCE_DESC)
    OUTPUT(NORM_FWD_OUTPUT_RUNNING_MEAN_DESC)
    OUTPUT(NORM_FWD_OUTPUT_RUNNING_VAR_DESC)
    OUTPUT(NORM_FWD_YDESC)
    OUTPUT(NORM_BWD_DSCALE_DESC)
    OUTPUT(NORM_BWD_DBIAS_DESC)
    OUTPUT(NORM_BWD_DXDESC)
    OUTPUT(RESHAPE_YDESC)
    OUTPUT(RNG_YDESC)
    OUTPUT(PAGED_CACHE_LOAD_YDESC)
    OUTPUT(BLOCK_SCALE_QUANTIZE_YDESC)
    OUTPUT(BLOCK_SCALE_QUANTIZE_SCALE_DESC)
    OUTPUT(BLOCK_SCALE_DEQUANTIZE_YDESC)
    OUTPUT(EXPAND_BAND_MATRIX_YDESC)
    OUTPUT(CONTRACT_BAND_MATRIX_YDESC)
    OUTPUT(SDPA_FWD_ODESC)
    OUTPUT(SDPA_FWD_STATSDESC)
    OUTPUT(MOE_GROUPED_MATMUL_OUTPUT_DESC)
    OUTPUT(SDPA_BWD_DQDESC)
    OUTPUT(SDPA_BWD_DKDESC)
    OUTPUT(SDPA_BWD_DVDESC)
    return true;
  }
#undef OUTPUT
  return false;
}

bool sdg_graph_writes(const sdg_graph_node_t *node,
                      cudnnBackendAttributeName_t name) {
  if (!sdg_graph_is_output(node->kind, name))
    return false;
  switch ((int)name) {
  case CUDNN_ATTR_OPERATION_POINTWISE_YDESC:
    return sdg_graph_operand(node, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC) < 0;
  case CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC:
  case CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC:
    return sdg_graph_integer(node, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE,
                             CUDNN_NORM_FWD_TRAINING) !=
           CUDNN_NORM_FWD_INFERENCE;
  }
  return true;
}

int sdg_graph_find(const sdg_graph_t *graph, int64_t uid) {
  for (int i = 0; i < graph->tensor_count; i++)
    if (graph->tensor[i].uid == uid)
      return i;
  return -1;
}

bool sdg_graph_type_is_half(cudnnDataType_t type) {
  return type == CUDNN_DATA_FP4_E2M1 || type == CUDNN_DATA_INT4 ||
         type == CUDNN_DATA_UINT4;
}

size_t sdg_graph_type_bytes(cudnnDataType_t type) {
  switch ((int)type) {
  case CUDNN_DATA_INT8x32:
    return 32;
  case CUDNN_DATA_COMPLEX_FP64:
    return 16;
  case CUDNN_DATA_DOUBLE:
  case CUDNN_DATA_COMPLEX_FP32:
  case CUDNN_DATA_INT64:
    return 8;
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
  case CUDNN_DATA_UINT32:
  case CUDNN_DATA_INT8x4:
  case CUDNN_DATA_UINT8x4:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_UINT8:
  case CUDNN_DATA_BOOLEAN:
  case CUDNN_DATA_FP8_E4M3:
  case CUDNN_DATA_FP8_E5M2:
  case CUDNN_DATA_FP8_E8M0:
  case CUDNN_DATA_FP4_E2M1:
  case CUDNN_DATA_INT4:
  case CUDNN_DATA_UINT4:
    return 1;
  }
  return 0;
}
