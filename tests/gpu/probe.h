/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for probes: an unexpected failure ends a probe; answers are lines
 * "point: what the device does". */
#ifndef SDG_TESTS_GPU_PROBE_H
#define SDG_TESTS_GPU_PROBE_H

#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROBE_MUST(status_t, text, call)                                       \
  do {                                                                         \
    status_t status_ = (call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "%s: %s\n", #call, text(status_));                       \
      exit(2);                                                                 \
    }                                                                          \
  } while (0)
#define PROBE_CUDA(call)  PROBE_MUST(cudaError_t, cudaGetErrorString, call)
#define PROBE_CUDNN(call) PROBE_MUST(cudnnStatus_t, cudnnGetErrorString, call)

/* Number of points in which the device differs from what the rules expect. */
static int probe_faults;

__attribute__((format(printf, 2, 3))) static inline void
probe_say(const char *point, const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("%s: ", point);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  fflush(stdout);
}

/* Checks a point on which the rules rely. */
static inline void probe_expect(const char *point, int as_expected,
                                const char *yes, const char *no) {
  probe_say(point, "%s", as_expected ? yes : no);
  if (!as_expected) {
    printf("FAILED: %s\n", point);
    probe_faults++;
  }
}

static inline void *probe_device(size_t bytes) {
  void *at;
  PROBE_CUDA(cudaMalloc(&at, bytes ? bytes : 1));
  PROBE_CUDA(cudaMemset(at, 0, bytes ? bytes : 1));
  return at;
}

static inline float *probe_upload(const float *values, size_t count) {
  float *at = probe_device(count * sizeof *values);
  PROBE_CUDA(
      cudaMemcpy(at, values, count * sizeof *values, cudaMemcpyHostToDevice));
  return at;
}

static inline void probe_download(const float *at, float *values,
                                  size_t count) {
  PROBE_CUDA(cudaDeviceSynchronize());
  PROBE_CUDA(
      cudaMemcpy(values, at, count * sizeof *values, cudaMemcpyDeviceToHost));
}

/* ---- times -------------------------------------------------------------- */

enum { PROBE_BATCHES = 9, PROBE_CALLS = 20, PROBE_GATE_US = 50000 };

typedef struct probe_time {
  double gpu_us; /* from a call's begin to its end on the stream, if all calls
                    are enqueued before the first one begins */
  double cpu_us; /* what the caller's thread takes to enqueue it */
} probe_time_t;

static inline double probe_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static inline int probe_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double probe_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, probe_compare);
  return values[count / 2];
}

/* Holds a stream until everything behind it is enqueued. Otherwise the time of
 * short work would be that of the caller, who enqueues it more slowly. */
typedef struct probe_gate {
  atomic_int open;
  int was_late; /* opened by itself: a call waited for the stream */
} probe_gate_t;

static inline void probe_gate_wait(void *with) {
  probe_gate_t *gate = with;
  double until = probe_now_us() + PROBE_GATE_US;
  while (!atomic_load(&gate->open) && !gate->was_late)
    gate->was_late = probe_now_us() > until;
}

static inline void probe_gate_shut(probe_gate_t *gate, cudaStream_t stream) {
  atomic_store(&gate->open, 0);
  gate->was_late = 0;
  PROBE_CUDA(cudaLaunchHostFunc(stream, probe_gate_wait, gate));
}

/* The stream must be done before was_late is read. */
static inline void probe_gate_note(const probe_gate_t *gate) {
  static int noted;
  if (gate->was_late && !noted++)
    probe_say("note",
              "not all was enqueued within %d ms; some times include "
              "the caller's",
              PROBE_GATE_US / 1000);
}

/* Measures a call that enqueues work on `stream`: medians of PROBE_BATCHES
 * batches of PROBE_CALLS calls, after one batch that is not counted and that
 * may load code, which waits for the device. */
static inline probe_time_t probe_time(void (*call)(void *), void *with,
                                      cudaStream_t stream) {
  double gpu[PROBE_BATCHES], cpu[PROBE_BATCHES];
  cudaEvent_t begin, end;
  PROBE_CUDA(cudaEventCreate(&begin));
  PROBE_CUDA(cudaEventCreate(&end));
  for (int batch = -1; batch < PROBE_BATCHES; batch++) {
    float ms;
    probe_gate_t gate = {0};
    PROBE_CUDA(cudaStreamSynchronize(stream));
    if (batch >= 0)
      probe_gate_shut(&gate, stream);
    PROBE_CUDA(cudaEventRecord(begin, stream));
    double from = probe_now_us();
    for (int i = 0; i < PROBE_CALLS; i++)
      call(with);
    double to = probe_now_us();
    PROBE_CUDA(cudaEventRecord(end, stream));
    atomic_store(&gate.open, 1);
    PROBE_CUDA(cudaEventSynchronize(end));
    probe_gate_note(&gate);
    PROBE_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (batch >= 0) {
      gpu[batch] = 1e3 * (double)ms / PROBE_CALLS;
      cpu[batch] = (to - from) / PROBE_CALLS;
    }
  }
  PROBE_CUDA(cudaEventDestroy(begin));
  PROBE_CUDA(cudaEventDestroy(end));
  return (probe_time_t){probe_median(gpu, PROBE_BATCHES),
                        probe_median(cpu, PROBE_BATCHES)};
}

/* Returns the i-th of pseudo-random numbers between -1 and 1. */
static inline float probe_number(unsigned i) {
  return (float)(int)((i + 1) * 2654435761u >> 9) / (1 << 22) - 1;
}

#endif
