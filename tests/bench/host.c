// SPDX-License-Identifier: Apache-2.0
// Float convolutions of the host device against oneDNN in its own best layout,
// conversions included. Both take turns in one process, on one core, and are
// measured in CPU time: other work on the machine shows as little as can be.
//
// Usage: bench_host [WORD]: only shapes whose name contains WORD.
#include <cudnn.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/rival.h"

/* Rounds that choose the best layout, and rounds that measure. */
enum { CHOICES = 5, ROUNDS = 25 };
static const double goal = 0.9, least_ms = 1;

static const bench_shape_t shapes[] = {
    {"3x3 c16 256", 2, 1, 16, 16, 1, {1, 256, 256}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c32 256", 2, 1, 32, 32, 1, {1, 256, 256}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c64 56 n4", 2, 4, 64, 64, 1, {1, 56, 56}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c128 28 n4", 2, 4, 128, 128, 1, {1, 28, 28}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c256 14 n4", 2, 4, 256, 256, 1, {1, 14, 14}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c512 7 n4", 2, 4, 512, 512, 1, {1, 7, 7}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c3-64 224", 2, 1, 3, 64, 1, {1, 224, 224}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c1-8 512", 2, 1, 1, 8, 1, {1, 512, 512}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c5-7 301", 2, 1, 5, 7, 1, {1, 301, 301}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c64 s2 112", 2, 1, 64, 128, 1, {1, 112, 112}, {1, 3, 3}, 2, 1, 1},
    {"3x3 c32 d2 128", 2, 1, 32, 32, 1, {1, 128, 128}, {1, 3, 3}, 1, 2, 2},
    {"3x3 c32 g4 128", 2, 1, 32, 32, 4, {1, 128, 128}, {1, 3, 3}, 1, 1, 1},
    {"3x3 c128 g32 56", 2, 1, 128, 128, 32, {1, 56, 56}, {1, 3, 3}, 1, 1, 1},
    {"3x3 dw64 112", 2, 1, 64, 64, 64, {1, 112, 112}, {1, 3, 3}, 1, 1, 1},
    {"5x5 dw96 s2 112", 2, 1, 96, 96, 96, {1, 112, 112}, {1, 5, 5}, 2, 2, 1},
    {"5x5 c32 128", 2, 1, 32, 32, 1, {1, 128, 128}, {1, 5, 5}, 1, 2, 1},
    {"7x7 c3-64 s2 224", 2, 1, 3, 64, 1, {1, 224, 224}, {1, 7, 7}, 2, 3, 1},
    {"1x1 c64-256 56", 2, 2, 64, 256, 1, {1, 56, 56}, {1, 1, 1}, 1, 0, 1},
    {"1x1 c256-64 56", 2, 2, 256, 64, 1, {1, 56, 56}, {1, 1, 1}, 1, 0, 1},
    {"1x1 c512 s2 28", 2, 2, 512, 512, 1, {1, 28, 28}, {1, 1, 1}, 2, 0, 1},
    {"3d 3 c16 32", 3, 1, 16, 16, 1, {32, 32, 32}, {3, 3, 3}, 1, 1, 1},
    {"3d 3 c32 24", 3, 1, 32, 32, 1, {24, 24, 24}, {3, 3, 3}, 1, 1, 1},
    {"3d 3 c1-16 48", 3, 1, 1, 16, 1, {48, 48, 48}, {3, 3, 3}, 1, 1, 1},
    {"3d 3 c32 s2 32", 3, 1, 32, 64, 1, {32, 32, 32}, {3, 3, 3}, 2, 1, 1},
    {"3d 1 c64 24", 3, 1, 64, 64, 1, {24, 24, 24}, {1, 1, 1}, 1, 0, 1},
};

/* The shape on the device, and on the host for oneDNN. */
typedef struct {
  const bench_shape_t *shape;
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  size_t count[3];  /* elements of x, w, y */
  float *device[3]; /* x, w, y */
  float *host[3];
  void *space; /* workspace */
  size_t space_bytes;
} bench_t;

#define OK(call)                                                               \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_) {                                                             \
      fprintf(stderr, "bench_host: %s: %d\n", #call, status_);                 \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const double *values, int count) {
  double sorted[ROUNDS];
  memcpy(sorted, values, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare);
  return sorted[count / 2];
}

static void fill(float *to, size_t count) {
  static uint32_t seed = 1;
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    to[i] = (float)(int32_t)seed * 0x1p-31F;
  }
}

