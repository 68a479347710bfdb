// SPDX-License-Identifier: Apache-2.0
// A ring of event pairs that time the waits of the program's stream.
#include "src/waits.h"

#include <stdbool.h>

#include "src/device.h"
#include "src/options.h"
#include "src/vendor.h"

enum { PAIRS = 64 };

// pair[next] is the oldest. One that is not ready when its turn comes again
// means that more than PAIRS calls are in flight: then the new call is not
// timed, rather than waited for.
static struct {
  cudaEvent_t before, after;
  sdg_report_row_t *row; // NULL: nothing to collect
} pair[PAIRS];
static int next;
static bool open;

static void pair_collect(const sdg_vendor_t *cuda, int index) {
  if (!pair[index].row)
    return;
  if (cuda->cudaEventQuery(pair[index].after) != cudaSuccess) {
    // "Not ready" is kept as the thread's last error, which is the program's.
    (void)cuda->cudaGetLastError();
    return;
  }
  float ms;
  if (cuda->cudaEventElapsedTime(&ms, pair[index].before, pair[index].after) ==
      cudaSuccess)
    sdg_report_wait(pair[index].row, (int64_t)((double)ms * 1e6));
  pair[index].row = NULL;
}

sdg_status_t sdg_waits_begin(sdg_report_row_t *row, cudaStream_t stream) {
  if (!row || !sdg_options_get()->waits)
    return SDG_OK;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  // The two oldest, so that the ring drains faster than it fills.
  pair_collect(cuda, next);
  pair_collect(cuda, (next + 1) % PAIRS);
  if (pair[next].row)
    return SDG_OK;
  if (!pair[next].before)
    SDG_TRY(sdg_device_check(cuda->cudaEventCreate(&pair[next].before),
                             "creation of an event"));
  if (!pair[next].after)
    SDG_TRY(sdg_device_check(cuda->cudaEventCreate(&pair[next].after),
                             "creation of an event"));
  pair[next].row = row;
  open = true;
  return sdg_device_check(cuda->cudaEventRecord(pair[next].before, stream),
                          "event record");
}

sdg_status_t sdg_waits_end(cudaStream_t stream) {
  if (!open)
    return SDG_OK;
  open = false;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaEvent_t after = pair[next].after;
  next = (next + 1) % PAIRS;
  return sdg_device_check(cuda->cudaEventRecord(after, stream), "event record");
}
