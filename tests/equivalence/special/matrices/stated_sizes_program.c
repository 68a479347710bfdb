/* SPDX-License-Identifier: Apache-2.0 */
/* Makes random products in pieces: it draws the pieces, the sizes in the calls,
 * the memory, and which of these the program states. Each result must be right,
 * or the call must fail; it must not fail if the program states everything.
 *
 * usage: stated_sizes_program RANK RANKS SEED CASES
 *
 * Prints one line for each case, the same on every rank. Fails if a number is
 * wrong. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"

enum { M, N, K, BATCH, DIMS, RANKS_MAX = 8, LABEL = 95 };
enum { A, B, C, MATRICES };
static const char *const names[DIMS] = {"M", "N", "K", "BATCH"};
static const char letters[] = "abc";
static const int dims_of[MATRICES][2] = {{M, K}, {K, N}, {M, N}};

static unsigned long long seed;
static int draw(int lo, int hi) {
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return lo + (int)((seed >> 33) % (unsigned long long)(hi - lo + 1));
}

static int rank, ranks;
static cublasHandle_t blas;

typedef struct {
  int whole[DIMS];
  int cut[DIMS];                  /* whether the split or a matrix cuts it */
  int first[DIMS][RANKS_MAX + 1]; /* where its parts begin */
  int even[DIMS];
  int states_whole[DIMS]; /* the call states the whole, not the piece */
  int split;              /* the dimension that the product splits */
  int where[MATRICES];    /* the dimension that a matrix is cut in; -1: none */
  int batched, transposed[2];
  float alpha, beta;
} product_t;

typedef struct {
  int lo[DIMS], hi[DIMS]; /* this rank's part */
  int ld, between, count; /* in elements; count: all that is allocated */
  int by_rows;            /* the second dimension is the inner one */
  float *host, *device;
} matrix_t;

static float value(int which, int i, int j, int b) {
  return (float)((which * 7 + i * 13 + j * 29 + b * 11) % 17) / 8 - 1;
}

/* Draws parts of at least one element; half of the time, even parts. */
static void part_draw(product_t *p, int d) {
  int even = draw(0, 1) || p->whole[d] < ranks, left = p->whole[d];
  p->first[d][0] = 0;
  for (int r = 0; r < ranks; r++) {
    int size = p->whole[d] / ranks + (r < p->whole[d] % ranks);
    if (!even)
      size = r == ranks - 1 ? left : draw(1, left - (ranks - 1 - r));
    left -= size;
    p->first[d][r + 1] = p->first[d][r] + size;
  }
  p->even[d] = 1;
  for (int r = 0; r < ranks; r++)
    p->even[d] &= p->first[d][r + 1] - p->first[d][r] ==
                  p->whole[d] / ranks + (r < p->whole[d] % ranks);
}

/* Draws the dimension that a matrix is cut in: the product's or another. */
static int where_draw(const product_t *p, int matrix) {
  int has = p->split == BATCH || dims_of[matrix][0] == p->split ||
            dims_of[matrix][1] == p->split;
  int own = has ? p->split : -1, at = draw(0, 7);
  if (at < 4)
    return own;
  if (at == 4)
    return -1;
  return at == 5 && p->batched ? BATCH : dims_of[matrix][draw(0, 1)];
}

static void product_draw(product_t *p) {
  memset(p, 0, sizeof *p);
  p->batched = draw(0, 2) == 0;
  for (int d = 0; d < BATCH; d++)
    p->whole[d] = draw(ranks, ranks + 9);
  p->whole[BATCH] = p->batched ? draw(ranks, ranks + 3) : 1;
  p->split = draw(0, p->batched ? BATCH : K);
  for (int m = 0; m < C; m++) {
    p->where[m] = where_draw(p, m);
    p->transposed[m] = draw(0, 1);
  }
  p->where[C] = p->split == K ? -1 : p->split;
  if (p->split == K && draw(0, 1))
    p->where[C] = dims_of[C][draw(0, 1)];
  p->cut[p->split] = 1;
  for (int m = 0; m < MATRICES; m++)
    if (p->where[m] >= 0)
      p->cut[p->where[m]] = 1;
  int one = draw(0, 2); /* all sizes are pieces, all are whole, or mixed */
  for (int d = 0; d < DIMS; d++) {
    part_draw(p, d);
    p->states_whole[d] = one == 2 ? draw(0, 1) : one;
  }
  p->alpha = draw(0, 1) ? 1 : -0.5f;
  p->beta = draw(0, 1) ? 0 : 0.25f;
}

