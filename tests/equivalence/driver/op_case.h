/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of op_case gets: the tensors and words of one call. */
#ifndef EQUIVALENCE_DRIVER_OP_CASE_H
#define EQUIVALENCE_DRIVER_OP_CASE_H

#include <cuda_runtime_api.h>
#include <cudnn.h>

enum { OP_DIMS = 5, OP_WORDS = 40, OP_SEQUENCES = 64 };

/* Faults of op_case itself; statuses of cuDNN are positive. */
enum { OP_CUDA_FAILED = -1, OP_OTHER_EXTENTS = -2, OP_BAD_SCRIPT = -3 };

/* A tensor, a filter, sequences, or bytes without a descriptor. */
typedef struct {
  char name[24];
  cudnnDataType_t type;
  int dims, extent[OP_DIMS];
  cudnnTensorDescriptor_t desc;
  cudnnFilterDescriptor_t filter;
  cudnnSeqDataDescriptor_t sequence;
  int length[OP_SEQUENCES]; /* lengths of its sequences */
  /* host: the memory's first content. An alias has bytes 0 and no host; its
   * address is that of another tensor. */
  size_t bytes;
  unsigned char *host;
  void *device;
  int tagged; /* the program has tagged its memory */
} op_tensor_t;

typedef struct op_call op_call_t;

/* One entry of cuDNN. prepare sets the call's descriptors and makes the queries
 * that a program makes; run makes the call, perhaps several times. Both return
 * a cudnnStatus_t or a fault of above. */
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
  /* For rows to use; op_case destroys it. */
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnActivationDescriptor_t act;
  cudnnOpTensorDescriptor_t op;
  cudnnReduceTensorDescriptor_t reduce;
  cudnnLRNDescriptor_t lrn;
  cudnnDropoutDescriptor_t dropout;
  void *more; /* a row's own data, and the function that destroys it */
  void (*more_destroy)(void *more);
  void *space[3]; /* workspaces and the like, made by op_space() */
  size_t space_bytes[3];
  int algo;
};

/* Returns the script's tensor of that name; NULL: it has none. */
op_tensor_t *op_find(const char *name);
/* Returns the tensor that the word `key=name` names; NULL if no tensor does. */
const op_tensor_t *op_tensor(const op_call_t *call, const char *key);

/* Returns a word's value, or `fallback`. */
const char *op_text(const op_call_t *call, const char *key,
                    const char *fallback);
double op_real(const op_call_t *call, const char *key, double fallback);
int op_number(const op_call_t *call, const char *key, int fallback);

/* Returns the index of a word's value in a list that ends with NULL: the last
 * index if it is not in the list, the first if the call lacks the word. */
int op_choice(const op_call_t *call, const char *key, const char *const *names);

/* Reads at most `most` numbers with x between them; returns how many. */
int op_numbers(const char *text, int most, int *out);
/* The same, of a word's value. */
int op_list(const op_call_t *call, const char *key, int out[OP_DIMS]);

/* Returns a word's value as a host scalar for calls on tensors of this type.
 * The scalar is valid until this function has been called 16 times more. */
const void *op_scalar(const op_call_t *call, const char *key, double fallback,
                      cudnnDataType_t type);

/* Returns the type of the arithmetic on this type. */
cudnnDataType_t op_math(cudnnDataType_t type);

/* Makes device memory call->space[i] of at least `bytes` bytes. */
int op_space(op_call_t *call, int i, size_t bytes);

/* Prints where cuDNN's answer differs from the tensor's extents. */
int op_same_extents(const op_tensor_t *t, const int extent[OP_DIMS]);

#define OP_TRY(what)                                                           \
  do {                                                                         \
    int status_ = (int)(what);                                                 \
    if (status_ != 0)                                                          \
      return op_failed(#what, status_);                                        \
  } while (0)

int op_failed(const char *what, int status);

#define OP_CUDA(what)                                                          \
  do {                                                                         \
    cudaError_t status_ = (what);                                              \
    if (status_ != cudaSuccess)                                                \
      return op_cuda_failed(#what, status_);                                   \
  } while (0)

int op_cuda_failed(const char *what, cudaError_t status);

/* Adds a family's rows to those of op_case; the last row is empty. A file of
 * rows ends with OP_ROWS(rows). */
void op_rows_add(const op_row_t *rows);
#define OP_ROWS(rows)                                                          \
  __attribute__((constructor)) static void rows##_add(void) {                  \
    op_rows_add(rows);                                                         \
  }

#endif
