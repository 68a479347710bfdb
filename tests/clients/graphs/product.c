// SPDX-License-Identifier: Apache-2.0
// y = relu((a b) scale + bias + z), the sum of each column of it, and what
// loops in double precision give. With LAYER_VIEW=shard each rank (SUNDOG_RANK
// of SUNDOG_SIZE) has its part of the dimension CUT: uneven ones.
//
// usage: product CUT [HOW]
//   CUT        M, N, K or B (the batch)
//   HOW        what is different, and often wrong:
//     thin     the first ranks have one row each, the last one the rest
//     ones     every rank has one row
//     bias     the ranks have different biases
//     factor   the ranks have different matrices b
//     scale    the ranks have different scales
//     residual the second rank's z has one row
//     two      a second product behind the first, as in attention
//     text     the plan is written as text and read again, as XLA does
//     tag      y's memory is tagged as in pieces
//     capture  the second execution is captured into a CUDA graph, which is
//              launched twice
// Prints the status of the execution if there is a HOW, and checks values if it
// is 0.
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/readback.h"
#include "tests/clients/graphs/tag.h"

enum { A, B, Y, BIAS, Z, SUM, SCALE, TENSORS };
enum { BATCH, ROWS, COLUMNS, DIMS };
enum { VIRTUAL = 4 }; // tensors between the ops

static const char letters[TENSORS][DIMS + 1] = {"BMK", "BKN", "BMN", "1 N",
                                                "BMN", "1 N", "1  "};

typedef struct {
  int64_t whole[DIMS], dim[DIMS], first[DIMS];
  float *host; // of the whole
  void *device;
  int64_t bytes;
} tensor_t;

static tensor_t tensor[TENSORS];
static float scale = 0.5F;
static int64_t rank, ranks = 1;
static const char *how = "";
static char cut;

static bool is_how(const char *word) {
  return strcmp(how, word) == 0;
}

static int64_t extent_of(char letter) {
  switch (letter) {
  case 'B':
    return 5;
  case 'M':
    return is_how("ones") ? ranks : 16;
  case 'N':
    return 24;
  case 'K':
    return 32;
  }
  return 1;
}

// Where piece `r` begins: 16 of three ranks are 4, 6 and 6.
static int64_t begin(int64_t all, int64_t r) {
  if (r == ranks || is_how("ones"))
    return r == ranks ? all : r;
  return is_how("thin") ? r : all * r / ranks - (r > 0 && all > 2 * ranks);
}

static float number(int64_t i, int t) {
  return (float)((i * 37 + t * 11) % 17 - 8) / 16;
}

static int64_t place(const tensor_t *t, const int64_t *at) {
  int64_t i = 0;
  for (int d = 0; d < DIMS; d++)
    i = i * t->whole[d] + (t->whole[d] == 1 ? 0 : at[d]);
  return i;
}

static int64_t count_of(const int64_t *dim) {
  return dim[BATCH] * dim[ROWS] * dim[COLUMNS];
}

static void at_of(const int64_t *dim, int64_t i, int64_t *out) {
  for (int d = DIMS; d-- > 0; i /= dim[d])
    out[d] = i % dim[d];
}

// ---- values ----------------------------------------------------------------

static void tensor_init(int t) {
  tensor_t *made = &tensor[t];
  for (int d = 0; d < DIMS; d++) {
    made->whole[d] = made->dim[d] = extent_of(letters[t][d]);
    if (letters[t][d] == cut) {
      made->first[d] = begin(made->whole[d], rank);
      made->dim[d] = begin(made->whole[d], rank + 1) - made->first[d];
    }
  }
  if (t == Z && is_how("residual") && rank == 1)
    made->dim[ROWS] = 1;
  made->bytes = count_of(made->dim) * (int64_t)sizeof(float);
  made->host = malloc((size_t)count_of(made->whole) * sizeof(float));
  float *piece = malloc((size_t)made->bytes);
  CHECK(!made->host || !piece);
  bool own = (t == BIAS && is_how("bias")) || (t == B && is_how("factor"));
  for (int64_t i = 0; i < count_of(made->whole); i++)
    made->host[i] = number(i, t) + (own ? (float)rank : 0);
  for (int64_t i = 0; i < count_of(made->dim); i++) {
    int64_t at[DIMS];
    at_of(made->dim, i, at);
    for (int d = 0; d < DIMS; d++)
      at[d] += made->first[d];
    piece[i] = t == Y || t == SUM ? NAN : made->host[place(made, at)];
  }
  CHECK(cudaMalloc(&made->device, (size_t)made->bytes));
  CHECK(cudaMemcpy(made->device, piece, (size_t)made->bytes,
                   cudaMemcpyHostToDevice));
  free(piece);
}

