// SPDX-License-Identifier: Apache-2.0
// Graphs of cuDNN's backend API as ops: one for each family of graphs.
#include <stdio.h>
#include <string.h>

#include "rules/graph/attention/attention.h"
#include "rules/graph/chain/call.h"
#include "rules/graph/norm/norm.h"
#include "rules/graph/plan.h"
#include "rules/graph/product/product.h"
#include "src/base/hash.h"

static sdg_status_t graph_describe(const sdg_call_t *call, char *out,
                                   size_t out_bytes) {
  const sdg_graph_pattern_t *p = sdg_graph_call_execution(call)->pattern;
  size_t used = 0;
  bool pools = sdg_graph_pools(p);
  for (int i = 0; i < p->spatial && pools && used < out_bytes; i++)
    used += (size_t)snprintf(out + used, out_bytes - used, "window %lld ",
                             (long long)p->kernel[i]);
  bool windows = p->kind != SDG_GRAPH_PRODUCT && !sdg_graph_normalises(p);
  for (int i = 0; i < p->spatial && windows && used < out_bytes; i++)
    used +=
        (size_t)snprintf(out + used, out_bytes - used,
                         "pad %lld,%lld stride %lld dilation %lld ",
                         (long long)p->pre[i], (long long)p->post[i],
                         (long long)p->stride[i], (long long)p->dilation[i]);
  if (used < out_bytes)
    snprintf(out + used, out_bytes - used, "graph %016llx",
             (unsigned long long)p->hash);
  return SDG_OK;
}

// The program's plan decides the engine of the piece's.
static int graph_key(const sdg_call_t *call, uint64_t *out) {
  out[0] = sdg_graph_call_execution(call)->plan_generation;
  return 1;
}

// By-value tensors may change from call to call without another plan.
static uint32_t graph_values(const sdg_call_t *call) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(call);
  const sdg_graph_t *graph = execution->pattern->graph;
  uint64_t hash = SDG_HASH_SEED;
  for (int t = 0; t < graph->tensor_count; t++) {
    const sdg_graph_tensor_t *tensor = &graph->tensor[t];
    if (tensor->is_by_value && execution->pointer[t])
      hash = sdg_hash_bytes(hash, execution->pointer[t],
                            sdg_graph_type_bytes(tensor->type));
  }
  return (uint32_t)(hash ^ hash >> 32);
}

static const sdg_op_numbers_t numbers = {
    .changing = graph_values,
};

// Whether each rank's one row is another or the same decides a sum.
static bool all_sum(const sdg_call_t *call, int dim) {
  (void)call, (void)dim;
  return true;
}

static const sdg_op_shard_t sums = {.sums = all_sum};

static const sdg_op_shard_t product = {
    .place = sdg_graph_product_place,
    .common = sdg_graph_product_common,
};

// By what it computes: pieces with other numbers of heads are other graphs.
static sdg_status_t attention_describe(const sdg_call_t *call, char *out,
                                       size_t out_bytes) {
  const sdg_composite_t *c = sdg_graph_call_execution(call)->pattern->attention;
  snprintf(out, out_bytes, "%s%s%s%s%s%s%s%s", c->right ? "right bound " : "",
           c->left ? "left bound " : "", c->bottom_right ? "bottom right " : "",
           c->by_lengths ? "by lengths " : "", c->scale < 0 ? "" : "scale ",
           c->tensor[SDG_COMPOSITE_STATS] < 0 ? "" : "stats ",
           c->tensor[SDG_COMPOSITE_BIAS] < 0 ? "" : "bias ",
           c->tensor[SDG_COMPOSITE_LENGTH_Q] < 0 ? "" : "lengths ");
  return SDG_OK;
}

// What the ranks' programs state alike: a bottom right has lengths of pieces.
// 0: refused when the plan is made.
static uint64_t band_hash(const sdg_composite_band_t *band) {
  uint64_t hash = sdg_hash_word(
      SDG_HASH_SEED, (uint64_t)band->right << 3 | (uint64_t)band->left << 2 |
                         (uint64_t)band->bottom_right << 1 |
                         (uint64_t)band->by_lengths);
  hash = sdg_hash_word(hash, (uint64_t)band->right_bound);
  return sdg_hash_word(hash, (uint64_t)band->left_bound);
}

static bool band_read(const sdg_call_t *call, sdg_composite_band_t *out) {
  const sdg_graph_execution_t *execution = sdg_graph_call_execution(call);
  const sdg_graph_pattern_t *p = execution->pattern;
  return sdg_composite_numbers(p->attention, p->graph, execution->pointer, out);
}

static uint32_t attention_values(const sdg_call_t *call) {
  sdg_composite_band_t band;
  if (!band_read(call, &band))
    return 0;
  uint64_t hash =
      sdg_hash_bytes(band_hash(&band), &band.scale, sizeof band.scale);
  return (uint32_t)(hash ^ hash >> 32);
}

// The bounds decide which keys travel, and are numbers of the pieces; a piece
// takes the scale from each execution.
static int attention_key(const sdg_call_t *call, uint64_t *out) {
  sdg_composite_band_t band;
  out[0] = sdg_graph_call_execution(call)->plan_generation;
  out[1] = band_read(call, &band) ? band_hash(&band) : 0;
  return 2;
}

static const sdg_op_numbers_t attention_numbers = {
    .changing = attention_values,
};

static const sdg_op_shard_t attention = {
    .place = sdg_graph_attention_place,
    .common = sdg_graph_attention_common,
};

const sdg_op_t sdg_op_graph_attention = {
    .family = SDG_FAMILY_ATTENTION_GRAPH,
    .describe = attention_describe,
    .colocate = sdg_graph_attention_colocate,
    .key = attention_key,
    .plan = sdg_graph_attention_plan,
    .share = sdg_graph_attention_share,
    .numbers = &attention_numbers,
    .shard = &attention,
};

static const sdg_op_shard_t norm = {.common = sdg_graph_norm_common};

#define GRAPH_OP(name, FAMILY, key_, shard_, plan_, share_)                    \
  const sdg_op_t sdg_op_##name = {                                             \
      .family = SDG_FAMILY_##FAMILY,                                           \
      .describe = graph_describe,                                              \
      .key = key_,                                                             \
      .plan = plan_,                                                           \
      .share = share_,                                                         \
      .numbers = &numbers,                                                     \
      .shard = shard_,                                                         \
  }
GRAPH_OP(graph, CONV_GRAPH, graph_key, NULL, sdg_graph_plan, sdg_graph_share);
GRAPH_OP(graph_pool, POOL_GRAPH, graph_key, NULL, sdg_graph_plan,
         sdg_graph_share);
GRAPH_OP(graph_pointwise, POINTWISE_GRAPH, graph_key, NULL, sdg_graph_plan,
         sdg_graph_share);
GRAPH_OP(graph_reduce, REDUCE_GRAPH, graph_key, &sums, sdg_graph_plan,
         sdg_graph_share);
GRAPH_OP(graph_norm, NORM_GRAPH, sdg_graph_norm_key, &norm, sdg_graph_norm_plan,
         sdg_graph_norm_share);
GRAPH_OP(graph_product, MATMUL_GRAPH, graph_key, &product,
         sdg_graph_product_plan, sdg_graph_product_share);
