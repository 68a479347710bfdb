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

enum { PAIRS = 1024, MARKERS = 2 * PAIRS, FRESH = 2 };
// CUDA tells times between events as floats: 100 ms to 8 ns.
static const double ANCHOR_MS = 100;

// A moment of a stream: an event, and when it happened in ns of
// CLOCK_MONOTONIC; 0: not known yet. The end of a phase and the begin of the
// next one may share a marker.
typedef struct marker {
  cudaEvent_t event;
  int uses;
  int64_t at_ns;
} marker_t;

typedef struct pair {
  int before, after;     // markers
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
  marker_t marker[MARKERS];
  int turn; // where the search for a free marker goes on
  // A marker whose time is known; -1: none.
  int anchor;
  bool anchored;
  // The last markers of streams on which nothing has been enqueued since, but
  // what a phase encloses.
  struct {
    cudaStream_t stream;
    int marker; // -1: none
  } fresh[FRESH];
} ring_t;
static ring_t *rings[SDG_CHANNEL_THREADS]; // index: the thread's channel

static bool recorded(void) {
  return *sdg_options_get()->record;
}

bool sdg_phases_wanted(void) {
  return sdg_options_get()->waits || recorded();
}

static bool elapsed(const sdg_vendor_t *cuda, const marker_t *from,
                    const marker_t *to, double *out_ms) {
  float ms;
  if (cuda->cudaEventElapsedTime(&ms, from->event, to->event) == cudaSuccess) {
    *out_ms = (double)ms;
    return true;
  }
  // CUDA keeps "not ready" as the thread's last error, which belongs to the
  // program.
  (void)cuda->cudaGetLastError();
  return false;
}

static void marker_release(ring_t *ring, int at) {
  if (at >= 0)
    ring->marker[at].uses--;
}

// Finds out when the marker's event happened. Returns false if it has not. It
// becomes the anchor if the present one is too old for exact differences.
static bool marker_settle(const sdg_vendor_t *cuda, ring_t *ring, int at) {
  marker_t *marker = &ring->marker[at];
  double ms;
  if (marker->at_ns)
    return true;
  if (!elapsed(cuda, &ring->marker[ring->anchor], marker, &ms))
    return false;
  marker->at_ns = ring->marker[ring->anchor].at_ns + (int64_t)(ms * 1e6);
  if (ms >= ANCHOR_MS) {
    marker_release(ring, ring->anchor);
    ring->anchor = at;
    marker->uses++;
  }
  return true;
}

// Returns false if the pair's events have not happened.
static bool pair_times(const sdg_vendor_t *cuda, ring_t *ring,
                       const pair_t *pair, int64_t *out_took_ns) {
  const marker_t *before = &ring->marker[pair->before],
                 *after = &ring->marker[pair->after];
  double ms;
  if (ring->anchored) {
    if (!marker_settle(cuda, ring, pair->before) ||
        !marker_settle(cuda, ring, pair->after))
      return false;
    *out_took_ns = after->at_ns - before->at_ns;
    sdg_phase_record(sdg_channel_get(), pair->call, pair->kind, before->at_ns,
                     *out_took_ns < 0 ? 0 : *out_took_ns);
    return true;
  }
  if (!elapsed(cuda, before, after, &ms))
    return false;
  *out_took_ns = (int64_t)(ms * 1e6);
  return true;
}

static bool pair_collect(const sdg_vendor_t *cuda, ring_t *ring, pair_t *pair) {
  int64_t took_ns;
  if (!pair->row)
    return true;
  if (!pair->ended || !pair_times(cuda, ring, pair, &took_ns))
    return false;
  if (pair->kind == SDG_PHASE_WAIT)
    sdg_report_stream_wait(pair->row, took_ns);
  marker_release(ring, pair->before);
  marker_release(ring, pair->after);
  pair->row = NULL;
  return true;
}

