// SPDX-License-Identifier: Apache-2.0
// Makes cuDNN calls in several threads at the same time, in rounds; each thread
// has its own fields and its own stream. Some threads end after a round. The
// program finds sundog with dlsym, and also runs without it. It writes the
// fields to a file.
//
// usage: threads_program RANK MODE SEED CALLS OUT ROWS...
//   MODE  named    each thread but the main one says its name
//         ordered  threads make their first calls in order
//         loop     like named, with one call a round: threads start and end
//         graphs   like named; a thread's calls of a round are a CUDA graph,
//                  which it launches twice
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/sundog.h"
#include "tests/calls.h"
#include "tests/workspace.h"

enum { N = 2, C = 3, WIDTH = 17, THREADS = 4, FIELDS = 2, FILTERS = 2 };

// What all threads share. The descriptors are set once.
static struct {
  cudnnTensorDescriptor_t field_desc;
  cudnnFilterDescriptor_t filter_desc[FILTERS];
  cudnnConvolutionDescriptor_t conv[FILTERS];
  void *filter[FILTERS];
  int first_row, rows, rank, calls;
  const char *mode;
  unsigned seed;
  size_t bytes; // bytes of one field
  pthread_mutex_t lock;
  pthread_cond_t turn;
  int next; // the thread whose turn it is, in mode ordered
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};

typedef struct worker {
  int number, round;
  cudnnHandle_t handle;
  cudaStream_t stream;
  cudnnTensorDescriptor_t own_desc;
  void *field[FIELDS];
  unsigned state; // of random numbers that are equal on all ranks
  unsigned noise; // and of those that are not
} worker_t;
static worker_t workers[THREADS];

static int below(unsigned *state, int n) {
  *state = *state * 1103515245u + 12345u;
  return (int)((*state >> 9) % (unsigned)n);
}

static int mode_is(const char *mode) {
  return strcmp(g.mode, mode) == 0;
}

static void describe(cudnnTensorDescriptor_t descriptor) {
  CHECK(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW,
                                   CUDNN_DATA_FLOAT, N, C, g.rows, WIDTH));
}

