/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as a graph of cuDNN's backend API, one operation as cudnn-frontend
 * makes it: in each layer the tokens become what they find by attending to each
 * other. Writes them as floats, one row for each token.
 *
 *   attention OUT.npy [RANK RANKS]    RANK's piece of the tokens; default: all
 *
 * One process:          sundog run -n 1 -- ./attention right.npy
 * Four, each a piece:   sundog run -n 4 --rules attention.rules -- \
 *                         ./attention o.{rank}.npy {rank} {size}
 *                       sundog join o.npy o.[0-3].npy */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common.h"

enum { HEADS = 4, TOKENS = 96, HEAD = 16, LAYERS = 2 };
enum { CHANNELS = HEADS * HEAD, QUERIES = 1, KEYS, VALUES, RESULTS, SCALE };

typedef cudnnBackendDescriptor_t desc_t;

static desc_t create(cudnnBackendDescriptorType_t type) {
  desc_t desc;
  CHECK(cudnnBackendCreateDescriptor(type, &desc));
  return desc;
}

#define SET(desc, name, type, count, from)                                     \
  CHECK(cudnnBackendSetAttribute(desc, CUDNN_ATTR_##name, CUDNN_TYPE_##type,   \
                                 count, from))

/* Batch, heads, tokens, elements of a head; a token's numbers lie together. */
static desc_t tensor(int64_t id, int tokens) {
  const int64_t extent[] = {1, HEADS, tokens, HEAD}, one[] = {1, 1, 1, 1},
                stride[] = {CHANNELS * tokens, HEAD, CHANNELS, 1}, align = 16;
  const bool is_number = id == SCALE;
  cudnnDataType_t type = is_number ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
  desc_t made = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  SET(made, TENSOR_DIMENSIONS, INT64, 4, is_number ? one : extent);
  SET(made, TENSOR_STRIDES, INT64, 4, is_number ? one : stride);
  SET(made, TENSOR_UNIQUE_ID, INT64, 1, &id);
  SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &align);
  SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &is_number);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

/* The plan of the first engine that takes the graph. */
static desc_t plan(cudnnHandle_t cudnn, int tokens) {
  desc_t q = tensor(QUERIES, tokens), k = tensor(KEYS, tokens),
         v = tensor(VALUES, tokens), o = tensor(RESULTS, tokens),
         scale = tensor(SCALE, 1),
         op = create(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR),
         graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
         heuristic = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
         config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
         made = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  SET(op, OPERATION_SDPA_FWD_QDESC, BACKEND_DESCRIPTOR, 1, &q);
  SET(op, OPERATION_SDPA_FWD_KDESC, BACKEND_DESCRIPTOR, 1, &k);
  SET(op, OPERATION_SDPA_FWD_VDESC, BACKEND_DESCRIPTOR, 1, &v);
  SET(op, OPERATION_SDPA_FWD_ODESC, BACKEND_DESCRIPTOR, 1, &o);
  SET(op, OPERATION_SDPA_FWD_SCALEDESC, BACKEND_DESCRIPTOR, 1, &scale);
  CHECK(cudnnBackendFinalize(op));
  SET(graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &cudnn);
  SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op);
  CHECK(cudnnBackendFinalize(graph));
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  SET(heuristic, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph);
  SET(heuristic, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  CHECK(cudnnBackendFinalize(heuristic));
  int64_t found = 0;
  CHECK(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found,
                                 &config));
  require(found == 1, "attention", "no engine takes the graph");
  SET(made, EXECUTION_PLAN_HANDLE, HANDLE, 1, &cudnn);
  SET(made, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

/* y = softmax(x x' scale) x, each head for itself. */
static void attend(cudnnHandle_t cudnn, desc_t made, void *x, void *y) {
  static const int64_t ids[] = {QUERIES, KEYS, VALUES, RESULTS, SCALE};
  float scale = 1 / sqrtf(HEAD);
  void *pointer[] = {x, x, x, y, &scale}, *work = NULL;
  int64_t bytes = 0, count;
  desc_t pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  CHECK(cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes));
  if (bytes)
    CHECK(cudaMalloc(&work, (size_t)bytes));
  SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, 5, ids);
  SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 5, pointer);
  SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &work);
  CHECK(cudnnBackendFinalize(pack));
  CHECK(cudnnBackendExecute(cudnn, made, pack));
  CHECK(cudaFree(work)); /* waits */
  CHECK(cudnnBackendDestroyDescriptor(pack));
}

int main(int argc, char **argv) {
  int rank = argc > 3 ? atoi(argv[2]) : 0, ranks = argc > 3 ? atoi(argv[3]) : 1;
  require(argc > 1 && ranks > 0, "usage", "attention OUT.npy [RANK RANKS]");
  int first = TOKENS * rank / ranks,
      count = TOKENS * (rank + 1) / ranks - first;
  static float host[TOKENS * CHANNELS];
  static uint16_t half[TOKENS * CHANNELS]; /* the upper half of a float */
  uint32_t bits;
  for (int i = 0; i < count * CHANNELS; i++) {
    host[i] = 2 * sinf((float)((first * CHANNELS + i) * 37 % 7919));
    memcpy(&bits, &host[i], sizeof bits);
    half[i] = (uint16_t)((bits + 0x8000) >> 16);
  }
  cudnnHandle_t cudnn;
  void *x, *y;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cudaMalloc(&x, sizeof half));
  CHECK(cudaMalloc(&y, sizeof half));
  CHECK(cudaMemcpy(x, half, sizeof half, cudaMemcpyHostToDevice));
  desc_t made = plan(cudnn, count);
  for (int i = 0; i < LAYERS; i++) {
    attend(cudnn, made, x, y);
    void *next = y;
    y = x;
    x = next;
  }
  CHECK(cudaMemcpy(half, x, sizeof half, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count * CHANNELS; i++) {
    bits = (uint32_t)half[i] << 16;
    memcpy(&host[i], &bits, sizeof bits);
  }
  field_write(argv[1], host, count, CHANNELS);
  return EXIT_SUCCESS;
}
