// SPDX-License-Identifier: Apache-2.0
// The limits of every function but the convolutions: a table, one line for each
// limit.
#include "src/host/cudnn/model/model.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef bool (*rule_t)(const host_model_call_t *call);

enum {
  F32 = 1 << 0,
  F64 = 1 << 1,
  F16 = 1 << 2,
  BF16 = 1 << 3,
  I8 = 1 << 4,
  I32 = 1 << 5,
  OTHER = 1 << 6, // vectors of integers, 8-bit floats
  ANY = ~0,
};

static int type_of(const host_model_call_t *call, int operand) {
  switch ((int)call->operand[operand].tensor->type) {
  case CUDNN_DATA_FLOAT:
    return F32;
  case CUDNN_DATA_DOUBLE:
    return F64;
  case CUDNN_DATA_HALF:
    return F16;
  case CUDNN_DATA_BFLOAT16:
    return BF16;
  case CUDNN_DATA_INT8:
    return I8;
  case CUDNN_DATA_INT32:
    return I32;
  default:
    return OTHER;
  }
}

static bool has_equal_types(const host_model_call_t *call, int a, int b) {
  return call->operand[a].tensor->type == call->operand[b].tensor->type;
}

// Strides of dimensions of extent 1 count.
static bool equal_strides(const host_model_call_t *call, int a, int b) {
  const struct cudnnTensorStruct *s = call->operand[a].tensor;
  const struct cudnnTensorStruct *t = call->operand[b].tensor;
  return s->rank == t->rank &&
         memcmp(s->stride, t->stride, (size_t)s->rank * sizeof *s->stride) == 0;
}

// ---- rules that need a function --------------------------------------------

static bool transform_types(const host_model_call_t *call) {
  int x = type_of(call, 0), y = type_of(call, 1);
  if (x == OTHER || y == OTHER)
    return true;
  if (x == BF16 || y == BF16)
    return (x | y) == BF16 || (x | y) == (BF16 | F32);
  return x != I32 && y != I32;
}

static bool same_types(const host_model_call_t *call) {
  for (int i = 1; i < call->operands; i++)
    if (call->operand[i].tensor->type != call->operand[0].tensor->type)
      return false;
  return true;
}

// A, B, C; for unary ops B is A.
static bool op_types(const host_model_call_t *call) {
  int a = type_of(call, 0), b = type_of(call, 1), c = type_of(call, 2);
  switch (a) {
  case F32:
    return b == a && (c == F32 || c == F16 || c == BF16);
  case F16:
    return b == a && (c == F16 || c == F32);
  case BF16:
    return b == a && (c == BF16 || c == F32);
  case F64:
    return b == a && c == F64;
  default:
    return false;
  }
}

static bool op_memory(const host_model_call_t *call) {
  const void *a = call->operand[0].data, *b = call->operand[1].data,
             *c = call->operand[2].data;
  bool like_a = equal_strides(call, 0, 2) && has_equal_types(call, 0, 2);
  return (c != a || like_a) && (c != b || b == a);
}

static bool reduce_compute(const host_model_call_t *call) {
  return call->inner == CUDNN_DATA_FLOAT || call->inner == CUDNN_DATA_DOUBLE;
}

static bool all_strides(const host_model_call_t *call) {
  for (int i = 1; i < call->operands; i++)
    if (!equal_strides(call, 0, i))
      return false;
  return true;
}

static bool first_two_strides(const host_model_call_t *call) {
  return equal_strides(call, 0, 1);
}

static bool strides_in_pairs(const host_model_call_t *call) {
  return equal_strides(call, 0, 1) && equal_strides(call, 2, 3);
}

