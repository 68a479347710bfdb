/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of op_case is given: the tensors and words of one call. */
#ifndef EQUIVALENCE_DRIVER_OP_CASE_H
#define EQUIVALENCE_DRIVER_OP_CASE_H

#include <cuda_runtime_api.h>
#include <cudnn.h>

enum { OP_DIMS = 5, OP_WORDS = 40, OP_SEQUENCES = 64 };

/* The client's own faults; cuDNN's are positive. */
enum { OP_CUDA_FAILED = -1, OP_OTHER_EXTENTS = -2, OP_BAD_SCRIPT = -3 };

/* A tensor, a filter, sequences, or (without a descriptor) bytes. */
typedef struct {
  char name[24];
  cudnnDataType_t type;
  int dims, extent[OP_DIMS];
  cudnnTensorDescriptor_t desc;
  cudnnFilterDescriptor_t filter;
  cudnnSeqDataDescriptor_t sequence;
  int length[OP_SEQUENCES]; /* of its sequences */
  /* host: what the memory held first. An alias has neither, and the address
   * of another tensor. */
  size_t bytes;
  unsigned char *host;
  void *device;
} op_tensor_t;

typedef struct op_call op_call_t;

/* One cuDNN entry. prepare sets the call's descriptors and asks cuDNN what a
 * program asks; run makes the call, possibly several times. Both give
 * cudnnStatus_t or a fault from above. */
typedef struct {
  const char *name;
  int (*prepare)(op_call_t *call);
  int (*run)(op_call_t *call);
} op_row_t;

struct op_call {
  const op_row_t *row;
  char text[1024];
  int words;
  char *key[OP_WORDS], *value[OP_WORDS];
  int prepared;
  cudnnHandle_t handle;
  /* What rows make use of; op_case destroys it. */
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnActivationDescriptor_t act;
  cudnnOpTensorDescriptor_t op;
  cudnnReduceTensorDescriptor_t reduce;
  cudnnLRNDescriptor_t lrn;
  cudnnDropoutDescriptor_t dropout;
  void *more; /* a row's own, with what destroys it */
  void (*more_destroy)(void *more);
  void *space[3]; /* workspaces and the like, of op_space() */
  size_t space_bytes[3];
  int algo;
};

/* The tensor that the word `key=name` names; NULL where there is none. */
const op_tensor_t *op_tensor(const op_call_t *call, const char *key);

/* A word's value, or `fallback`. */
const char *op_text(const op_call_t *call, const char *key,
                    const char *fallback);
double op_real(const op_call_t *call, const char *key, double fallback);
int op_number(const op_call_t *call, const char *key, int fallback);

/* The place of a word's value in a list that ends with NULL; the last one's
 * where it is not there, the first one's where there is no word. */
int op_choice(const op_call_t *call, const char *key, const char *const *names);

/* Numbers with x between them; returns how many. */
int op_list(const op_call_t *call, const char *key, int out[OP_DIMS]);

/* A word's value as the host scalar of calls on tensors of this type. It lasts
 * until the 16th call after this one. */
const void *op_scalar(const op_call_t *call, const char *key, double fallback,
                      cudnnDataType_t type);

/* The type that arithmetic on this type is done in. */
cudnnDataType_t op_math(cudnnDataType_t type);

/* Device memory call->space[i] of at least `bytes` bytes. */
int op_space(op_call_t *call, int i, size_t bytes);

/* Says where cuDNN's answer differs from the tensor's extents. */
int op_same_extents(const op_tensor_t *t, const int extent[OP_DIMS]);

#define OP_TRY(what)                                                           \
  do {                                                                         \
    int status_ = (int)(what);                                                 \
    if (status_ != 0)                                                          \
      return op_failed(#what, status_);                                        \
  } while (0)

int op_failed(const char *what, int status);

/* Adds a family's rows, which end with an empty one, to those of op_case. A
 * file of rows ends with OP_ROWS(rows). */
void op_rows_add(const op_row_t *rows);
#define OP_ROWS(rows)                                                          \
  __attribute__((constructor)) static void rows##_add(void) {                  \
    op_rows_add(rows);                                                         \
  }

#endif
