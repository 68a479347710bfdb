// SPDX-License-Identifier: Apache-2.0
// Prints how many calls of which functions libsundog.so makes for one call of
// the program, in the steady state. The module of tally.c counts them.
//
// usage: bench_launches CASE
//
// Prints one line per function, "CALLER FUNCTION OWN OTHER": calls in all by
// this thread and by others, during CALLS calls of the case.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/tally.h"
#include "tests/calls.h"
#include "tests/clients/graphs/build.h"

enum { WARM = 8, CALLS = 16 };
enum { C = 8, ROWS = 12, COLUMNS = 16, TOKENS = 24, HEADS = 2, MATRIX = 12 };

enum { TENSOR_BYTES = sizeof(float) * C * ROWS * COLUMNS };

// The form of activations; whether every call gets them at other addresses, or
// with a descriptor that was set again.
typedef struct form {
  cudnnTensorFormat_t format;
  cudnnDataType_t type;
  bool moves, anew;
} form_t;

typedef struct bench {
  cudnnHandle_t cudnn;
  cublasHandle_t cublas;
  form_t form;
  cudnnTensorDescriptor_t x, channel;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnAttnDescriptor_t attention;
  cudnnSeqDataDescriptor_t tokens;
  int low[TOKENS], high[TOKENS], *lengths;
  size_t weight_bytes, work_bytes, reserve_bytes;
  void *at[8]; // tensors, each large enough for any operand
  void *work, *reserve;
  build_t plan, pack; // of a graph
} bench_t;

static const float one = 1, zero = 0;

static void *memory(size_t bytes) {
  void *at;
  CHECK(cudaMalloc(&at, bytes));
  CHECK(cudaMemset(at, 0, bytes));
  return at;
}

static void work_need(bench_t *b, size_t bytes) {
  if (bytes > b->work_bytes) {
    b->work = memory(bytes);
    b->work_bytes = bytes;
  }
}

static void conv_init(bench_t *b) {
  CHECK(cudnnCreateFilterDescriptor(&b->w));
  CHECK(cudnnSetFilter4dDescriptor(b->w, b->form.type, b->form.format, C, C, 3,
                                   3));
  CHECK(cudnnCreateConvolutionDescriptor(&b->conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      b->conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudnnSetConvolutionMathType(b->conv, CUDNN_TENSOR_OP_MATH));
}

static void forward_init(bench_t *b) {
  size_t bytes;
  conv_init(b);
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      b->cudnn, b->x, b->w, b->conv, b->x,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes));
  work_need(b, bytes);
}

static int forward(const bench_t *b) {
  return (int)cudnnConvolutionForward(
      b->cudnn, &one, b->x, b->at[0], b->w, b->at[1], b->conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, b->work, b->work_bytes,
      &zero, b->x, b->at[2]);
}

static void data_init(bench_t *b) {
  size_t bytes;
  conv_init(b);
  CHECK(cudnnGetConvolutionBackwardDataWorkspaceSize(
      b->cudnn, b->w, b->x, b->conv, b->x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
      &bytes));
  work_need(b, bytes);
}

static int data(const bench_t *b) {
  return (int)cudnnConvolutionBackwardData(
      b->cudnn, &one, b->w, b->at[1], b->x, b->at[0], b->conv,
      CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, b->work, b->work_bytes, &zero, b->x,
      b->at[2]);
}

static void filter_init(bench_t *b) {
  size_t bytes;
  conv_init(b);
  CHECK(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      b->cudnn, b->x, b->x, b->conv, b->w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
      &bytes));
  work_need(b, bytes);
}

static int filter(const bench_t *b) {
  return (int)cudnnConvolutionBackwardFilter(
      b->cudnn, &one, b->x, b->at[0], b->x, b->at[1], b->conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, b->work, b->work_bytes, &zero, b->w,
      b->at[2]);
}

static build_t graph_tensor(const form_t *form, int64_t uid,
                            const int64_t dim[4]) {
  int64_t c = dim[1], h = dim[2], w = dim[3];
  const int64_t nhwc[] = {c * h * w, 1, w * c, c},
                nchw[] = {c * h * w, h * w, w, 1};
  return build_strided(uid, form->type, 4, dim,
                       form->format == CUDNN_TENSOR_NHWC ? nhwc : nchw,
                       BUILD_REAL);
}

