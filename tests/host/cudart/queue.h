/* SPDX-License-Identifier: Apache-2.0 */
/* Work for streams of the host device: it waits, and leaves a log. */
#ifndef SDG_TESTS_HOST_CUDART_QUEUE_H
#define SDG_TESTS_HOST_CUDART_QUEUE_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "src/host/host.h"
#include "tests/calls.h"
#include "tests/unit/harness.h"

/* A gate that work waits at, and a log of what ran. */
static _Atomic int gate, log_count, log_entry[64], released;

static inline cudaError_t gate_run(void *argument) {
  (void)argument;
  while (!atomic_load(&gate))
    usleep(100);
  return cudaSuccess;
}

static inline cudaError_t log_run(void *argument) {
  int at = atomic_fetch_add(&log_count, 1);
  if (at < 64)
    atomic_store(&log_entry[at], (int)(intptr_t)argument);
  return cudaSuccess;
}

static inline void count_release(void *argument) {
  (void)argument;
  atomic_fetch_add(&released, 1);
}

static inline void submit(cudaStream_t stream, cudaError_t (*run)(void *),
                          intptr_t argument) {
  OK(host_stream_submit(stream, run, (void *)argument, count_release));
}

static inline cudaStream_t stream_new(unsigned flags) {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

static inline cudaError_t sleep_run(void *argument) {
  usleep((useconds_t)(intptr_t)argument);
  return cudaSuccess;
}

#endif
