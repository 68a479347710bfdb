// SPDX-License-Identifier: Apache-2.0
// Answers the query for attention's workspace and reserve space: more than the
// vendor's library reports if the queries of a rank see keys of other ranks.
#include "rules/attention/rule.h"

#include <cudnn.h>

#include "rules/attention/call/descriptor.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/sequence.h"
#include "src/call/tag.h"

// The sum of all ranks' limits for the number of keys. It holds wherever the
// keys are cut.
static int64_t limits_sum(const sdg_operand_t *limits) {
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(limits->descriptor, limits->generation);
  int64_t sum = 0;
  for (int r = 0; r < vector->ranks; r++)
    sum += vector->extent[r * vector->dims + SDG_SEQUENCE_TIME];
  return sum;
}

// The largest number of keys that `queries` queries of a rank can see: all keys
// of the sequence, or this rank's keys and the halo of the window. If the
// section does not cut the keys, the length of the sequence is at most the sum
// of the ranks' limits; tags of the program may cut it then.
static int64_t keys_max(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        int64_t queries) {
  const sdg_section_t *section = tagging->section;
  const sdg_placement_t *placement = &tagging->placement[0];
  int64_t own = call->operand[0].extent[SDG_SEQUENCE_TIME], all;
  bool fits = placement->dims > 0; // the section's cuts
  if (section->window == SDG_WINDOW_LOCAL)
    return own;
  if (fits && placement->split[SDG_SEQUENCE_TIME].axes > 0)
    all = sdg_placement_extent(placement, SDG_SEQUENCE_TIME);
  else if (fits && section->window == SDG_WINDOW_UNSAID)
    return own;
  else
    all = limits_sum(&call->operand[0]);
  if (section->window != SDG_WINDOW_SIZES ||
      section->attention == SDG_STRATEGY_GATHER)
    return all;
  return sdg_min64(all, sdg_max64(own, queries) +
                            sdg_min64(all, section->window_left) +
                            sdg_min64(all, section->window_right));
}

sdg_status_t sdg_attention_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) {
  size_t *work = sdg_call_pointer(call, SDG_OUT_BYTES);
  size_t *reserve = sdg_call_pointer(call, SDG_OUT_RESERVE_BYTES);
  sdg_attention_descriptor_t desc;
  sdg_attention_room_t room;
  *out_vendor = sdg_invoke(call->entry, call->args);
  if (*out_vendor || !sdg_attention_descriptor_get(
                         sdg_call_descriptor(call, SDG_ROLE_K), &desc))
    return SDG_OK;
  desc.k_time = (int)sdg_min64(INT32_MAX, keys_max(call, tagging, desc.q_time));
  SDG_TRY(sdg_attention_descriptor_room(sdg_call_pointer(call, SDG_HANDLE),
                                        &desc, &room));
  if (*work < room.work_bytes)
    *work = room.work_bytes;
  if (reserve && *reserve < room.reserve_bytes)
    *reserve = room.reserve_bytes;
  return SDG_OK;
}
