/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's normalisations as operation graphs: training, inference and
 * gradients. */
#include "tests/clients/graphs/random/graph.h"
#include "tests/equivalence/driver/op_case.h"

/* A graph's plan, and the variant pack that it is executed with. */
typedef struct {
  graph_t g;
  build_t plan, pack;
  int64_t uid[TENSORS + NUMBERS], count;
  void *pointer[TENSORS + NUMBERS];
  int runs;
} norm_graph_t;

static void norm_destroy(void *more) {
  norm_graph_t *n = more;
  if (n->plan)
    build_destroy(n->plan);
  if (n->pack)
    build_destroy(n->pack);
  free(n);
}

static void pack_add(norm_graph_t *n, int64_t uid, void *pointer) {
  n->uid[n->count] = uid;
  n->pointer[n->count++] = pointer;
}

/* *out: the tensor of the graph; -1: the call has none of this name. */
static int tensor_read(op_call_t *call, norm_graph_t *n, const char *name,
                       int *out) {
  const op_tensor_t *t = op_tensor(call, name);
  tensor_t *to = &n->g.tensor[n->g.tensors];
  cudnnDataType_t type;
  int extent[OP_DIMS], stride[OP_DIMS];
  *out = -1;
  if (!t)
    return 0;
  OP_TRY(cudnnGetTensorNdDescriptor(t->desc, OP_DIMS, &type, &n->g.dims, extent,
                                    stride));
  *out = n->g.tensors++;
  to->type = type;
  for (int d = 0; d < n->g.dims; d++) {
    to->dim[d] = extent[d];
    to->stride[d] = stride[d];
  }
  pack_add(n, *out + 100, t->device);
  return 0;
}

static int graph_read(op_call_t *call, norm_graph_t *n) {
  static const char *const modes[] = {"layer",    "rms",   "ada",
                                      "instance", "batch", NULL};
  static const cudnnBackendNormMode_t mode[] = {
      CUDNN_LAYER_NORM, CUDNN_RMS_NORM, CUDNN_ADA_LAYER_NORM,
      CUDNN_INSTANCE_NORM, CUDNN_BATCH_NORM};
  graph_t *g = &n->g;
  norm_t *norm = &g->norm;
  g->main = MAIN_NORM;
  norm->mode = mode[op_choice(call, "mode", modes)];
  OP_TRY(tensor_read(call, n, "x", &g->conv[X]));
  OP_TRY(tensor_read(call, n, norm->backward ? "dx" : "y", &g->conv[Y]));
  OP_TRY(tensor_read(call, n, "dy", &norm->dy));
  OP_TRY(tensor_read(call, n, "scale", &norm->scale));
  OP_TRY(tensor_read(call, n, "bias", &norm->bias));
  OP_TRY(tensor_read(call, n, "mean", &norm->mean));
  OP_TRY(tensor_read(call, n, "inverse", &norm->inverse));
  OP_TRY(tensor_read(call, n, "dscale", &norm->dscale));
  OP_TRY(tensor_read(call, n, "dbias", &norm->dbias));
  OP_TRY(tensor_read(call, n, "old_mean", &norm->old[0]));
  OP_TRY(tensor_read(call, n, "old_var", &norm->old[1]));
  OP_TRY(tensor_read(call, n, "new_mean", &norm->new[0]));
  OP_TRY(tensor_read(call, n, "new_var", &norm->new[1]));
  for (int i = 0; i < NUMBERS; i++)
    pack_add(n, number_uid(i), &norm->number[i]);
  return 0;
}

static int prepare(op_call_t *call, bool backward, bool inference) {
  norm_graph_t *n = calloc(1, sizeof *n);
  int64_t bytes = 0;
  if (!n)
    return OP_CUDA_FAILED;
  call->more = n;
  call->more_destroy = norm_destroy;
  n->g.norm.backward = backward;
  n->g.norm.inference = inference;
  OP_TRY(graph_read(call, n));
  build_t graph = graph_of(call->handle, &n->g);
  n->plan = build_first_plan(call->handle, graph, CUDNN_HEUR_MODE_A, &bytes);
  build_destroy(graph);
  OP_TRY(n->plan ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED);
  OP_TRY(op_space(call, 0, (size_t)bytes));
  n->pack = build_pack(n->uid, n->pointer, n->count, call->space[0]);
  return 0;
}

static int prepare_training(op_call_t *call) {
  return prepare(call, false, false);
}

static int prepare_inference(op_call_t *call) {
  return prepare(call, false, true);
}

static int prepare_backward(op_call_t *call) {
  return prepare(call, true, false);
}

static int execute(op_call_t *call, norm_graph_t *n, double epsilon,
                   double factor) {
  n->g.norm.number[EPSILON] = (float)epsilon;
  n->g.norm.number[FACTOR] = (float)factor;
  OP_TRY(cudnnBackendExecute(call->handle, n->plan, n->pack));
  return 0;
}

/* swings: before it, with numbers that no execution had. */
static int run(op_call_t *call) {
  norm_graph_t *n = call->more;
  double epsilon = op_real(call, "epsilon", 0);
  double factor = op_real(call, "factor", 0);
  n->runs++;
  if (op_number(call, "swings", 0))
    OP_TRY(execute(call, n, epsilon + n->runs, factor / (1 + n->runs)));
  return execute(call, n, epsilon, factor);
}

static const op_row_t rows[] = {
    {"norm_graph_training", prepare_training, run},
    {"norm_graph_inference", prepare_inference, run},
    {"norm_graph_backward", prepare_backward, run},
    {NULL, NULL, NULL},
};
OP_ROWS(rows)
