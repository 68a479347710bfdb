// SPDX-License-Identifier: Apache-2.0
// Times phases of a thread's streams with a ring of event pairs.
#include "src/exchange/phases.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/job/job.h"
#include "src/job/thread.h"

enum { PAIRS = 1024 };
// CUDA tells times between events as floats: 2 s to 0.25 us.
static const double ANCHOR_MS = 2000;

typedef struct pair {
  cudaEvent_t before, after;
  sdg_report_row_t *row; // NULL: nothing to collect
  sdg_phase_t kind;
  uint64_t call;
  bool ended;
} pair_t;

// pair[oldest] ... pair[next - 1], around the end, are in flight. If all are,
// a new phase is not timed, because timing it would mean waiting.
typedef struct ring {
  pair_t pair[PAIRS];
  int next, oldest;
  // An event and when it happened, in ns of CLOCK_MONOTONIC; 0: not known.
  cudaEvent_t anchor;
  int64_t anchor_ns;
} ring_t;
static ring_t *rings[SDG_CHANNEL_THREADS]; // index: the thread's channel

static bool recorded(void) {
  return *sdg_options_get()->record;
}

bool sdg_phases_wanted(void) {
  return sdg_options_get()->waits || recorded();
}

// Records the pair's times, and takes its first event as the anchor if the
// present one is too old for exact differences.
static void pair_record(const sdg_vendor_t *cuda, ring_t *ring, pair_t *pair,
                        int64_t took_ns) {
  float ms;
  if (!ring->anchor_ns || cuda->cudaEventElapsedTime(
                              &ms, ring->anchor, pair->before) != cudaSuccess) {
    (void)cuda->cudaGetLastError();
    return;
  }
  int64_t at_ns = ring->anchor_ns + (int64_t)((double)ms * 1e6);
  sdg_phase_record(sdg_channel_get(), pair->call, pair->kind, at_ns, took_ns);
  if ((double)ms < ANCHOR_MS)
    return;
  cudaEvent_t before = pair->before;
  pair->before = ring->anchor;
  ring->anchor = before;
  ring->anchor_ns = at_ns;
}

// Returns false if the pair's events have not happened.
static bool pair_collect(const sdg_vendor_t *cuda, ring_t *ring, pair_t *pair) {
  if (!pair->row)
    return true;
  if (!pair->ended)
    return false;
  if (cuda->cudaEventQuery(pair->after) != cudaSuccess) {
    // CUDA keeps "not ready" as the thread's last error, which belongs to the
    // program.
    (void)cuda->cudaGetLastError();
    return false;
  }
  float ms;
  if (cuda->cudaEventElapsedTime(&ms, pair->before, pair->after) ==
      cudaSuccess) {
    int64_t took_ns = (int64_t)((double)ms * 1e6);
    if (pair->kind == SDG_PHASE_WAIT)
      sdg_report_stream_wait(pair->row, took_ns);
    if (recorded())
      pair_record(cuda, ring, pair, took_ns);
  }
  pair->row = NULL;
  return true;
}

static void ready_collect(const sdg_vendor_t *cuda, ring_t *ring, int most) {
  for (int i = 0; i < most && ring->oldest != ring->next; i++)
    if (pair_collect(cuda, ring, &ring->pair[ring->oldest]))
      ring->oldest = (ring->oldest + 1) % PAIRS;
}

// At exit, of the thread that ends the process: the last calls of a program
// that has waited for them are complete. The runtime still works, because its
// own handler was set earlier and so comes later.
static void exit_collect(void) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  ring_t *ring = rings[sdg_channel_get()];
  if (cuda && ring && !sdg_job_disarmed() && !sdg_job_failed())
    ready_collect(cuda, ring, PAIRS);
}

static ring_t *ring_get(void) {
  ring_t **ring = &rings[sdg_channel_get()];
  if (!*ring)
    *ring = calloc(1, sizeof **ring);
  return *ring;
}

static sdg_status_t event_get(const sdg_vendor_t *cuda, cudaEvent_t *event) {
  return *event ? SDG_OK
                : sdg_vendor_check(cuda->cudaEventCreate(event),
                                   "creation of an event");
}

// Waits once in a recorded run, at the thread's first phase, for an event whose
// time on the host is then known.
static sdg_status_t anchor_set(const sdg_vendor_t *cuda, ring_t *ring,
                               cudaStream_t stream) {
  static atomic_flag handled = ATOMIC_FLAG_INIT;
  if (ring->anchor || !recorded())
    return SDG_OK;
  if (!atomic_flag_test_and_set(&handled))
    (void)atexit(exit_collect);
  SDG_TRY(event_get(cuda, &ring->anchor));
  SDG_TRY(sdg_vendor_check(cuda->cudaEventRecord(ring->anchor, stream),
                           "event record"));
  if (cuda->cudaStreamSynchronize(stream) == cudaSuccess)
    ring->anchor_ns = (int64_t)sdg_monotonic_ns();
  else
    (void)cuda->cudaGetLastError();
  return SDG_OK;
}

sdg_status_t sdg_phase_begin(sdg_report_row_t *row, sdg_phase_t kind,
                             cudaStream_t stream, int *out_phase) {
  *out_phase = -1;
  if (!row || (kind != SDG_PHASE_WAIT && !recorded()))
    return SDG_OK;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  ring_t *ring = ring_get();
  if (!ring)
    return sdg_fail(SDG_E_NO_MEMORY, "a ring of events");
  SDG_TRY(anchor_set(cuda, ring, stream));
  // Collects two pairs, so that the ring drains faster than it fills.
  ready_collect(cuda, ring, 2);
  int at = ring->next, next = (at + 1) % PAIRS;
  if (next == ring->oldest)
    return SDG_OK;
  pair_t *pair = &ring->pair[at];
  SDG_TRY(event_get(cuda, &pair->before));
  SDG_TRY(event_get(cuda, &pair->after));
  SDG_TRY(sdg_vendor_check(cuda->cudaEventRecord(pair->before, stream),
                           "event record"));
  pair->row = row;
  pair->kind = kind;
  pair->ended = false;
  pair->call = recorded()
                   ? sdg_control_count_of(sdg_job_control(), sdg_channel_get(),
                                          sdg_job_rank(), NULL, 0)
                   : 0;
  ring->next = next;
  *out_phase = at;
  return SDG_OK;
}

sdg_status_t sdg_phase_end(int phase, cudaStream_t stream) {
  ring_t *ring = rings[sdg_channel_get()];
  if (!ring || phase < 0)
    return SDG_OK;
  ring->pair[phase].ended = true;
  return sdg_vendor_check(
      sdg_vendor_get()->cudaEventRecord(ring->pair[phase].after, stream),
      "event record");
}

void sdg_phases_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    if (rings[channel])
      memset(rings[channel], 0, sizeof *rings[channel]);
}