static int states(const product_t *p, int d) {
  return p->cut[d] && !p->states_whole[d]
             ? p->first[d][rank + 1] - p->first[d][rank]
             : p->whole[d];
}

static int length(const matrix_t *m, int d) {
  return m->hi[d] - m->lo[d];
}

static int offset(const matrix_t *m, int which, int i, int j, int b) {
  int row = i - m->lo[dims_of[which][0]], column = j - m->lo[dims_of[which][1]];
  int inner = m->by_rows ? column : row, outer = m->by_rows ? row : column;
  return inner + outer * m->ld + (b - m->lo[BATCH]) * m->between;
}

/* Allocates this rank's part, in memory that is just large enough or larger. */
static void matrix_make(const product_t *p, int which, matrix_t *m) {
  memset(m, 0, sizeof *m);
  for (int d = 0; d < DIMS; d++) {
    int cut = p->where[which] == d;
    m->lo[d] = cut ? p->first[d][rank] : 0;
    m->hi[d] = cut ? p->first[d][rank + 1] : p->whole[d];
  }
  m->by_rows = which < C && p->transposed[which];
  int outer = dims_of[which][!m->by_rows], inner = dims_of[which][m->by_rows];
  int slack = draw(0, 5), lines = length(m, outer);
  m->ld = length(m, inner);
  if (slack == 0)
    m->ld += 3;
  else if (slack == 1)
    m->ld = p->whole[inner];
  if (slack == 2)
    lines = p->whole[outer];
  m->between = m->ld * lines;
  m->count = m->between * (length(m, BATCH) - 1) +
             m->ld * (slack > 2 ? lines - 1 : lines) +
             (slack > 2 ? length(m, inner) : 0);
  if (slack == 3)
    m->count = m->between * p->whole[BATCH] * ranks;
  m->host = malloc((size_t)m->count * sizeof *m->host);
  if (!m->host)
    exit(2);
  for (int i = 0; i < m->count; i++)
    m->host[i] = 99;
  for (int b = m->lo[BATCH]; b < m->hi[BATCH]; b++)
    for (int i = m->lo[dims_of[which][0]]; i < m->hi[dims_of[which][0]]; i++)
      for (int j = m->lo[dims_of[which][1]]; j < m->hi[dims_of[which][1]]; j++)
        m->host[offset(m, which, i, j, b)] = value(which, i, j, b);
  size_t bytes = (size_t)m->count * sizeof *m->host;
  if (cudaMalloc((void **)&m->device, bytes) ||
      cudaMemcpy(m->device, m->host, bytes, cudaMemcpyHostToDevice))
    exit(2);
}

static void matrix_free(matrix_t *m) {
  cudaFree(m->device);
  free(m->host);
}

/* Writes the product's tag, with all keys or without some. Returns true if it
 * has all. */
static int label_make(const product_t *p, char *out) {
  int used = sprintf(out, "%s:y", names[p->split]), all = 1;
  if (draw(0, 4)) {
    used += sprintf(out + used, "; sizes =");
    for (int d = 0; d < DIMS; d++)
      if (p->cut[d])
        used += sprintf(out + used, " %s:%s", names[d],
                        p->states_whole[d] ? "whole" : "piece");
  } else {
    all = 0;
  }
  for (int m = 0; m < C; m++) {
    if (draw(0, 3) == 0) {
      all = 0;
      continue;
    }
    used += sprintf(out + used,
                    p->where[m] < 0 ? "; %c=replicated" : "; %c=", letters[m]);
    if (p->where[m] >= 0)
      used += sprintf(out + used, "%s:y", names[p->where[m]]);
  }
  if (p->split == K && p->where[C] >= 0)
    used += sprintf(out + used, "; c=%s:y", names[p->where[C]]);
  int said = 0;
  for (int d = 0; d < DIMS; d++) {
    if (!p->cut[d] || !p->states_whole[d])
      continue;
    if (draw(0, 2) == 0) {
      all = 0;
      continue;
    }
    used += sprintf(out + used, "%s%s:", said++ ? " " : "; parts = ", names[d]);
    if (p->even[d] && draw(0, 1))
      used += sprintf(out + used, "even");
    else
      for (int r = 0; r < ranks; r++)
        used += sprintf(out + used, "%s%d", r ? "," : "",
                        p->first[d][r + 1] - p->first[d][r]);
  }
  return all;
}

