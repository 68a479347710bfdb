// SPDX-License-Identifier: Apache-2.0
// Normalisations as an op. Ranks that have parts of one set of values compute
// its mean and variance together.
#include <cudnn.h>
#include <math.h>
#include <stdio.h>

#include "rules/norm/rule.h"
#include "rules/place/colocate.h"
#include "rules/step/compare.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

static bool norm_knows(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize:
  case SDG_ENTRY_cudnnGetBatchNormalizationBackwardExWorkspaceSize:
  case SDG_ENTRY_cudnnGetBatchNormalizationTrainingExReserveSpaceSize:
  case SDG_ENTRY_cudnnGetNormalizationForwardTrainingWorkspaceSize:
  case SDG_ENTRY_cudnnGetNormalizationBackwardWorkspaceSize:
  case SDG_ENTRY_cudnnGetNormalizationTrainingReserveSpaceSize:
    return true;
  default:
    return sdg_norm_kind(call) != SDG_NORM_NONE || sdg_lrn_is(call);
  }
}

// One bit for each operand without data. The ranks must agree on them, because
// their plans depend on them.
static unsigned absent(const sdg_call_t *call) {
  unsigned mask = 0;
  for (int i = 0; i < call->operands; i++)
    mask |= (unsigned)!call->operand[i].data << i;
  return mask;
}

static sdg_status_t norm_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  sdg_norm_t norm;
  sdg_norm_read(call, &norm);
  int used = snprintf(out, out_bytes, "mode %d ops %d groups %d absent %x",
                      (int)norm.mode, (int)norm.ops, norm.groups, absent(call));
  out += used;
  out_bytes -= (size_t)used;
  void *descriptor = (void *)(uintptr_t)call->op_descriptor;
  cudnnNanPropagation_t nan;
  cudnnActivationMode_t mode;
  double a, b, k;
  unsigned n;
  if (!descriptor)
    return SDG_OK;
  if (sdg_lrn_is(call)) {
    if (cudnn->cudnnGetLRNDescriptor(descriptor, &n, &a, &b, &k) ==
        CUDNN_STATUS_SUCCESS)
      snprintf(out, out_bytes, " n %u alpha %.17g beta %.17g k %.17g", n, a, b,
               k);
  } else if (cudnn->cudnnGetActivationDescriptor(descriptor, &mode, &nan, &a) ==
             CUDNN_STATUS_SUCCESS) {
    snprintf(out, out_bytes, " activation %d nan %d coefficient %.17g",
             (int)mode, (int)nan, a);
  }
  return SDG_OK;
}

// Which activations share memory, one bit per pair.
static uint64_t aliases(const sdg_call_t *call) {
  uint64_t mask = 0;
  int bit = 0;
  for (int i = 0; i < call->operands; i++)
    for (int k = 0; k < i; k++)
      if (sdg_role_is_activation(call->operand[i].role) &&
          sdg_role_is_activation(call->operand[k].role))
        mask |= (uint64_t)(call->operand[i].data == call->operand[k].data)
                << bit++;
  return mask;
}

static int norm_key(const sdg_call_t *call, uint64_t *out) {
  out[0] =
      (uint64_t)sdg_call_int(call, SDG_MODE) |
      (uint64_t)sdg_call_int(call, SDG_OPS) << 4 |
      (uint64_t)(uint32_t)sdg_call_int(call, SDG_GROUPS) << 8 |
      (uint64_t)!sdg_call_scalar_at(call, SDG_ALPHA) << 40 |
      (uint64_t)!sdg_call_scalar_at(call, SDG_BETA) << 41 |
      (uint64_t)!sdg_call_scalar_at(call, SDG_ALPHA2) << 42 |
      (uint64_t)!sdg_call_scalar_at(call, SDG_BETA2) << 43 |
      (uint64_t)(sdg_call_scalar(call, SDG_ALPHA) == 1) << 44 |
      (uint64_t)(sdg_call_scalar(call, SDG_BETA) == 0) << 45 |
      (uint64_t)(sdg_call_number(call, SDG_EPSILON) >= CUDNN_BN_MIN_EPSILON)
          << 46 |
      (uint64_t)(isinf(sdg_call_scalar(call, SDG_ALPHA)) != 0) << 47;
  out[1] = absent(call);
  out[2] = aliases(call);
  return 3;
}

// Whether the other operands can be placed like activation `lead`. Scales do
// not move, so where they have several values their extents must be those of
// the activation. Local response normalisation needs whole channels.
static bool leads(const sdg_call_t *call, const sdg_colocation_t *colocation,
                  int lead) {
  const sdg_placement_t *x = sdg_colocate_at(colocation, lead);
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *scale = sdg_colocate_at(colocation, i);
    if (!sdg_role_is_scale(call->operand[i].role) || scale->dims != x->dims)
      continue;
    for (int d = 0; d < x->dims; d++)
      if (sdg_placement_extent(scale, d) != 1 &&
          sdg_placement_extent(scale, d) != sdg_placement_extent(x, d))
        return false;
  }
  return !sdg_lrn_is(call) || x->split[1].axes == 0;
}

static sdg_status_t norm_colocate(const sdg_call_t *call,
                                  sdg_colocation_t *colocation, int lead) {
  colocation->fits = leads(call, colocation, lead);
  if (!colocation->fits)
    return SDG_OK;
  colocation->reads_old = sdg_call_scalar(call, SDG_BETA) != 0;
  return sdg_colocate_alike(colocation, lead);
}

static sdg_status_t norm_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  return sdg_lrn_is(call) ? sdg_lrn_plan(call, tagging, out_plan)
                          : sdg_norm_plan(call, tagging, out_plan);
}

static sdg_status_t norm_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  return sdg_lrn_is(call) ? sdg_lrn_share(call, tagging, out_plan)
                          : sdg_norm_share(call, tagging, out_plan);
}

// Ranks must have equal scales and shifts; statistics are not compared.
static sdg_common_t norm_common(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index) {
  sdg_role_t role = call->operand[index].role;
  return sdg_role_is_scale(role) &&
                 (call->is_query ||
                  (role != SDG_ROLE_SCALE && role != SDG_ROLE_SHIFT))
             ? (sdg_common_t){.axes = 0}
             : sdg_compare_common(call, tagging, index);
}

static const sdg_op_shard_t shard = {
    .common = norm_common,
};

const sdg_op_t sdg_op_norm = {
    .family = SDG_FAMILY_NORM,
    .knows = norm_knows,
    .describe = norm_describe,
    .colocate = norm_colocate,
    .key = norm_key,
    .plan = norm_plan,
    .share = norm_share,
    .answer = sdg_norm_answer,
    .shard = &shard,
};
