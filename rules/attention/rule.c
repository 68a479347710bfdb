// SPDX-License-Identifier: Apache-2.0
// Multi-head attention as an op.
#include "rules/attention/rule.h"

#include <stdio.h>
#include <string.h>

#include "rules/attention/call/call.h"
#include "rules/attention/call/kept.h"
#include "rules/attention/call/length.h"
#include "rules/file/setup.h"
#include "rules/vendor/args.h"
#include "rules/vendor/sequence.h"
#include "src/base/hash.h"

static bool is_query(const sdg_call_t *call) {
  return call->entry == SDG_ENTRY_cudnnGetMultiHeadAttnBuffers;
}

static sdg_status_t lengths_describe(const sdg_call_t *call,
                                     const sdg_attention_t *a, char *out,
                                     size_t out_bytes) {
  uint64_t queries, keys;
  SDG_TRY(sdg_attention_lengths_hash(&call->operand[a->q], &queries));
  SDG_TRY(sdg_attention_lengths_hash(&call->operand[a->k], &keys));
  if (queries || keys)
    snprintf(out, out_bytes, "lengths %016llx %016llx ",
             (unsigned long long)queries, (unsigned long long)keys);
  return SDG_OK;
}

static sdg_status_t attention_describe(const sdg_call_t *call, char *out,
                                       size_t out_bytes) {
  sdg_attention_descriptor_t desc;
  sdg_attention_t a;
  const void *descriptor =
      is_query(call) ? call->operand[0].descriptor : call->op_descriptor;
  if (sdg_attention_descriptor_get(descriptor, &desc))
    sdg_attention_descriptor_format(&desc, out, out_bytes);
  if (is_query(call) || !sdg_attention_read(call, &a))
    return SDG_OK;
  size_t used = strlen(out);
  snprintf(out + used, out_bytes - used, " %s%s%s%s",
           a.same ? "keys are values " : "", a.reserve ? "training " : "",
           a.adds ? "adds " : "", a.current >= 0 ? "one step " : "");
  // The limits of pieces differ between ranks.
  return sdg_setup_is_whole() ? lengths_describe(call, &a, out + strlen(out),
                                                 out_bytes - strlen(out))
                              : SDG_OK;
}

// The limits of keys from the descriptor. The ranks agree on them, as on the
// limits of a query's operand.
static int attention_sizes(const sdg_call_t *call, int64_t *out) {
  sdg_operand_t limits = {.descriptor = call->op_descriptor};
  if (is_query(call) || !sdg_attention_descriptor_limits(&limits))
    return 0;
  memcpy(out, limits.extent, SDG_SEQUENCE_DIMS * sizeof *out);
  return SDG_SEQUENCE_DIMS;
}

static sdg_status_t attention_details(const sdg_call_t *call, int index,
                                      int *out_count, int **out_number) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_box_t own = {.dims = SDG_SEQUENCE_DIMS};
  sdg_attention_lengths_t lengths;
  *out_number = NULL;
  if (operand->kind != SDG_OPERAND_SEQUENCE)
    return SDG_OK;
  SDG_TRY(sdg_attention_lengths_read(operand, &own, &lengths));
  *out_number = lengths.length; // the caller frees it
  *out_count = lengths.length ? (int)(lengths.batches * lengths.beams) : 0;
  return SDG_OK;
}

static uint64_t windows_hash(const sdg_windows_t *windows) {
  uint64_t hash = SDG_HASH_SEED;
  for (int64_t t = 0; t < windows->count; t++) {
    hash = sdg_hash_word(hash, (uint32_t)windows->lo[t]);
    hash = sdg_hash_word(hash, (uint32_t)windows->hi[t]);
    hash ^= hash >> 32;
  }
  return hash;
}

static int attention_key(const sdg_call_t *call, uint64_t *out) {
  sdg_attention_t a;
  out[0] = out[1] = out[2] = out[3] = 0;
  if (is_query(call) || !sdg_attention_read(call, &a))
    return 4;
  if (a.windows.lo && a.current < 0)
    out[0] = windows_hash(&a.windows);
  // Gradients are shared in the same way as the forward call.
  const sdg_attention_kept_t *kept = a.kind == SDG_ATTENTION_FORWARD
                                         ? NULL
                                         : sdg_attention_kept_find(a.reserve);
  out[3] = kept ? kept->hash : 0;
  out[1] = a.reserve ? a.reserve_bytes + 1 : 0;
  out[2] = 1 | (uint64_t)a.same << 1 | (uint64_t)a.adds << 2 |
           (uint64_t)(a.current >= 0) << 3;
  return 4;
}

static int attention_scalars(const sdg_call_t *call, double *out) {
  sdg_attention_t a;
  if (is_query(call) || !sdg_attention_read(call, &a))
    return 0;
  out[0] = a.current < 0 ? -1 : a.current;
  return 1;
}

static const sdg_op_numbers_t numbers = {
    .sizes = attention_sizes,
    .details = attention_details,
    .scalars = attention_scalars,
};

static const sdg_op_reuse_t reuse = {
    .note = sdg_attention_note,
};

const sdg_op_t sdg_op_attention = {
    .family = SDG_FAMILY_ATTENTION,
    .describe = attention_describe,
    .key = attention_key,
    .colocate = sdg_attention_colocate,
    .plan = sdg_attention_plan,
    .share = sdg_attention_share,
    .answer = sdg_attention_answer,
    .numbers = &numbers,
    .reuse = &reuse,
};
