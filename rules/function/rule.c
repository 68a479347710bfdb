// SPDX-License-Identifier: Apache-2.0
// Functions of the program's own as an op.
#include <stdio.h>
#include <string.h>

#include "rules/file/setup.h"
#include "rules/function/function.h"
#include "rules/place/place.h"
#include "rules/place/tagging.h"
#include "rules/step/compare.h"
#include "src/base/hash.h"
#include "src/call/tag.h"

static sdg_status_t function_describe(const sdg_call_t *call, char *out,
                                      size_t out_bytes) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  if (function->text) // each rank's program gave it
    snprintf(out, out_bytes, "function %s, text %016llx", call->entry_name,
             (unsigned long long)function->text);
  else
    snprintf(out, out_bytes, "function %s", call->entry_name);
  return SDG_OK;
}

static uint64_t memory_of(const sdg_call_t *call) {
  return sdg_setup_is_whole() ? sdg_function_memory(call) : 0;
}

// The tensors' extents decide the plan, and whether an output lies where an
// input does; in the whole view also in what memory they are.
static int function_key(const sdg_call_t *call, uint64_t *out) {
  out[0] = memory_of(call) << 1 | (sdg_function_alias(call) >= 0);
  return 1;
}

// Numbers that are no sizes: step, time, coefficients, offsets.
static uint64_t numbers_hash(const sdg_call_t *call) {
  const sdg_function_call_t *c = sdg_function_call_of(call);
  uint64_t hash = SDG_HASH_SEED;
  for (int a = 0; a < c->function->arguments; a++) {
    const sdg_argument_t *argument = &c->function->argument[a];
    const void *at = c->value[a];
    if (argument->use != SDG_ARGUMENT_NUMBER || argument->is_size)
      continue;
    if (argument->by_reference)
      memcpy(&at, c->value[a], sizeof at);
    // The bytes between the members of a struct are not the program's.
    int members = argument->members ? argument->members : 1;
    for (int m = 0; m < members && at; m++)
      hash = sdg_hash_bytes(hash,
                            (const char *)at + sdg_argument_offset(argument, m),
                            (size_t)argument->number[m].bytes);
  }
  return hash;
}

static uint32_t function_values(const sdg_call_t *call) {
  uint64_t hash = sdg_hash_word(numbers_hash(call), memory_of(call));
  return (uint32_t)(hash ^ hash >> 32);
}

// ---- where the tensors are -------------------------------------------------

static sdg_status_t beside_fail(const sdg_call_t *call, int index, int d) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  int tensor = sdg_function_tensor_of(function, index);
  int lead = sdg_function_tensor_of(function, 0);
  return sdg_fail(
      SDG_E_FUNCTION,
      "%s: '%s' is not cut in %s as '%s' is: both need the same extents on "
      "every rank",
      call->entry_name,
      function->argument[function->tensor[tensor].argument].name,
      sdg_tagging_name(call->family, call->operand[0].dims, d),
      function->argument[function->tensor[lead].argument].name);
}

static sdg_status_t tensor_place(const sdg_call_t *call, int index,
                                 sdg_tagging_t *io) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *lead = &io->placement[0];
  int tensor = sdg_function_tensor_of(function, index);
  sdg_split_t split[SDG_DIMS_MAX] = {{0}};
  sdg_placement_fini(&io->placement[index]);
  for (int d = 0; d < operand->dims; d++)
    if (sdg_function_extent_at(function, tensor, d) >= 0)
      split[d] = lead->split[d];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  SDG_TRY(sdg_place_vector(call, vector, split, NULL, &io->placement[index]));
  for (int d = 0; d < operand->dims; d++)
    if (split[d].axes > 0 &&
        !sdg_part_equal(&io->placement[index].part[d], &lead->part[d]))
      return beside_fail(call, index, d);
  return SDG_OK;
}

static sdg_status_t lacks_fail(const sdg_call_t *call, int tensor, int d) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  int lead = sdg_function_tensor_of(function, 0);
  return sdg_fail(
      SDG_E_FUNCTION,
      "%s: '%s' has %s, which is split, and '%s', which sections match, does "
      "not have it",
      call->entry_name,
      function->argument[function->tensor[tensor].argument].name,
      sdg_tagging_name(call->family, call->operand[0].dims, d),
      function->argument[function->tensor[lead].argument].name);
}

// A dimension that the lead does not have has an extent of 1 on every rank,
// which is not a row of each.
static sdg_status_t lead_place(const sdg_call_t *call, sdg_tagging_t *io) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  const sdg_operand_t *operand = &call->operand[0];
  int lead = sdg_function_tensor_of(function, 0);
  sdg_split_t split[SDG_DIMS_MAX] = {{0}};
  bool lacks = false;
  for (int d = 0; d < operand->dims; d++) {
    if (sdg_function_extent_at(function, lead, d) >= 0) {
      split[d] = io->placement[0].split[d];
      continue;
    }
    bool splits = sdg_placement_splits(&io->placement[0], d);
    lacks |= splits;
    for (int t = 0; t < function->tensors && splits; t++)
      if (sdg_function_extent_at(function, t, d) >= 0)
        return lacks_fail(call, t, d);
  }
  if (!lacks)
    return SDG_OK;
  sdg_placement_fini(&io->placement[0]);
  return sdg_place_vector(
      call, sdg_tag_vector(operand->descriptor, operand->generation), split,
      NULL, &io->placement[0]);
}

sdg_status_t sdg_function_place(const sdg_call_t *call,
                                sdg_tagging_t *io_tagging) {
  SDG_TRY(lead_place(call, io_tagging));
  for (int i = 1; i < call->operands; i++)
    if (call->operand[i].role == SDG_ROLE_FIELD)
      SDG_TRY(tensor_place(call, i, io_tagging));
  return SDG_OK;
}

// Elements that no rank cuts are the same on all.
static sdg_common_t function_common(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging, int index) {
  sdg_common_t common = {.axes = 0};
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_placement_t *placement = &tagging->placement[index];
  if (placement->dims == 0)
    return common;
  common.axes = tagging->axes & ~sdg_placement_axes(placement);
  for (int d = 0; d < operand->dims; d++) {
    common.extent[d] = operand->extent[d];
    common.whole[d] = sdg_placement_extent(placement, d);
  }
  return common;
}

static const sdg_op_numbers_t numbers = {.changing = function_values};

static const sdg_op_shard_t shard = {
    .place = sdg_function_place,
    .common = function_common,
};

const sdg_op_t sdg_op_function = {
    .family = SDG_FAMILY_FUNCTION,
    .describe = function_describe,
    .key = function_key,
    .plan = sdg_function_plan,
    .share = sdg_function_share,
    .numbers = &numbers,
    .shard = &shard,
};
