/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of op_case use: the words of their calls, and space. */
#include "op_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *op_text(const op_call_t *call, const char *key,
                    const char *fallback) {
  for (int i = 0; i < call->words; i++)
    if (!strcmp(call->key[i], key))
      return call->value[i];
  return fallback;
}

const op_tensor_t *op_tensor(const op_call_t *call, const char *key) {
  return op_find(op_text(call, key, ""));
}

double op_real(const op_call_t *call, const char *key, double fallback) {
  const char *text = op_text(call, key, NULL);
  return text ? strtod(text, NULL) : fallback;
}

int op_number(const op_call_t *call, const char *key, int fallback) {
  return (int)op_real(call, key, fallback);
}

int op_choice(const op_call_t *call, const char *key,
              const char *const *names) {
  const char *value = op_text(call, key, names[0]);
  int i = 0;
  while (names[i + 1] && strcmp(names[i], value))
    i++;
  return i;
}

int op_numbers(const char *text, int most, int *out) {
  int count = 0;
  for (char *end; text && count < most; text = end + 1) {
    out[count++] = (int)strtol(text, &end, 10);
    if (*end != 'x')
      break;
  }
  return count;
}

int op_list(const op_call_t *call, const char *key, int out[OP_DIMS]) {
  return op_numbers(op_text(call, key, NULL), OP_DIMS, out);
}

const void *op_scalar(const op_call_t *call, const char *key, double fallback,
                      cudnnDataType_t type) {
  static union {
    float single;
    double wide;
  } ring[16];
  static unsigned next;
  double value = op_real(call, key, fallback);
  void *at = &ring[next++ % 16];
  if (type == CUDNN_DATA_DOUBLE)
    *(double *)at = value;
  else
    *(float *)at = (float)value;
  return at;
}

cudnnDataType_t op_math(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
}

int op_space(op_call_t *call, int i, size_t bytes) {
  if (bytes <= call->space_bytes[i])
    return 0;
  (void)cudaFree(call->space[i]);
  call->space[i] = NULL;
  call->space_bytes[i] = 0;
  OP_CUDA(cudaMalloc(&call->space[i], bytes));
  call->space_bytes[i] = bytes;
  return 0;
}

int op_same_extents(const op_tensor_t *t, const int extent[OP_DIMS]) {
  if (!memcmp(t->extent, extent, (size_t)t->dims * sizeof *extent))
    return 0;
  fprintf(stderr, "op_case: cuDNN gives %s the extents", t->name);
  for (int d = 0; d < t->dims; d++)
    fprintf(stderr, " %d", extent[d]);
  fprintf(stderr, ", not");
  for (int d = 0; d < t->dims; d++)
    fprintf(stderr, " %d", t->extent[d]);
  fprintf(stderr, "\n");
  return OP_OTHER_EXTENTS;
}
