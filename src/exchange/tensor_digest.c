// SPDX-License-Identifier: Apache-2.0
// Copies tensors to the host, box by box, and hashes them.
#include "src/exchange/tensor_digest.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/hash.h"
#include "src/base/stopwatch.h"
#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/job/job.h"
#include "src/job/thread.h"

enum { PIECE_BYTES = 1 << 20, SPINS = 200, PAUSE_NS = 20000 };

static cudaEvent_t events[SDG_CHANNEL_THREADS]; // index: the thread's channel

void sdg_tensor_digest_forget(void) {
  memset(events, 0, sizeof events);
}

// While a program captures a graph on another stream, a query would spoil the
// capture unless the querying thread is in relaxed capture mode.
static enum cudaStreamCaptureMode mode_change(const sdg_vendor_t *cuda,
                                              enum cudaStreamCaptureMode mode) {
  (void)cuda->cudaThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

// limit_s < 0: no limit.
static sdg_status_t stream_wait(const sdg_vendor_t *cuda, cudaStream_t stream,
                                double limit_s, bool *out_ready) {
  const struct timespec pause = {.tv_nsec = PAUSE_NS};
  cudaEvent_t *event = &events[sdg_channel_get()];
  if (!*event)
    SDG_TRY(sdg_vendor_check(
        cuda->cudaEventCreateWithFlags(event, cudaEventDisableTiming),
        "creation of an event"));
  SDG_TRY(
      sdg_vendor_check(cuda->cudaEventRecord(*event, stream), "event record"));
  sdg_stopwatch_t since = sdg_stopwatch_start();
  cudaError_t state;
  for (int i = 0; (state = cuda->cudaEventQuery(*event)) == cudaErrorNotReady;
       i++) {
    if (limit_s >= 0 && sdg_stopwatch_read(&since) > limit_s)
      break;
    if (i < SPINS)
      sched_yield();
    else
      nanosleep(&pause, NULL);
  }
  *out_ready = state == cudaSuccess;
  if (state == cudaErrorNotReady) // the error is not the program's
    (void)cuda->cudaGetLastError();
  return state == cudaErrorNotReady ? SDG_OK
                                    : sdg_vendor_check(state, "event query");
}

sdg_status_t sdg_tensor_digest_ready(cudaStream_t stream, double limit_s,
                                     bool *out_ready) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  enum cudaStreamCaptureMode was =
      mode_change(cuda, cudaStreamCaptureModeRelaxed);
  sdg_status_t status = stream_wait(cuda, stream, limit_s, out_ready);
  (void)mode_change(cuda, was);
  return status;
}

// A tensor being read. It lists the dimensions of more than one element,
// outermost first.
typedef struct reader {
  const sdg_vendor_t *cuda;
  cudaStream_t stream;
  int dims, elem_bytes;
  int64_t extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
  // Bytes of one index of the dimension before.
  int64_t inner_bytes[SDG_DIMS_MAX + 1];
  char *host; // PIECE_BYTES
  sdg_digest_t digest;
  bool can;
} reader_t;

static void reader_open(const sdg_layout_t *layout, reader_t *out) {
  for (int d = 0; d < layout->dims; d++) {
    if (layout->extent[d] <= 1 || layout->stride[d] == 0)
      continue; // stride 0: the same elements again
    int i = out->dims++;
    for (; i > 0 && out->stride[i - 1] < layout->stride[d]; i--) {
      out->stride[i] = out->stride[i - 1];
      out->extent[i] = out->extent[i - 1];
    }
    out->stride[i] = layout->stride[d];
    out->extent[i] = layout->extent[d];
  }
  out->inner_bytes[out->dims] = out->elem_bytes;
  for (int d = out->dims - 1; d >= 0; d--)
    out->inner_bytes[d] = out->inner_bytes[d + 1] * out->extent[d];
}

// Reads `count` indices of dimension d with all inner dimensions; together
// they fit into one piece.
static sdg_status_t piece_read(reader_t *r, int d, int64_t count,
                               const char *from) {
  int64_t extent[SDG_DIMS_MAX], packed[SDG_DIMS_MAX];
  int dims = r->dims - d;
  memcpy(extent, r->extent + d, sizeof extent - (size_t)d * sizeof *extent);
  if (dims > 0)
    extent[0] = count;
  for (int i = dims - 1; i >= 0; i--)
    packed[i] = i == dims - 1 ? 1 : packed[i + 1] * extent[i + 1];
  sdg_region_t source = {(void *)(uintptr_t)from, r->stride + d};
  sdg_region_t target = {r->host, packed};
  r->can = sdg_device_fetch(&source, &target, extent, dims, r->elem_bytes,
                            r->stream);
  if (!r->can)
    return SDG_OK;
  bool ready;
  SDG_TRY(stream_wait(r->cuda, r->stream, -1, &ready));
  sdg_digest_add(
      &r->digest, r->host,
      (size_t)(dims > 0 ? count * r->inner_bytes[d + 1] : r->elem_bytes));
  return SDG_OK;
}

// Reads dimension d with all inner dimensions. Example: 64 x 3 x 7 x 7 floats
// are one piece; of 4096 x 4096 floats a piece has 64 rows.
static sdg_status_t dim_read(reader_t *r, int d, const char *from) {
  if (d == r->dims)
    return piece_read(r, d, 1, from);
  int64_t at_once = PIECE_BYTES / r->inner_bytes[d + 1];
  for (int64_t i = 0; i < r->extent[d] && r->can;) {
    const char *at = from + i * r->stride[d] * r->elem_bytes;
    int64_t left = r->extent[d] - i;
    if (at_once == 0) {
      SDG_TRY(dim_read(r, d + 1, at));
      i++;
    } else {
      int64_t count = at_once < left ? at_once : left;
      SDG_TRY(piece_read(r, d, count, at));
      i += count;
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_tensor_digest(const void *data, const sdg_layout_t *layout,
                               cudaStream_t stream, bool *out_can,
                               uint64_t *out_digest, int64_t *io_bytes) {
  reader_t reader = {.cuda = sdg_vendor_get(),
                     .stream = stream,
                     .elem_bytes = layout->elem_bytes,
                     .can = true};
  if (!reader.cuda)
    return SDG_E_LIBRARY_MISSING;
  sdg_digest_init(&reader.digest);
  reader_open(layout, &reader);
  reader.host = malloc(PIECE_BYTES);
  if (!reader.host)
    return sdg_fail(SDG_E_NO_MEMORY, "%d bytes", PIECE_BYTES);
  enum cudaStreamCaptureMode was =
      mode_change(reader.cuda, cudaStreamCaptureModeRelaxed);
  bool empty = false;
  for (int d = 0; d < layout->dims; d++)
    empty |= layout->extent[d] == 0;
  sdg_status_t status = empty ? SDG_OK : dim_read(&reader, 0, data);
  (void)mode_change(reader.cuda, was);
  free(reader.host);
  *out_can = reader.can;
  *out_digest = sdg_digest_value(&reader.digest);
  *io_bytes += (int64_t)reader.digest.bytes;
  return status;
}