// A graph of one op. The program keeps its variant pack.
static void graph_init(bench_t *b, build_conv_t what) {
  enum { X = 1, W, Y };
  const int64_t rows[] = {1, C, ROWS, COLUMNS}, filter[] = {C, C, 3, 3};
  const int64_t uid[] = {X, W, Y};
  void *at[] = {b->at[what == BUILD_DATA ? 2 : 0], b->at[1],
                b->at[what == BUILD_DATA ? 0 : 2]};
  int64_t bytes;
  build_t x = graph_tensor(&b->form, X, rows),
          w = graph_tensor(&b->form, W, filter),
          y = graph_tensor(&b->form, Y, rows);
  build_t op = build_conv(what, 1, 1, x, w, y);
  build_t graph = build_graph(b->cudnn, &op, 1);
  b->plan = build_first_plan(b->cudnn, graph, CUDNN_HEUR_MODE_INSTANT, &bytes);
  CHECK(!b->plan);
  work_need(b, (size_t)bytes + 1);
  b->pack = build_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  BUILD_SET(b->pack, VARIANT_PACK_UNIQUE_IDS, INT64, 3, uid);
  BUILD_SET(b->pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 3, at);
  BUILD_SET(b->pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &b->work);
  CHECK(cudnnBackendFinalize(b->pack));
}

static void graph_forward_init(bench_t *b) {
  graph_init(b, BUILD_FORWARD);
}

static void graph_data_init(bench_t *b) {
  graph_init(b, BUILD_DATA);
}

static int graph(const bench_t *b) {
  return (int)cudnnBackendExecute(b->cudnn, b->plan, b->pack);
}

static void pool_init(bench_t *b) {
  CHECK(cudnnCreatePoolingDescriptor(&b->pool));
  CHECK(cudnnSetPooling2dDescriptor(b->pool, CUDNN_POOLING_MAX,
                                    CUDNN_PROPAGATE_NAN, 3, 3, 1, 1, 1, 1));
}

static int pool(const bench_t *b) {
  return (int)cudnnPoolingForward(b->cudnn, b->pool, &one, b->x, b->at[0],
                                  &zero, b->x, b->at[1]);
}

static int unpool(const bench_t *b) {
  return (int)cudnnPoolingBackward(b->cudnn, b->pool, &one, b->x, b->at[1],
                                   b->x, b->at[2], b->x, b->at[0], &zero, b->x,
                                   b->at[3]);
}

static void norm_init(bench_t *b) {
  CHECK(cudnnCreateTensorDescriptor(&b->channel));
  CHECK(
      cudnnDeriveBNTensorDescriptor(b->channel, b->x, CUDNN_BATCHNORM_SPATIAL));
}

static int norm(const bench_t *b) {
  return (int)cudnnBatchNormalizationForwardTraining(
      b->cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, b->x, b->at[0], b->x,
      b->at[1], b->channel, b->at[2], b->at[3], 1, NULL, NULL, 1e-4, b->at[4],
      b->at[5]);
}

static int norm_back(const bench_t *b) {
  return (int)cudnnBatchNormalizationBackward(
      b->cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, b->x,
      b->at[0], b->x, b->at[1], b->x, b->at[6], b->channel, b->at[2], b->at[3],
      b->at[7], 1e-4, b->at[4], b->at[5]);
}

// Keys that are at most one token away are seen.
static void attention_init(bench_t *b) {
  const cudnnSeqDataAxis_t axes[] = {
      CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM,
      CUDNN_SEQDATA_VECT_DIM};
  int extent[CUDNN_SEQDATA_DIM_COUNT], head = C / HEADS, tokens = TOKENS;
  size_t bytes;
  extent[CUDNN_SEQDATA_TIME_DIM] = TOKENS;
  extent[CUDNN_SEQDATA_BATCH_DIM] = extent[CUDNN_SEQDATA_BEAM_DIM] = 1;
  extent[CUDNN_SEQDATA_VECT_DIM] = C;
  CHECK(cudnnCreateAttnDescriptor(&b->attention));
  CHECK(cudnnSetAttnDescriptor(b->attention, CUDNN_ATTN_QUERYMAP_ALL_TO_ONE,
                               HEADS, 1, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                               CUDNN_DEFAULT_MATH, NULL, NULL, C, C, C, head,
                               head, head, C, TOKENS, TOKENS, 1, 1));
  CHECK(cudnnCreateSeqDataDescriptor(&b->tokens));
  CHECK(cudnnSetSeqDataDescriptor(b->tokens, CUDNN_DATA_FLOAT,
                                  CUDNN_SEQDATA_DIM_COUNT, extent, axes, 1,
                                  &tokens, NULL));
  CHECK(cudnnGetMultiHeadAttnBuffers(b->cudnn, b->attention, &b->weight_bytes,
                                     &bytes, &b->reserve_bytes));
  work_need(b, bytes);
  b->reserve = memory(b->reserve_bytes + 1);
  b->lengths = memory(sizeof *b->lengths);
  CHECK(cudaMemcpy(b->lengths, &tokens, sizeof tokens, cudaMemcpyHostToDevice));
  for (int i = 0; i < TOKENS; i++) {
    b->low[i] = i > 0 ? i - 1 : 0;
    b->high[i] = i + 1 < TOKENS ? i + 2 : TOKENS;
  }
}