static void *device_copy(const float *host, size_t bytes) {
  void *device;
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

static void share_make(void) {
  CHECK(cudnnCreateTensorDescriptor(&g.field_desc));
  describe(g.field_desc);
  for (int i = 0; i < FILTERS; i++) {
    int k = 3 + 2 * i;
    float host[C * C * 25];
    for (int j = 0; j < C * C * k * k; j++)
      host[j] = (float)((j * 7 + i * 3) % 13 - 6) / (6.0f * C * (float)k);
    CHECK(cudnnCreateFilterDescriptor(&g.filter_desc[i]));
    CHECK(cudnnSetFilter4dDescriptor(g.filter_desc[i], CUDNN_DATA_FLOAT,
                                     CUDNN_TENSOR_NCHW, C, C, k, k));
    CHECK(cudnnCreateConvolutionDescriptor(&g.conv[i]));
    CHECK(cudnnSetConvolution2dDescriptor(g.conv[i], k / 2, k / 2, 1, 1, 1, 1,
                                          CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    g.filter[i] = device_copy(host, sizeof(float) * (size_t)(C * C * k * k));
  }
}

// Makes streams of every kind: one that waits for the legacy stream, one that
// does not, the legacy stream, the per-thread stream.
static cudaStream_t stream_make(int kind) {
  cudaStream_t stream = NULL;
  if (kind == 0)
    CHECK(cudaStreamCreate(&stream));
  else if (kind == 1)
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  else if (kind == 2)
    stream = cudaStreamPerThread;
  return stream;
}

static void worker_make(worker_t *w, int number) {
  float *host = malloc(g.bytes);
  w->number = number;
  w->state = g.seed * 31u + (unsigned)number;
  w->noise = w->state + 77u * (unsigned)(g.rank + 1);
  for (int f = 0; f < FIELDS; f++) {
    size_t at = 0;
    for (int i = 0; i < N * C; i++)
      for (int y = 0; y < g.rows; y++)
        for (int x = 0; x < WIDTH; x++) {
          int value = (y + g.first_row) * 31 + x * 17 + i * 5 + f + number;
          host[at++] = (float)(value % 23 - 11) / 11;
        }
    w->field[f] = device_copy(host, g.bytes);
  }
  free(host);
}

static void call_make(worker_t *w, int k, int from, int kind) {
  static const float half = 0.5f, quarter = 0.25f, zero = 0;
  // Either the descriptors of all threads, or those of this one.
  cudnnTensorDescriptor_t desc = kind % 2 ? g.field_desc : w->own_desc;
  if (kind < 5)
    CHECK(cudnnConvolutionForward(
        w->handle, &half, desc, w->field[from], g.filter_desc[k], g.filter[k],
        g.conv[k], CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
        workspace(), WORKSPACE_BYTES, kind < 3 ? &zero : &quarter, desc,
        w->field[1 - from]));
  else
    CHECK(cudnnAddTensor(w->handle, &half, desc, w->field[from], &quarter, desc,
                         w->field[1 - from]));
}

static void call_random(worker_t *w) {
  int k = below(&w->state, FILTERS), from = below(&w->state, FIELDS);
  int kind = below(&w->state, 6);
  if (below(&w->state, 8) == 0 && !mode_is("graphs"))
    describe(w->own_desc);
  call_make(w, k, from, kind);
}

// Delays a rank at random: sleeps, or waits for the whole device.
static void dawdle(worker_t *w) {
  void *memory;
  float host[8];
  // Who waits for the device would spoil the captures of other threads.
  switch (mode_is("graphs") ? 0 : below(&w->noise, 9)) {
  case 0:
    usleep((unsigned)below(&w->noise, 900));
    break;
  case 1:
    CHECK(cudaDeviceSynchronize());
    break;
  case 2:
    CHECK(cudaMalloc(&memory, 5000));
    CHECK(cudaFree(memory));
    break;
  case 3:
    CHECK(cudaMemcpy(host, g.filter[0], sizeof host, cudaMemcpyDeviceToHost));
    break;
  default:
    break;
  }
}

static void name_say(const worker_t *w) {
  char name[32];
  __typeof__(&sundog_thread) say;
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_thread");
  if (!say || mode_is("ordered") || w->number == 0)
    return;
  snprintf(name, sizeof name, "worker-%d", w->number);
  CHECK(say(name));
}

static void turn_wait(const worker_t *w) {
  pthread_mutex_lock(&g.lock);
  while (mode_is("ordered") && g.next != w->number)
    pthread_cond_wait(&g.turn, &g.lock);
  pthread_mutex_unlock(&g.lock);
}

static void turn_pass(void) {
  pthread_mutex_lock(&g.lock);
  g.next++;
  pthread_cond_broadcast(&g.turn);
  pthread_mutex_unlock(&g.lock);
}

// Each call that may be captured has run once.
static void warm_up(worker_t *w) {
  for (int k = 0; k < FILTERS; k++)
    for (int kind = 0; kind < 6; kind++)
      call_make(w, k, kind % FIELDS, kind);
}

static void graph_run(worker_t *w) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  warm_up(w);
  CHECK(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < g.calls; i++)
    call_random(w);
  CHECK(cudaStreamEndCapture(w->stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 2; i++) {
    dawdle(w);
    CHECK(cudaGraphLaunch(exec, w->stream));
    dawdle(w);
    call_random(w);
  }
  CHECK(cudaGraphExecDestroy(exec));
}

static void *work(void *argument) {
  worker_t *w = argument;
  CHECK(cudaSetDevice(0));
  name_say(w);
  w->stream = stream_make(
      mode_is("graphs") ? 1 : (w->number + w->round + (int)g.seed) % 4);
  CHECK(cudnnCreate(&w->handle));
  CHECK(cudnnSetStream(w->handle, w->stream));
  CHECK(cudnnCreateTensorDescriptor(&w->own_desc));
  describe(w->own_desc);
  if (mode_is("graphs"))
    graph_run(w);
  for (int i = 0; i < g.calls && !mode_is("graphs"); i++) {
    dawdle(w);
    if (i == 0)
      turn_wait(w);
    call_random(w);
    if (i == 0)
      turn_pass();
  }
  CHECK(cudaStreamSynchronize(w->stream));
  // It waits for the device, which other threads' captures do not survive.
  if (!mode_is("graphs"))
    CHECK(cudnnDestroy(w->handle));
  CHECK(cudnnDestroyTensorDescriptor(w->own_desc));
  return NULL;
}

// The first worker is the main thread.
static void round_run(int round) {
  pthread_t thread[THREADS];
  g.next = 0;
  for (int t = 0; t < THREADS; t++)
    workers[t].round = round;
  for (int t = 1; t < THREADS; t++)
    CHECK(pthread_create(&thread[t], NULL, work, &workers[t]));
  work(&workers[0]);
  for (int t = 1; t < THREADS; t++)
    CHECK(pthread_join(thread[t], NULL));
}

static int fields_write(const char *path) {
  FILE *file = fopen(path, "wb");
  float *host = malloc(g.bytes);
  int good = file && host;
  for (int i = 0; i < THREADS * FIELDS && good; i++) {
    CHECK(cudaMemcpy(host, workers[i / FIELDS].field[i % FIELDS], g.bytes,
                     cudaMemcpyDeviceToHost));
    good = fwrite(host, g.bytes, 1, file) == 1;
  }
  free(host);
  return file && fclose(file) == 0 && good;
}

int main(int argc, char **argv) {
  if (argc < 7) {
    fprintf(stderr,
            "usage: threads_program RANK MODE SEED CALLS OUT ROWS...\n");
    return 2;
  }
  g.rank = atoi(argv[1]);
  g.mode = argv[2];
  g.seed = (unsigned)atoi(argv[3]);
  g.calls = atoi(argv[4]);
  for (int i = 0; i < g.rank; i++)
    g.first_row += atoi(argv[6 + i]);
  g.rows = atoi(argv[6 + g.rank]);
  g.bytes = sizeof(float) * N * C * (size_t)g.rows * WIDTH;
  share_make();
  for (int t = 0; t < THREADS; t++)
    worker_make(&workers[t], t);
  int rounds = 4;
  if (mode_is("loop")) {
    rounds = g.calls;
    g.calls = 1;
  }
  for (int round = 0; round < rounds; round++)
    round_run(round);
  return fields_write(argv[5]) ? 0 : 1;
}
