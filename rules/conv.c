// SPDX-License-Identifier: Apache-2.0
// The rule for convolutions: forward with its queries; gradients are refused.
#include <stdio.h>

#include "rules/args.h"
#include "rules/conv.h"

static bool conv_knows(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnConvolutionForward:
  case SDG_ENTRY_cudnnConvolutionBiasActivationForward:
  case SDG_ENTRY_cudnnGetConvolution2dForwardOutputDim:
  case SDG_ENTRY_cudnnGetConvolutionNdForwardOutputDim:
  case SDG_ENTRY_cudnnGetConvolutionForwardWorkspaceSize:
  case SDG_ENTRY_cudnnGetConvolutionForwardAlgorithm_v7:
  case SDG_ENTRY_cudnnFindConvolutionForwardAlgorithm:
  case SDG_ENTRY_cudnnFindConvolutionForwardAlgorithmEx:
    return true;
  default:
    return false;
  }
}

static int conv_key(const sdg_call_t *call, uint64_t *out) {
  return sdg_conv_is_forward(call) ? sdg_conv_key(call, out) : 0;
}

static sdg_status_t conv_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  sdg_conv_parameters_t p;
  if (!call->op_descriptor)
    return sdg_fail(SDG_E_ARGUMENT, "%s: the descriptor is NULL",
                    call->entry_name);
  SDG_TRY(sdg_conv_parameters(call->op_descriptor, &p));
  size_t used =
      (size_t)snprintf(out, out_bytes, "mode %d compute %d groups %d math %d",
                       (int)p.mode, (int)p.compute, p.groups, (int)p.math);
  for (int i = 0; i < p.spatial && used < out_bytes; i++)
    used += (size_t)snprintf(out + used, out_bytes - used,
                             " pad %d stride %d dilation %d", p.pad[i],
                             p.stride[i], p.dilation[i]);
  return SDG_OK;
}

const sdg_rule_t sdg_rule_conv = {
    .family = SDG_FAMILY_CONV,
    .windowed = true,
    .knows = conv_knows,
    .describe = conv_describe,
    .key = conv_key,
    .plan = sdg_conv_plan,
    .answer = sdg_conv_answer,
};
