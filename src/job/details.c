// SPDX-License-Identifier: Apache-2.0
// Exchanges lists of numbers between all ranks, in as many exchanges as the
// longest list needs.
#include "src/job/details.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/call/tag.h"
#include "src/control/control.h"
#include "src/job/job.h"
#include "src/job/thread.h"

enum { SLICE = 1000 }; // numbers per exchange

typedef struct slice {
  uint64_t check; // hash of all that follows
  int first, count;
  int number[SLICE];
} slice_t;
_Static_assert(sizeof(slice_t) <= SDG_CHANNEL_RECORD_BYTES,
               "a slice is one record");

static uint64_t check_of(const slice_t *slice) {
  uint64_t hash = SDG_HASH_SEED;
  hash = sdg_hash_word(hash, (uint32_t)slice->first);
  hash = sdg_hash_word(hash, (uint32_t)slice->count);
  for (int i = 0; i < slice->count; i++)
    hash = sdg_hash_word(hash, (uint32_t)slice->number[i]);
  return hash;
}

static int total_of(const int *count) {
  int total = 0;
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    total += count[i];
  return total;
}

// Returns how many of a rank's numbers belong to the exchange that begins at
// `first`.
static int slice_count(const int *count, int first) {
  int left = total_of(count) - first;
  return left < 0 ? 0 : left < SLICE ? left : SLICE;
}

static size_t slice_bytes(int count) {
  return offsetof(slice_t, number) + (size_t)count * sizeof(int);
}

// Concatenates this rank's lists.
static void slice_fill(const sdg_details_t *mine, int first, slice_t *out) {
  int at = 0;
  *out = (slice_t){.first = first, .count = slice_count(mine->count, first)};
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    for (int k = 0; k < mine->count[i]; k++, at++)
      if (at >= first && at < first + out->count)
        out->number[at - first] = mine->number[i][k];
  out->check = check_of(out);
}

static sdg_status_t slice_read(const sdg_call_t *call, int rank,
                               const char *record, size_t bytes, int first,
                               int count, int *out) {
  slice_t slice;
  if (bytes != slice_bytes(count))
    return sdg_fail(
        SDG_E_DIVERGED,
        "rank %d is at another exchange while this rank sends details of %s",
        rank, call->entry_name);
  memcpy(&slice, record, bytes);
  if (slice.first != first || slice.count != count ||
      slice.check != check_of(&slice))
    return sdg_fail(SDG_E_MESSAGE, "rank %d's numbers for %s", rank,
                    call->entry_name);
  memcpy(out + first, slice.number, (size_t)count * sizeof *out);
  return SDG_OK;
}

// Exchanges the numbers from `first` on; out: `most` numbers of each rank.
static sdg_status_t slice_exchange(const sdg_call_t *call,
                                   const sdg_details_t *mine,
                                   const sdg_detail_counts_t *counts, int first,
                                   char (*all)[SDG_CHANNEL_RECORD_BYTES],
                                   int most, int *out) {
  const sdg_group_t *group = sdg_job_group();
  size_t bytes[SDG_RANKS_MAX];
  slice_t slice;
  char what[128];
  sdg_job_call(what, sizeof what);
  slice_fill(mine, first, &slice);
  SDG_TRY(sdg_control_exchange(sdg_job_control(), sdg_channel_get(),
                               group->rank, group->count, &slice,
                               slice_bytes(slice.count), all, bytes, what));
  for (int r = 0; r < group->count; r++)
    SDG_TRY(slice_read(call, group->rank[r], all[r], bytes[r], first,
                       slice_count(counts[r].of, first),
                       out + (size_t)r * (size_t)most));
  return SDG_OK;
}

// Stores the lists of one operand with its descriptor; rank r's list begins at
// at[r] of its numbers.
static sdg_status_t operand_store(const sdg_operand_t *operand, int index,
                                  const sdg_detail_counts_t *counts,
                                  const int *all, int most, int *io_at) {
  int ranks = sdg_job_group()->count, room = 0;
  for (int r = 0; r < ranks; r++)
    room = counts[r].of[index] > room ? counts[r].of[index] : room;
  if (room == 0)
    return SDG_OK;
  int *list = malloc((size_t)ranks * (size_t)room * sizeof *list);
  if (!list)
    return sdg_fail(SDG_E_NO_MEMORY, "numbers of %d ranks", ranks);
  for (int r = 0; r < ranks; r++)
    for (int k = 0; k < room; k++)
      list[r * room + k] =
          k < counts[r].of[index]
              ? all[(size_t)r * (size_t)most + (size_t)(io_at[r] + k)]
              : -1;
  for (int r = 0; r < ranks; r++)
    io_at[r] += counts[r].of[index];
  return sdg_tag_set_details(operand->descriptor, operand->generation, room,
                             list);
}

sdg_status_t sdg_details_exchange(const sdg_call_t *call,
                                  const sdg_details_t *mine,
                                  const sdg_detail_counts_t *counts) {
  int ranks = sdg_job_group()->count, most = 0, at[SDG_RANKS_MAX] = {0};
  for (int r = 0; r < ranks; r++)
    most = total_of(counts[r].of) > most ? total_of(counts[r].of) : most;
  char(*record)[SDG_CHANNEL_RECORD_BYTES] =
      malloc((size_t)ranks * sizeof *record);
  int *all = malloc((size_t)ranks * (size_t)most * sizeof *all);
  sdg_status_t status = SDG_OK;
  if (!record || !all)
    status = sdg_fail(SDG_E_NO_MEMORY, "%d numbers of %d ranks", most, ranks);
  for (int first = 0; first < most && status == SDG_OK; first += SLICE)
    status = slice_exchange(call, mine, counts, first, record, most, all);
  if (status != SDG_OK)
    status = sdg_job_fail(status);
  for (int i = 0; i < call->operands && status == SDG_OK; i++)
    status = operand_store(&call->operand[i], i, counts, all, most, at);
  free(record);
  free(all);
  return status;
}
