// SPDX-License-Identifier: Apache-2.0
// Nodes of the operation graphs that tests make.
#include "tests/host/cudnn/compute/made.h"

#include <stdlib.h>

#include "tests/unit/harness.h"

enum { OPERANDS = 16, PARAMETERS = 12 };

static sdg_graph_node_t *node_add(made_t *m,
                                  cudnnBackendDescriptorType_t kind) {
  REQUIRE(m->graph.node_count < MADE_NODES);
  sdg_graph_node_t *node = &m->graph.node[m->graph.node_count++];
  node->kind = kind;
  node->operand = calloc(OPERANDS, sizeof *node->operand);
  node->parameter = calloc(PARAMETERS, sizeof *node->parameter);
  return node;
}

static void operand(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                    int tensor) {
  if (tensor < 0)
    return;
  REQUIRE(node->operand_count < OPERANDS);
  node->operand[node->operand_count++] =
      (sdg_graph_operand_t){.name = name, .tensor = tensor};
}

static void result(made_t *m, sdg_graph_node_t *node,
                   cudnnBackendAttributeName_t name, int tensor) {
  operand(node, name, tensor);
  if (tensor >= 0)
    m->written[tensor] = true;
}

static sdg_graph_parameter_t *parameter(sdg_graph_node_t *node,
                                        cudnnBackendAttributeName_t name,
                                        cudnnBackendAttributeType_t type,
                                        int count) {
  REQUIRE(node->parameter_count < PARAMETERS);
  sdg_graph_parameter_t *p = &node->parameter[node->parameter_count++];
  *p = (sdg_graph_parameter_t){.name = name, .type = type, .count = count};
  return p;
}

void made_set_integer(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, int64_t value) {
  parameter(node, name, type, 1)->value[0].integer = value;
}

void made_set_real(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                   double value) {
  parameter(node, name, CUDNN_TYPE_DOUBLE, 1)->value[0].real = value;
}

sdg_graph_node_t *made_pointwise(made_t *m, cudnnPointwiseMode_t mode,
                                 cudnnDataType_t compute, int x, int b, int t,
                                 int y) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  bool backward =
      mode >= CUDNN_POINTWISE_RELU_BWD && mode < CUDNN_POINTWISE_CMP_EQ;
  made_set_integer(node, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
                   mode);
  made_set_integer(node, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                   compute);
  operand(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  operand(node,
          backward ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC
                   : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
          b);
  operand(node, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  result(m, node,
         backward ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                  : CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
         y);
  return node;
}

const cudnnBackendAttributeName_t made_conv_names[3][5] = {
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}};

static void set_row(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                    int count, const int64_t *values) {
  sdg_graph_parameter_t *p = parameter(node, name, CUDNN_TYPE_INT64, count);
  for (int i = 0; i < count; i++)
    p->value[i].integer = values[i];
}

sdg_graph_node_t *made_conv(made_t *m, const made_conv_t *conv, int x, int w,
                            int y) {
  sdg_graph_node_t *node = node_add(m, conv->kind);
  int which =
      (int)conv->kind - CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  int spatial = m->graph.tensor[x].rank - 2;
  const int tensor[] = {x, w, y}, output[] = {2, 1, 0};
  for (int i = 0; i < 3; i++)
    if (i == output[which])
      result(m, node, made_conv_names[which][i], tensor[i]);
    else
      operand(node, made_conv_names[which][i], tensor[i]);
  made_set_real(node, made_conv_names[which][3], conv->alpha);
  made_set_real(node, made_conv_names[which][4], conv->beta);
  made_set_integer(node, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                   conv->compute);
  made_set_integer(node, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                   CUDNN_TYPE_CONVOLUTION_MODE,
                   conv->flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION);
  made_set_integer(node, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                   spatial);
  set_row(node, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial, conv->pre);
  set_row(node, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial, conv->post);
  set_row(node, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial, conv->stride);
  set_row(node, CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial, conv->dilation);
  return node;
}

