// SPDX-License-Identifier: Apache-2.0
// Compares the totals of ranks at several times.
#include "tools/live/rates.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/bootstrap/process.h"

enum { SAMPLES = RATES_WINDOW + 1 };

typedef struct sample {
  int64_t at_ns;
  rank_now_t *rank;
} sample_t;

struct samples {
  int size, taken; // the newest is sample[(taken - 1) % SAMPLES]
  int from;        // the first since ranks have joined or left
  const char *folder;
  sample_t sample[SAMPLES];
  int64_t moved_ns; // the last time at which something had moved
  rates_t rates;
};

sdg_status_t rates_create(int size, const char *folder, samples_t **out) {
  samples_t *samples = calloc(1, sizeof *samples);
  rank_now_t *now = calloc((size_t)size * SAMPLES, sizeof *now);
  rank_rates_t *rank = calloc((size_t)size, sizeof *rank);
  if (!samples || !now || !rank) {
    free(samples);
    free(now);
    free(rank);
    return sdg_fail(SDG_E_NO_MEMORY, "--progress of %d ranks", size);
  }
  samples->size = samples->rates.size = size;
  samples->folder = folder;
  samples->rates.rank = rank;
  for (int i = 0; i < SAMPLES; i++)
    samples->sample[i].rank = now + (size_t)i * (size_t)size;
  *out = samples;
  return SDG_OK;
}

static double longest(const int64_t *before, const int64_t *after) {
  int64_t most = 0;
  for (int i = 0; i < SDG_CHANNEL_THREADS; i++)
    if (after[i] - before[i] > most)
      most = after[i] - before[i];
  return (double)most;
}

double rates_waits(const rank_now_t *before, const rank_now_t *after,
                   int64_t ns) {
  double host = longest(before->host_wait_ns, after->host_wait_ns);
  double stream = longest(before->stream_wait_ns, after->stream_wait_ns);
  double part = (host > stream ? host : stream) / (double)ns;
  // The waits of a stream are known some time after they have ended.
  return part > 1 ? 1 : part;
}

static bool has_ended(const samples_t *samples, int rank) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/ended-%d", samples->folder, rank);
  return access(path, F_OK) == 0;
}

static presence_t presence_of(const samples_t *samples, int rank,
                              const rank_now_t *now) {
  if (has_ended(samples, rank))
    return PRESENCE_ENDED;
  switch (now->state) {
  case SDG_LIVE_JOINING:
    return PRESENCE_COMING;
  case SDG_LIVE_JOINED:
    return PRESENCE_HERE;
  case SDG_LIVE_ABSENT:
  case SDG_LIVE_LEFT:
    break;
  }
  // Another process may become the rank yet, but this one has ended.
  return now->state == SDG_LIVE_LEFT ? PRESENCE_ENDED : PRESENCE_ABSENT;
}

static bool has_moved(const rank_now_t *before, const rank_now_t *after) {
  return after->calls != before->calls || after->number != before->number ||
         after->received_bytes != before->received_bytes;
}

static bool has_changed(const rank_now_t *before, const rank_now_t *after) {
  return after->state != before->state || after->pid != before->pid;
}

const rates_t *rates_take(samples_t *samples, const sdg_live_t *live,
                          int64_t now_ns) {
  rates_t *rates = &samples->rates;
  sample_t *newest = &samples->sample[samples->taken % SAMPLES];
  const sample_t *last =
      &samples->sample[(samples->taken + SAMPLES - 1) % SAMPLES];
  newest->at_ns = now_ns;
  for (int r = 0; r < samples->size; r++) {
    const rank_now_t *before = &last->rank[r], *now = &newest->rank[r];
    totals_read(live, r, now_ns, &newest->rank[r]);
    bool changed = samples->taken == 0 || has_changed(before, now);
    if (changed)
      samples->from = samples->taken;
    if (changed || has_moved(before, now))
      samples->moved_ns = now_ns;
  }
  int back = samples->taken - samples->from;
  if (back > RATES_WINDOW)
    back = RATES_WINDOW;
  const sample_t *oldest = &samples->sample[(samples->taken - back) % SAMPLES];
  samples->taken++;
  int64_t ns = now_ns - oldest->at_ns;
  rates->known = back > 0 && ns > 0;
  rates->bytes_s = 0;
  rates->still_s = (double)(now_ns - samples->moved_ns) / 1e9;
  for (int r = 0; r < samples->size; r++) {
    const rank_now_t *before = &oldest->rank[r], *now = &newest->rank[r];
    rank_rates_t *rank = &rates->rank[r];
    *rank = (rank_rates_t){.presence = presence_of(samples, r, now),
                           .waits = now->waits,
                           .number = now->number};
    memcpy(rank->name, now->name, sizeof rank->name);
    rank->stopped =
        rank->presence == PRESENCE_HERE && sdg_process_is_stopped(now->pid);
    if (!rates->known)
      continue;
    rank->calls_s = (double)(now->calls - before->calls) * 1e9 / (double)ns;
    rank->waits_part = rates_waits(before, now, ns);
    rates->bytes_s += (double)(now->received_bytes - before->received_bytes) *
                      1e9 / (double)ns;
  }
  return rates;
}
