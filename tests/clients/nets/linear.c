/* SPDX-License-Identifier: Apache-2.0 */
/* Two linear layers that learn a linear map: tokens of INPUTS numbers, made
 * from RAW ones by a fixed product, go to hidden units and on to OUTPUTS
 * numbers. Losses, gradients and gradient descent are cuBLAS calls.
 *
 * usage: linear [--steps S] [--parts N,N,... --part I]
 *
 * The weights are a formula of their place, so that a process can be told which
 * hidden units are its own: those of part I. Matrices are stored by columns; a
 * token is a column. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 60, RAW = 12, INPUTS = 24, HIDDEN = 32, OUTPUTS = 16 };

static cublasHandle_t blas;

static void cuda_check(cudaError_t status, const char *what) {
  if (status == cudaSuccess)
    return;
  fprintf(stderr, "linear: %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

static void blas_check(cublasStatus_t status, const char *what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  fprintf(stderr, "linear: %s: %s\n", what, cublasGetStatusString(status));
  exit(1);
}
#define CUDA(call) cuda_check((call), #call)
#define BLAS(call) blas_check((call), #call)

typedef struct matrix {
  int rows, columns;
  float *at; /* device memory */
} matrix_t;

/* Numbers between -scale and scale that look like noise. */
static float noise(int which, int i, int j, float scale) {
  double x = sin(which * 12.9898 + i * 78.233 + j * 37.719) * 43758.5453;
  return (float)((x - floor(x)) * 2 - 1) * scale;
}

/* Rows from `first` on of a matrix of noise; zeros where scale is 0. */
static matrix_t matrix_make(int which, int rows, int columns, int first_row,
                            int first_column, float scale) {
  matrix_t m = {rows, columns, NULL};
  size_t count = (size_t)rows * (size_t)columns;
  float *host = malloc(count * sizeof *host);
  if (!host)
    exit(1);
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++)
      host[j * rows + i] = noise(which, first_row + i, first_column + j, scale);
  CUDA(cudaMalloc((void **)&m.at, count * sizeof *host));
  CUDA(cudaMemcpy(m.at, host, count * sizeof *host, cudaMemcpyHostToDevice));
  free(host);
  return m;
}

static int count_of(const matrix_t *m) {
  return m->rows * m->columns;
}

/* c = op(a) op(b) */
static void multiply(int ta, const matrix_t *a, int tb, const matrix_t *b,
                     const matrix_t *c) {
  const float one = 1, zero = 0;
  BLAS(cublasSgemm(blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                   tb ? CUBLAS_OP_T : CUBLAS_OP_N, c->rows, c->columns,
                   ta ? a->rows : a->columns, &one, a->at, a->rows, b->at,
                   b->rows, &zero, c->at, c->rows));
}

/* y += scale x */
static void add(float scale, const matrix_t *x, const matrix_t *y) {
  BLAS(cublasSaxpy(blas, count_of(x), &scale, x->at, 1, y->at, 1));
}

typedef struct net {
  matrix_t raw, made, x; /* the tokens */
  matrix_t up, down;     /* weights: hidden x inputs, outputs x hidden */
  matrix_t h, y, right;  /* forward; what should come out */
  matrix_t dy, dh, dx, d_up, d_down;
} net_t;

static net_t net_make(int first, int hidden) {
  net_t n = {
      .raw = matrix_make(1, RAW, TOKENS, 0, 0, 1),
      .made = matrix_make(2, INPUTS, RAW, 0, 0, 0.5f),
      .x = matrix_make(0, INPUTS, TOKENS, 0, 0, 0),
      .up = matrix_make(3, hidden, INPUTS, first, 0, 0.2f),
      .down = matrix_make(4, OUTPUTS, hidden, 0, first, 0.2f),
      .h = matrix_make(0, hidden, TOKENS, 0, 0, 0),
      .y = matrix_make(0, OUTPUTS, TOKENS, 0, 0, 0),
      .right = matrix_make(0, OUTPUTS, TOKENS, 0, 0, 0),
      .dy = matrix_make(0, OUTPUTS, TOKENS, 0, 0, 0),
      .dh = matrix_make(0, hidden, TOKENS, 0, 0, 0),
      .dx = matrix_make(0, INPUTS, TOKENS, 0, 0, 0),
      .d_up = matrix_make(0, hidden, INPUTS, 0, 0, 0),
      .d_down = matrix_make(0, OUTPUTS, hidden, 0, 0, 0),
  };
  matrix_t map = matrix_make(5, OUTPUTS, RAW, 0, 0, 1);
  multiply(0, &map, 0, &n.raw, &n.right);
  CUDA(cudaFree(map.at));
  return n;
}

/* Makes one step; returns the loss before it. */
static float step(net_t *n, float rate) {
  float loss, input;
  multiply(0, &n->made, 0, &n->raw, &n->x);
  multiply(0, &n->up, 0, &n->x, &n->h);
  multiply(0, &n->down, 0, &n->h, &n->y);
  CUDA(cudaMemcpy(n->dy.at, n->y.at, (size_t)count_of(&n->y) * sizeof(float),
                  cudaMemcpyDeviceToDevice));
  add(-1, &n->right, &n->dy);
  BLAS(cublasSdot(blas, count_of(&n->dy), n->dy.at, 1, n->dy.at, 1, &loss));
  multiply(0, &n->dy, 1, &n->h, &n->d_down);
  multiply(1, &n->down, 0, &n->dy, &n->dh);
  multiply(0, &n->dh, 1, &n->x, &n->d_up);
  multiply(1, &n->up, 0, &n->dh, &n->dx);
  BLAS(cublasSnrm2(blas, count_of(&n->dx), n->dx.at, 1, &input));
  add(-rate / TOKENS, &n->d_up, &n->up);
  add(-rate / TOKENS, &n->d_down, &n->down);
  return loss / TOKENS + 1e-3f * input;
}

/* The hidden units of one part: how many, and which is the first. */
static int part_find(const char *parts, int part, int *first, int *hidden) {
  *first = 0;
  for (char *end;; parts = end + 1) {
    *hidden = (int)strtol(parts, &end, 10);
    if (end == parts || *hidden < 1 || (*end && *end != ','))
      return 0;
    if (part-- == 0)
      return 1;
    *first += *hidden;
    if (!*end)
      return 0;
  }
}

int main(int argc, char **argv) {
  static const struct option table[] = {
      {"steps", 1, 0, 's'}, {"parts", 1, 0, 'p'}, {"part", 1, 0, 'i'}, {0}};
  int first = 0, hidden = HIDDEN, steps = 40, part = 0;
  const char *parts = NULL;
  for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
    if (c == 's')
      steps = atoi(optarg);
    else if (c == 'p')
      parts = optarg;
    else if (c == 'i')
      part = atoi(optarg);
    else
      return 2;
  }
  if (optind < argc || (parts && !part_find(parts, part, &first, &hidden)))
    return 2;
  BLAS(cublasCreate(&blas));
  net_t net = net_make(first, hidden);
  for (int i = 1; i <= steps; i++)
    printf("step %d loss %.7g\n", i, (double)step(&net, 0.15f));
  BLAS(cublasDestroy(blas));
  return 0;
}
