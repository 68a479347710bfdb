/* SPDX-License-Identifier: Apache-2.0 */
/* Captures calls of a function with a stream into a CUDA graph, and launches
 * it.
 *
 * usage: replay ROWS FIRST LAUNCHES [HOW]
 *
 * ROWS, FIRST: those of this rank. Writes its values, each with its place.
 *
 * HOW
 *   cold  captures the first call, before ranks have agreed on it
 *   host  captures a function that computes on the host, too */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/clients/functions/wave.h"

enum { COLUMNS = 6 };

static float *field(size_t count) {
  float *memory;
  CHECK(cudaMallocManaged((void **)&memory, count * sizeof *memory,
                          cudaMemAttachGlobal));
  memset(memory, 0, count * sizeof *memory);
  return memory;
}

/* Two steps, so that u is where it was. */
static void steps(float *u, float *w, size_t rows, cudaStream_t stream) {
  const struct wave_shift up = {1, 0}, on = {2, 1};
  wave_shift(u, w, &rows, COLUMNS, up, stream);
  wave_shift(w, u, &rows, COLUMNS, on, stream);
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  const char *how = argc > 4 ? argv[4] : "";
  size_t rows = (size_t)atoi(argv[1]), count = rows * COLUMNS;
  int first = atoi(argv[2]);
  float *u = field(count), *v = field(count), *w = field(count);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (strcmp(how, "cold") != 0)
    steps(u, w, rows, stream);
  CHECK(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < count; i++)
    u[i] = (float)((size_t)first * COLUMNS + i);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  steps(u, w, rows, stream);
  if (strcmp(how, "host") == 0)
    wave_step(u, v, w, (int)rows, COLUMNS, 0.1);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < atoi(argv[3]); launch++)
    CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  for (size_t i = 0; i < count; i++)
    printf("%zu %a\n", (size_t)first * COLUMNS + i, (double)u[i]);
  return 0;
}
