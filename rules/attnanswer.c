// SPDX-License-Identifier: Apache-2.0
// How much memory attention needs where the queries of a rank see keys of
// others.
#include "rules/attention.h"

#include <cudnn.h>

#include "rules/args.h"
#include "rules/sequence.h"
#include "rules/vendor.h"

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The most keys that a rank's queries see, of sequences within the limits: the
// sum of the ranks' limits, or this rank's and the halo.
static int64_t keys_most(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  const sdg_section_t *section = tagging->section;
  const sdg_placement_t *placement = &tagging->placement[0];
  int64_t own = call->operand[0].extent[SDG_SEQUENCE_TIME];
  int64_t all = sdg_placement_extent(placement, SDG_SEQUENCE_TIME);
  if (placement->split[SDG_SEQUENCE_TIME].axes == 0 ||
      section->window == SDG_WINDOW_LOCAL)
    return own;
  if (section->window != SDG_WINDOW_SIZES ||
      section->attention == SDG_STRATEGY_GATHER)
    return all;
  return lesser(all, own + lesser(all, section->window_left) +
                         lesser(all, section->window_right));
}

static size_t greater(size_t a, size_t b) {
  return a > b ? a : b;
}

sdg_status_t sdg_attention_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) {
  const struct sdg_args_cudnnGetMultiHeadAttnBuffers *a = call->args;
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  sdg_attndesc_t desc;
  sdg_attnroom_t room;
  *out_vendor = (int)cudnn->cudnnGetMultiHeadAttnBuffers(
      a->handle, a->attnDesc, a->weightSizeInBytes, a->workSpaceSizeInBytes,
      a->reserveSpaceSizeInBytes);
  if (*out_vendor || !sdg_attndesc_get(a->attnDesc, &desc))
    return SDG_OK;
  desc.k_time = (int)lesser(INT32_MAX, keys_most(call, tagging));
  SDG_TRY(sdg_attndesc_room(a->handle, &desc, &room));
  *a->workSpaceSizeInBytes = greater(*a->workSpaceSizeInBytes, room.work_bytes);
  if (a->reserveSpaceSizeInBytes)
    *a->reserveSpaceSizeInBytes =
        greater(*a->reserveSpaceSizeInBytes, room.reserve_bytes);
  return SDG_OK;
}
