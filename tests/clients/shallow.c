/* SPDX-License-Identifier: Apache-2.0 */
/* Long waves over real depth, on one GPU, with cuDNN as the stencil engine.
 *
 * Linear shallow water on a staggered grid: the level h lies in the cells, the
 * fluxes p and q (depth times velocity, per unit of dx) on their right and
 * lower faces, one tensor of two channels.
 *
 *   flux  <- (1 - friction) flux - g dt/dx depth * grad(level)
 *   level <- level - dt/dx div(flux)
 *
 * grad is a convolution from one channel to two, div one from two to one, of
 * second (3x3) or fourth (5x5) order. The domain ends in walls: the depth of a
 * face is that of the shallower of its two cells, and outside is none. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "npy.h"

#define CUDA(call)                                                             \
  do {                                                                         \
    cudaError_t status_ = (call);                                              \
    if (status_ != cudaSuccess) {                                              \
      fprintf(stderr, "shallow: %s: %s\n", #call,                              \
              cudaGetErrorString(status_));                                    \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

#define CUDNN(call)                                                            \
  do {                                                                         \
    cudnnStatus_t status_ = (call);                                            \
    if (status_ != CUDNN_STATUS_SUCCESS) {                                     \
      fprintf(stderr, "shallow: %s: %s\n", #call,                              \
              cudnnGetErrorString(status_));                                   \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

typedef struct {
  const char *in, *depth, *out;
  int steps, order, print_every;
  double dx, dt, friction;
} options_t;

/* One stencil: filter, convolution and the algorithm cuDNN chose for it. */
typedef struct {
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  cudnnConvolutionFwdAlgo_t algo;
  float *weights;
} stencil_t;

typedef struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t cells, faces;
  cudnnOpTensorDescriptor_t multiply, minimum;
  int rows, columns;
  float *level, *flux, *slope, *depth;
  stencil_t grad, div;
  void *workspace;
  size_t workspace_bytes;
} solver_t;

static float *device_zeros(size_t count) {
  void *memory;
  CUDA(cudaMalloc(&memory, count * sizeof(float)));
  CUDA(cudaMemset(memory, 0, count * sizeof(float)));
  return memory;
}

static cudnnTensorDescriptor_t tensor(int channels, int rows, int columns) {
  cudnnTensorDescriptor_t desc;
  CUDNN(cudnnCreateTensorDescriptor(&desc));
  CUDNN(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                   channels, rows, columns));
  return desc;
}

/* A stencil from `in` channels to `out`, `size` wide, of host `weights`; grows
 * the solver's workspace to what it needs. */
