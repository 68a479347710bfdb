// SPDX-License-Identifier: Apache-2.0
// Nodes that make the parameters of a batch normalisation of sums over
// channels.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"

#define AT(name) CUDNN_ATTR_OPERATION_BN_FINALIZE_##name

// One number for each channel.
typedef enum {
  SUM,
  SQUARES,
  SCALE,
  BIAS,
  OLD_MEAN,
  OLD_VARIANCE,
  INPUTS,
  NEW_MEAN = INPUTS,
  NEW_VARIANCE,
  MEAN,
  INVERSE,
  EQ_SCALE,
  EQ_BIAS,
  ROWS
} row_t;

static const cudnnBackendAttributeName_t names[ROWS] = {
    [SUM] = AT(Y_SUM_DESC),
    [SQUARES] = AT(Y_SQ_SUM_DESC),
    [SCALE] = AT(SCALE_DESC),
    [BIAS] = AT(BIAS_DESC),
    [OLD_MEAN] = AT(PREV_RUNNING_MEAN_DESC),
    [OLD_VARIANCE] = AT(PREV_RUNNING_VAR_DESC),
    [NEW_MEAN] = AT(UPDATED_RUNNING_MEAN_DESC),
    [NEW_VARIANCE] = AT(UPDATED_RUNNING_VAR_DESC),
    [MEAN] = AT(SAVED_MEAN_DESC),
    [INVERSE] = AT(SAVED_INV_STD_DESC),
    [EQ_SCALE] = AT(EQ_SCALE_DESC),
    [EQ_BIAS] = AT(EQ_BIAS_DESC),
};

// One number for all.
typedef enum { COUNT, EPSILON, FACTOR, NUMBERS } number_t;

static const cudnnBackendAttributeName_t numbers[NUMBERS] = {
    [COUNT] = AT(ACCUM_COUNT_DESC),
    [EPSILON] = AT(EPSILON_DESC),
    [FACTOR] = AT(EXP_AVERATE_FACTOR_DESC),
};

static bool trains(const sdg_graph_node_t *node) {
  return sdg_graph_integer(node, AT(STATS_MODE),
                           CUDNN_BN_FINALIZE_STATISTICS_TRAINING) ==
         CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
}

static bool has(const sdg_graph_node_t *node, row_t row) {
  return sdg_graph_operand(node, names[row]) >= 0;
}

// Whether the node computes with an input, and with a number.
static bool reads(const sdg_graph_node_t *node, row_t row) {
  bool running = has(node, NEW_MEAN) || has(node, NEW_VARIANCE);
  if (row == SUM || row == SQUARES)
    return trains(node);
  if (row == OLD_MEAN || row == OLD_VARIANCE)
    return !trains(node) || running;
  return has(node, EQ_SCALE) || has(node, EQ_BIAS);
}

static bool reads_number(const sdg_graph_node_t *node, number_t number) {
  bool running = has(node, NEW_MEAN) || has(node, NEW_VARIANCE);
  return number == EPSILON || (trains(node) && (number == COUNT || running));
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  int sum = sdg_graph_operand(node, names[SUM]);
  if (sum < 0)
    return "a normalisation's parameters without sums";
  const sdg_graph_tensor_t *like = &graph->tensor[sum];
  for (int i = 0; i < ROWS; i++) {
    int tensor = sdg_graph_operand(node, names[i]);
    if (i < INPUTS && reads(node, (row_t)i) && tensor < 0)
      return "a normalisation's parameters without one of their operands";
    if (tensor >= 0 && (graph->tensor[tensor].rank != like->rank ||
                        memcmp(graph->tensor[tensor].dim, like->dim,
                               (size_t)like->rank * sizeof *like->dim) != 0))
      return "a normalisation's parameters whose extents differ";
  }
  for (int i = 0; i < NUMBERS; i++) {
    int tensor = sdg_graph_operand(node, numbers[i]);
    if (!reads_number(node, (number_t)i))
      continue;
    if (tensor < 0)
      return "a normalisation's parameters without one of their numbers";
    host_region_t all = host_region_all(&graph->tensor[tensor]);
    if (host_region_count(&all) != 1)
      return "a normalisation's parameters with several counts or factors";
  }
  for (int i = NEW_MEAN; i <= INVERSE && !trains(node); i++)
    if (has(node, (row_t)i))
      return "a normalisation's statistics in inference";
  return NULL;
}

