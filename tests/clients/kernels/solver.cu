// SPDX-License-Identifier: Apache-2.0
// A solver whose stencils are kernels of its own, in one to three dimensions.
//
// usage: solver ROWS COLUMNS STEPS RANK [HOW]
//
// ROWS, COLUMNS: those of the ranks, as in 5,4,7 and 9; there is a rank for
// each pair, and columns vary faster. RANK -1 has all of them. Writes its
// values, each with its place, to the standard output, and energies to the
// standard error.
//
// HOW
//   exc    launches by cudaLaunchKernelExC
//   stream launches on a stream of its own
//   grid   rank 1 launches with a larger grid
//   null   rank 1 gives no field
//   chain  launches nothing that is not declared
//   graph  adds a node to a graph
#include "tests/clients/kernels/stencils.h"
#include "tests/clients/parts.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                            \
  do {                                                                         \
    cudaError_t error = (call);                                                \
    if (error != cudaSuccess) {                                                \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));           \
      exit(3);                                                                 \
    }                                                                          \
  } while (0)

#define ROW    ((int)(blockIdx.y * blockDim.y + threadIdx.y))
#define COLUMN ((int)(blockIdx.x * blockDim.x + threadIdx.x))

extern "C" __global__ void wave(const float *u, const float *v, float *w,
                                int rows, int columns, double dt) {
  if (ROW < rows && COLUMN < columns)
    wave_at(u, v, w, rows, columns, dt, ROW, COLUMN);
}

__global__ void force(float *w, int row0, int column0, float strength,
                      place extra, int rows, int columns) {
  place first = {1, row0 + (extra.used ? extra.row : 0), column0};
  if (ROW < rows && COLUMN < columns)
    force_at(w, first, columns, strength, ROW, COLUMN);
}

namespace solver {
template <class T, int REACH>
__global__ void diffuse(const T *q, T *r, size_t planes, size_t rows,
                        size_t columns) {
  if (ROW < rows && COLUMN < columns)
    for (size_t k = 0; k < planes; k++)
      diffuse_at<T, REACH>(q, r, planes, rows, columns, k, ROW, COLUMN);
}

__global__ void shift(const float *u, float *w, int rows, int columns) {
  for (int i = ROW; i < rows; i += gridDim.y * blockDim.y)
    for (int j = COLUMN; j < columns; j += gridDim.x * blockDim.x)
      shift_at(u, w, rows, columns, i, j);
}
} // namespace solver

extern "C" __global__ void limit(const double *f, double *g, long n) {
  if (COLUMN < n)
    limit_at(f, g, n, COLUMN);
}

__global__ void energy(const float *u, int rows, int columns, double *total) {
  int i = COLUMN;
  if (i < rows * columns)
    atomicAdd(total, (double)u[i] * (double)u[i]);
}

__global__ void add(float *u, const float *s, int n) {
  if (COLUMN < n)
    u[COLUMN] += s[COLUMN];
}

static const char *how = "";
static bool is(const char *word) {
  return strcmp(how, word) == 0;
}

static unsigned blocks(size_t extent, unsigned threads) {
  return (unsigned)((extent + threads - 1) / threads);
}

static int rows, columns, row0, column0;
enum { PLANES = 3 };

template <class T> static T *field(int planes, bool filled) {
  size_t count = (size_t)planes * rows * columns;
  T *host = (T *)calloc(count, sizeof(T)), *device;
  for (int k = 0; filled && k < planes; k++)
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < columns; j++)
        host[((size_t)k * rows + i) * columns + j] =
            (T)((7 * (row0 + i) + 11 * (column0 + j) + 5 * k) % 13) / (T)4;
  CHECK(cudaMalloc(&device, count * sizeof(T)));
  CHECK(cudaMemcpy(device, host, count * sizeof(T), cudaMemcpyHostToDevice));
  free(host);
  return device;
}