static bool wide_scales(const host_model_call_t *call) {
  return call->inner ==
         (type_of(call, 0) == F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
}

// N H W C in memory, without gaps.
static bool packed_nhwc(const host_model_call_t *call) {
  for (int i = 0; i < call->operands; i++) {
    const struct cudnnTensorStruct *t = call->operand[i].tensor;
    int stride = t->dim[1];
    if (t->rank != 4 || t->stride[1] != 1)
      return false;
    for (int d = 3; d >= 2; stride *= t->dim[d], d--)
      if (t->stride[d] != stride)
        return false;
    if (t->stride[0] != stride)
      return false;
  }
  return true;
}

// Of tensors of 5 dimensions only.
static bool packed_volumes(const host_model_call_t *call) {
  for (int i = 0; i < call->operands; i++) {
    const struct cudnnTensorStruct *t = call->operand[i].tensor;
    int stride = 1;
    for (int d = 4; t->rank == 5 && d >= 2; stride *= t->dim[d], d--)
      if (t->stride[d] != stride)
        return false;
  }
  return true;
}

// ---- the table -------------------------------------------------------------

typedef struct {
  const char *function;
  int low, high; // dimensions of a tensor
  int types;     // of every tensor
  rule_t rule;   // or NULL
  const char *text;
} limit_t;

static const limit_t limits[] = {
    {"cudnnTransformTensor", 2, 8, ANY, transform_types,
     "two types of f32 f64 f16 i8, or bf16 and f32, or bf16 twice"},
    {"cudnnAddTensor", 4, 5, F32 | F64 | F16 | BF16 | I8, same_types,
     "4 or 5 dimensions; one type: f32 f64 f16 bf16 i8"},
    {"cudnnOpTensor", 4, 5, F32 | F64 | F16 | BF16, op_types,
     "4 or 5 dimensions; A and B have one type, and C has it, too; or C is "
     "f16 or bf16 for f32, f32 for f16 or bf16"},
    {"cudnnOpTensor", 0, 8, ANY, op_memory,
     "C in the memory of A if their descriptors are equal, and never in that "
     "of B"},
    {"cudnnSetTensor", 4, 5, F32 | F64 | F16 | BF16 | I8, NULL,
     "4 or 5 dimensions; types f32 f64 f16 bf16 i8"},
    {"cudnnScaleTensor", 4, 5, F32 | F64 | F16 | BF16 | I8, NULL,
     "4 or 5 dimensions; types f32 f64 f16 bf16 i8"},
    {"cudnnReduceTensor", 3, 8, F32 | F64 | F16, reduce_compute,
     "3 to 8 dimensions; types f32 f64 f16, not bf16; computed in f32 or f64"},
    {"cudnnSoftmaxForward", 3, 8, F32 | F64 | F16 | BF16, NULL,
     "3 to 8 dimensions; types f32 f64 f16 bf16"},
    {"cudnnSoftmaxBackward", 3, 8, F32 | F64 | F16 | BF16, first_two_strides,
     "3 to 8 dimensions; y and dy have equal strides"},
    {"cudnnActivationForward", 3, 8, ANY, NULL, "3 to 8 dimensions"},
    {"cudnnActivationBackward", 3, 8, ANY, all_strides,
     "3 to 8 dimensions; y, dy, x and dx have equal strides"},
    {"cudnnPoolingForward", 4, 5, ANY, NULL, "4 or 5 dimensions"},
    {"cudnnPoolingBackward", 4, 5, ANY, strides_in_pairs,
     "4 or 5 dimensions; y and dy have equal strides, and x and dx"},
    {"cudnnBatchNormalization", 4, 5, F32 | F64 | F16 | BF16, wide_scales,
     "4 or 5 dimensions; types f32 f64 f16 bf16, with scales in f32 (of f64 in "
     "f64)"},
    {"cudnnBatchNormalization with an activation", 4, 4, F16, wide_scales,
     "scales in f32"},
    {"cudnnBatchNormalization with an activation", 4, 4, F16, packed_nhwc,
     "packed NHWC tensors in half"},
    {"cudnnLRNCrossChannel", 4, 5, F32 | F64 | F16, packed_volumes,
     "4 or 5 dimensions; no bf16; of 5 dimensions D H W are packed"},
    {"cudnnConvolutionBackwardBias", 4, 6, F32 | F64 | F16, NULL,
     "4 to 6 dimensions; types f32 f64 f16, not bf16"},
};
enum { LIMITS = sizeof limits / sizeof *limits };

static bool within(const limit_t *limit, const host_model_call_t *call) {
  for (int i = 0; i < call->operands; i++) {
    int rank = call->operand[i].tensor->rank;
    if (rank < limit->low || rank > limit->high ||
        !(type_of(call, i) & limit->types))
      return false;
  }
  return !limit->rule || limit->rule(call);
}

cudnnStatus_t host_model_check(const char *entry, const char *function,
                               const host_model_call_t *call) {
  static bool printed[LIMITS];
  if (!host_model_is_hopper())
    return CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < LIMITS; i++) {
    if (strcmp(limits[i].function, function) != 0 || within(&limits[i], call))
      continue;
    host_model_print(&printed[i], entry, limits[i].text);
    return host_refuse(CUDNN_STATUS_NOT_SUPPORTED, limits[i].text);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
host_model_check_tensors(const char *entry, const char *function, int count,
                         const struct cudnnTensorStruct *const tensors[]) {
  host_model_call_t call = {.operands = count};
  for (int i = 0; i < count; i++)
    call.operand[i].tensor = tensors[i];
  return host_model_check(entry, function, &call);
}

// ---- the option ------------------------------------------------------------

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_hopper;

static void option_read(void) {
  const char *text = getenv("SUNDOG_HOST_MODEL");
  is_hopper = !text || strcmp(text, "any") != 0;
  if (text && *text && is_hopper && strcmp(text, "hopper") != 0)
    fprintf(stderr,
            "sundog host device: SUNDOG_HOST_MODEL=%s is neither hopper nor "
            "any: hopper is taken\n",
            text);
}

bool host_model_interposes(const char *function, const void *address) {
  Dl_info own, first;
  const void *name = dlsym(RTLD_DEFAULT, function);
  return name && dladdr(address, &own) && dladdr(name, &first) &&
         own.dli_fbase == first.dli_fbase;
}

bool host_model_is_hopper(void) {
  pthread_once(&once, option_read);
  return is_hopper;
}

void host_model_print(bool *printed, const char *function, const char *text) {
  if (__atomic_exchange_n(printed, true, __ATOMIC_RELAXED))
    return;
  fprintf(stderr,
          "sundog host device: %s is refused, as by cuDNN 9.19 on a Hopper "
          "GPU, which takes %s. SUNDOG_HOST_MODEL=any computes it\n",
          function, text);
}
