// SPDX-License-Identifier: Apache-2.0
// The spatial-transformer sampler as an op.
#include "rules/place/colocate.h"
#include "rules/step/compare.h"
#include "rules/place/tagging.h"
#include "rules/sampler/plan.h"
#include "rules/vendor/argument.h"

// A plan depends on which beta is 0, because then old values are not read, and
// on whether a scalar is missing, because then the call is refused.
static int sampler_key(const sdg_call_t *call, uint64_t *out) {
  out[0] = (uint64_t)(sdg_call_scalar(call, SDG_BETA) != 0) |
           (uint64_t)(sdg_call_scalar(call, SDG_BETA2) != 0) << 1 |
           (uint64_t)sdg_call_lacks_scalar(call) << 2;
  return 1;
}

// Channels of y do not cut the grid, so ranks along their axes have equal
// grids.
static sdg_common_t sampler_common(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging, int index) {
  sdg_common_t common = sdg_compare_common(call, tagging, index);
  if (index == sdg_sampler_operand(call, SDG_SAMPLER_GRID))
    common.axes =
        tagging->axes & ~sdg_placement_axes(&tagging->placement[index]);
  return common;
}

// No tensor moves, because a plan fetches x from any placement, and scatters
// dx to any placement. Each tensor takes its first reading that has as many
// images and channels as the leading one.
static sdg_status_t sampler_colocate(const sdg_call_t *call,
                                     sdg_colocation_t *colocation, int lead) {
  SDG_TRY(sdg_sampler_check(call));
  const sdg_placement_t *first = sdg_colocate_at(colocation, lead);
  sdg_axes_t axes = colocation->tagging.axes | sdg_placement_axes(first);
  for (int i = 0; i < call->operands && colocation->fits; i++) {
    if (!sdg_role_is_activation(call->operand[i].role))
      continue;
    int found = i == lead ? colocation->is[lead] : -1;
    for (int k = 0; k < colocation->places[i] && found < 0; k++) {
      const sdg_placement_t *is = &colocation->place[i][k].placement;
      bool fits = is->dims == first->dims;
      for (int d = 0; d < 2 && fits; d++)
        fits = sdg_placement_extent(is, d) == sdg_placement_extent(first, d);
      found = fits ? k : -1;
    }
    colocation->fits = found >= 0;
    if (i == lead || found < 0)
      continue;
    const sdg_placement_t *is = &colocation->place[i][found].placement;
    SDG_TRY(sdg_colocate_follow(colocation, i, is, false));
    axes |= sdg_placement_axes(is);
  }
  colocation->fits =
      colocation->fits && sdg_sampler_unfit(call, &colocation->tagging) < 0;
  if (colocation->fits)
    sdg_tagging_span(&colocation->tagging, axes);
  return SDG_OK;
}

static const sdg_op_numbers_t numbers = {
    .sizes = sdg_sampler_sizes,
};

static const sdg_op_shard_t shard = {
    .common = sampler_common,
};

const sdg_op_t sdg_op_sampler = {
    .family = SDG_FAMILY_SAMPLER,
    .describe = sdg_sampler_describe,
    .key = sampler_key,
    .colocate = sampler_colocate,
    .plan = sdg_sampler_plan,
    .share = sdg_sampler_share,
    .numbers = &numbers,
    .shard = &shard,
};
