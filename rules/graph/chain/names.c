// SPDX-License-Identifier: Apache-2.0
// What ops and graphs are called.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/graph/chain/pattern.h"

enum { NAME_BYTES = 96 };

typedef struct word {
  int value;
  const char *text;
} word_t;

static const word_t modes[] = {
    {CUDNN_POINTWISE_ADD, "add"},
    {CUDNN_POINTWISE_ADD_SQUARE, "add_square"},
    {CUDNN_POINTWISE_DIV, "div"},
    {CUDNN_POINTWISE_MAX, "max"},
    {CUDNN_POINTWISE_MIN, "min"},
    {CUDNN_POINTWISE_MOD, "mod"},
    {CUDNN_POINTWISE_MUL, "mul"},
    {CUDNN_POINTWISE_POW, "pow"},
    {CUDNN_POINTWISE_SUB, "sub"},
    {CUDNN_POINTWISE_ABS, "abs"},
    {CUDNN_POINTWISE_CEIL, "ceil"},
    {CUDNN_POINTWISE_COS, "cos"},
    {CUDNN_POINTWISE_EXP, "exp"},
    {CUDNN_POINTWISE_FLOOR, "floor"},
    {CUDNN_POINTWISE_LOG, "log"},
    {CUDNN_POINTWISE_NEG, "neg"},
    {CUDNN_POINTWISE_RSQRT, "rsqrt"},
    {CUDNN_POINTWISE_SIN, "sin"},
    {CUDNN_POINTWISE_SQRT, "sqrt"},
    {CUDNN_POINTWISE_TAN, "tan"},
    {CUDNN_POINTWISE_ERF, "erf"},
    {CUDNN_POINTWISE_IDENTITY, "identity"},
    {CUDNN_POINTWISE_RECIPROCAL, "reciprocal"},
    {CUDNN_POINTWISE_ATAN2, "atan2"},
    {CUDNN_POINTWISE_RELU_FWD, "relu"},
    {CUDNN_POINTWISE_TANH_FWD, "tanh"},
    {CUDNN_POINTWISE_SIGMOID_FWD, "sigmoid"},
    {CUDNN_POINTWISE_ELU_FWD, "elu"},
    {CUDNN_POINTWISE_GELU_FWD, "gelu"},
    {CUDNN_POINTWISE_SOFTPLUS_FWD, "softplus"},
    {CUDNN_POINTWISE_SWISH_FWD, "swish"},
    {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, "gelu_tanh"},
    {CUDNN_POINTWISE_RELU_BWD, "relu_bwd"},
    {CUDNN_POINTWISE_TANH_BWD, "tanh_bwd"},
    {CUDNN_POINTWISE_SIGMOID_BWD, "sigmoid_bwd"},
    {CUDNN_POINTWISE_ELU_BWD, "elu_bwd"},
    {CUDNN_POINTWISE_GELU_BWD, "gelu_bwd"},
    {CUDNN_POINTWISE_SOFTPLUS_BWD, "softplus_bwd"},
    {CUDNN_POINTWISE_SWISH_BWD, "swish_bwd"},
    {CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, "gelu_tanh_bwd"},
    {CUDNN_POINTWISE_CMP_EQ, "cmp_eq"},
    {CUDNN_POINTWISE_CMP_NEQ, "cmp_neq"},
    {CUDNN_POINTWISE_CMP_GT, "cmp_gt"},
    {CUDNN_POINTWISE_CMP_GE, "cmp_ge"},
    {CUDNN_POINTWISE_CMP_LT, "cmp_lt"},
    {CUDNN_POINTWISE_CMP_LE, "cmp_le"},
    {CUDNN_POINTWISE_LOGICAL_AND, "and"},
    {CUDNN_POINTWISE_LOGICAL_OR, "or"},
    {CUDNN_POINTWISE_LOGICAL_NOT, "not"},
    {CUDNN_POINTWISE_GEN_INDEX, "gen_index"},
    {CUDNN_POINTWISE_BINARY_SELECT, "select"},
};

static const word_t kinds[] = {
#define KIND(name, text)                                                       \
  { CUDNN_BACKEND_OPERATION_##name##_DESCRIPTOR, text }
    KIND(CONVOLUTION_FORWARD, "conv"),
    KIND(CONVOLUTION_BACKWARD_DATA, "conv_dgrad"),
    KIND(CONVOLUTION_BACKWARD_FILTER, "conv_wgrad"),
    KIND(GEN_STATS, "gen_stats"),
    KIND(MATMUL, "matmul"),
    KIND(BN_FINALIZE_STATISTICS, "bn_finalize"),
    KIND(REDUCTION, "reduction"),
    KIND(BN_BWD_WEIGHTS, "bn_bwd_weights"),
    KIND(RESAMPLE_FWD, "resample"),
    KIND(RESAMPLE_BWD, "resample_bwd"),
    KIND(CONCAT, "concat"),
    KIND(SIGNAL, "signal"),
    KIND(NORM_FORWARD, "norm"),
    KIND(NORM_BACKWARD, "norm_bwd"),
    KIND(RESHAPE, "reshape"),
    KIND(RNG, "rng"),
    KIND(PAGED_CACHE_LOAD, "paged_cache_load"),
    KIND(BLOCK_SCALE_QUANTIZE, "block_scale_quantize"),
    KIND(BLOCK_SCALE_DEQUANTIZE, "block_scale_dequantize"),
    KIND(EXPAND_BAND_MATRIX, "expand_band_matrix"),
    KIND(CONTRACT_BAND_MATRIX, "contract_band_matrix"),
    KIND(SDPA_FWD, "sdpa"),
    KIND(SDPA_BWD, "sdpa_bwd"),
    KIND(MOE_GROUPED_MATMUL, "moe_grouped_matmul"),
#undef KIND
};

static const char *word_find(const word_t *word, size_t words, int value) {
  for (size_t i = 0; i < words; i++)
    if (word[i].value == value)
      return word[i].text;
  return NULL;
}

const char *sdg_graph_node_name(const sdg_graph_node_t *node) {
  const char *text =
      node->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
          ? word_find(
                modes, sizeof modes / sizeof *modes,
                (int)sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1))
          : word_find(kinds, sizeof kinds / sizeof *kinds, (int)node->kind);
  return text ? text : "an op that is not known";
}

// Names live as long as the process, because reports keep them; equal ones are
// one text.
typedef struct name {
  struct name *next;
  char text[NAME_BYTES];
} name_t;

static const char *name_keep(const char *text) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static name_t *names;
  pthread_mutex_lock(&lock);
  name_t *name = names;
  while (name && strcmp(name->text, text) != 0)
    name = name->next;
  if (!name && (name = calloc(1, sizeof *name))) {
    memcpy(name->text, text, strlen(text) + 1);
    name->next = names;
    names = name;
  }
  pthread_mutex_unlock(&lock);
  return name ? name->text : "a graph";
}

const char *sdg_graph_name(const sdg_graph_t *graph) {
  char text[NAME_BYTES] = "";
  size_t used = 0;
  for (int n = 0; n < graph->node_count && used < sizeof text; n++)
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s%s", n ? "+" : "",
                         sdg_graph_node_name(&graph->node[n]));
  return name_keep(text);
}