template <class T> static void print(const char *name, const T *device,
                                     int planes) {
  size_t count = (size_t)planes * rows * columns;
  T *host = (T *)malloc(count * sizeof(T));
  CHECK(cudaMemcpy(host, device, count * sizeof(T), cudaMemcpyDeviceToHost));
  for (int k = 0; k < planes; k++)
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < columns; j++)
        printf("%s %d %d %d %.17g\n", name, k, row0 + i, column0 + j,
               (double)host[((size_t)k * rows + i) * columns + j]);
  free(host);
}

static void wave_launch(const float *u, const float *v, float *w,
                        cudaStream_t stream, int rank) {
  dim3 block(32, 4), grid(blocks(columns, 32), blocks(rows, 4));
  double dt = 0.125;
  if (is("grid") && rank == 1)
    grid.y++;
  if (is("null") && rank == 1)
    v = nullptr;
  if (is("exc")) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    CHECK(cudaLaunchKernelEx(&config, wave, u, v, w, rows, columns, dt));
  } else {
    wave<<<grid, block, 0, stream>>>(u, v, w, rows, columns, dt);
  }
}

static void graph_make(float *u) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  long count = 1;
  void *args[] = {&u, &u, &count};
  cudaKernelNodeParams params = {};
  params.func = (void *)limit;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = args;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 2;
  int steps = atoi(argv[3]), rank = atoi(argv[4]), across = parts_of(argv[2]);
  how = argc > 5 ? argv[5] : "";
  rows = part_of(argv[1], rank < 0 ? -1 : rank / across, &row0);
  columns = part_of(argv[2], rank < 0 ? -1 : rank % across, &column0);
  cudaStream_t stream = nullptr;
  if (is("stream"))
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float *u = field<float>(1, true), *v = field<float>(1, true);
  float *w = field<float>(1, false), *s = field<float>(1, false);
  float *q = field<float>(PLANES, true), *r = field<float>(PLANES, false);
  double *qd = field<double>(PLANES, true), *rd = field<double>(PLANES, false);
  double *f = field<double>(1, true), *g = field<double>(1, false), *total;
  CHECK(cudaMalloc(&total, sizeof *total));
  if (is("graph"))
    graph_make(u);
  dim3 block(32, 4), grid(blocks(columns, 32), blocks(rows, 4));
  for (int step = 0; step < steps; step++) {
    double sum;
    wave_launch(u, v, w, stream, rank);
    float *old = v;
    v = u, u = w, w = old;
    force<<<grid, block, 0, stream>>>(u, 0, 0, 0.25f, place{1, 2, 0}, rows,
                                      columns);
    solver::shift<<<dim3(1, 1), block, 0, stream>>>(u, s, rows, columns);
    if (!is("chain"))
      add<<<blocks((size_t)rows * columns, 64), 64, 0, stream>>>(
          u, s, rows * columns);
    solver::diffuse<float, 1>
        <<<grid, block, 0, stream>>>(q, r, PLANES, rows, columns);
    solver::diffuse<double, 2>
        <<<grid, block, 0, stream>>>(qd, rd, PLANES, rows, columns);
    float *qs = q;
    q = r, r = qs;
    double *qds = qd;
    qd = rd, rd = qds;
    // One column is a 1-D field.
    if (strcmp(argv[2], "1") == 0) {
      limit<<<blocks(rows, 64), 64, 0, stream>>>(f, g, (long)rows);
      double *fs = f;
      f = g, g = fs;
    }
    if (is("chain"))
      continue;
    CHECK(cudaMemsetAsync(total, 0, sizeof *total, stream));
    energy<<<blocks((size_t)rows * columns, 64), 64, 0, stream>>>(
        u, rows, columns, total);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
    if (rank <= 0)
      fprintf(stderr, "energy %.9g\n", sum);
  }
  CHECK(cudaDeviceSynchronize());
  print("u", u, 1);
  print("q", q, PLANES);
  print("qd", qd, PLANES);
  print("f", f, 1);
  return 0;
}
