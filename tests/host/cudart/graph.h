/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and cells of device memory, for tests of graphs. */
#ifndef SDG_TESTS_HOST_CUDART_GRAPH_H
#define SDG_TESTS_HOST_CUDART_GRAPH_H

#include <cuda_runtime_api.h>

#include "tests/calls.h"
#include "tests/unit/harness.h"

#define FAILS(call, why) ck_assert_int_eq((call), cudaError##why)

enum { CELLS = 8 };

static const enum cudaStreamCaptureMode global = cudaStreamCaptureModeGlobal;
static const enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;

static inline cudaStream_t stream_new(void) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static inline cudaEvent_t event_new(void) {
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

static inline int *cells_new(void) {
  int *cells;
  OK(cudaMalloc((void **)&cells, CELLS * sizeof *cells));
  OK(cudaMemset(cells, 0, CELLS * sizeof *cells));
  return cells;
}

static inline int cell(const int *cells, int i) {
  int value;
  OK(cudaMemcpy(&value, cells + i, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

#endif