static int attention(const bench_t *b) {
  return (int)cudnnMultiHeadAttnForward(
      b->cudnn, b->attention, -1, b->low, b->high, b->lengths, b->lengths,
      b->tokens, b->at[0], NULL, b->tokens, b->at[1], b->tokens, b->at[2],
      b->tokens, b->at[3], b->weight_bytes, b->at[4], b->work_bytes, b->work,
      b->reserve_bytes, b->reserve);
}

static void product_init(bench_t *b) {
  CHECK(cublasCreate(&b->cublas));
}

static int product(const bench_t *b) {
  return (int)cublasSgemm(b->cublas, CUBLAS_OP_N, CUBLAS_OP_N, MATRIX, MATRIX,
                          MATRIX, &one, b->at[0], MATRIX, b->at[1], MATRIX,
                          &zero, b->at[2], MATRIX);
}

// moving: bits of at[] whose tensors may move: activations and gradients.
static const struct {
  const char *name;
  void (*init)(bench_t *bench);
  int (*call)(const bench_t *bench);
  unsigned moving;
} ops[] = {
    {"forward", forward_init, forward, 1 << 0 | 1 << 2},
    {"data", data_init, data, 1 << 1 | 1 << 2},
    {"filter", filter_init, filter, 1 << 0 | 1 << 1 | 1 << 2},
    {"graph-forward", graph_forward_init, graph, 0},
    {"graph-data", graph_data_init, graph, 0},
    {"pool", pool_init, pool, 0xff},
    {"unpool", pool_init, unpool, 0xff},
    {"norm", norm_init, norm, 1 << 0 | 1 << 1},
    {"norm-back", norm_init, norm_back, 1 << 0 | 1 << 1 | 1 << 6},
    {"attention", attention_init, attention, 0},
    {"product", product_init, product, 0},
};

static void x_describe(bench_t *b) {
  CHECK(cudnnSetTensor4dDescriptor(b->x, b->form.format, b->form.type, 1, C,
                                   ROWS, COLUMNS));
}

static void bench_init(bench_t *b) {
  CHECK(cudnnCreate(&b->cudnn));
  CHECK(cudnnCreateTensorDescriptor(&b->x));
  x_describe(b);
  for (int i = 0; i < 8; i++)
    b->at[i] =
        memory((size_t)(b->form.moves ? WARM + CALLS + 1 : 1) * TENSOR_BYTES);
}

static int call_make(bench_t *b, int op) {
  if (b->form.anew)
    x_describe(b);
  for (int i = 0; i < 8; i++)
    if (b->form.moves && ops[op].moving >> i & 1)
      b->at[i] = (char *)b->at[i] + TENSOR_BYTES;
  return ops[op].call(b);
}

static tally_t *tally_map(void) {
  const char *path = getenv("TALLY_FILE");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  void *map = fd < 0 ? MAP_FAILED
                     : mmap(NULL, sizeof(tally_t), PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) {
    fprintf(stderr, "launches: no counters in TALLY_FILE\n");
    exit(EXIT_FAILURE);
  }
  return map;
}

// "forward" or "forward/nhwc/half/moves": an op and the form of its tensors.
static int case_find(const char *name, form_t *out_form) {
  size_t length = strcspn(name, "/");
  bool nhwc = strstr(name, "/nhwc"), half = strstr(name, "/half");
  out_form->format = nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  out_form->type = half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
  out_form->moves = strstr(name, "/moves");
  out_form->anew = strstr(name, "/anew");
  for (int i = 0; i < (int)(sizeof ops / sizeof ops[0]); i++)
    if (strlen(ops[i].name) == length &&
        strncmp(ops[i].name, name, length) == 0)
      return i;
  return -1;
}

int main(int count, char **words) {
  static bench_t bench;
  int op = count == 2 ? case_find(words[1], &bench.form) : -1;
  if (op < 0) {
    fprintf(stderr, "usage: bench_launches OP[/nhwc][/half][/moves][/anew]\n");
    return 2;
  }
  static tally_t before;
  tally_t *tally = tally_map();
  bench_init(&bench);
  ops[op].init(&bench);
  for (int i = 0; i < WARM; i++)
    CHECK(call_make(&bench, op));
  CHECK(cudaDeviceSynchronize());
  before = *tally;
  tally->thread = tally_thread();
  for (int i = 0; i < CALLS; i++)
    CHECK(call_make(&bench, op));
  tally->thread = 0;
  static tally_t after;
  after = *tally;
  CHECK(cudaDeviceSynchronize());
  printf("calls %d\n", CALLS);
  for (int i = 0; i < after.rows; i++) {
    uint64_t others = after.other[i] - before.other[i];
    if (after.own[i] + others > 0)
      printf("%s %s %llu %llu\n", after.row[i].caller, after.row[i].name,
             (unsigned long long)after.own[i], (unsigned long long)others);
  }
  return 0;
}