static void bench_create(bench_t *b, const bench_shape_t *s) {
  int first = BENCH_SPATIAL - s->dims, rank = 2 + s->dims;
  int x[5] = {s->n, s->c}, w[5] = {s->k, s->c / s->groups}, y[5] = {s->n, s->k};
  int pad[3], stride[3], dilation[3];
  b->shape = s;
  for (int i = 0; i < s->dims; i++) {
    x[2 + i] = s->in[first + i];
    w[2 + i] = s->window[first + i];
    y[2 + i] = bench_out(s, first + i);
    pad[i] = s->pad;
    stride[i] = s->stride;
    dilation[i] = s->dilation;
  }
  OK(cudnnSetTensorNdDescriptorEx(b->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                  rank, x));
  OK(cudnnSetTensorNdDescriptorEx(b->y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                  rank, y));
  OK(cudnnSetFilterNdDescriptor(b->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, rank,
                                w));
  OK(cudnnSetConvolutionNdDescriptor(b->conv, s->dims, pad, stride, dilation,
                                     CUDNN_CROSS_CORRELATION,
                                     CUDNN_DATA_FLOAT));
  OK(cudnnSetConvolutionGroupCount(b->conv, s->groups));
  const int *const dim[] = {x, w, y};
  for (int t = 0; t < 3; t++) {
    b->count[t] = 1;
    for (int i = 0; i < rank; i++)
      b->count[t] *= (size_t)dim[t][i];
    size_t bytes = (b->count[t] * sizeof(float) + 63) & ~(size_t)63;
    b->host[t] = aligned_alloc(64, bytes);
    if (!b->host[t])
      exit(1);
    fill(b->host[t], b->count[t]);
    OK(cudaMalloc((void **)&b->device[t], bytes));
    OK(cudaMemcpy(b->device[t], b->host[t], b->count[t] * sizeof(float),
                  cudaMemcpyHostToDevice));
  }
  // A Hopper GPU would copy x and y.
  b->space_bytes = (b->count[0] + b->count[2]) * sizeof(float);
  OK(cudaMalloc(&b->space, b->space_bytes));
}

static void bench_destroy(bench_t *b) {
  OK(cudaFree(b->space));
  for (int t = 0; t < 3; t++) {
    free(b->host[t]);
    OK(cudaFree(b->device[t]));
  }
}

static void ours(const bench_t *b, bench_kind_t kind) {
  const float one = 1, zero = 0;
  float *x = b->device[0], *w = b->device[1], *y = b->device[2];
  switch (kind) {
  case BENCH_FORWARD:
    OK(cudnnConvolutionForward(b->handle, &one, b->x, x, b->w, w, b->conv,
                               CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                               b->space, b->space_bytes, &zero, b->y, y));
    break;
  case BENCH_DATA:
    OK(cudnnConvolutionBackwardData(b->handle, &one, b->w, w, b->y, y, b->conv,
                                    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, b->space,
                                    b->space_bytes, &zero, b->x, x));
    break;
  default:
    OK(cudnnConvolutionBackwardFilter(
        b->handle, &one, b->x, x, b->y, y, b->conv,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, b->space, b->space_bytes, &zero,
        b->w, w));
  }
  OK(cudaStreamSynchronize(0));
}

/* Both must have the same results; otherwise times mean nothing. */
static void check(const bench_t *b, int t) {
  size_t bytes = b->count[t] * sizeof(float);
  float *mine = malloc(bytes);
  if (!mine)
    exit(1);
  OK(cudaMemcpy(mine, b->device[t], bytes, cudaMemcpyDeviceToHost));
  double most = 0, apart = 0;
  for (size_t i = 0; i < b->count[t]; i++) {
    most = fmax(most, fabs((double)b->host[t][i]));
    apart = fmax(apart, fabs((double)b->host[t][i] - (double)mine[i]));
  }
  free(mine);
  if (!(apart <= 1e-4 * most)) {
    fprintf(stderr, "bench_host: %s: results differ by %g of %g\n",
            b->shape->name, apart, most);
    exit(1);
  }
}

