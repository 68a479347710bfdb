/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's multi-head attention: forward, and if the words say so, then the
 * gradients in the order that cuDNN requires. */
#include "tests/equivalence/driver/op_case.h"

#include <stdlib.h>

enum { WORK, RESERVE, LENGTHS }; /* indices of call->space */

/* The data of an attention call; lives as long as the call. */
typedef struct {
  cudnnAttnDescriptor_t desc;
  size_t weights;
  int *lo, *hi;
  int trains;
  void *states; /* states of dropout */
} attn_t;

static void destroy(void *more) {
  attn_t *attn = more;
  (void)cudnnDestroyAttnDescriptor(attn->desc);
  (void)cudaFree(attn->states);
  free(attn->lo);
  free(attn->hi);
  free(attn);
}

static int size(const op_tensor_t *t, int dim) {
  return t->extent[dim];
}

/* Sets the descriptor: projections and sizes by the words, limits by the
 * tensors. */
static int describe(op_call_t *call, attn_t *attn) {
  const op_tensor_t *q = op_tensor(call, "q"), *k = op_tensor(call, "k"),
                    *v = op_tensor(call, "v");
  cudnnDataType_t math = op_math(q->type);
  if (op_real(call, "drop", 0) > 0) {
    size_t bytes;
    OP_TRY(cudnnDropoutGetStatesSize(call->handle, &bytes));
    if (cudaMalloc(&attn->states, bytes) != cudaSuccess)
      return OP_CUDA_FAILED;
    OP_TRY(cudnnCreateDropoutDescriptor(&call->dropout));
    OP_TRY(cudnnSetDropoutDescriptor(call->dropout, call->handle,
                                     (float)op_real(call, "drop", 0),
                                     attn->states, bytes, 1));
  }
  OP_TRY(cudnnCreateAttnDescriptor(&attn->desc));
  OP_TRY(cudnnSetAttnDescriptor(
      attn->desc,
      op_number(call, "biases", 0) ? CUDNN_ATTN_ENABLE_PROJ_BIASES : 0,
      op_number(call, "heads", 1), op_real(call, "scale", 1), q->type, math,
      CUDNN_DEFAULT_MATH, call->dropout, NULL,
      op_number(call, "qs", size(q, 3)), op_number(call, "ks", size(k, 3)),
      op_number(call, "vs", size(v, 3)), op_number(call, "pq", 0),
      op_number(call, "pk", 0), op_number(call, "pv", 0),
      op_number(call, "po", 0), size(q, CUDNN_SEQDATA_TIME_DIM),
      op_number(call, "limit", size(k, CUDNN_SEQDATA_TIME_DIM)),
      size(q, CUDNN_SEQDATA_BATCH_DIM), size(q, CUDNN_SEQDATA_BEAM_DIM)));
  return 0;
}

/* left, right: query t sees keys t - left to t + right. first: how many rows
 * after the first key the first query is. ragged: each query has its own
 * window. */
static void windows(const op_call_t *call, const attn_t *attn) {
  int queries = size(op_tensor(call, "q"), CUDNN_SEQDATA_TIME_DIM);
  int keys = size(op_tensor(call, "k"), CUDNN_SEQDATA_TIME_DIM);
  int ragged = op_number(call, "ragged", 0);
  int wide = op_number(call, "open", 0);
  long first = op_number(call, "first", 0);
  for (int t = 0; t < queries; t++) {
    long lo = first + t - op_number(call, "left", 0);
    long hi = first + t + op_number(call, "right", 0) + 1;
    if (ragged > 0) {
      lo = (t * 5 + ragged) % keys;
      hi = lo + 1 + (t * 3 + ragged) % 4;
    }
    attn->lo[t] = (int)(lo < 0 && !wide ? 0 : lo);
    attn->hi[t] = (int)(hi > keys && !wide ? keys : hi);
    if (attn->hi[t] < attn->lo[t])
      attn->hi[t] = attn->lo[t]; /* it sees no key */
  }
}

/* Makes device memory with the lengths of all sequences of queries and keys. */
static int lengths(op_call_t *call) {
  const op_tensor_t *t[] = {op_tensor(call, "q"), op_tensor(call, "k")};
  int length[2 * OP_SEQUENCES], at = 0;
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < size(t[i], 1) * size(t[i], 2); k++)
      length[at++] = t[i]->length[k];
  size_t bytes = (size_t)at * sizeof *length;
  int status = op_space(call, LENGTHS, bytes);
  if (status == 0 && cudaMemcpy(call->space[LENGTHS], length, bytes,
                                cudaMemcpyHostToDevice) != cudaSuccess)
    status = OP_CUDA_FAILED;
  return status;
}