static void need(host_run_t *run, const sdg_graph_node_t *node,
                 const host_region_t *part) {
  (void)part;
  for (int i = INPUTS; i < ROWS; i++) {
    int result = sdg_graph_operand(node, names[i]);
    if (result < 0 || host_region_count(&run->tensor[result].need) == 0)
      continue;
    for (int k = 0; k < INPUTS; k++)
      if (reads(node, (row_t)k))
        host_run_need(run, sdg_graph_operand(node, names[k]),
                      &run->tensor[result].need);
    for (int k = 0; k < NUMBERS; k++)
      if (reads_number(node, (number_t)k)) {
        int tensor = sdg_graph_operand(node, numbers[k]);
        host_region_t all = host_region_all(host_run_of(run, tensor));
        host_run_need(run, tensor, &all);
      }
  }
}

// The results for one channel, of its inputs. The variance of the batch is that
// of its elements; the running one is the unbiased estimate.
static void channel(bool training, const double number[NUMBERS],
                    double row[ROWS]) {
  double count = number[COUNT], factor = number[FACTOR];
  double mean = row[OLD_MEAN], variance = row[OLD_VARIANCE];
  if (training) {
    mean = row[SUM] / count;
    variance = row[SQUARES] / count - mean * mean;
    variance = variance < 0 ? 0 : variance; // by rounding only
  }
  double unbiased = count > 1 ? variance * (count / (count - 1)) : variance;
  row[MEAN] = mean;
  row[INVERSE] = 1 / sqrt(variance + number[EPSILON]);
  row[NEW_MEAN] = (1 - factor) * row[OLD_MEAN] + factor * mean;
  row[NEW_VARIANCE] = (1 - factor) * row[OLD_VARIANCE] + factor * unbiased;
  row[EQ_SCALE] = row[SCALE] * row[INVERSE];
  row[EQ_BIAS] = row[BIAS] - mean * row[EQ_SCALE];
}

static void result_compute(host_run_t *run, const sdg_graph_node_t *node,
                           row_t which, const double number[NUMBERS]) {
  int result = sdg_graph_operand(node, names[which]);
  host_run_tensor_t *to = &run->tensor[result];
  double *out = to->value;
  for (host_rows_of_t rows = host_rows_begin(&to->need); rows.more;
       host_rows_next(&rows))
    for (int64_t i = 0; i < rows.width; i++) {
      double row[ROWS] = {0};
      for (int k = 0; k < INPUTS; k++) {
        int64_t step;
        if (!reads(node, (row_t)k))
          continue;
        int tensor = sdg_graph_operand(node, names[k]);
        const host_run_tensor_t *from = &run->tensor[tensor];
        int64_t at = host_rows_offset(&rows, host_run_of(run, tensor),
                                      &from->need, &step);
        row[k] = from->value[at + i * step];
      }
      channel(trains(node), number, row);
      *out++ = row[which];
    }
  int64_t count = host_region_count(&to->need);
  if (sdg_graph_integer(node, AT(MATH_PREC), CUDNN_DATA_FLOAT) ==
      CUDNN_DATA_FLOAT)
    host_elements_round(CUDNN_DATA_FLOAT, to->value, count);
  host_elements_round(host_run_of(run, result)->type, to->value, count);
}

static bool compute(host_run_t *run, const sdg_graph_node_t *node) {
  double number[NUMBERS] = {0};
  for (int k = 0; k < NUMBERS; k++)
    if (reads_number(node, (number_t)k))
      number[k] = run->tensor[sdg_graph_operand(node, numbers[k])].value[0];
  for (int i = INPUTS; i < ROWS; i++) {
    int result = sdg_graph_operand(node, names[i]);
    if (result >= 0 && host_region_count(&run->tensor[result].need) > 0)
      result_compute(run, node, (row_t)i, number);
  }
  return true;
}

const host_node_kind_t host_node_batchnorm = {
    .kind = CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
    .lacks = lacks,
    .need = need,
    .compute = compute};
