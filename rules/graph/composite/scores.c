// SPDX-License-Identifier: Apache-2.0
// The scores: a product, a scale, a bias, masks; and the softmax of them.
#include "rules/graph/composite/reader.h"

// Later steps come first, because they are read from the softmax back.
typedef enum step { MASKS, BIAS, SCALE } step_t;

static bool mask_take(sdg_reader_t *r, int *scores, step_t step) {
  const sdg_graph_node_t *select = sdg_reader_pointwise(
      r, *scores, CUDNN_POINTWISE_BINARY_SELECT, SDG_READER_SCORE);
  if (!select)
    return false;
  if (step > MASKS)
    return sdg_reader_lacks(r, "a bias or a scale of scores that are masked");
  *scores = SDG_OPERAND(select, POINTWISE_XDESC);
  return sdg_reader_number(r, SDG_OPERAND(select, POINTWISE_BDESC),
                           &r->out->fills, r->out->fill) &&
         sdg_reader_mask(r, SDG_OPERAND(select, POINTWISE_TDESC));
}

// A bias has memory; ALiBi computes one of the indices.
static bool bias_take(sdg_reader_t *r, int *scores, step_t *step) {
  const sdg_graph_node_t *add =
      sdg_reader_pointwise(r, *scores, CUDNN_POINTWISE_ADD, SDG_READER_SCORE);
  int x = SDG_OPERAND(add, POINTWISE_XDESC);
  int b = SDG_OPERAND(add, POINTWISE_BDESC);
  if (!add)
    return false;
  if (!sdg_reader_is_input(r, x) && !sdg_reader_is_input(r, b))
    return sdg_reader_lacks(r, "ALiBi, or a bias that the graph computes");
  if (*step >= BIAS)
    return sdg_reader_lacks(r, "a second bias, or one that is scaled");
  *step = BIAS;
  int bias = sdg_reader_is_input(r, b) ? b : x;
  *scores = sdg_reader_other(add, bias);
  return sdg_reader_role(r, SDG_COMPOSITE_BIAS, bias, false);
}

bool sdg_reader_scale(sdg_reader_t *r, int number) {
  if (!sdg_reader_is_number(r, number) ||
      (r->out->scale >= 0 && r->out->scale != number))
    return sdg_reader_lacks(r, "a scale that is not a number of the host");
  r->out->scale = number;
  return r->known[number] = true;
}

static bool scale_take(sdg_reader_t *r, int *scores, step_t *step) {
  const sdg_graph_node_t *multiply =
      sdg_reader_pointwise(r, *scores, CUDNN_POINTWISE_MUL, SDG_READER_SCORE);
  int x = SDG_OPERAND(multiply, POINTWISE_XDESC);
  int b = SDG_OPERAND(multiply, POINTWISE_BDESC);
  if (!multiply)
    return false;
  if (*step >= SCALE)
    return sdg_reader_lacks(r, "a second scale");
  *step = SCALE;
  *scores = sdg_reader_is_number(r, x) ? b : x;
  return sdg_reader_scale(r, sdg_reader_is_number(r, x) ? x : b);
}

static bool stats_take(sdg_reader_t *r, int *scores, step_t step) {
  const sdg_graph_node_t *less =
      sdg_reader_pointwise(r, *scores, CUDNN_POINTWISE_SUB, SDG_READER_SCORE);
  if (!less)
    return false;
  if (step > MASKS || r->out->tensor[SDG_COMPOSITE_STATS] >= 0)
    return sdg_reader_lacks(r, "scores that something is subtracted from");
  *scores = SDG_OPERAND(less, POINTWISE_XDESC);
  return sdg_reader_role(r, SDG_COMPOSITE_STATS,
                         SDG_OPERAND(less, POINTWISE_BDESC), false);
}

const sdg_graph_node_t *sdg_reader_scores(sdg_reader_t *r, int scores,
                                          bool stats) {
  step_t step = MASKS;
  const sdg_graph_node_t *product = NULL;
  // A node is never taken twice on the way, so this ends.
  while (!r->lacks && !(product = sdg_reader_matmul(r, scores))) {
    if (!sdg_reader_is_score(r, scores)) {
      sdg_reader_lacks(r, "scores of other extents than the weights");
      break;
    }
    if (!mask_take(r, &scores, step) && !bias_take(r, &scores, &step) &&
        !scale_take(r, &scores, &step) &&
        !(stats && stats_take(r, &scores, step)))
      sdg_reader_lacks(r, "scores that something else is done to");
  }
  if (r->lacks || !sdg_reader_masks_close(r))
    return NULL;
  if (!sdg_reader_is_score(r, scores) ||
      r->graph->tensor[scores].type != CUDNN_DATA_FLOAT) {
    sdg_reader_lacks(r, "scores that are not in float");
    return NULL;
  }
  return product;
}
