// SPDX-License-Identifier: Apache-2.0
// A program with two layers of attention of different shapes, forward and
// backward, that executes their plans in turn: each time in other memory, with
// other values, bounds and another scale, on one of two streams without waiting
// in between, with the plan that it made or with one that it made of that
// plan's JSON. All results against loops in double precision.
//
// usage: alternate LETTERS FIRST ROUNDS
//   LETTERS, FIRST  as of the program `attention`; FIRST: seed of the first
//                   layer's shape
//   ROUNDS          how often both layers are executed
#include "tests/clients/graphs/attention/attention.h"
#include "tests/clients/graphs/readback.h"

asked_t asked = {.kind = -1,
                 .order = -1,
                 .type = -1,
                 .mask = -1,
                 .lengths = 0,
                 .split = true};

enum { LAYERS = 4, STREAMS = 2 };

typedef struct {
  uint64_t seed;
  build_t plan[2]; // the second is from JSON
  int64_t bytes;
  void *workspace[STREAMS];
} layer_t;

// ---- plans -----------------------------------------------------------------

// Of the shape that its seed draws, with a scale by value.
static case_t case_of(const layer_t *layer) {
  case_t c = case_draw(layer->seed);
  c.scaled = true;
  return c;
}

static layer_t layer_make(cudnnHandle_t handle, kind_t kind, uint64_t seed) {
  static draft_t draft;
  layer_t layer = {.seed = seed};
  asked.kind = kind;
  case_t c = case_of(&layer);
  case_compute(&c);
  pieces_put(&c);
  made_t made = graph_make(handle, &c, &draft);
  layer.plan[0] =
      build_first_plan(handle, made.graph, CUDNN_HEUR_MODE_A, &layer.bytes);
  CHECK(!layer.plan[0]);
  layer.plan[1] = build_through_text(handle, layer.plan[0]);
  build_destroy(made.graph);
  pieces_free(&c);
  for (int s = 0; s < STREAMS; s++)
    CHECK(cudaMalloc(&layer.workspace[s], (size_t)layer.bytes + 1));
  return layer;
}

// ---- executions ------------------------------------------------------------

typedef struct {
  case_t c;
  draft_t draft;
  made_t made;
} turn_t;

// Values follow those of the turn before.
static void turn_open(cudnnHandle_t handle, const layer_t *layer, kind_t kind,
                      int number, turn_t *turn) {
  asked.kind = kind;
  turn->c = case_of(layer);
  turn->c.scale = 0.125 * (1 + number % 7);
  // A bound of 0 is no number of the graph.
  if (turn->c.right)
    turn->c.right = 1 + number % 5;
  if (turn->c.left)
    turn->c.left = 1 + number % 8;
  for (int i = 0; i < number; i++)
    (void)draw_in(0, 1);
  case_compute(&turn->c);
  pieces_put(&turn->c);
  // The pack; the plan is the layer's.
  turn->made = graph_make(handle, &turn->c, &turn->draft);
  build_destroy(turn->made.graph);
}

static void turn_run(cudnnHandle_t handle, const layer_t *layer, int number,
                     cudaStream_t stream, const turn_t *turn) {
  const made_t *made = &turn->made;
  CHECK(cudnnSetStream(handle, stream));
  CHECK(build_execute(handle, layer->plan[number / 3 % 2], made->uids,
                      made->pointers, made->count,
                      layer->workspace[number % STREAMS]));
}

static void turn_end(turn_t *turn, int number) {
  static const int results[] = {O, STATS, D_Q, D_K, D_V};
  for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
    const array_t *a = &turn->c.array[results[i]];
    if (!a->exists || !a->is_result || array_off(a) <= 1)
      continue;
    fprintf(stderr, "alternate: turn %d: array %d is off by %.1f: %s\n", number,
            results[i], array_off(a), case_text(&turn->c));
    exit(EXIT_FAILURE);
  }
  pieces_free(&turn->c);
}

int main(int words, char **word) {
  static turn_t turn[STREAMS];
  layer_t layer[LAYERS];
  cudaStream_t stream[STREAMS];
  cudnnHandle_t handle;
  int number = 0;
  CHECK(words != 4);
  for (int i = 0; i < 2 && word[1][i]; i++)
    asked.cut[i] = word[1][i];
  uint64_t first = strtoull(word[2], NULL, 10);
  CHECK(cudnnCreate(&handle));
  for (int s = 0; s < STREAMS; s++)
    CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
  for (int i = 0; i < LAYERS; i++)
    layer[i] = layer_make(handle, i < 2 ? FORWARD : BACKWARD,
                          first + (uint64_t)(i % 2));
  // Two turns of one layer, then of the next one.
  for (int i = 0; i < atoi(word[3]) * LAYERS; i++) {
    const layer_t *of = &layer[i % LAYERS];
    for (int s = 0; s < STREAMS; s++)
      turn_open(handle, of, i % LAYERS < 2 ? FORWARD : BACKWARD, number + s,
                &turn[s]);
    CHECK(cudaDeviceSynchronize());
    for (int s = 0; s < STREAMS; s++, number++)
      turn_run(handle, of, number, stream[s], &turn[s]);
    CHECK(cudaDeviceSynchronize());
    for (int s = 0; s < STREAMS; s++)
      turn_end(&turn[s], number - STREAMS + s);
  }
  printf("%d turns are right\n", number);
  return EXIT_SUCCESS;
}
