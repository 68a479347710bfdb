// SPDX-License-Identifier: Apache-2.0
// Prints the median milliseconds, by the clock and in CPU time, of attention as
// a graph of cuDNN's backend API, forward or backward, in half precision.
//
// usage: bench_attention_graph forward|backward STEPS TOKENS PART HEADS GROUPS
//                              SIZE BEFORE BEHIND
//
// TOKENS are the tokens of each piece, N,N,...; PART is this process's piece.
// GROUPS: heads of keys and values; SIZE: of a head. A token sees so many
// tokens before and behind it, and itself; -1: all.
#include <string.h>

#include "tests/clients/graphs/attention/attention.h"
#include "tests/clients/nets/net.h"

asked_t asked; // what random cases are asked for

// Batch, sequence, heads, vector. The values do not matter.
static void array_make(array_t *a, cudnnDataType_t type, int64_t heads,
                       int64_t tokens, int64_t size) {
  int64_t elements = heads * tokens * size;
  size_t bytes = (size_t)elements * (type == CUDNN_DATA_HALF ? 2 : 4);
  *a = (array_t){.exists = true,
                 .type = type,
                 .dim = {1, heads, tokens, size},
                 .stride = {elements, size, heads * size, 1}};
  CHECK(cudaMalloc(&a->device, bytes));
  CHECK(cudaMemset(a->device, 0x2c, bytes)); // small numbers
}

// Statistics are packed, one number for each query of each head.
static void numbers_make(array_t *a, int64_t heads, int64_t tokens) {
  array_make(a, CUDNN_DATA_FLOAT, heads, tokens, 1);
  a->stride[HEADS] = tokens;
  a->stride[ROWS] = 1;
}

static void arrays_make(case_t *c) {
  static const int of_queries[] = {Q, O, D_O, D_Q},
                   of_keys[] = {K, V, D_K, D_V};
  int count = c->kind == BACKWARD ? 4 : 2;
  for (int i = 0; i < count; i++) {
    array_make(&c->array[of_queries[i]], c->type, c->h, c->s_q, c->d);
    array_make(&c->array[of_keys[i]], c->type, c->g, c->s_kv, c->d);
  }
  if (c->kind == FORWARD)
    return;
  numbers_make(&c->array[STATS], c->h, c->s_q);
  numbers_make(&c->array[DELTA], c->h, c->s_q);
  array_make(&c->array[GATHERED], CUDNN_DATA_FLOAT, c->h, c->s_q, c->d);
}

static case_t case_make(int tokens, char **words) {
  int64_t before = atoi(words[8]), behind = atoi(words[9]);
  case_t c = {.kind = strcmp(words[1], "backward") == 0 ? BACKWARD : FORWARD,
              .type = CUDNN_DATA_HALF,
              .b = 1,
              .h = atoi(words[5]),
              .g = atoi(words[6]),
              .d = atoi(words[7]),
              .s_q = tokens,
              .s_kv = tokens,
              .has_left = before >= 0,
              .left = before + 1, // the first one that is not seen
              .has_right = behind >= 0,
              .right = behind,
              .scaled = true};
  c.scale = 1 / sqrt((double)c.d);
  arrays_make(&c);
  return c;
}

int main(int count, char **words) {
  net_rows_t tokens;
  if (count != 10 ||
      (strcmp(words[1], "forward") != 0 && strcmp(words[1], "backward") != 0) ||
      !net_rows(0, words[3], atoi(words[4]), &tokens)) {
    fprintf(stderr, "usage: bench_attention_graph forward|backward STEPS "
                    "TOKENS,... PART HEADS GROUPS SIZE BEFORE BEHIND\n");
    return 2;
  }
  case_t c = case_make(tokens.count, words);
  cudnnHandle_t handle;
  net_clock_t clock = {0};
  int64_t bytes = 0;
  void *workspace;
  CHECK(cudnnCreate(&handle));
  static draft_t draft;
  made_t made = graph_make(handle, &c, &draft);
  build_t plan =
      build_first_plan(handle, made.graph, CUDNN_HEUR_MODE_A, &bytes);
  CHECK(!plan);
  CHECK(cudaMalloc(&workspace, (size_t)bytes + 1));
  for (int i = 0; i < atoi(words[2]); i++) {
    CHECK(build_execute(handle, plan, made.uids, made.pointers, made.count,
                        workspace));
    CHECK(cudaDeviceSynchronize());
    net_clock_tick(&clock);
  }
  net_clock_print(&clock);
  return EXIT_SUCCESS;
}
