// SPDX-License-Identifier: Apache-2.0
// Random graphs against loops in double precision:
//   [scale, bias, relu ->] convolution or pooling of any kind [-> pointwise
//   ops, one of which may read the main op's own input; intermediate results
//   may be written, too] [-> reductions]; and the same of products of matrices
//   and of normalisations.
//
// usage: random DIMENSION FIRST COUNT [pool | pointwise | product | norm |
//               data | statistics | half | wrap | ones | hopper]...
//   DIMENSION  N, C, D, H or W: with LAYER_VIEW=shard each rank (SUNDOG_RANK of
//              SUNDOG_SIZE) has its piece of it. Two of them, as HW: the second
//              is split over pairs of ranks that follow one another
//              Of products: M, N, K or B (the batch)
//   FIRST      seed of the first graph; COUNT: how many
//   pool       poolings in place of convolutions; pointwise: neither
//   product    products of matrices
//   norm       normalisations, and their gradients
//   data       gradients of data without reductions; their dy may be computed,
//              too, which no GPU takes
//   half       tensors with memory are in half, but for sums
//   hopper     graphs that have an engine on an H100, mostly
//   ones       of three ranks each has one sample; without reductions
//   wrap       the dimension is periodic: wrap = DIMENSION in the rules
//   statistics graphs may end in GEN_STATS, which a GPU takes in half only
// Prints how many were computed, and the seed of one that is wrong. A graph
// that is refused (CUDNN_STATUS_NOT_SUPPORTED) counts as none.
#include "tests/clients/graphs/random/graph.h"

asked_t asked;

static void graph_free(graph_t *g) {
  for (int t = 0; t < g->tensors; t++) {
    free(g->tensor[t].value);
    free(g->tensor[t].old);
    CHECK(cudaFree(g->tensor[t].device));
  }
}

// Whether the graph has the tensor: the gradient of a maximum by indices reads
// neither x nor y.
static bool has(const graph_t *g, int t) {
  return !g->tensor[t].is_virtual &&
         !(g->indices >= 0 && (t == g->of_x || t == g->of_y));
}

// False: it is refused.
static bool execute(cudnnHandle_t handle, const graph_t *g) {
  int64_t bytes = 0, uid[TENSORS + NUMBERS], count = 0;
  void *pointer[TENSORS + NUMBERS];
  build_t graph = graph_of(handle, g);
  build_t plan =
      build_first_plan(handle, graph, CUDNN_HEUR_MODE_INSTANT, &bytes);
  build_destroy(graph);
  if (!plan)
    return false;
  for (int t = 0; t < g->tensors; t++)
    if (has(g, t)) {
      uid[count] = t + 100;
      const tensor_t *tensor = &g->tensor[t];
      pointer[count++] =
          tensor->device ? tensor->device : g->tensor[tensor->lies_in].device;
    }
  float number[NUMBERS];
  memcpy(number, g->norm.number, sizeof number);
  for (int i = 0; i < NUMBERS && g->main == MAIN_NORM; i++) {
    uid[count] = number_uid(i);
    pointer[count++] = &number[i];
  }
  cudnnStatus_t status =
      build_execute_once(handle, plan, uid, pointer, count, bytes);
  CHECK(cudaDeviceSynchronize());
  build_destroy(plan);
  if (status != CUDNN_STATUS_NOT_SUPPORTED)
    CHECK(status);
  return status == CUDNN_STATUS_SUCCESS;
}

static double tolerance(const graph_t *g) {
  return asked.in_half          ? 2e-2
         : g->main != MAIN_NORM ? 2e-5
         : g->norm.far          ? 5e-4
                                : 5e-5;
}

static bool graph_run(cudnnHandle_t handle, uint64_t seed) {
  graph_t g = graph_draw(seed);
  graph_compute(&g);
  pieces_put(&g);
  bool ran = execute(handle, &g);
  for (int t = 0; t < g.tensors && ran; t++) {
    double off = g.tensor[t].is_result && !g.tensor[t].is_virtual
                     ? tensor_off(&g, &g.tensor[t])
                     : 0;
    if (!(off <= tolerance(&g))) {
      fprintf(stderr, "random %c%c %lu 1: wrong: tensor %d off by %.1e\n",
              asked.split, asked.second, (unsigned long)seed, t, off);
      exit(EXIT_FAILURE);
    }
  }
  graph_free(&g);
  return ran;
}

int main(int words, char **word) {
  cudnnHandle_t handle;
  CHECK(words < 4);
  asked.split = word[1][0];
  asked.second = word[1][1];
  for (int i = 4; i < words; i++) {
    asked.with_statistics |= strcmp(word[i], "statistics") == 0;
    asked.data |= strcmp(word[i], "data") == 0;
    asked.wraps |= strcmp(word[i], "wrap") == 0;
    asked.in_half |= strcmp(word[i], "half") == 0;
    asked.ones |= strcmp(word[i], "ones") == 0;
    asked.for_hopper |= strcmp(word[i], "hopper") == 0;
    if (strcmp(word[i], "pool") == 0)
      asked.main = MAIN_POOL;
    if (strcmp(word[i], "pointwise") == 0)
      asked.main = MAIN_NONE;
    if (strcmp(word[i], "product") == 0)
      asked.main = MAIN_PRODUCT;
    if (strcmp(word[i], "norm") == 0)
      asked.main = MAIN_NORM;
  }
  uint64_t first = strtoull(word[2], NULL, 10);
  uint64_t count = strtoull(word[3], NULL, 10), ran = 0;
  CHECK(cudnnCreate(&handle));
  for (uint64_t i = 0; i < count; i++)
    ran += graph_run(handle, first + i);
  printf("%lu of %lu graphs are right, the others refused\n",
         (unsigned long)ran, (unsigned long)count);
  CHECK(cudnnDestroy(handle));
  return ran * 4 >= count * 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