static double right_at(const int64_t *at) {
  double sum = 0;
  for (int64_t k = 0; k < extent_of('K'); k++) {
    const int64_t of_a[] = {at[BATCH], at[ROWS], k},
                  of_b[] = {at[BATCH], k, at[COLUMNS]};
    sum += (double)tensor[A].host[place(&tensor[A], of_a)] *
           (double)tensor[B].host[place(&tensor[B], of_b)];
  }
  sum = sum * (double)scale + (double)tensor[BIAS].host[at[COLUMNS]] +
        (double)tensor[Z].host[place(&tensor[Z], at)];
  return sum > 0 ? sum : 0;
}

static double off(int t, double (*right)(const int64_t *at)) {
  const tensor_t *result = &tensor[t];
  float *piece = malloc((size_t)result->bytes);
  double most = 0;
  CHECK(!piece);
  CHECK(cudaMemcpy(piece, result->device, (size_t)result->bytes,
                   cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < count_of(result->dim); i++) {
    int64_t at[DIMS];
    at_of(result->dim, i, at);
    for (int d = 0; d < DIMS; d++)
      at[d] += result->first[d];
    double is = fabs((double)piece[i] - right(at));
    most = is <= most ? most : is; // also if it is NaN
  }
  free(piece);
  return most;
}

static double sum_at(const int64_t *at) {
  double sum = 0;
  for (int64_t b = 0; b < extent_of('B'); b++)
    for (int64_t m = 0; m < extent_of('M'); m++) {
      const int64_t each[] = {b, m, at[COLUMNS]};
      sum += right_at(each);
    }
  return sum;
}

// ---- the graph -------------------------------------------------------------

static build_t describe(int64_t uid, const int64_t *dim, build_place_t place) {
  const int64_t stride[] = {dim[ROWS] * dim[COLUMNS], dim[COLUMNS], 1};
  return build_strided(uid, CUDNN_DATA_FLOAT, DIMS, dim, stride, place);
}

static build_t graph_make(cudnnHandle_t handle) {
  build_t made[TENSORS], between[VIRTUAL], op[8];
  int ops = 0;
  for (int t = 0; t < TENSORS; t++)
    made[t] = describe(t + 1, tensor[t].dim,
                       t == SCALE ? BUILD_BY_VALUE : BUILD_REAL);
  for (int i = 0; i < VIRTUAL; i++)
    between[i] = describe(100 + i, tensor[Y].dim, BUILD_VIRTUAL);
  op[ops++] = build_product(made[A], made[B], between[0]);
  if (is_how("two")) {
    int64_t square[] = {tensor[B].dim[0], tensor[B].dim[2], tensor[B].dim[2]};
    build_t second = describe(50, square, BUILD_VIRTUAL);
    op[ops++] =
        build_pointwise(CUDNN_POINTWISE_IDENTITY, made[SCALE], NULL, second);
    op[ops++] = build_product(between[0], second, made[Y]);
    build_destroy(second);
  } else {
    op[ops++] = build_pointwise(CUDNN_POINTWISE_MUL, between[0], made[SCALE],
                                between[1]);
    op[ops++] = build_pointwise(CUDNN_POINTWISE_ADD, between[1], made[BIAS],
                                between[2]);
    op[ops++] =
        build_pointwise(CUDNN_POINTWISE_ADD, between[2], made[Z], between[3]);
    op[ops++] =
        build_pointwise(CUDNN_POINTWISE_RELU_FWD, between[3], NULL, made[Y]);
    op[ops++] = build_reduction(CUDNN_REDUCE_TENSOR_ADD, made[Y], made[SUM]);
  }
  for (int t = 0; t < TENSORS; t++)
    build_destroy(made[t]);
  for (int i = 0; i < VIRTUAL; i++)
    build_destroy(between[i]);
  return build_graph(handle, op, ops);
}

static void tag(void) {
  char text[] = "M; sizes = piece";
  text[0] = cut;
  tag_range(tensor[Y].device, (size_t)tensor[Y].bytes, text);
}

static cudnnStatus_t capture(cudnnHandle_t handle, build_t plan,
                             const int64_t *uid, void **pointer,
                             void *workspace) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudnnSetStream(handle, stream));
  CHECK(build_execute(handle, plan, uid, pointer, TENSORS, workspace));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudnnStatus_t status =
      build_execute(handle, plan, uid, pointer, TENSORS, workspace);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int i = 0; i < 2; i++) {
    CHECK(cudaMemsetAsync(tensor[Y].device, 0xff, (size_t)tensor[Y].bytes,
                          stream));
    CHECK(cudaMemsetAsync(tensor[SUM].device, 0xff, (size_t)tensor[SUM].bytes,
                          stream));
    CHECK(cudaGraphLaunch(ready, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(ready));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudnnSetStream(handle, NULL));
  CHECK(cudaStreamDestroy(stream));
  return status;
}

