// SPDX-License-Identifier: Apache-2.0
// Neighbourhood attention as an op.
#include <stdio.h>
#include <string.h>

#include "rules/neighborhood/plan.h"
#include "rules/place/op.h"
#include "src/sundog.h"

static sdg_status_t neighborhood_describe(const sdg_call_t *call, char *out,
                                          size_t out_bytes) {
  const sundog_neighborhood_t *how = call->args;
  int used = snprintf(out, out_bytes, "%d heads, scale %a, %s windows",
                      how->heads, how->scale, how->cut ? "cut" : "shifted");
  for (int d = 0; d < how->dims; d++)
    used += snprintf(out + used, out_bytes - (size_t)used, "%s%d dilated %d%s",
                     d ? " x " : " of ", how->kernel[d], how->dilation[d],
                     how->causal[d] ? " causal" : "");
  return SDG_OK;
}

// sdg_neighborhood_check keeps kernels and dilations below 2^20.
static int neighborhood_key(const sdg_call_t *call, uint64_t *out) {
  const sundog_neighborhood_t *how = call->args;
  out[0] = out[1] = 0;
  out[2] = (uint64_t)how->heads << 8 | (uint64_t)how->dims << 4 |
           (uint64_t)(how->cut != 0) << 3;
  for (int d = 0; d < how->dims; d++) {
    out[0] |= (uint64_t)how->kernel[d] << 20 * d;
    out[1] |= (uint64_t)how->dilation[d] << 20 * d;
    out[2] |= (uint64_t)(how->causal[d] != 0) << d;
  }
  memcpy(&out[3], &how->scale, sizeof out[3]);
  return 4;
}

const sdg_op_t sdg_op_neighborhood = {
    .family = SDG_FAMILY_NEIGHBORHOOD,
    .describe = neighborhood_describe,
    .key = neighborhood_key,
    .colocate = sdg_neighborhood_colocate,
    .plan = sdg_neighborhood_plan,
    .share = sdg_neighborhood_share,
};
