/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's attention as an operation graph: forward, backward, and as one
 * operation. */
#include "tests/clients/graphs/attention/compose.h"
#include "tests/equivalence/driver/op_case.h"

#include <string.h>

/* A graph's plan, and the variant pack that it is executed with. */
typedef struct {
  case_t c;
  draft_t draft;
  build_t plan, pack;
  int runs;
} attention_t;

enum { WORK, DELTAS, SUMS }; /* indices of call->space */

static const char *const names[ARRAYS] = {[Q] = "q",
                                          [K] = "k",
                                          [V] = "v",
                                          [O] = "o",
                                          [D_O] = "do",
                                          [STATS] = "stats",
                                          [D_Q] = "dq",
                                          [D_K] = "dk",
                                          [D_V] = "dv",
                                          [BIAS] = "bias",
                                          [LENGTHS_Q] = "lengths",
                                          [LENGTHS_KV] = "klengths"};

static void attention_destroy(void *more) {
  attention_t *a = more;
  if (a->plan)
    build_destroy(a->plan);
  if (a->pack)
    build_destroy(a->pack);
  free(a);
}

static int array_read(op_call_t *call, attention_t *a, int which) {
  const op_tensor_t *t = names[which] ? op_tensor(call, names[which]) : NULL;
  array_t *to = &a->c.array[which];
  cudnnDataType_t type;
  int dims, extent[OP_DIMS], stride[OP_DIMS];
  if (!t)
    return 0;
  OP_TRY(cudnnGetTensorNdDescriptor(t->desc, OP_DIMS, &type, &dims, extent,
                                    stride));
  to->exists = true;
  to->type = type;
  to->device = t->device;
  for (int d = 0; d < DIMS; d++) {
    to->dim[d] = extent[d];
    to->stride[d] = stride[d];
  }
  return 0;
}

/* What backward writes beside its results. */
static int room_make(op_call_t *call, attention_t *a, int which, int space,
                     int64_t depth) {
  array_t *to = &a->c.array[which];
  memcpy(to->dim, a->c.array[Q].dim, sizeof to->dim);
  to->dim[DEPTH] = depth;
  to->exists = true;
  to->type = CUDNN_DATA_FLOAT;
  int64_t packed = 1;
  for (int d = DIMS; d-- > 0; packed *= to->dim[d])
    to->stride[d] = packed;
  to->places = packed;
  OP_TRY(op_space(call, space, (size_t)packed * sizeof(float)));
  to->device = call->space[space];
  return 0;
}

static int case_read(op_call_t *call, attention_t *a, kind_t kind) {
  static const char *const orders[] = {"new", "old", "shuffled", NULL};
  case_t *c = &a->c;
  for (int i = 0; i < ARRAYS; i++)
    OP_TRY(array_read(call, a, i));
  c->kind = kind;
  c->order = (order_t)op_choice(call, "ops", orders);
  c->seed = (uint64_t)op_number(call, "seed", 1);
  c->type = c->array[Q].type;
  c->right = op_number(call, "right", -1);
  c->has_right = c->right >= 0;
  c->left = op_number(call, "left", 0);
  c->has_left = c->left > 0;
  c->bottom = op_number(call, "bottom", 0);
  c->scale = op_real(call, "scale", 0);
  c->scaled = c->scale != 0;
  c->lengths = c->array[LENGTHS_Q].exists;
  c->bias = c->array[BIAS].exists;
  c->stats = c->array[STATS].exists;
  c->direct = op_number(call, "direct", 0);
  if (kind == BACKWARD) {
    OP_TRY(room_make(call, a, DELTA, DELTAS, 1));
    OP_TRY(room_make(call, a, GATHERED, SUMS, c->array[Q].dim[DEPTH]));
  }
  return 0;
}

static int prepare(op_call_t *call, kind_t kind) {
  attention_t *a = calloc(1, sizeof *a);
  int64_t bytes = 0;
  if (!a)
    return OP_CUDA_FAILED;
  call->more = a;
  call->more_destroy = attention_destroy;
  OP_TRY(case_read(call, a, kind));
  made_t made = graph_make(call->handle, &a->c, &a->draft);
  a->plan =
      build_first_plan(call->handle, made.graph, CUDNN_HEUR_MODE_A, &bytes);
  build_destroy(made.graph);
  OP_TRY(a->plan ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED);
  OP_TRY(op_space(call, WORK, (size_t)bytes));
  a->pack = build_pack(made.uids, made.pointers, made.count, call->space[WORK]);
  return 0;
}

static int prepare_forward(op_call_t *call) {
  return prepare(call, FORWARD);
}

static int prepare_backward(op_call_t *call) {
  return prepare(call, BACKWARD);
}

static int prepare_one(op_call_t *call) {
  return prepare(call, ONE);
}

static int execute(op_call_t *call, attention_t *a, double scale) {
  const array_t *sum = &a->c.array[GATHERED];
  if (sum->exists &&
      cudaMemset(sum->device, 0, (size_t)sum->places * sizeof(float)) != 0)
    return OP_CUDA_FAILED;
  float number = (float)scale;
  if (a->c.scaled) /* the draft's first tensor */
    memcpy(&a->draft.number[0], &number, sizeof number);
  OP_TRY(cudnnBackendExecute(call->handle, a->plan, a->pack));
  return 0;
}

/* swings: before it, with a scale that no execution had; 2 and more: another
 * one from the second run on. */
static int run(op_call_t *call) {
  attention_t *a = call->more;
  int swings = op_number(call, "swings", 0);
  a->runs++;
  if (swings)
    OP_TRY(execute(call, a, a->c.scale / (a->runs > 1 ? swings + a->runs : 2)));
  return execute(call, a, a->c.scale);
}

static const op_row_t rows[] = {
    {"attention_graph_forward", prepare_forward, run},
    {"attention_graph_backward", prepare_backward, run},
    {"attention_graph_one", prepare_one, run},
    {NULL, NULL, NULL},
};
OP_ROWS(rows)
