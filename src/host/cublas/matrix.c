// SPDX-License-Identifier: Apache-2.0
// Carries out operations on symmetric, triangular and other matrices of any
// type: plain loops with sums in double.
#include "src/host/cublas/matrix.h"

#include <stdlib.h>

/* The matrices of one element of the batch. */
typedef struct place {
  const host_matrix_job_t *job;
  const void *a, *b;
  void *c;
  host_number_t alpha, beta;
  host_number_t *row; /* scratch for max(m, n) numbers */
} place_t;

static host_number_t at(const host_matrix_t *matrix, const void *from,
                        int64_t i, int64_t j) {
  return host_number_load(from, matrix->type, j * matrix->ld + i);
}

static host_number_t op_at(const host_matrix_t *matrix, const void *from,
                           cublasOperation_t op, int64_t i, int64_t j) {
  host_number_t value =
      host_op_turns(op) ? at(matrix, from, j, i) : at(matrix, from, i, j);
  return op == CUBLAS_OP_C || op == CUBLAS_OP_CONJG ? conj(value) : value;
}

static void put(const place_t *p, int64_t i, int64_t j, host_number_t value) {
  host_number_store(p->c, p->job->c.type, j * p->job->c.ld + i, value);
}

/* beta C, which is not read if beta is 0. */
static host_number_t old(const place_t *p, int64_t i, int64_t j) {
  return p->beta == 0 ? 0 : p->beta * at(&p->job->c, p->c, i, j);
}

/* Element of A of which half is stored. */
static host_number_t half_at(const place_t *p, int64_t i, int64_t j) {
  const host_matrix_job_t *job = p->job;
  if (job->transposed) {
    int64_t swap = i;
    i = j;
    j = swap;
  }
  bool stored = job->lower ? i >= j : i <= j;
  host_number_t value =
      stored ? at(&job->a, p->a, i, j) : at(&job->a, p->a, j, i);
  if (!job->conjugate)
    return value;
  return i == j ? creal(value) : stored ? value : conj(value);
}

/* Element of op(A), A a triangle. */
static host_number_t triangle_at(const place_t *p, int64_t i, int64_t j) {
  const host_matrix_job_t *job = p->job;
  bool turned = host_op_turns(job->op_a);
  int64_t row = turned ? j : i, column = turned ? i : j;
  if (i == j && job->unit)
    return 1;
  if (job->lower ? row < column : row > column)
    return 0;
  return op_at(&job->a, p->a, job->op_a, i, j);
}

static void add_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  for (int64_t j = 0; j < job->n; j++)
    for (int64_t i = 0; i < job->m; i++)
      put(p, i, j,
          (p->alpha == 0 ? 0
                         : p->alpha * op_at(&job->a, p->a, job->op_a, i, j)) +
              (p->beta == 0 ? 0
                            : p->beta * op_at(&job->b, p->b, job->op_b, i, j)));
}

static void scale_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  for (int64_t j = 0; j < job->n; j++)
    for (int64_t i = 0; i < job->m; i++)
      put(p, i, j,
          at(&job->a, p->a, i, j) * at(&job->b, p->b, 0, job->right ? j : i));
}

/* (op(from) op(to)')(i, j) */
static host_number_t rank_sum(const place_t *p, const host_matrix_t *left,
                              const void *from, const host_matrix_t *right,
                              const void *to, int64_t i, int64_t j) {
  const host_matrix_job_t *job = p->job;
  host_number_t sum = 0;
  for (int64_t k = 0; k < job->k; k++) {
    host_number_t other = op_at(right, to, job->op_a, j, k);
    sum += op_at(left, from, job->op_a, i, k) *
           (job->conjugate ? conj(other) : other);
  }
  return sum;
}

static void rank_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  const host_matrix_t *a = &job->a, *b = &job->b;
  host_number_t alpha = job->conjugate ? conj(p->alpha) : p->alpha;
  for (int64_t j = 0; j < job->n; j++) {
    int64_t first = job->lower ? j : 0, end = job->lower ? job->n : j + 1;
    for (int64_t i = first; i < end; i++) {
      host_number_t value = old(p, i, j);
      if (p->alpha != 0 && !job->two)
        value += p->alpha * rank_sum(p, a, p->a, a, p->a, i, j);
      else if (p->alpha != 0)
        value += p->alpha * rank_sum(p, a, p->a, b, p->b, i, j) +
                 alpha * rank_sum(p, b, p->b, a, p->a, i, j);
      put(p, i, j, job->conjugate && i == j ? creal(value) : value);
    }
  }
}

static void half_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  int64_t length = p->alpha == 0 ? 0 : job->right ? job->n : job->m;
  for (int64_t j = 0; j < job->n; j++)
    for (int64_t i = 0; i < job->m; i++) {
      host_number_t sum = 0;
      for (int64_t k = 0; k < length; k++)
        sum += job->right ? at(&job->b, p->b, i, k) * half_at(p, k, j)
                          : half_at(p, i, k) * at(&job->b, p->b, k, j);
      put(p, i, j, (length ? p->alpha * sum : 0) + old(p, i, j));
    }
}

