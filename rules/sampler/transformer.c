// SPDX-License-Identifier: Apache-2.0
// The program's spatial-transformer descriptor: what the vendor's library
// refuses on one device is refused in pieces, too.
#include <stdio.h>

#include "rules/file/setup.h"
#include "rules/sampler/plan.h"
#include "rules/vendor/argument.h"
#include "src/call/tag.h"
#include "src/job/job.h"

enum { EXTENTS = 4 }; // N C H W

// The values that the program has set.
typedef struct transformer {
  bool set; // false: the descriptor was created, but never set
  int type, dims;
  int extent[EXTENTS]; // where dims is EXTENTS
} transformer_t;

static transformer_t transformer_of(const sdg_call_t *call) {
  enum { SAMPLER, TYPE, DIMS, FIRST }; // in the order of entries.def
  int said[FIRST + EXTENTS];
  transformer_t t = {.set = false};
  if (!sdg_tag_said(call->op_descriptor, call->op_generation, FIRST, said))
    return t;
  t.set = true;
  t.type = said[TYPE];
  t.dims = said[DIMS];
  if (t.dims == EXTENTS &&
      sdg_tag_said(call->op_descriptor, call->op_generation, FIRST + EXTENTS,
                   said))
    for (int d = 0; d < EXTENTS; d++)
      t.extent[d] = said[FIRST + d];
  return t;
}

static const sdg_operand_t *result_of(const sdg_call_t *call) {
  return &call->operand[sdg_sampler_operand(call, SDG_SAMPLER_Y)];
}

// Negative extents are exchanged as 0.
int sdg_sampler_sizes(const sdg_call_t *call, int64_t *out) {
  transformer_t t = transformer_of(call);
  for (int d = 0; d < EXTENTS; d++)
    out[d] = t.extent[d] > 0 ? t.extent[d] : 0;
  return EXTENTS;
}

// In the whole view the ranks' descriptors must be equal, also their extents.
sdg_status_t sdg_sampler_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  transformer_t t = transformer_of(call);
  char extents[64] = "";
  if (sdg_setup_is_whole())
    snprintf(extents, sizeof extents, ", [%d,%d,%d,%d]", t.extent[0],
             t.extent[1], t.extent[2], t.extent[3]);
  if (!call->op_descriptor)
    snprintf(out, out_bytes, "no spatial transformer");
  else if (!t.set)
    snprintf(out, out_bytes, "a spatial transformer that was never set");
  else
    snprintf(out, out_bytes, "bilinear, %d dimensions, cudnnDataType_t %d%s%s",
             t.dims, t.type, extents,
             sdg_call_lacks_scalar(call) ? ", a scalar is NULL" : "");
  return SDG_OK;
}

// ---- what does not fit -----------------------------------------------------

static sdg_status_t extents_fail(const sdg_call_t *call, int rank,
                                 const int64_t *set, const int64_t *is) {
  return sdg_fail(
      SDG_E_ARGUMENT,
      "%s: the spatial transformer of rank %d is set to [%lld,%lld,%lld,%lld], "
      "but its %s is [%lld,%lld,%lld,%lld]. "
      "cudnnSetSpatialTransformerNdDescriptor takes the extents of the rank's "
      "own piece",
      call->entry_name, rank, (long long)set[0], (long long)set[1],
      (long long)set[2], (long long)set[3],
      sdg_role_name(result_of(call)->role), (long long)is[0], (long long)is[1],
      (long long)is[2], (long long)is[3]);
}

// The first operand whose type is not the transformer's; -1: none.
static int other_type(const sdg_call_t *call, const transformer_t *t) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].type != t->type)
      return i;
  return -1;
}

// The first operand that does not have 4 dimensions; -1: none.
static int other_dims(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].dims != EXTENTS)
      return i;
  return -1;
}

bool sdg_sampler_is_legal(const sdg_call_t *call) {
  transformer_t t = transformer_of(call);
  bool legal = sdg_call_is_complete(call) && !sdg_call_lacks_scalar(call) &&
               call->op_descriptor && t.dims == EXTENTS &&
               other_dims(call) < 0 && other_type(call, &t) < 0;
  for (int d = 0; legal && d < EXTENTS; d++)
    legal = t.extent[d] == result_of(call)->extent[d];
  return legal;
}

// Checks that each rank has set its transformer to the extents of its piece.
static sdg_status_t extents_check(const sdg_call_t *call) {
  const sdg_operand_t *y = result_of(call);
  const sdg_tag_vector_t *is = sdg_tag_vector(y->descriptor, y->generation);
  const sdg_tag_vector_t *set =
      sdg_tag_vector(call->op_descriptor, call->op_generation);
  if (!is || !set || is->dims != EXTENTS || set->dims != EXTENTS ||
      is->ranks != set->ranks)
    return sdg_fail(SDG_E_INTERNAL, "the ranks did not agree on %s",
                    call->entry_name);
  for (int r = 0; r < is->ranks; r++)
    for (int d = 0; d < EXTENTS; d++)
      if (set->extent[r * EXTENTS + d] != is->extent[r * EXTENTS + d])
        return extents_fail(call, sdg_job_group()->rank[r],
                            set->extent + r * EXTENTS,
                            is->extent + r * EXTENTS);
  return SDG_OK;
}

sdg_status_t sdg_sampler_check(const sdg_call_t *call) {
  transformer_t t = transformer_of(call);
  const char *entry = call->entry_name;
  if (!sdg_call_is_complete(call) || !call->op_descriptor)
    return sdg_fail(SDG_E_ARGUMENT, "%s: a descriptor is NULL", entry);
  if (sdg_call_lacks_scalar(call))
    return sdg_fail(SDG_E_ARGUMENT, "%s: a scalar is NULL", entry);
  if (!t.set)
    return sdg_fail(SDG_E_NO_RULE,
                    "%s: one device refuses it, too: the spatial transformer "
                    "was never set",
                    entry);
  int other = other_dims(call);
  if (t.dims != EXTENTS || other >= 0)
    return sdg_fail(
        SDG_E_NO_RULE,
        "%s: one device refuses it, too: %s has %d dimensions, not 4", entry,
        other < 0 ? "the spatial transformer"
                  : sdg_role_name(call->operand[other].role),
        other < 0 ? t.dims : call->operand[other].dims);
  other = other_type(call, &t);
  if (other >= 0)
    return sdg_fail(SDG_E_ARGUMENT,
                    "%s: the spatial transformer has cudnnDataType_t %d, %s %d",
                    entry, t.type, sdg_role_name(call->operand[other].role),
                    call->operand[other].type);
  return extents_check(call);
}