static double right(const product_t *p, int i, int j, int b) {
  double sum = 0;
  for (int k = 0; k < p->whole[K]; k++)
    sum += (double)value(A, i, k, b) * (double)value(B, k, j, b);
  return (double)p->alpha * sum + (double)p->beta * (double)value(C, i, j, b);
}

/* Counts elements of C that are wrong, or that the call wrote outside this
 * rank's part; after a failed call, all elements that changed. */
static int wrong_count(const product_t *p, const matrix_t *c, int failed) {
  size_t bytes = (size_t)c->count * sizeof *c->host;
  float *found = malloc(bytes);
  int wrong = 0;
  if (!found || cudaMemcpy(found, c->device, bytes, cudaMemcpyDeviceToHost))
    exit(2);
  for (int b = c->lo[BATCH]; b < c->hi[BATCH] && !failed; b++)
    for (int i = c->lo[M]; i < c->hi[M]; i++)
      for (int j = c->lo[N]; j < c->hi[N]; j++) {
        int at = offset(c, C, i, j, b);
        wrong += !(fabs((double)found[at] - right(p, i, j, b)) < 1e-3);
        found[at] = c->host[at];
      }
  for (int i = 0; i < c->count; i++)
    wrong += found[i] != c->host[i];
  free(found);
  return wrong;
}

static int call(const product_t *p, const matrix_t *m) {
  cublasOperation_t op[2];
  for (int i = 0; i < 2; i++)
    op[i] = p->transposed[i] ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (!p->batched)
    return (int)cublasSgemm(blas, op[0], op[1], states(p, M), states(p, N),
                            states(p, K), &p->alpha, m[A].device, m[A].ld,
                            m[B].device, m[B].ld, &p->beta, m[C].device,
                            m[C].ld);
  return (int)cublasSgemmStridedBatched(
      blas, op[0], op[1], states(p, M), states(p, N), states(p, K), &p->alpha,
      m[A].device, m[A].ld, m[A].between, m[B].device, m[B].ld, m[B].between,
      &p->beta, m[C].device, m[C].ld, m[C].between, states(p, BATCH));
}

/* Returns false if the call states a piece of a dimension that C has in full:
 * the result would be larger than the call says. */
static int result_fits(const product_t *p) {
  for (int d = 0; d < DIMS; d++)
    if (d != K && p->cut[d] && !p->states_whole[d] && p->where[C] != d)
      return 0;
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 2;
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  int cases = atoi(argv[4]), bad = 0, failed = 0;
  __typeof__(&sundog_tag_range) tag =
      (__typeof__(&sundog_tag_range))dlsym(RTLD_DEFAULT, "sundog_tag_range");
  if (!tag || ranks > RANKS_MAX || cublasCreate(&blas))
    return 2;
  for (int i = 0; i < cases; i++) {
    product_t p;
    matrix_t m[MATRICES];
    char label[LABEL + 128];
    seed = (unsigned long long)(atoll(argv[3]) + i) * 2654435761u + 12345;
    for (int k = 0; k < 4; k++)
      draw(0, 1);
    product_draw(&p);
    int all = label_make(&p, label);
    if (strlen(label) > LABEL)
      continue; /* too long for a tag */
    for (int k = 0; k < MATRICES; k++)
      matrix_make(&p, k, &m[k]);
    int tagged = tag(m[C].device, (size_t)m[C].count * sizeof(float), label);
    int status = tagged ? tagged : call(&p, m);
    int wrong = wrong_count(&p, &m[C], status != 0);
    int unasked = status != 0 && all && result_fits(&p);
    printf("case %d %s: %s%s\n", i, label, status ? "refused" : "done",
           unasked ? ", all was said" : "");
    if (wrong)
      fprintf(stderr, "case %d rank %d: %d wrong, M %d N %d K %d\n", i, rank,
              wrong, p.whole[M], p.whole[N], p.whole[K]);
    bad += wrong != 0 || unasked;
    failed += status != 0;
    tag(m[C].device, (size_t)m[C].count * sizeof(float), NULL);
    for (int k = 0; k < MATRICES; k++)
      matrix_free(&m[k]);
  }
  printf("%d cases, %d refused, %d bad\n", cases, failed, bad);
  return bad != 0;
}