static void ready_collect(const sdg_vendor_t *cuda, ring_t *ring, int most) {
  for (int i = 0; i < most && ring->oldest != ring->next; i++) {
    if (!pair_collect(cuda, ring, &ring->pair[ring->oldest]))
      return;
    ring->oldest = (ring->oldest + 1) % PAIRS;
  }
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

static void fresh_drop(ring_t *ring, int i) {
  marker_release(ring, ring->fresh[i].marker);
  ring->fresh[i].marker = -1;
}

static void fresh_clear(ring_t *ring) {
  for (int i = 0; i < FRESH; i++)
    fresh_drop(ring, i);
}

static void ring_init(ring_t *ring) {
  memset(ring, 0, sizeof *ring);
  ring->anchor = -1;
  for (int i = 0; i < FRESH; i++)
    ring->fresh[i].marker = -1;
}

static ring_t *ring_get(void) {
  ring_t **ring = &rings[sdg_channel_get()];
  if (*ring)
    return *ring;
  *ring = malloc(sizeof **ring);
  if (*ring)
    ring_init(*ring);
  return *ring;
}

// Records an event of a free marker. *out_marker is -1 if none is free.
static sdg_status_t marker_take(const sdg_vendor_t *cuda, ring_t *ring,
                                cudaStream_t stream, int *out_marker) {
  *out_marker = -1;
  for (int i = 0; i < MARKERS && ring->marker[ring->turn].uses; i++)
    ring->turn = (ring->turn + 1) % MARKERS;
  marker_t *marker = &ring->marker[ring->turn];
  if (marker->uses)
    return SDG_OK;
  if (!marker->event)
    SDG_TRY(sdg_vendor_check(cuda->cudaEventCreate(&marker->event),
                             "creation of an event"));
  SDG_TRY(sdg_vendor_check(cuda->cudaEventRecord(marker->event, stream),
                           "event record"));
  marker->at_ns = 0;
  marker->uses = 1;
  *out_marker = ring->turn;
  ring->turn = (ring->turn + 1) % MARKERS;
  return SDG_OK;
}

// Waits once in a recorded run, at the thread's first phase, for an event whose
// time on the host is then known.
static sdg_status_t anchor_set(const sdg_vendor_t *cuda, ring_t *ring,
                               cudaStream_t stream) {
  static atomic_flag handled = ATOMIC_FLAG_INIT;
  if (ring->anchor >= 0 || !recorded())
    return SDG_OK;
  if (!atomic_flag_test_and_set(&handled))
    (void)atexit(exit_collect);
  SDG_TRY(marker_take(cuda, ring, stream, &ring->anchor));
  ring->anchored = cuda->cudaStreamSynchronize(stream) == cudaSuccess;
  if (ring->anchored)
    ring->marker[ring->anchor].at_ns = (int64_t)sdg_monotonic_ns();
  else
    (void)cuda->cudaGetLastError();
  return SDG_OK;
}

static void stream_drop(ring_t *ring, cudaStream_t stream) {
  for (int i = 0; i < FRESH; i++)
    if (ring->fresh[i].stream == stream)
      fresh_drop(ring, i);
}

// Two phases touch only if every phase is recorded.
static void fresh_set(ring_t *ring, cudaStream_t stream, int marker) {
  stream_drop(ring, stream);
  if (!recorded() || marker < 0)
    return;
  int at = ring->fresh[0].marker >= 0;
  fresh_drop(ring, at);
  ring->fresh[at].stream = stream;
  ring->fresh[at].marker = marker;
  ring->marker[marker].uses++;
}

static int fresh_get(const ring_t *ring, cudaStream_t stream) {
  for (int i = 0; i < FRESH; i++)
    if (ring->fresh[i].marker >= 0 && ring->fresh[i].stream == stream)
      return ring->fresh[i].marker;
  return -1;
}

void sdg_phases_part(cudaStream_t stream) {
  ring_t *ring = rings[sdg_channel_get()];
  if (ring)
    stream_drop(ring, stream);
}

// The marker of this moment of the stream, new or shared; -1: none is free.
static sdg_status_t marker_now(const sdg_vendor_t *cuda, ring_t *ring,
                               cudaStream_t stream, int *out_marker) {
  *out_marker = fresh_get(ring, stream);
  if (*out_marker < 0)
    return marker_take(cuda, ring, stream, out_marker);
  ring->marker[*out_marker].uses++;
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
  bool full = next == ring->oldest;
  if (full || kind == SDG_PHASE_CALL)
    fresh_clear(ring);
  if (full)
    return SDG_OK;
  pair_t *pair = &ring->pair[at];
  SDG_TRY(marker_now(cuda, ring, stream, &pair->before));
  if (pair->before < 0)
    return SDG_OK;
  fresh_set(ring, stream, pair->before);
  pair->after = -1;
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
  if (ring && phase < 0) // it may have enqueued something
    stream_drop(ring, stream);
  if (!ring || phase < 0)
    return SDG_OK;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  pair_t *pair = &ring->pair[phase];
  bool all = pair->kind == SDG_PHASE_CALL;
  SDG_TRY(all ? marker_now(cuda, ring, stream, &pair->after)
              : marker_take(cuda, ring, stream, &pair->after));
  pair->ended = pair->after >= 0;
  if (!pair->ended) { // not timed
    marker_release(ring, pair->before);
    pair->row = NULL;
  }
  if (all)
    fresh_clear(ring);
  else
    fresh_set(ring, stream, pair->after);
  return SDG_OK;
}

// The runtime has destroyed the events.
void sdg_phases_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    if (rings[channel])
      ring_init(rings[channel]);
}
