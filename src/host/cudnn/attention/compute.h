/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-head attention on host memory: shapes, layouts, and the computation,
 * which exists for float and double. */
#ifndef SDG_SRC_HOST_CUDNN_ATTENTION_COMPUTE_H
#define SDG_SRC_HOST_CUDNN_ATTENTION_COMPUTE_H

#include "src/host/cudnn/descriptor/types.h"

enum { HOST_ATTN_Q, HOST_ATTN_K, HOST_ATTN_V, HOST_ATTN_O, HOST_ATTN_PARTS };

/* A projection turns vectors of `from` elements into `to` elements for each
 * head (o: vectors of all heads into `to`). Without a projection every head
 * uses the vectors as they are; `to` is the output length all the same. */
typedef struct {
  bool there;
  int64_t from, to;
  int64_t matrix,
      bias; /* offsets in the weights, in elements; negative: none */
} host_attn_part_t;

typedef struct {
  int64_t heads;
  double scale;
  host_attn_part_t part[HOST_ATTN_PARTS];
  int64_t out;     /* elements of an output vector */
  int64_t weights; /* elements of all parameters */
} host_attn_net_t;

host_attn_net_t host_attn_net(const struct cudnnAttnStruct *attention);

/* Vectors in memory: elements from one to the next of an axis. */
typedef struct {
  void *data;
  int64_t vector, time, batch, beam;
  int64_t stride[CUDNN_SEQDATA_DIM_COUNT];
  const int
      *length; /* of the batch x beam sequences; read when the work runs */
} host_attn_data_t;

typedef enum {
  HOST_ATTN_FORWARD,
  HOST_ATTN_DATA,
  HOST_ATTN_WEIGHTS
} host_attn_kind_t;

/* q, k, v, o: the forward call's tensors. In gradients o is the output's
 * gradient, and dq, dk, dv or d_weights are written. */
typedef struct {
  host_attn_kind_t kind;
  host_attn_net_t net;
  cudnnDataType_t type;
  host_attn_data_t q, k, v, o, dq, dk, dv;
  void *residual; /* with q's layout; or NULL */
  void *weights, *d_weights;
  bool adds;   /* to d_weights */
  int only;    /* the only query time step to compute; negative: all */
  void *masks; /* stored dropout masks; NULL for inference */
  /* Behind the masks, for the gradient of the weights: windows, lengths of
   * queries, lengths of keys. */
  int *kept;
  double dropout, post_dropout;
  void *states, *post_states;
  int window[]; /* low and high (exclusive) of each query time step */
} host_attn_job_t;

/* Number of integers at `kept`. */
static inline int64_t host_attn_kept(int64_t q_time, int64_t sequences) {
  return 2 * q_time + 2 * sequences;
}

/* Elements of one sequence's dropout masks: the softmaxes', then the output's.
 */
int64_t host_attn_masks(const host_attn_net_t *net, int64_t q_time,
                        int64_t k_time);

/* False when memory is short. */
bool host_attn_run_float(const host_attn_job_t *job);
bool host_attn_run_double(const host_attn_job_t *job);

#endif
