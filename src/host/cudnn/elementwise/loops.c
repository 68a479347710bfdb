// SPDX-License-Identifier: Apache-2.0
// Element by element work on tensors of any strides. Compiled without
// contraction of a * b + c, so that dense and strided paths round the same way.
#include "src/host/cudnn/elementwise/loops.h"

#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/independent.h"
#include "src/host/cudnn/base/view.h"

// Every expression is written twice: the version for dense operands vectorises.
// No iteration reads what another writes.
#define EACH(T, expression)                                                    \
  do {                                                                         \
    if (dense) {                                                               \
      HOST_INDEPENDENT for (int64_t i = 0; i < count; i++) {                   \
        const T a = pa[i], b = pb[i], c = pc[i];                               \
        (void)a, (void)b, (void)c;                                             \
        T r = (expression);                                                    \
        y[i] = blend ? r + beta * y[i] : r;                                    \
      }                                                                        \
    } else {                                                                   \
      for (int64_t i = 0; i < count; i++) {                                    \
        const T a = pa[i * sa], b = pb[i * sb], c = pc[i * sc];                \
        (void)a, (void)b, (void)c;                                             \
        T r = (expression);                                                    \
        y[i * sy] = blend ? r + beta * y[i * sy] : r;                          \
      }                                                                        \
    }                                                                          \
  } while (0)

// alpha multiplies the result of an activation.
#define SCALED(T, expression) EACH(T, alpha *(expression))

