// SPDX-License-Identifier: Apache-2.0
// Times the waits of a thread's streams with a ring of event pairs.
#include "src/exchange/waits.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/job/thread.h"

enum { PAIRS = 64 };

// pair[next] is the oldest pair. If it is not ready when it is needed again,
// more than PAIRS calls are in flight: the new call is then not timed, because
// timing it would mean waiting.
typedef struct ring {
  struct {
    cudaEvent_t before, after;
    sdg_report_row_t *row; // NULL: nothing to collect
  } pair[PAIRS];
  int next;
  bool open;
} ring_t;
static ring_t *rings[SDG_CHANNEL_THREADS]; // index: the thread's channel

static void pair_collect(const sdg_vendor_t *cuda, ring_t *ring, int index) {
  __typeof__(&ring->pair[0]) pair = &ring->pair[index];
  if (!pair->row)
    return;
  if (cuda->cudaEventQuery(pair->after) != cudaSuccess) {
    // CUDA keeps "not ready" as the thread's last error, which belongs to the
    // program.
    (void)cuda->cudaGetLastError();
    return;
  }
  float ms;
  if (cuda->cudaEventElapsedTime(&ms, pair->before, pair->after) == cudaSuccess)
    sdg_report_wait(pair->row, (int64_t)((double)ms * 1e6));
  pair->row = NULL;
}

static ring_t *ring_get(void) {
  ring_t **ring = &rings[sdg_channel_get()];
  if (!*ring)
    *ring = calloc(1, sizeof **ring);
  return *ring;
}

sdg_status_t sdg_waits_begin(sdg_report_row_t *row, cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  ring_t *ring = ring_get();
  if (!ring)
    return sdg_fail(SDG_E_NO_MEMORY, "a ring of events");
  // Collects the two oldest pairs, so that the ring drains faster than it
  // fills.
  int next = ring->next;
  pair_collect(cuda, ring, next);
  pair_collect(cuda, ring, (next + 1) % PAIRS);
  if (ring->pair[next].row)
    return SDG_OK;
  if (!ring->pair[next].before)
    SDG_TRY(sdg_vendor_check(cuda->cudaEventCreate(&ring->pair[next].before),
                             "creation of an event"));
  if (!ring->pair[next].after)
    SDG_TRY(sdg_vendor_check(cuda->cudaEventCreate(&ring->pair[next].after),
                             "creation of an event"));
  ring->pair[next].row = row;
  ring->open = true;
  return sdg_vendor_check(
      cuda->cudaEventRecord(ring->pair[next].before, stream), "event record");
}

sdg_status_t sdg_waits_end(cudaStream_t stream) {
  ring_t *ring = rings[sdg_channel_get()];
  if (!ring || !ring->open)
    return SDG_OK;
  ring->open = false;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaEvent_t after = ring->pair[ring->next].after;
  ring->next = (ring->next + 1) % PAIRS;
  return sdg_vendor_check(cuda->cudaEventRecord(after, stream), "event record");
}

void sdg_waits_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    if (rings[channel])
      memset(rings[channel], 0, sizeof *rings[channel]);
}