static stencil_t stencil(solver_t *s, int in, int out, int size,
                         const float *weights) {
  stencil_t st;
  cudnnTensorDescriptor_t x = in == 1 ? s->cells : s->faces;
  cudnnTensorDescriptor_t y = out == 1 ? s->cells : s->faces;
  CUDNN(cudnnCreateFilterDescriptor(&st.filter));
  CUDNN(cudnnSetFilter4dDescriptor(st.filter, CUDNN_DATA_FLOAT,
                                   CUDNN_TENSOR_NCHW, out, in, size, size));
  CUDNN(cudnnCreateConvolutionDescriptor(&st.convolution));
  CUDNN(cudnnSetConvolution2dDescriptor(st.convolution, size / 2, size / 2, 1,
                                        1, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
  int n, c, h, w;
  CUDNN(cudnnGetConvolution2dForwardOutputDim(st.convolution, x, st.filter, &n,
                                              &c, &h, &w));
  if (n != 1 || c != out || h != s->rows || w != s->columns) {
    fprintf(stderr, "shallow: a stencil gives %dx%dx%dx%d\n", n, c, h, w);
    exit(EXIT_FAILURE);
  }
  cudnnConvolutionFwdAlgoPerf_t found;
  int count;
  CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(
      s->cudnn, x, st.filter, st.convolution, y, 1, &count, &found));
  st.algo = found.algo;
  size_t bytes;
  CUDNN(cudnnGetConvolutionForwardWorkspaceSize(
      s->cudnn, x, st.filter, st.convolution, y, st.algo, &bytes));
  if (bytes > s->workspace_bytes) {
    CUDA(cudaFree(s->workspace));
    CUDA(cudaMalloc(&s->workspace, bytes));
    s->workspace_bytes = bytes;
  }
  size_t taps = (size_t)(out * in * size * size);
  st.weights = device_zeros(taps);
  CUDA(cudaMemcpy(st.weights, weights, taps * sizeof(float),
                  cudaMemcpyHostToDevice));
  return st;
}

static void stencil_free(stencil_t *st) {
  CUDNN(cudnnDestroyFilterDescriptor(st->filter));
  CUDNN(cudnnDestroyConvolutionDescriptor(st->convolution));
  CUDA(cudaFree(st->weights));
}

/* y = alpha * stencil(x) + beta * y */
static void apply(solver_t *s, const stencil_t *st, float alpha, const float *x,
                  float beta, float *y, int out) {
  CUDNN(cudnnConvolutionForward(
      s->cudnn, &alpha, out == 1 ? s->faces : s->cells, x, st->filter,
      st->weights, st->convolution, st->algo, s->workspace, s->workspace_bytes,
      &beta, out == 1 ? s->cells : s->faces, y));
}

/* The difference between two neighbours lies halfway between them: to the
 * right of the cell for grad, to the left of the face for div. Fills the taps
 * of both directions, [2][size][size]. */
static void differences(int order, int shift, float *taps) {
  static const float second[] = {-1, 1};
  static const float fourth[] = {1 / 24.f, -27 / 24.f, 27 / 24.f, -1 / 24.f};
  const float *weights = order == 2 ? second : fourth;
  int size = order + 1;
  memset(taps, 0, 2 * (size_t)(size * size) * sizeof(float));
  for (int i = 0; i < order; i++) {
    taps[order / 2 * size + i + shift] = weights[i];
    taps[size * size + (i + shift) * size + order / 2] = weights[i];
  }
}

/* depth of the faces = factor * min(depth of the cell, of its neighbour). */
static void face_depth(solver_t *s, const float *cell_depth, float factor) {
  float here[2 * 9] = {0}, next[2 * 9] = {0}, zero = 0, one = 1;
  here[4] = here[9 + 4] = 1;
  next[5] = next[9 + 7] = 1;
  stencil_t st_here = stencil(s, 1, 2, 3, here);
  stencil_t st_next = stencil(s, 1, 2, 3, next);
  apply(s, &st_here, one, cell_depth, zero, s->slope, 2);
  apply(s, &st_next, one, cell_depth, zero, s->flux, 2);
  CUDNN(cudnnOpTensor(s->cudnn, s->minimum, &factor, s->faces, s->slope,
                      &factor, s->faces, s->flux, &zero, s->faces, s->depth));
  CUDNN(cudnnSetTensor(s->cudnn, s->faces, s->flux, &zero));
  CUDA(cudaDeviceSynchronize());
  stencil_free(&st_here);
  stencil_free(&st_next);
}

static cudnnOpTensorDescriptor_t op_tensor(cudnnOpTensorOp_t op) {
  cudnnOpTensorDescriptor_t desc;
  CUDNN(cudnnCreateOpTensorDescriptor(&desc));
  CUDNN(cudnnSetOpTensorDescriptor(desc, op, CUDNN_DATA_FLOAT,
                                   CUDNN_NOT_PROPAGATE_NAN));
  return desc;
}

static void solver_init(solver_t *s, const options_t *o, npy_field_t level,
                        npy_field_t depth) {
  memset(s, 0, sizeof *s);
  s->rows = level.rows;
  s->columns = level.columns;
  CUDNN(cudnnCreate(&s->cudnn));
  s->cells = tensor(1, s->rows, s->columns);
  s->faces = tensor(2, s->rows, s->columns);
  s->multiply = op_tensor(CUDNN_OP_TENSOR_MUL);
  s->minimum = op_tensor(CUDNN_OP_TENSOR_MIN);
  size_t count = (size_t)s->rows * (size_t)s->columns;
  s->level = device_zeros(count);
  s->flux = device_zeros(2 * count);
  s->slope = device_zeros(2 * count);
  s->depth = device_zeros(2 * count);

  float taps[2 * 5 * 5];
  differences(o->order, 1, taps);
  s->grad = stencil(s, 1, 2, o->order + 1, taps);
  differences(o->order, 0, taps);
  s->div = stencil(s, 2, 1, o->order + 1, taps);

  CUDA(cudaMemcpy(s->level, depth.at, count * sizeof(float),
                  cudaMemcpyHostToDevice));
  face_depth(s, s->level, (float)(9.81 * o->dt / o->dx));
  CUDA(cudaMemcpy(s->level, level.at, count * sizeof(float),
                  cudaMemcpyHostToDevice));
}

static void solver_step(solver_t *s, const options_t *o) {
  float keep = (float)(1 - o->friction), minus = -1, one = 1;
  apply(s, &s->grad, one, s->level, 0, s->slope, 2);
  CUDNN(cudnnOpTensor(s->cudnn, s->multiply, &minus, s->faces, s->slope, &one,
                      s->faces, s->depth, &keep, s->faces, s->flux));
  apply(s, &s->div, (float)(-o->dt / o->dx), s->flux, one, s->level, 1);
}

static void solver_fini(solver_t *s) {
  stencil_free(&s->grad);
  stencil_free(&s->div);
  CUDNN(cudnnDestroyTensorDescriptor(s->cells));
  CUDNN(cudnnDestroyTensorDescriptor(s->faces));
  CUDNN(cudnnDestroyOpTensorDescriptor(s->multiply));
  CUDNN(cudnnDestroyOpTensorDescriptor(s->minimum));
  CUDA(cudaFree(s->level));
  CUDA(cudaFree(s->flux));
  CUDA(cudaFree(s->slope));
  CUDA(cudaFree(s->depth));
  CUDA(cudaFree(s->workspace));
  CUDNN(cudnnDestroy(s->cudnn));
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void usage(FILE *to) {
  fprintf(to,
          "usage: shallow --in LEVEL.npy --depth DEPTH.npy --out LEVEL.npy\n"
          "               [--steps N] [--order 2|4] [--dx METRES] [--dt S]\n"
          "               [--friction F] [--print-every N]\n");
}

static options_t options_read(int argc, char **argv) {
  options_t o = {.steps = 100, .order = 4, .dx = 300, .dt = 1};
  static const struct option table[] = {{"in", 1, 0, 'i'},
                                        {"depth", 1, 0, 'd'},
                                        {"out", 1, 0, 'o'},
                                        {"steps", 1, 0, 'n'},
                                        {"order", 1, 0, 'k'},
                                        {"dx", 1, 0, 'x'},
                                        {"dt", 1, 0, 't'},
                                        {"print-every", 1, 0, 'p'},
                                        {"friction", 1, 0, 'f'},
                                        {"help", 0, 0, 'h'},
                                        {0, 0, 0, 0}};
  for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;)
    switch (c) {
    case 'i':
      o.in = optarg;
      break;
    case 'd':
      o.depth = optarg;
      break;
    case 'o':
      o.out = optarg;
      break;
    case 'n':
      o.steps = atoi(optarg);
      break;
    case 'k':
      o.order = atoi(optarg);
      break;
    case 'x':
      o.dx = atof(optarg);
      break;
    case 't':
      o.dt = atof(optarg);
      break;
    case 'p':
      o.print_every = atoi(optarg);
      break;
    case 'f':
      o.friction = atof(optarg);
      break;
    case 'h':
      usage(stdout);
      exit(EXIT_SUCCESS);
    default:
      usage(stderr);
      exit(2);
    }
  if (!o.in || !o.depth || !o.out || (o.order != 2 && o.order != 4) ||
      o.steps < 0 || o.dx <= 0 || o.dt <= 0) {
    usage(stderr);
    exit(2);
  }
  return o;
}

int main(int argc, char **argv) {
  options_t o = options_read(argc, argv);
  npy_field_t level = npy_read(o.in);
  npy_field_t depth = npy_read(o.depth);
  if (level.rows != depth.rows || level.columns != depth.columns) {
    fprintf(stderr, "shallow: %s and %s differ in shape\n", o.in, o.depth);
    return EXIT_FAILURE;
  }
  solver_t solver;
  solver_init(&solver, &o, level, depth);

  double begin = now();
  for (int step = 1; step <= o.steps; step++) {
    solver_step(&solver, &o);
    if (o.print_every && step % o.print_every == 0) {
      CUDA(cudaDeviceSynchronize());
      printf("step %d of %d, %.2f ms per step\n", step, o.steps,
             1e3 * (now() - begin) / step);
      fflush(stdout);
    }
  }
  CUDA(cudaMemcpy(level.at, solver.level,
                  (size_t)level.rows * (size_t)level.columns * sizeof(float),
                  cudaMemcpyDeviceToHost));
  npy_write(o.out, level);
  solver_fini(&solver);
  free(level.at);
  free(depth.at);
  return EXIT_SUCCESS;
}
