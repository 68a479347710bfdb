// SPDX-License-Identifier: Apache-2.0
// Training steps of linear layers by cuBLAS: forward, gradients of the weights
// and of the inputs.
//
// usage: bench_products FORM STEPS RANKS RANK TOKENS INPUTS HIDDEN OUTPUTS
//
// A process has its even piece of the cut dimension; RANKS 1: all of it.
//   data    hidden = W x; tokens are cut
//   pieces  the same; each process has its hidden units of the gradient of W
//   column  the same; W's hidden units, and tokens of x
//   row     outputs = W hidden; W's hidden units, and tokens of the outputs
//   mlp     both layers: units of the weights; tokens before and after
//   tensor  the same, with all tokens on every rank
// It does not use sundog's functions. Another product makes the tokens.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { RAW = 12 };

static cublasHandle_t blas;
static int ranks, rank;

typedef struct matrix {
  int rows, columns;
  float *at;
} matrix_t;

// Returns the size of the process's piece. The first pieces have one more.
static int piece(int extent) {
  return extent / ranks + (rank < extent % ranks);
}

static matrix_t make(int rows, int columns) {
  matrix_t m = {rows, columns, NULL};
  size_t bytes = (size_t)rows * (size_t)columns * sizeof(float);
  CHECK(cudaMalloc((void **)&m.at, bytes));
  CHECK(cudaMemset(m.at, 0, bytes));
  return m;
}

// c = op(a) op(b), with the m, n, k that the call states.
static void multiply(int ta, const matrix_t *a, int tb, const matrix_t *b,
                     const matrix_t *c, int m, int n, int k) {
  static const float one = 1, zero = 0;
  CHECK(cublasSgemm(blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                    tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &one, a->at,
                    a->rows, b->at, b->rows, &zero, c->at, c->rows));
}

// Replaces y by the gradient of a loss.
static void gradient(const matrix_t *y) {
  static const float half = 0.5f;
  CHECK(cublasSscal(blas, y->rows * y->columns, &half, y->at, 1));
}

// y = w x, and back.
typedef struct layer {
  int in, out; // sizes that calls state
  matrix_t w, x, y, dw, dx;
} layer_t;

static layer_t layer(int in, int out, const matrix_t *x, int tokens) {
  layer_t l = {.in = in, .out = out, .x = *x};
  l.w = make(out, in);
  l.dw = make(out, in);
  l.dx = make(x->rows, x->columns);
  l.y = make(out, tokens);
  return l;
}

static void forward(const layer_t *l, int tokens) {
  multiply(0, &l->w, 0, &l->x, &l->y, l->out, tokens, l->in);
}

static void backward(const layer_t *l, const matrix_t *dy, int tokens,
                     int terms) {
  multiply(0, dy, 1, &l->x, &l->dw, l->dw.rows, l->in, terms);
  multiply(1, &l->w, 0, dy, &l->dx, l->in, tokens, l->out);
}

int main(int count, char **words) {
  int n[8];
  if (count != 9)
    return 2;
  for (int i = 2; i < count; i++)
    n[i - 2] = atoi(words[i]);
  ranks = n[1];
  rank = n[2];
  const char *form = words[1];
  int parted = !strcmp(form, "pieces");
  int data = parted || !strcmp(form, "data"), row = !strcmp(form, "row");
  int both = !strcmp(form, "mlp") || !strcmp(form, "tensor");
  if (ranks < 1 || (!data && !row && !both && strcmp(form, "column")))
    return 2;
  int inputs = n[4], outputs = n[6], units = data ? n[5] : piece(n[5]);
  int own = strcmp(form, "tensor") ? piece(n[3]) : n[3];
  int all = data ? own : n[3]; // tokens, as calls state them
  CHECK(cublasCreate(&blas));
  // Tokens, or, for the second layer alone, hidden units of them.
  matrix_t raw = make(RAW, row ? all : own);
  matrix_t made = make(row ? units : inputs, RAW);
  matrix_t x = make(made.rows, raw.columns);
  layer_t up = layer(inputs, units, &x, all);
  if (parted)
    up.dw.rows = piece(units);
  layer_t down = layer(units, outputs, row ? &x : &up.y, own);
  for (int i = 0; i < n[0]; i++) {
    multiply(0, &made, 0, &raw, &x, x.rows, x.columns, RAW);
    if (!row)
      forward(&up, all);
    if (row || both) {
      forward(&down, all);
      gradient(&down.y);
      backward(&down, &down.y, all, all);
    }
    const matrix_t *dy = both ? &down.dx : &up.y;
    if (!row) {
      gradient(dy);
      backward(&up, dy, all, parted ? n[3] : all);
    }
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cublasDestroy(blas));
  return 0;
}
