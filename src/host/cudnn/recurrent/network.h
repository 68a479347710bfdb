/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks on host memory: shapes, layouts, and the computation,
 * which exists for float and double. */
#ifndef SDG_SRC_HOST_CUDNN_RECURRENT_NETWORK_H
#define SDG_SRC_HOST_CUDNN_RECURRENT_NETWORK_H

#include "src/host/cudnn/descriptor/types.h"

/* The shape of a network. Layers have `ways` directions; one direction of one
 * layer is a pseudo-layer, layer * ways + way. */
typedef struct {
  cudnnRNNMode_t cell;
  int gates, layers, ways;
  int64_t input, hidden, out; /* out: projected size, else hidden */
  bool skips;                 /* the first layer's input is added unchanged */
  bool projects;
  bool input_bias, hidden_bias;
  bool clips;
  bool clip_nan; /* NaN stays NaN */
  double clip_low, clip_high;
} host_rnn_net_t;

host_rnn_net_t host_rnn_net(const struct cudnnRNNStruct *rnn);

/* Elements of a layer's input, for all of its directions. */
static inline int64_t host_rnn_input(const host_rnn_net_t *net, int layer) {
  return layer ? net->out * net->ways : net->input;
}

/* Offsets of parameters in the weight space, in elements. All matrices come
 * first, pseudo-layer by pseudo-layer: the gates' for the input, the gates' for
 * the state, the projection's. The biases follow in the same order. Negative:
 * does not exist. */
typedef struct {
  int64_t input, hidden, projection; /* gates * hidden x their own widths */
  int64_t input_bias, hidden_bias;   /* gates * hidden */
} host_rnn_place_t;

host_rnn_place_t host_rnn_place(const host_rnn_net_t *net, int pseudo);
int64_t host_rnn_weights(const host_rnn_net_t *net); /* elements of all */

/* What a forward call in training stores for the gradients, in elements; time
 * steps x batch rows of: */
typedef struct {
  int64_t gates; /* gates * hidden, after their activation */
  int64_t state; /* hidden: LSTM, the cell; GRU, what the reset gate scales */
  int64_t out;   /* out */
  int64_t delta; /* gates * hidden: gradient before the activation */
  int64_t d_out; /* out: gradient of the projected output */
  int64_t mask;  /* the layer's input (first direction only): dropout */
  int64_t elements;
} host_rnn_reserve_t;

/* For pseudo-layer p; `elements` is where the next one starts. */
host_rnn_reserve_t host_rnn_reserve(const host_rnn_net_t *net, int64_t rows,
                                    int pseudo);

typedef enum {
  HOST_RNN_FORWARD,
  HOST_RNN_DATA,
  HOST_RNN_WEIGHTS
} host_rnn_kind_t;

/* Sequences in memory, of any layout. */
typedef struct {
  cudnnRNNDataLayout_t layout;
  int64_t vector;
  void *data, *gradient; /* y and dy; NULL where not used */
  unsigned char fill[8];
} host_rnn_data_t;

/* All addresses are host addresses; optional ones may be NULL. */
typedef struct {
  host_rnn_kind_t kind;
  host_rnn_net_t net;
  cudnnDataType_t type;
  int64_t time, batch;
  host_rnn_data_t x, y;
  void *hx, *hy, *cx, *cy, *dhx, *dhy, *dcx, *dcy;
  void *weights, *d_weights;
  void *reserve; /* NULL for inference */
  double dropout;
  void *dropout_states;
  int length[]; /* of the batch's sequences */
} host_rnn_job_t;

/* False when memory is short. */
bool host_rnn_run_float(const host_rnn_job_t *job);
bool host_rnn_run_double(const host_rnn_job_t *job);

/* Element offset of (time, batch) in rows of `vector` elements. */
int64_t host_rnn_row(const host_rnn_job_t *job, cudnnRNNDataLayout_t layout,
                     int64_t time, int64_t batch);

#endif