/* Returns the time of one call, measured over many in a row. */
static double measure(const bench_t *b, bench_kind_t kind, rival_t *rival,
                      int calls) {
  double start = now_ms();
  for (int i = 0; i < calls; i++)
    if (!rival)
      ours(b, kind);
    else
      OK(!rival_run(rival));
  return (now_ms() - start) / calls;
}

/* Returns the layout in which oneDNN is fastest; BENCH_LAYOUTS if it supports
 * none. */
static int choose(const bench_t *b, bench_kind_t kind,
                  rival_t *const rival[BENCH_LAYOUTS], int calls) {
  double ms[BENCH_LAYOUTS][CHOICES];
  for (int r = 0; r < CHOICES; r++)
    for (int l = 0; l < BENCH_LAYOUTS; l++)
      ms[l][r] = rival[l] ? measure(b, kind, rival[l], calls) : INFINITY;
  int best = BENCH_LAYOUTS;
  for (int l = 0; l < BENCH_LAYOUTS; l++)
    if (rival[l] && (best == BENCH_LAYOUTS ||
                     median(ms[l], CHOICES) < median(ms[best], CHOICES)))
      best = l;
  return best;
}

/* Prints a line; returns true if the goal is met. */
static bool compare_one(const bench_t *b, bench_kind_t kind) {
  static const char *const kinds[] = {"forward", "data", "weights"};
  static const char *const layouts[] = {"own", "last", "plain", "none"};
  static const int out[] = {2, 0, 1};
  rival_t *rival[BENCH_LAYOUTS];
  for (int l = 0; l < BENCH_LAYOUTS; l++)
    rival[l] = rival_create(b->shape, kind, (bench_layout_t)l, b->host[0],
                            b->host[1], b->host[2]);
  ours(b, kind);
  int calls = 1 + (int)(least_ms / (measure(b, kind, NULL, 1) + 1e-3));
  int best = choose(b, kind, rival, calls);
  double mine[ROUNDS], theirs[ROUNDS], ratio[ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    mine[r] = measure(b, kind, NULL, calls);
    theirs[r] =
        best == BENCH_LAYOUTS ? INFINITY : measure(b, kind, rival[best], calls);
    ratio[r] = theirs[r] / mine[r];
  }
  if (best != BENCH_LAYOUTS)
    check(b, out[kind]);
  double middle = median(ratio, ROUNDS);
  printf("%-18s%-9s%10.2f%10.2f  %-6s%7.2f%s\n", b->shape->name, kinds[kind],
         median(mine, ROUNDS), median(theirs, ROUNDS), layouts[best], middle,
         middle >= goal ? "" : "  below");
  fflush(stdout);
  for (int l = 0; l < BENCH_LAYOUTS; l++)
    rival_destroy(rival[l]);
  return middle >= goal;
}

int main(int argc, char **argv) {
  /* Queued work may run on another thread, whose caches would be cold. */
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(sched_getcpu(), &core);
  OK(sched_setaffinity(0, sizeof core, &core));
  omp_set_num_threads(1);
  bench_t b = {0};
  OK(cudnnCreate(&b.handle));
  OK(cudnnCreateTensorDescriptor(&b.x));
  OK(cudnnCreateTensorDescriptor(&b.y));
  OK(cudnnCreateFilterDescriptor(&b.w));
  OK(cudnnCreateConvolutionDescriptor(&b.conv));
  printf("%-18s%-9s%10s%10s  %-6s%7s\n", "shape", "", "ours ms", "oneDNN",
         "layout", "ratio");
  int lines[BENCH_KINDS] = {0}, met[BENCH_KINDS] = {0};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (argc > 1 && !strstr(shapes[i].name, argv[1]))
      continue;
    bench_create(&b, &shapes[i]);
    for (int kind = 0; kind < BENCH_KINDS; kind++) {
      lines[kind]++;
      met[kind] += compare_one(&b, (bench_kind_t)kind);
    }
    bench_destroy(&b);
  }
  printf("at %.1f or more: forward %d of %d, data %d of %d, weights %d of %d\n",
         goal, met[0], lines[0], met[1], lines[1], met[2], lines[2]);
  OK(cudnnDestroyTensorDescriptor(b.x));
  OK(cudnnDestroyTensorDescriptor(b.y));
  OK(cudnnDestroyFilterDescriptor(b.w));
  OK(cudnnDestroyConvolutionDescriptor(b.conv));
  OK(cudnnDestroy(b.handle));
  return 0;
}
