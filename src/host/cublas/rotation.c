// SPDX-License-Identifier: Apache-2.0
// Rotations of pairs of numbers: rotg and rotmg construct them, rotm applies a
// modified one to vectors. As in "Basic Linear Algebra Subprograms for Fortran
// Usage" (Lawson, Hanson, Kincaid, Krogh, 1979), on which BLAS agrees.
#include <math.h>

#include "src/host/cublas/blas.h"

// A modified rotation: its flag, and h11 h21 h12 h22, of which the flag says
// some: -1 none, 0 that the diagonal is 1, 1 that the other one is 1 and -1, -2
// all of them.
enum { FLAG, H11, H21, H12, H22, PARAMETERS };

// ---- rotm -------------------------------------------------------------------

typedef struct turn {
  int64_t n;
  host_vector_t x, y;
  const void *device; // the parameters; NULL: they are in `h`
  double h[PARAMETERS];
} turn_t;

static void numbers_load(const void *at, cudaDataType type, double *out) {
  for (int i = 0; i < PARAMETERS; i++)
    out[i] = host_element_load(at, type, i);
}

static void complete(double *h) {
  if (h[FLAG] == -2 || h[FLAG] == 0)
    h[H11] = h[H22] = 1;
  if (h[FLAG] == -2)
    h[H12] = h[H21] = 0;
  if (h[FLAG] == 1) {
    h[H12] = 1;
    h[H21] = -1;
  }
}

static cudaError_t turn_run(void *argument) {
  turn_t *turn = argument;
  cudaDataType type = turn->x.type;
  if (turn->device)
    numbers_load(turn->device, type, turn->h);
  const double *h = turn->h;
  if (h[FLAG] == -2)
    return cudaSuccess;
  complete(turn->h);
  for (int64_t i = 0; i < turn->n; i++) {
    int64_t at_x = i * turn->x.increment, at_y = i * turn->y.increment;
    double x = host_element_load(turn->x.at, type, at_x);
    double y = host_element_load(turn->y.at, type, at_y);
    host_element_store(turn->x.at, type, at_x, h[H11] * x + h[H12] * y);
    host_element_store(turn->y.at, type, at_y, h[H21] * x + h[H22] * y);
  }
  return cudaSuccess;
}

static cublasStatus_t turn(cublasHandle_t handle, int64_t n, void *x,
                           int64_t incx, void *y, int64_t incy,
                           const void *param, cudaDataType type) {
  turn_t turn = {.n = n};
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0)
    return CUBLAS_STATUS_SUCCESS;
  if (!param)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST)
    numbers_load(param, type, turn.h);
  else
    turn.device =
        host_memory_resolve(param, PARAMETERS * host_type_bytes(type));
  if ((handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE && !turn.device) ||
      !host_vector_resolve(n, x, type, incx, &turn.x) ||
      !host_vector_resolve(n, y, type, incy, &turn.y))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_blas_submit(handle, turn_run, &turn, sizeof turn);
}

// ---- rotg and rotmg ---------------------------------------------------------

enum { NUMBERS = 5 };

// Numbers that are read and written where the handle says: a b c s, or d1 d2 x1
// y1 and the parameters.
typedef struct make {
  void (*make)(const struct make *job);
  cudaDataType type, type_c;
  void *at[NUMBERS];
} make_t;

static double number(const make_t *job, int i) {
  return host_element_load(job->at[i], job->type, 0);
}

static void number_put(const make_t *job, int i, double value) {
  host_element_store(job->at[i], job->type, 0, value);
}

static void real_make(const make_t *job) {
  double a = number(job, 0), b = number(job, 1);
  double size = hypot(a, b), c = 1, s = 0, z = 0;
  double r = copysign(size, fabs(a) > fabs(b) ? a : b);
  if (size != 0) {
    c = a / r;
    s = b / r;
    z = fabs(a) > fabs(b) ? s : c != 0 ? 1 / c : 1;
  }
  number_put(job, 0, size == 0 ? 0 : r);
  number_put(job, 1, z);
  number_put(job, 2, c);
  number_put(job, 3, s);
}

static void complex_make(const make_t *job) {
  host_number_t a = host_number_load(job->at[0], job->type, 0);
  host_number_t b = host_number_load(job->at[1], job->type, 0);
  double size = hypot(cabs(a), cabs(b)), c = 0;
  host_number_t s = 1, r = b;
  if (cabs(a) != 0) {
    host_number_t direction = a / cabs(a);
    c = cabs(a) / size;
    s = direction * conj(b) / size;
    r = direction * size;
  }
  host_number_store(job->at[0], job->type, 0, r);
  host_element_store(job->at[2], job->type_c, 0, c);
  host_number_store(job->at[3], job->type, 0, s);
}

// Keeps d, whose square roots scale the pair, between 4096^-2 and 4096^2: a row
// of the rotation is multiplied by what d is divided by.
static void rescale(double *d, double *h, int diagonal, int beside,
                    double *x1) {
  const double step = 4096, square = step * step;
  while (*d != 0 && (fabs(*d) <= 1 / square || fabs(*d) >= square)) {
    double by = fabs(*d) <= 1 / square ? 1 / step : step;
    complete(h);
    h[FLAG] = -1;
    *d /= by * by;
    h[diagonal] *= by;
    h[beside] *= by;
    if (x1)
      *x1 *= by;
  }
}