/* B may be C: a row or column is kept until it has been used. */
static void triangle_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  int64_t lines = job->right ? job->m : job->n;
  int64_t length = job->right ? job->n : job->m;
  for (int64_t line = 0; line < lines; line++) {
    for (int64_t i = 0; i < length; i++)
      p->row[i] = p->alpha == 0 ? 0
                  : job->right  ? at(&job->b, p->b, line, i)
                                : at(&job->b, p->b, i, line);
    for (int64_t i = 0; i < length; i++) {
      host_number_t sum = 0;
      for (int64_t k = 0; p->alpha != 0 && k < length; k++)
        sum += (job->right ? triangle_at(p, k, i) : triangle_at(p, i, k)) *
               p->row[k];
      if (job->right)
        put(p, line, i, p->alpha * sum);
      else
        put(p, i, line, p->alpha * sum);
    }
  }
}

/* Substitutes from the end at which the triangle has its point. */
static void solve_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  int64_t lines = job->right ? job->m : job->n;
  int64_t length = job->right ? job->n : job->m;
  bool lower = job->lower != host_op_turns(job->op_a);
  bool upward = job->right ? !lower : lower;
  for (int64_t line = 0; line < lines; line++)
    for (int64_t step = 0; step < length; step++) {
      int64_t i = upward ? step : length - 1 - step;
      host_number_t value =
          p->alpha == 0 ? 0
                        : p->alpha * (job->right ? at(&job->c, p->c, line, i)
                                                 : at(&job->c, p->c, i, line));
      for (int64_t done = 0; p->alpha != 0 && done < step; done++) {
        int64_t k = upward ? done : length - 1 - done;
        value -= job->right ? p->row[k] * triangle_at(p, k, i)
                            : triangle_at(p, i, k) * p->row[k];
      }
      p->row[i] = p->alpha == 0 ? 0 : value / triangle_at(p, i, i);
      if (job->right)
        put(p, line, i, p->row[i]);
      else
        put(p, i, line, p->row[i]);
    }
}

static void outer_run(const place_t *p) {
  const host_matrix_job_t *job = p->job;
  for (int64_t j = 0; j < job->n; j++) {
    host_number_t y = at(&job->b, p->b, 0, j);
    host_number_t factor = p->alpha * (job->conjugate ? conj(y) : y);
    for (int64_t i = 0; i < job->m; i++)
      put(p, i, j, at(&job->c, p->c, i, j) + at(&job->a, p->a, 0, i) * factor);
  }
}

void host_matrix_shape_a(const host_matrix_job_t *job, int64_t *out_rows,
                         int64_t *out_columns) {
  bool turned = host_op_turns(job->op_a);
  int64_t rows = job->m, columns = job->n;
  if (job->kind == HOST_RANK)
    columns = job->k;
  if (job->kind == HOST_SYMM || job->kind == HOST_TRMM ||
      job->kind == HOST_TRSM)
    rows = columns = job->right ? job->n : job->m;
  if (job->kind == HOST_GER) {
    rows = 1;
    columns = job->m;
  }
  *out_rows = turned ? columns : rows;
  *out_columns = turned ? rows : columns;
}

void host_matrix_shape_b(const host_matrix_job_t *job, int64_t *out_rows,
                         int64_t *out_columns) {
  *out_rows = job->m;
  *out_columns = job->n;
  if (job->kind == HOST_RANK)
    host_matrix_shape_a(job, out_rows, out_columns);
  if (job->kind == HOST_GEAM && host_op_turns(job->op_b)) {
    *out_rows = job->n;
    *out_columns = job->m;
  }
  if (job->kind == HOST_DGMM || job->kind == HOST_GER) {
    *out_rows = 1;
    *out_columns = job->kind == HOST_DGMM && !job->right ? job->m : job->n;
  }
}

cudaError_t host_matrix_run(void *argument) {
  static void (*const runs[])(const place_t *) = {
      [HOST_GEAM] = add_run,      [HOST_DGMM] = scale_run,
      [HOST_RANK] = rank_run,     [HOST_SYMM] = half_run,
      [HOST_TRMM] = triangle_run, [HOST_TRSM] = solve_run,
      [HOST_GER] = outer_run,
  };
  const host_matrix_job_t *job = argument;
  int64_t rows_a, columns_a, rows_b, columns_b;
  host_matrix_shape_a(job, &rows_a, &columns_a);
  host_matrix_shape_b(job, &rows_b, &columns_b);
  place_t p = {.job = job,
               .alpha = host_scalar_get(&job->alpha),
               .beta = host_scalar_get(&job->beta)};
  p.row = malloc((size_t)(job->m + job->n) * sizeof *p.row);
  cudaError_t error = p.row ? cudaSuccess : cudaErrorLaunchFailure;
  for (int64_t i = 0; error == cudaSuccess && i < job->batch; i++) {
    p.a = host_matrix_at(&job->a, i, rows_a, columns_a);
    p.b = job->b.at ? host_matrix_at(&job->b, i, rows_b, columns_b) : NULL;
    p.c = host_matrix_at(&job->c, i, job->m, job->n);
    if (p.a && p.c && (!job->b.at || p.b))
      runs[job->kind](&p);
    else
      error = cudaErrorIllegalAddress;
  }
  free(p.row);
  return error;
}
