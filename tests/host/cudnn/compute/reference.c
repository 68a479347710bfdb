// SPDX-License-Identifier: Apache-2.0
// Operation graphs computed by loops over doubles: all tensors, and the check.
#include "tests/host/cudnn/compute/reference.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/harness.h"

/* What a compute type keeps: 2^-23 also for half and bfloat16, whose products
 * are computed in float. Double sums of many terms lose more than a rounding.
 */
static double rounding_of(const sdg_graph_node_t *node) {
  static const cudnnBackendAttributeName_t names[] = {
      CUDNN_ATTR_POINTWISE_MATH_PREC,
      CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
      CUDNN_ATTR_REDUCTION_COMP_TYPE,
      CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC,
      CUDNN_ATTR_MATMUL_COMP_TYPE,
      CUDNN_ATTR_RESAMPLE_COMP_TYPE,
      CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC};
  if (node->kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR ||
      node->kind == CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR)
    return 0;
  if (node->kind == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR ||
      node->kind == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)
    return 0x1p-23; /* in float */
  for (int i = 0; i < node->parameter_count; i++)
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
      if (node->parameter[i].name == names[k])
        return node->parameter[i].value[0].integer == CUDNN_DATA_DOUBLE
                   ? 0x1p-47
                   : 0x1p-23;
  ck_abort_msg("a node without a compute type");
}

static double distance(double a, double b) {
  if (isnan(a) || isnan(b))
    return isnan(a) && isnan(b) ? 0 : INFINITY;
  return a == b ? 0 : fabs(a - b);
}

void reference_put(reference_t *r, const made_t *m, int t, int64_t i,
                   double value, double error) {
  cudnnDataType_t type = m->graph.tensor[t].type;
  double mid = made_round(type, value);
  r->tensor[t].value[i] = mid;
  r->tensor[t].error[i] =
      error > 0 || isnan(error)
          ? fmax(distance(made_round(type, value + error), mid),
                 distance(made_round(type, value - error), mid))
          : 0;
}

void reference_create(reference_t *r, const made_t *m) {
  const sdg_graph_t *graph = &m->graph;
  for (int t = 0; t < graph->tensor_count; t++) {
    int64_t count = r->tensor[t].count = made_count(m, t);
    r->tensor[t].error = calloc((size_t)count + 1, sizeof(double));
    /* An output's old values: those that beta scales. */
    r->tensor[t].value = m->memory_of[t] >= 0
                             ? made_values(m, t, true)
                             : calloc((size_t)count + 1, sizeof(double));
  }
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    double rounding = rounding_of(node);
    switch ((int)node->kind) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      reference_pointwise(r, m, node, rounding);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      reference_reduction(r, m, node, rounding);
      break;
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      reference_statistics(r, m, node, rounding);
      break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      reference_matmul(r, m, node, rounding);
      break;
    case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR:
      reference_resample(r, m, node, rounding);
      break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      reference_reshape(r, m, node);
      break;
    case CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR:
      reference_concat(r, m, node);
      break;
    case CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR:
      reference_finalize(r, m, node, rounding);
      break;
    case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
      reference_norm(r, m, node, rounding);
      break;
    default:
      reference_conv(r, m, node, rounding);
    }
  }
}

void reference_destroy(reference_t *r) {
  for (int t = 0; t < MADE_TENSORS; t++) {
    free(r->tensor[t].value);
    free(r->tensor[t].error);
  }
}

void reference_check(const reference_t *r, const made_t *m, const char *name) {
  for (int t = 0; t < m->graph.tensor_count; t++) {
    if (!m->written[t] || m->memory_of[t] < 0)
      continue;
    double *have = made_values(m, t, false);
    const reference_tensor_t *want = &r->tensor[t];
    for (int64_t i = 0; i < want->count; i++)
      REQUIRE_MSG(want->error[i] == INFINITY ||
                      distance(have[i], want->value[i]) <= want->error[i],
                  "%s: t%d element %ld is %.9g, not %.9g +- %.3g:\n%s", name, t,
                  i, have[i], want->value[i], want->error[i], made_text(m));
    free(have);
  }
}

void reference_run(made_t *m, const char *name) {
  reference_t r = {0};
  reference_create(&r, m);
  made_run(m);
  reference_check(&r, m, name);
  reference_destroy(&r);
}
