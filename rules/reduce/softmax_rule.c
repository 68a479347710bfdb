// SPDX-License-Identifier: Apache-2.0
// Softmax as an op: what a call is.
#include "rules/reduce/softmax_rule.h"

#include <stdio.h>

#include "rules/place/colocate.h"
#include "rules/vendor/argument.h"

bool sdg_softmax_read(const sdg_call_t *call, sdg_softmax_t *out) {
  bool backward = call->entry == SDG_ENTRY_cudnnSoftmaxBackward;
  int inputs = backward ? 2 : 1;
  *out = (sdg_softmax_t){
      .backward = backward,
      .algo = (cudnnSoftmaxAlgorithm_t)sdg_call_int(call, SDG_ALGO),
      .mode = (cudnnSoftmaxMode_t)sdg_call_int(call, SDG_MODE),
      .alpha = sdg_call_scalar_at(call, SDG_ALPHA),
      .beta = sdg_call_scalar_at(call, SDG_BETA),
      .inputs = inputs,
      .output = inputs,
  };
  if (!sdg_call_is_complete(call) ||
      sdg_call_operand(call, backward ? SDG_ROLE_DX : SDG_ROLE_Y) != inputs ||
      !out->alpha || !out->beta ||
      (out->algo != CUDNN_SOFTMAX_FAST && out->algo != CUDNN_SOFTMAX_ACCURATE &&
       out->algo != CUDNN_SOFTMAX_LOG) ||
      (out->mode != CUDNN_SOFTMAX_MODE_INSTANCE &&
       out->mode != CUDNN_SOFTMAX_MODE_CHANNEL))
    return false;
  const sdg_operand_t *x = &call->operand[0];
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].data || call->operand[i].dims != x->dims ||
        call->operand[i].type != x->type)
      return false;
  return x->dims >= 3;
}

void sdg_softmax_reduced(const sdg_softmax_t *softmax, int dims, bool *out) {
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    out[d] = d < dims &&
             (softmax->mode == CUDNN_SOFTMAX_MODE_CHANNEL ? d == 1 : d >= 1);
}

// What a plan depends on besides descriptors: one bit for each pair of operands
// that share memory, and one for each operand that is NULL.
static uint64_t memory_bits(const sdg_call_t *call) {
  uint64_t bits = 0;
  for (int i = 0; i < call->operands; i++) {
    bits = bits << 1 | !call->operand[i].data;
    for (int k = 0; k < i; k++)
      bits = bits << 1 | (call->operand[i].data == call->operand[k].data);
  }
  return bits;
}

static sdg_status_t softmax_describe(const sdg_call_t *call, char *out,
                                     size_t out_bytes) {
  sdg_softmax_t softmax;
  (void)sdg_softmax_read(call, &softmax);
  snprintf(out, out_bytes, "algo %d mode %d", (int)softmax.algo,
           (int)softmax.mode);
  return SDG_OK;
}

static int softmax_key(const sdg_call_t *call, uint64_t *out) {
  sdg_softmax_t softmax;
  (void)sdg_softmax_read(call, &softmax);
  out[0] = (uint64_t)softmax.algo << 32 | (uint64_t)softmax.mode;
  out[1] = sdg_call_scalar(call, SDG_BETA) == 0;
  out[2] = memory_bits(call);
  out[3] = softmax.alpha && softmax.beta; // otherwise the call is refused
  return 4;
}

static sdg_status_t softmax_colocate(const sdg_call_t *call,
                                     sdg_colocation_t *colocation, int lead) {
  colocation->reads_old = sdg_call_scalar(call, SDG_BETA) != 0;
  return sdg_colocate_alike(colocation, lead);
}

static bool softmax_sums(const sdg_call_t *call, int dim) {
  sdg_softmax_t softmax;
  return dim > 0 && sdg_softmax_read(call, &softmax) &&
         softmax.mode == CUDNN_SOFTMAX_MODE_INSTANCE;
}

// The backward call wants equal strides in y and dy.
static int softmax_strides(const sdg_call_t *call, int index) {
  return call->entry == SDG_ENTRY_cudnnSoftmaxBackward &&
                 !call->operand[index].is_output
             ? 0
             : -1;
}

static const sdg_op_shard_t shard = {
    .sums = softmax_sums,
    .stride_group = softmax_strides,
};

const sdg_op_t sdg_op_softmax = {
    .family = SDG_FAMILY_SOFTMAX,
    .describe = softmax_describe,
    .colocate = softmax_colocate,
    .key = softmax_key,
    .plan = sdg_softmax_plan,
    .share = sdg_softmax_share,
    .shard = &shard,
};
