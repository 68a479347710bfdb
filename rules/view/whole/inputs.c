// SPDX-License-Identifier: Apache-2.0
// Finds new inputs of a call, and compares them.
#include "rules/view/whole/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "rules/memory/uploads.h"
#include "rules/step/compare.h"
#include "rules/step/divergence.h"
#include "rules/vendor/vendor.h"
#include "src/base/options.h"
#include "src/exchange/lanes.h"
#include "src/job/digests.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// The call's stream waits for exchanges that brought its tensors together for
// calls on other streams.
static sdg_status_t exchanges_follow(const sdg_call_t *call) {
  cudaStream_t stream;
  bool capturing;
  SDG_TRY(sdg_stream_state(call, &stream, &capturing));
  return capturing ? SDG_OK : sdg_lanes_follow(sdg_channel_get(), stream);
}

// The new inputs of a call: bits of operands that are read for the first time;
// a digest of what the program copied to the others.
typedef struct news {
  unsigned first;
  int again; // the first operand that has copied values; -1: none
  uint64_t copied;
} news_t;

static sdg_span_t span_of(const sdg_operand_t *operand) {
  sdg_layout_t layout = sdg_operand_layout(operand);
  return (sdg_span_t){(uintptr_t)operand->data, sdg_layout_bytes(&layout)};
}

// The due operands, to be compared in full on all ranks.
static void compared_fill(const sdg_call_t *call, unsigned due,
                          sdg_compared_t *out) {
  memset(out, 0, sizeof *out);
  out->due = due;
  out->watched = -1;
  for (int i = 0; i < call->operands; i++) {
    out->common[i].axes = sdg_job_axes();
    memcpy(out->common[i].extent, call->operand[i].extent,
           sizeof out->common[i].extent);
  }
}

static news_t news_find(const sdg_call_t *call, const sdg_buffers_t *table) {
  bool always = sdg_options_comparing() == SDG_COMPARING_ALWAYS;
  news_t news = {.again = -1};
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!operand->data || !sdg_compare_reads(operand))
      continue;
    sdg_upload_t what = sdg_uploads_of(operand, always, &news.copied);
    if (what == SDG_UPLOAD_AGAIN && news.again < 0)
      news.again = i;
    if (what == SDG_UPLOAD_FIRST &&
        !sdg_buffers_overlap(table, span_of(operand), NULL))
      news.first |= 1u << i;
  }
  return news;
}

static bool is_parameter(const sdg_operand_t *operand) {
  return operand->role == SDG_ROLE_W || operand->role == SDG_ROLE_BIAS ||
         sdg_role_is_scale(operand->role);
}

static sdg_status_t differ(const sdg_call_t *call, const sdg_digests_t *all,
                           int index, int rank) {
  const sdg_operand_t *operand = &call->operand[index];
  char who[512], extents[128];
  if (is_parameter(operand))
    return sdg_compare_fail(call, all, index, sdg_job_axes(), rank, 0);
  sdg_digests_format(all, index, sdg_job_axes(), rank,
                     "read another input than", "read another input than", who,
                     sizeof who);
  sdg_compare_extents(operand, extents, sizeof extents);
  return sdg_fail(SDG_E_INPUTS_DIFFER,
                  "values of %s [%s] of %s differ: %s. In the whole view every "
                  "rank must read the same, whole input. Is {rank} in the "
                  "program's words? Are random numbers seeded by the rank or "
                  "the clock? Do kernels add with atomics, which round "
                  "differently each time? SUNDOG_COMPARE=off compares nothing",
                  sdg_role_name(operand->role), extents, call->entry_name, who);
}

// Whether a differing operand is copied from the first rank: parameters are, at
// their first use.
static bool is_copied(const sdg_operand_t *operand) {
  uint64_t unused = 0;
  return sdg_options_get()->parameters == SDG_PARAMETERS_RANK0 &&
         is_parameter(operand) &&
         sdg_uploads_of(operand, false, &unused) == SDG_UPLOAD_FIRST;
}

static sdg_status_t judge(const sdg_call_t *call,
                          const sdg_compared_t *compared,
                          const sdg_digests_t *all, cudaStream_t stream) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    int rank = compared->due >> i & 1
                   ? sdg_digests_differ(all, i, sdg_job_axes())
                   : -1;
    if (rank >= 0 && !is_copied(operand))
      return differ(call, all, i, rank);
    if (rank >= 0)
      SDG_TRY(sdg_compare_copy(call, i, &compared->common[i], stream));
    if (compared->due >> i & 1)
      sdg_uploads_made(operand);
  }
  return SDG_OK;
}

sdg_status_t sdg_inputs_compare(const sdg_call_t *call, sdg_buffers_t *table) {
  if (sdg_options_comparing() == SDG_COMPARING_OFF ||
      sdg_job_group()->count < 2)
    return SDG_OK;
  news_t news = news_find(call, table);
  if (news.again >= 0)
    SDG_TRY(sdg_divergence_values(call->entry_name,
                                  sdg_role_name(call->operand[news.again].role),
                                  news.copied));
  if (!news.first)
    return SDG_OK;
  SDG_TRY(sdg_divergence_update(call->entry_name, news.first));
  SDG_TRY(exchanges_follow(call));
  sdg_digests_t *all = malloc((size_t)sdg_job_group()->count * sizeof *all);
  if (!all)
    return sdg_fail(SDG_E_NO_MEMORY, "digests of the ranks");
  cudaStream_t stream;
  bool read;
  sdg_compared_t compared;
  compared_fill(call, news.first, &compared);
  sdg_status_t status =
      sdg_compare_exchange(call, &compared, all, &stream, &read);
  if (status == SDG_OK && read)
    status = judge(call, &compared, all, stream);
  free(all);
  return status;
}