sdg_graph_node_t *made_reduction(made_t *m, cudnnReduceTensorOp_t op,
                                 cudnnDataType_t compute, int x, int y) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made_set_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR,
                   CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  made_set_integer(node, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                   compute);
  operand(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  result(m, node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  return node;
}

sdg_graph_node_t *made_statistics(made_t *m, cudnnDataType_t compute, int x,
                                  int sum, int squares) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  made_set_integer(node, CUDNN_ATTR_OPERATION_GENSTATS_MODE,
                   CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  made_set_integer(node, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC,
                   CUDNN_TYPE_DATA_TYPE, compute);
  operand(node, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, x);
  result(m, node, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
  result(m, node, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
  return node;
}

sdg_graph_node_t *made_matmul(made_t *m, cudnnDataType_t compute, int a, int b,
                              int c) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made_set_integer(node, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                   compute);
  operand(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  operand(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  result(m, node, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  return node;
}

/* Whole numbers, or halves as fractions. */
static void set_numbers(sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name, int count,
                        const double *values) {
  bool whole = true;
  for (int i = 0; i < count; i++)
    whole &= values[i] == (double)(int64_t)values[i];
  sdg_graph_parameter_t *p = parameter(
      node, name, whole ? CUDNN_TYPE_INT64 : CUDNN_TYPE_FRACTION, count);
  for (int i = 0; i < count; i++)
    if (whole)
      p->value[i].integer = (int64_t)values[i];
    else
      p->value[i].real = values[i];
}

sdg_graph_node_t *made_resample(made_t *m, const made_resample_t *how, int x,
                                int y, int index, int from) {
  sdg_graph_node_t *node = node_add(
      m, how->backward ? CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR
                       : CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  int spatial = m->graph.tensor[x].rank - 2;
  made_set_integer(node, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE,
                   how->mode);
  made_set_integer(node, CUDNN_ATTR_RESAMPLE_PADDING_MODE,
                   CUDNN_TYPE_PADDING_MODE, how->padding);
  made_set_integer(node, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                   CUDNN_DATA_FLOAT);
  made_set_integer(node, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_INT64,
                   how->nan);
  set_row(node, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, spatial, how->window);
  set_numbers(node, CUDNN_ATTR_RESAMPLE_STRIDES, spatial, how->stride);
  set_numbers(node, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, spatial, how->pre);
  set_numbers(node, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, spatial, how->post);
  if (how->backward) {
    operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, y);
    operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, index);
    operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC, from);
    result(m, node, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, x);
  } else {
    operand(node, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x);
    result(m, node, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y);
    result(m, node, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index);
  }
  return node;
}

sdg_graph_node_t *made_reshape(made_t *m, int x, int y) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operand(node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  result(m, node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  return node;
}

sdg_graph_node_t *made_concat(made_t *m, int axis, int count, const int *x,
                              int y) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
  made_set_integer(node, CUDNN_ATTR_OPERATION_CONCAT_AXIS, CUDNN_TYPE_INT64,
                   axis);
  for (int i = 0; i < count; i++)
    operand(node, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, x[i]);
  result(m, node, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, y);
  return node;
}

/* The attributes' values follow each other. */
sdg_graph_node_t *made_finalize(made_t *m, cudnnBnFinalizeStatsMode_t mode,
                                const int tensor[MADE_FINALIZE]) {
  sdg_graph_node_t *node =
      node_add(m, CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR);
  made_set_integer(node, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE,
                   CUDNN_TYPE_BN_FINALIZE_STATS_MODE, mode);
  made_set_integer(node, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC,
                   CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  for (int i = 0; i < MADE_FINALIZE; i++) {
    cudnnBackendAttributeName_t name =
        (cudnnBackendAttributeName_t)(CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC +
                                      i);
    if (sdg_graph_is_output(node->kind, name))
      result(m, node, name, tensor[i]);
    else
      operand(node, name, tensor[i]);
  }
  return node;
}