static int prepare(op_call_t *call) {
  attn_t *attn = calloc(1, sizeof *attn);
  size_t work, reserve;
  if (!attn)
    return OP_CUDA_FAILED;
  call->more = attn;
  call->more_destroy = destroy;
  size_t queries = (size_t)size(op_tensor(call, "q"), CUDNN_SEQDATA_TIME_DIM);
  attn->lo = malloc(queries * sizeof *attn->lo);
  attn->hi = malloc(queries * sizeof *attn->hi);
  if (!attn->lo || !attn->hi)
    return OP_CUDA_FAILED;
  attn->trains = op_number(call, "train", 0);
  OP_TRY(describe(call, attn));
  windows(call, attn);
  OP_TRY(cudnnGetMultiHeadAttnBuffers(call->handle, attn->desc, &attn->weights,
                                      &work, &reserve));
  OP_TRY(op_space(call, WORK, work + 1));
  // Twice, with room for a second call without gradients.
  OP_TRY(op_space(call, RESERVE, 2 * reserve + 256));
  call->space_bytes[RESERVE] = reserve;
  return lengths(call);
}

static void *device(const op_call_t *call, const char *key) {
  const op_tensor_t *t = op_tensor(call, key);
  return t ? t->device : NULL;
}

static cudnnSeqDataDescriptor_t desc(const op_call_t *call, const char *key) {
  return op_tensor(call, key)->sequence;
}

static int gradients(op_call_t *call, const attn_t *attn) {
  const op_tensor_t *q = op_tensor(call, "q");
  const int *q_length = call->space[LENGTHS];
  const int *k_length = q_length + size(q, 1) * size(q, 2);
  void *w = device(call, "w");
  OP_TRY(cudnnMultiHeadAttnBackwardData(
      call->handle, attn->desc, attn->lo, attn->hi, q_length, k_length,
      desc(call, "do"), device(call, "do"), desc(call, "q"), device(call, "dq"),
      device(call, "q"), desc(call, "k"), device(call, "dk"), device(call, "k"),
      desc(call, "v"), device(call, "dv"), device(call, "v"), attn->weights, w,
      call->space_bytes[WORK], call->space[WORK], call->space_bytes[RESERVE],
      call->space[RESERVE]));
  if (!op_tensor(call, "dw"))
    return 0;
  return (int)cudnnMultiHeadAttnBackwardWeights(
      call->handle, attn->desc,
      op_number(call, "adds", 0) ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET,
      desc(call, "q"), device(call, "q"), desc(call, "k"), device(call, "k"),
      desc(call, "v"), device(call, "v"), desc(call, "do"), device(call, "do"),
      attn->weights, w, device(call, "dw"), call->space_bytes[WORK],
      call->space[WORK], call->space_bytes[RESERVE], call->space[RESERVE]);
}

/* Uses the output as queries, keys and values of a second attention. */
static int again(op_call_t *call, const attn_t *attn) {
  size_t reserve = attn->trains ? call->space_bytes[RESERVE] : 0;
  void *apart = (char *)call->space[RESERVE] + (reserve + 255) / 256 * 256;
  const op_tensor_t *o = op_tensor(call, "o");
  const int *q_length = call->space[LENGTHS];
  return (int)cudnnMultiHeadAttnForward(
      call->handle, attn->desc, -1, attn->lo, attn->hi, q_length,
      q_length + size(o, 1) * size(o, 2), o->sequence, o->device, NULL,
      o->sequence, o->device, o->sequence, o->device, desc(call, "o2"),
      device(call, "o2"), attn->weights, device(call, "w"),
      call->space_bytes[WORK], call->space[WORK], reserve,
      attn->trains ? apart : NULL);
}

static int run(op_call_t *call) {
  const attn_t *attn = call->more;
  const op_tensor_t *q = op_tensor(call, "q");
  const int *q_length = call->space[LENGTHS];
  const int *k_length = q_length + size(q, 1) * size(q, 2);
  OP_TRY(cudnnMultiHeadAttnForward(
      call->handle, attn->desc, op_number(call, "only", -1), attn->lo, attn->hi,
      q_length, k_length, desc(call, "q"), device(call, "q"),
      device(call, "residual"), desc(call, "k"), device(call, "k"),
      desc(call, "v"), device(call, "v"), desc(call, "o"), device(call, "o"),
      attn->weights, device(call, "w"), call->space_bytes[WORK],
      call->space[WORK], attn->trains ? call->space_bytes[RESERVE] : 0,
      attn->trains ? call->space[RESERVE] : NULL));
  if (op_tensor(call, "o2"))
    OP_TRY(again(call, attn));
  return attn->trains ? gradients(call, attn) : 0;
}

static const op_row_t rows[] = {
    {"attention", prepare, run},
    {0},
};
OP_ROWS(rows)
