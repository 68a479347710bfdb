// SPDX-License-Identifier: Apache-2.0
// Where a recurrent network's parameters and stored values lie in memory. The
// order of parameters is that of NVIDIA's library.
#include "src/host/cudnn/recurrent/network.h"

#include "src/host/cudnn/descriptor/life.h"

host_rnn_net_t host_rnn_net(const struct cudnnRNNStruct *rnn) {
  bool both = rnn->bias == CUDNN_RNN_DOUBLE_BIAS;
  return (host_rnn_net_t){
      .cell = rnn->cell,
      .gates = rnn->cell == CUDNN_LSTM  ? 4
               : rnn->cell == CUDNN_GRU ? 3
                                        : 1,
      .layers = rnn->layers,
      .ways = rnn->direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
      .input = rnn->input_size,
      .hidden = rnn->hidden_size,
      .out = rnn->projected_size,
      .skips = rnn->input == CUDNN_SKIP_INPUT,
      .projects = rnn->projected_size != rnn->hidden_size,
      .input_bias = both || rnn->bias == CUDNN_RNN_SINGLE_INP_BIAS,
      .hidden_bias = both || rnn->bias == CUDNN_RNN_SINGLE_REC_BIAS,
      .clips = rnn->clip == CUDNN_RNN_CLIP_MINMAX && rnn->cell == CUDNN_LSTM,
      .clip_nan = rnn->clip_nan == CUDNN_PROPAGATE_NAN,
      .clip_low = (float)rnn->clip_low, // rounded to float, for doubles too
      .clip_high = (float)rnn->clip_high};
}

static bool has_input(const host_rnn_net_t *net, int layer) {
  return layer || !net->skips;
}

// Elements of the matrices of one pseudo-layer.
static int64_t matrices(const host_rnn_net_t *net, int layer) {
  int64_t gates = net->gates * net->hidden;
  int64_t input = has_input(net, layer) ? host_rnn_input(net, layer) : 0;
  return gates * (input + net->out) +
         (net->projects ? net->out * net->hidden : 0);
}

static int64_t biases(const host_rnn_net_t *net) {
  return net->gates * net->hidden * (net->input_bias + net->hidden_bias);
}

static int64_t all_matrices(const host_rnn_net_t *net, int pseudo) {
  int64_t sum = 0;
  for (int i = 0; i < pseudo; i++)
    sum += matrices(net, i / net->ways);
  return sum;
}

int64_t host_rnn_weights(const host_rnn_net_t *net) {
  int all = net->layers * net->ways;
  return all_matrices(net, all) + all * biases(net);
}

host_rnn_place_t host_rnn_place(const host_rnn_net_t *net, int pseudo) {
  int layer = pseudo / net->ways;
  int64_t gates = net->gates * net->hidden, at = all_matrices(net, pseudo);
  host_rnn_place_t place = {-1, -1, -1, -1, -1};
  if (has_input(net, layer)) {
    place.input = at;
    at += gates * host_rnn_input(net, layer);
  }
  place.hidden = at;
  if (net->projects)
    place.projection = at + gates * net->out;
  at = all_matrices(net, net->layers * net->ways) + pseudo * biases(net);
  if (net->input_bias) {
    place.input_bias = at;
    at += gates;
  }
  if (net->hidden_bias)
    place.hidden_bias = at;
  return place;
}

host_rnn_reserve_t host_rnn_reserve(const host_rnn_net_t *net, int64_t rows,
                                    int pseudo) {
  host_rnn_reserve_t r = {0};
  for (int p = 0; p <= pseudo; p++) {
    int64_t at = r.elements, gates = net->gates * net->hidden;
    r.gates = at;
    r.state = r.gates + rows * gates;
    r.out = r.state + rows * net->hidden;
    r.delta = r.out + rows * net->out;
    r.d_out = r.delta + rows * gates;
    r.mask = r.d_out + rows * net->out;
    r.elements = r.mask;
    if (p % net->ways == 0 && p / net->ways > 0)
      r.elements += rows * host_rnn_input(net, p / net->ways);
  }
  return r;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                         cudnnRNNDescriptor_t rnn,
                                         size_t *bytes) {
  REFUSE_IF(!handle || !rnn || !bytes, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!rnn->set, CUDNN_STATUS_NOT_INITIALIZED);
  host_rnn_net_t net = host_rnn_net(rnn);
  *bytes = (size_t)host_rnn_weights(&net) * host_type_bytes(rnn->type);
  return CUDNN_STATUS_SUCCESS;
}