static cudnnStatus_t execute(cudnnHandle_t handle) {
  int64_t bytes = 0, uid[TENSORS];
  build_t graph = graph_make(handle);
  build_t plan = build_first_plan(handle, graph, CUDNN_HEUR_MODE_A, &bytes);
  void *pointer[TENSORS], *workspace;
  CHECK(!plan);
  if (is_how("text")) {
    build_t written = plan;
    plan = build_through_text(handle, written);
    build_destroy(written);
  }
  for (int t = 0; t < TENSORS; t++) {
    uid[t] = t + 1;
    pointer[t] = t == SCALE ? &scale : tensor[t].device;
  }
  CHECK(cudaMalloc(&workspace, (size_t)bytes + 1));
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < 2 && !status && !is_how("capture"); i++)
    status = build_execute(handle, plan, uid, pointer, TENSORS, workspace);
  if (is_how("capture"))
    status = capture(handle, plan, uid, pointer, workspace);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(workspace));
  build_destroy(plan);
  build_destroy(graph);
  return status;
}

int main(int words, char **word) {
  const char *view = getenv("LAYER_VIEW");
  cudnnHandle_t handle;
  CHECK(words < 2);
  cut = word[1][0];
  how = words > 2 ? word[2] : "";
  if (view && strcmp(view, "shard") == 0) {
    rank = strtoll(getenv("SUNDOG_RANK"), NULL, 10);
    ranks = strtoll(getenv("SUNDOG_SIZE"), NULL, 10);
  }
  if (is_how("scale"))
    scale += (float)rank;
  CHECK(cudnnCreate(&handle));
  for (int t = 0; t < TENSORS; t++)
    tensor_init(t);
  if (is_how("tag"))
    tag();
  cudnnStatus_t status = execute(handle);
  if (*how)
    printf("status %d\n", (int)status);
  else
    CHECK(status);
  bool other = status || is_how("two"); // computes something else
  double y = other ? 0 : off(Y, right_at), sum = other ? 0 : off(SUM, sum_at);
  if (!(y <= 1e-5 && sum <= 1e-3)) {
    fprintf(stderr, "y is off by %.1e, sums by %.1e\n", y, sum);
    return EXIT_FAILURE;
  }
  for (int t = 0; t < TENSORS; t++) {
    CHECK(cudaFree(tensor[t].device));
    free(tensor[t].host);
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