#define LOOPS(T, F)                                                            \
  static inline T minimum_##T(T a, T b, bool nan) {                            \
    if (a != a || b != b)                                                      \
      return nan ? a + b : (a != a ? b : a);                                   \
    return b < a ? b : a;                                                      \
  }                                                                            \
  static inline T maximum_##T(T a, T b, bool nan) {                            \
    if (a != a || b != b)                                                      \
      return nan ? a + b : (a != a ? b : a);                                   \
    return b > a ? b : a;                                                      \
  }                                                                            \
  static inline T sigmoid_##T(T x) {                                           \
    return 1 / (1 + exp##F(-x));                                               \
  }                                                                            \
  static inline T swish_gradient_##T(T x, T slope) {                           \
    T s = sigmoid_##T(slope * x);                                              \
    return s + slope * x * s * (1 - s);                                        \
  }                                                                            \
  static void run_##T(const host_loop_t *loop, int64_t count, T *y,            \
                      const T *pa, const T *pb, const T *pc,                   \
                      const int64_t step[HOST_LOOP_OPERANDS]) {                \
    const int64_t sy = step[0], sa = step[1], sb = step[2], sc = step[3];      \
    const bool dense = sy == 1 && sa == 1 && sb == 1 && sc == 1;               \
    const T alpha = (T)loop->alpha, alpha2 = (T)loop->alpha2;                  \
    const T beta = (T)loop->beta;                                              \
    const bool blend = loop->beta != 0, nan = loop->propagate_nan;             \
    const T coefficient = (T)loop->activation.coefficient;                     \
    const T slope = (T)loop->activation.swish_beta;                            \
    switch (loop->kind) {                                                      \
    case HOST_LOOP_BLEND:                                                      \
      EACH(T, alpha *a);                                                       \
      return;                                                                  \
    case HOST_LOOP_SET:                                                        \
      return; /* other types are set by bytes elsewhere */                     \
    case HOST_LOOP_OP:                                                         \
      switch (loop->op) {                                                      \
      case CUDNN_OP_TENSOR_ADD:                                                \
        EACH(T, alpha *a + alpha2 * b);                                        \
        return;                                                                \
      case CUDNN_OP_TENSOR_MUL:                                                \
        EACH(T, alpha *a *(alpha2 * b));                                       \
        return;                                                                \
      case CUDNN_OP_TENSOR_MIN:                                                \
        EACH(T, minimum_##T(alpha *a, alpha2 *b, nan));                        \
        return;                                                                \
      case CUDNN_OP_TENSOR_MAX:                                                \
        EACH(T, maximum_##T(alpha *a, alpha2 *b, nan));                        \
        return;                                                                \
      case CUDNN_OP_TENSOR_SQRT:                                               \
        EACH(T, sqrt##F(alpha *a));                                            \
        return;                                                                \
      case CUDNN_OP_TENSOR_NOT:                                                \
        EACH(T, 1 - alpha * a);                                                \
        return;                                                                \
      }                                                                        \
      return;                                                                  \
    case HOST_LOOP_FORWARD:                                                    \
      switch (loop->activation.mode) {                                         \
      case CUDNN_ACTIVATION_SIGMOID:                                           \
        SCALED(T, sigmoid_##T(a));                                             \
        return;                                                                \
      case CUDNN_ACTIVATION_RELU:                                              \
        SCALED(T, a > 0 || (nan && a != a) ? a : 0);                           \
        return;                                                                \
      case CUDNN_ACTIVATION_TANH:                                              \
        SCALED(T, tanh##F(a));                                                 \
        return;                                                                \
      case CUDNN_ACTIVATION_CLIPPED_RELU:                                      \
        SCALED(T, nan &&a != a      ? a                                        \
                  : a > coefficient ? coefficient                              \
                  : a > 0           ? a                                        \
                                    : 0);                                                \
        return;                                                                \
      case CUDNN_ACTIVATION_ELU:                                               \
        SCALED(T, a > 0 ? a : coefficient * expm1##F(a));                      \
        return;                                                                \
      case CUDNN_ACTIVATION_SWISH:                                             \
        SCALED(T, a *sigmoid_##T(slope *a));                                   \
        return;                                                                \
      case CUDNN_ACTIVATION_IDENTITY:                                          \
        SCALED(T, a);                                                          \
        return;                                                                \
      }                                                                        \
      return;                                                                  \
    case HOST_LOOP_BACKWARD:                                                   \
      switch (loop->activation.mode) {                                         \
      case CUDNN_ACTIVATION_SIGMOID:                                           \
        SCALED(T, b *a *(1 - a));                                              \
        return;                                                                \
      case CUDNN_ACTIVATION_RELU:                                              \
        SCALED(T, c > 0 ? b : (nan && c != c ? c : 0));                        \
        return;                                                                \
      case CUDNN_ACTIVATION_TANH:                                              \
        SCALED(T, b *(1 - a * a));                                             \
        return;                                                                \
      case CUDNN_ACTIVATION_CLIPPED_RELU:                                      \
        SCALED(T, c > 0 && c < coefficient ? b : (nan && c != c ? c : 0));     \
        return;                                                                \
      case CUDNN_ACTIVATION_ELU:                                               \
        SCALED(T, c > 0 ? b : b * (a + coefficient));                          \
        return;                                                                \
      case CUDNN_ACTIVATION_SWISH:                                             \
        SCALED(T, b *swish_gradient_##T(c, slope));                            \
        return;                                                                \
      case CUDNN_ACTIVATION_IDENTITY:                                          \
        SCALED(T, b);                                                          \
        return;                                                                \
      }                                                                        \
    }                                                                          \
  }
LOOPS(float, f)
LOOPS(double, )

static void run_set(const host_loop_t *loop, int64_t count, char *y,
                    int64_t step) {
  size_t bytes = loop->value_bytes;
  for (int64_t i = 0; i < count; i++)
    memcpy(y + i * step * (int64_t)bytes, loop->value, bytes);
}

static void swap(host_loop_t *loop, int i, int j) {
  int64_t keep = loop->extent[i];
  loop->extent[i] = loop->extent[j];
  loop->extent[j] = keep;
  for (int o = 0; o < loop->operands; o++) {
    keep = loop->stride[o][i];
    loop->stride[o][i] = loop->stride[o][j];
    loop->stride[o][j] = keep;
  }
}

static bool mergeable(const host_loop_t *loop, int i) {
  for (int o = 0; o < loop->operands; o++)
    if (loop->stride[o][i] != loop->stride[o][i + 1] * loop->extent[i + 1])
      return false;
  return true;
}

// Drops extents of 1, puts y's smallest stride innermost and merges dimensions
// that are contiguous for all operands. The order of elements does not matter,
// because they are independent.
static void simplify(host_loop_t *loop) {
  int rank = 0;
  for (int i = 0; i < loop->rank; i++)
    if (loop->extent[i] != 1)
      swap(loop, rank++, i);
  loop->rank = rank;
  for (int i = 1; i < rank; i++)
    for (int j = i; j > 0 && loop->stride[HOST_LOOP_Y][j - 1] <
                                 loop->stride[HOST_LOOP_Y][j];
         j--)
      swap(loop, j - 1, j);
  for (int i = loop->rank - 2; i >= 0; i--) {
    if (!mergeable(loop, i))
      continue;
    loop->extent[i] *= loop->extent[i + 1];
    for (int o = 0; o < loop->operands; o++)
      loop->stride[o][i] = loop->stride[o][i + 1];
    for (int j = i + 1; j + 1 < loop->rank; j++)
      swap(loop, j, j + 1);
    loop->rank--;
  }
  if (loop->rank == 0) {
    loop->rank = 1;
    loop->extent[0] = 1;
    for (int o = 0; o < loop->operands; o++)
      loop->stride[o][0] = 1;
  }
}

static bool all(const host_loop_t *loop, cudnnDataType_t type) {
  for (int o = 0; o < HOST_LOOP_OPERANDS; o++)
    if (loop->type[o] != type)
      return false;
  return true;
}

static int64_t bytes_of(const host_loop_t *loop, int o) {
  return loop->kind == HOST_LOOP_SET ? (int64_t)loop->value_bytes
                                     : (int64_t)host_type_bytes(loop->type[o]);
}

// Elements converted or repeated at once.
enum { HOST_CHUNK = 512 };

// Any types, converted to double.
static void run_mixed(const host_loop_t *loop, int64_t count,
                      char *const data[HOST_LOOP_OPERANDS],
                      const int64_t step[HOST_LOOP_OPERANDS]) {
  double room[HOST_LOOP_OPERANDS][HOST_CHUNK];
  const int64_t ones[HOST_LOOP_OPERANDS] = {1, 1, 1, 1};
  for (int64_t i = 0; i < count; i += HOST_CHUNK) {
    int64_t part = count - i < HOST_CHUNK ? count - i : HOST_CHUNK;
    char *at[HOST_LOOP_OPERANDS];
    for (int o = 0; o < HOST_LOOP_OPERANDS; o++) {
      at[o] = data[o] + i * step[o] * bytes_of(loop, o);
      if (o != HOST_LOOP_Y || loop->beta != 0)
        host_elements_load(loop->type[o], at[o], step[o], part, room[o]);
    }
    run_double(loop, part, room[0], room[1], room[2], room[3], ones);
    host_elements_store(loop->type[0], at[0], step[0], part, 1, room[0], 0);
  }
}

static void run_typed(const host_loop_t *loop, int64_t count,
                      char *const data[HOST_LOOP_OPERANDS],
                      const int64_t step[HOST_LOOP_OPERANDS]) {
  if (loop->kind == HOST_LOOP_SET)
    run_set(loop, count, data[0], step[0]);
  else if (all(loop, CUDNN_DATA_DOUBLE))
    run_double(loop, count, (double *)data[0], (double *)data[1],
               (double *)data[2], (double *)data[3], step);
  else if (all(loop, CUDNN_DATA_FLOAT))
    run_float(loop, count, (float *)data[0], (float *)data[1], (float *)data[2],
              (float *)data[3], step);
  else
    run_mixed(loop, count, data, step);
}

static void spread(char *to, const char *value, size_t bytes, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    memcpy(to + i * (int64_t)bytes, value, bytes);
}

// A contiguous row of y. Operands that repeat one value are written out, so
// that the dense loops can be used.
static void run_row(const host_loop_t *loop, int64_t count,
                    char *const data[HOST_LOOP_OPERANDS],
                    const int64_t step[HOST_LOOP_OPERANDS]) {
  bool dense = step[0] == 1 && count > 8;
  for (int o = 1; o < HOST_LOOP_OPERANDS; o++)
    dense &= step[o] == 0 || step[o] == 1;
  dense &= all(loop, CUDNN_DATA_FLOAT) || all(loop, CUDNN_DATA_DOUBLE);
  if (loop->kind == HOST_LOOP_SET || !dense) {
    run_typed(loop, count, data, step);
    return;
  }
  _Alignas(64) char room[HOST_LOOP_OPERANDS][HOST_CHUNK * sizeof(double)];
  const int64_t ones[HOST_LOOP_OPERANDS] = {1, 1, 1, 1};
  int64_t bytes = bytes_of(loop, HOST_LOOP_Y);
  bool repeats = false;
  char *part[HOST_LOOP_OPERANDS];
  for (int o = 0; o < HOST_LOOP_OPERANDS; o++) {
    part[o] = data[o];
    if (step[o])
      continue;
    repeats = true;
    part[o] = room[o];
    spread(room[o], data[o], (size_t)bytes,
           count < HOST_CHUNK ? count : HOST_CHUNK);
  }
  int64_t unit = repeats ? HOST_CHUNK : count;
  for (int64_t i = 0; i < count; i += unit) {
    run_typed(loop, count - i < unit ? count - i : unit, part, ones);
    for (int o = 0; o < HOST_LOOP_OPERANDS; o++)
      part[o] += step[o] * unit * bytes;
  }
}

static void run(const host_loop_t *loop, const int64_t at[HOST_LOOP_OPERANDS],
                int64_t count, const int64_t step[HOST_LOOP_OPERANDS]) {
  char *data[HOST_LOOP_OPERANDS];
  for (int o = 0; o < HOST_LOOP_OPERANDS; o++)
    data[o] = (char *)loop->data[o] + at[o] * bytes_of(loop, o);
  run_row(loop, count, data, step);
}

bool host_loop_run(host_loop_t *loop) {
  // Operands that an expression ignores get the address of one that it has.
  for (int o = loop->operands; o < HOST_LOOP_OPERANDS; o++) {
    int twin = loop->operands > 1 ? HOST_LOOP_A : HOST_LOOP_Y;
    loop->data[o] = loop->data[twin];
    loop->type[o] = loop->type[twin];
    memcpy(loop->stride[o], loop->stride[twin], sizeof loop->stride[o]);
  }
  loop->operands = HOST_LOOP_OPERANDS;
  simplify(loop);
  int inner = loop->rank - 1;
  int64_t step[HOST_LOOP_OPERANDS], at[HOST_LOOP_OPERANDS] = {0};
  int64_t index[CUDNN_DIM_MAX] = {0};
  for (int o = 0; o < HOST_LOOP_OPERANDS; o++)
    step[o] = loop->stride[o][inner];
  for (;;) {
    run(loop, at, loop->extent[inner], step);
    int d = inner - 1;
    for (; d >= 0; d--) {
      for (int o = 0; o < HOST_LOOP_OPERANDS; o++)
        at[o] += loop->stride[o][d];
      if (++index[d] < loop->extent[d])
        break;
      for (int o = 0; o < HOST_LOOP_OPERANDS; o++)
        at[o] -= loop->stride[o][d] * loop->extent[d];
      index[d] = 0;
    }
    if (d < 0)
      return true;
  }
}