// A parameter as a tensor 1 x rows x columns; an empty descriptor and NULL if
// it does not exist.
static void give(cudnnTensorDescriptor_t desc, void **address,
                 const struct cudnnRNNStruct *rnn, const void *space,
                 int64_t at, int64_t rows, int64_t columns) {
  if (desc)
    *desc = (struct cudnnTensorStruct){.rank = 0};
  if (address)
    *address = NULL;
  if (at < 0)
    return;
  if (desc)
    cudnnSetTensorNdDescriptor(
        desc, rnn->type, 3, (const int[]){1, (int)rows, (int)columns},
        (const int[]){(int)(rows * columns), (int)columns, 1});
  if (address && space)
    *address = (char *)space + (size_t)at * host_type_bytes(rnn->type);
}

cudnnStatus_t
cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                        int32_t pseudo, size_t space_bytes, const void *space,
                        int32_t id, cudnnTensorDescriptor_t m, void **m_address,
                        cudnnTensorDescriptor_t b, void **b_address) {
  REFUSE_IF(!handle || !rnn || !m_address || !b_address || !m || !b,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!rnn->set, CUDNN_STATUS_NOT_INITIALIZED);
  host_rnn_net_t net = host_rnn_net(rnn);
  REFUSE_IF(pseudo < 0 || pseudo >= net.layers * net.ways,
            CUDNN_STATUS_BAD_PARAM);
  // The last one is the projection, whether it exists or not.
  REFUSE_IF(id < 0 || id > 2 * net.gates, CUDNN_STATUS_BAD_PARAM);
  host_rnn_place_t place = host_rnn_place(&net, pseudo);
  bool input = id < net.gates;
  int64_t gate = id % net.gates;
  int64_t columns = input ? host_rnn_input(&net, pseudo / net.ways) : net.out;
  int64_t at = input ? place.input : place.hidden;
  int64_t bias = input ? place.input_bias : place.hidden_bias;
  int64_t rows = net.hidden;
  if (id == 2 * net.gates) {
    gate = 0;
    at = place.projection;
    bias = -1;
    rows = net.out;
    columns = net.hidden;
  }
  if (at >= 0)
    at += gate * rows * columns;
  if (bias >= 0)
    bias += gate * rows;
  // Only the requested parameter must lie inside.
  size_t unit = host_type_bytes(rnn->type);
  REFUSE_IF(at >= 0 && (size_t)(at + rows * columns) * unit > space_bytes,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(bias >= 0 && (size_t)(bias + rows) * unit > space_bytes,
            CUDNN_STATUS_BAD_PARAM);
  give(m, m_address, rnn, space, at, rows, columns);
  give(b, b_address, rnn, space, bias, rows, 1);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                          cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                          size_t *work_bytes, size_t *reserve_bytes) {
  REFUSE_IF(!handle || !rnn || !x || (!work_bytes && !reserve_bytes),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!rnn->set, CUDNN_STATUS_NOT_INITIALIZED);
  REFUSE_IF(
      !host_in_range(mode, CUDNN_FWD_MODE_INFERENCE, CUDNN_FWD_MODE_TRAINING),
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->type != rnn->type || x->vector != rnn->input_size,
            CUDNN_STATUS_BAD_PARAM);
  host_rnn_net_t net = host_rnn_net(rnn);
  size_t unit = rnn->type == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
  host_rnn_reserve_t all = host_rnn_reserve(&net, (int64_t)x->time * x->batch,
                                            net.layers * net.ways - 1);
  if (work_bytes)
    *work_bytes = 0; // intermediate results are not in the program's memory
  if (reserve_bytes)
    *reserve_bytes =
        mode == CUDNN_FWD_MODE_TRAINING ? (size_t)all.elements * unit : 0;
  return CUDNN_STATUS_SUCCESS;
}