// The rotation of (sqrt(d1) x1, sqrt(d2) y1) that makes the second one 0.
static void modified_make(const make_t *job) {
  double d1 = number(job, 0), d2 = number(job, 1), x1 = number(job, 2);
  double y1 = number(job, 3), h[PARAMETERS] = {-1};
  double p1 = d1 * x1, p2 = d2 * y1, q1 = p1 * x1, q2 = p2 * y1;
  bool none = p2 == 0;
  if (!none && (d1 < 0 || (fabs(q1) <= fabs(q2) && q2 < 0))) {
    d1 = d2 = x1 = 0; // the pair has no such rotation
  } else if (!none && fabs(q1) > fabs(q2)) {
    h[FLAG] = 0;
    h[H21] = -y1 / x1;
    h[H12] = p2 / p1;
    double u = 1 - h[H12] * h[H21];
    d1 /= u;
    d2 /= u;
    x1 *= u;
  } else if (!none) {
    h[FLAG] = 1;
    h[H11] = p1 / p2;
    h[H22] = x1 / y1;
    double u = 1 + h[H11] * h[H22], d = d1;
    d1 = d2 / u;
    d2 = d / u;
    x1 = y1 * u;
  }
  if (none && d1 >= 0)
    h[FLAG] = -2;
  if (h[FLAG] == -2) {
    host_element_store(job->at[4], job->type, FLAG, -2);
    return;
  }
  if (none)
    d1 = d2 = x1 = 0;
  rescale(&d1, h, H11, H12, &x1);
  rescale(&d2, h, H21, H22, NULL);
  number_put(job, 0, d1);
  number_put(job, 1, d2);
  number_put(job, 2, x1);
  // What the flag says is not stored.
  for (int i = FLAG; i < PARAMETERS; i++)
    if (i == FLAG || h[FLAG] == -1 || (h[FLAG] == 0) == (i == H21 || i == H12))
      host_element_store(job->at[4], job->type, i, h[i]);
}

static cudaError_t make_run(void *argument) {
  const make_t *job = argument;
  job->make(job);
  return cudaSuccess;
}

// `counts` elements of `types` at each address.
static cublasStatus_t make(cublasHandle_t handle, make_t job, int numbers,
                           int last) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  for (int i = 0; i < numbers; i++)
    if (!job.at[i])
      return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST)
    return make_run(&job) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                         : CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < numbers; i++) {
    size_t each = host_type_bytes(i == 2 ? job.type_c : job.type);
    size_t count = i == numbers - 1 ? (size_t)last : 1;
    job.at[i] = host_memory_resolve(job.at[i], count * each);
    if (!job.at[i])
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return host_blas_submit(handle, make_run, &job, sizeof job);
}

// ---- the functions ----------------------------------------------------------

#define TURN(name, type, code, integer)                                        \
  cublasStatus_t name(cublasHandle_t handle, integer n, type *x, integer incx, \
                      type *y, integer incy, const type *param) {              \
    return turn(handle, n, x, incx, y, incy, param, code);                     \
  }
TURN(cublasSrotm_v2, float, CUDA_R_32F, int)
TURN(cublasDrotm_v2, double, CUDA_R_64F, int)
TURN(cublasSrotm_v2_64, float, CUDA_R_32F, int64_t)
TURN(cublasDrotm_v2_64, double, CUDA_R_64F, int64_t)

#define MAKE(name, function, type, code, real, real_code)                      \
  cublasStatus_t name(cublasHandle_t handle, type *a, type *b, real *c,        \
                      type *s) {                                               \
    return make(handle, (make_t){function, code, real_code, {a, b, c, s}}, 4,  \
                1);                                                            \
  }
MAKE(cublasSrotg_v2, real_make, float, CUDA_R_32F, float, CUDA_R_32F)
MAKE(cublasDrotg_v2, real_make, double, CUDA_R_64F, double, CUDA_R_64F)
MAKE(cublasCrotg_v2, complex_make, cuComplex, CUDA_C_32F, float, CUDA_R_32F)
MAKE(cublasZrotg_v2, complex_make, cuDoubleComplex, CUDA_C_64F, double,
     CUDA_R_64F)

#define MODIFY(name, number, code)                                             \
  cublasStatus_t name(cublasHandle_t handle, number *d1, number *d2,           \
                      number *x1, const number *y1, number *param) {           \
    return make(handle,                                                        \
                (make_t){modified_make,                                        \
                         code,                                                 \
                         code,                                                 \
                         {d1, d2, x1, (void *)(uintptr_t)y1, param}},          \
                NUMBERS, PARAMETERS);                                          \
  }
MODIFY(cublasSrotmg_v2, float, CUDA_R_32F)
MODIFY(cublasDrotmg_v2, double, CUDA_R_64F)
