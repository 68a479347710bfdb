// SPDX-License-Identifier: Apache-2.0
// Random tensors from random placements to others, by sundog_redistribute. All
// ranks draw the same; each checks every element of its new piece.
//
// usage: redistcase RANK MESH SEED TRIALS, MESH as "a=2,b=3"
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"

enum { DIMS = 5, AXES = 4, PIECES = 16, ROOM = 1 << 14 };

static struct {
  int axes, size[AXES], coord[AXES];
  unsigned long long state;
} g;

static int draw(int below) {
  g.state = g.state * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((g.state >> 33) % (unsigned)below);
}

static void mesh_read(const char *text, int rank) {
  for (const char *at = text; at; at = strchr(at, ',')) {
    at += *at == ',';
    g.size[g.axes++] = atoi(at + 2);
  }
  for (int a = g.axes - 1; a >= 0; a--) {
    g.coord[a] = rank % g.size[a];
    rank /= g.size[a];
  }
}

// One side: for each axis the dimension it cuts, -1: none, -2: pending.
typedef struct side {
  int dim_of[AXES];
  bool max, nhwc, twice;
  int lo[DIMS], extent[DIMS], stride[DIMS];
  int first_of_pending; // this rank is the one with the values
  char text[64];
  bool empty;
  cudnnTensorDescriptor_t descriptor;
  void *data;
} side_t;

static void part_draw(int extent, int pieces, int *first) {
  first[0] = 0;
  for (int i = 1; i < pieces; i++)
    first[i] = draw(extent + 1);
  for (int i = 1; i < pieces; i++)
    for (int k = i; k > 1 && first[k] < first[k - 1]; k--) {
      int t = first[k];
      first[k] = first[k - 1];
      first[k - 1] = t;
    }
  first[pieces] = extent;
}

static void side_draw(side_t *side, const int *whole, bool can_be_pending) {
  static const char *const names = "NCDHW";
  side->max = draw(3) == 0;
  side->nhwc = draw(2);
  side->text[0] = '\0';
  side->empty = false;
  side->first_of_pending = 1;
  for (int a = 0; a < g.axes; a++) {
    side->dim_of[a] = draw(DIMS + 2) - 2;
    if (side->dim_of[a] == -2 && !can_be_pending)
      side->dim_of[a] = -1;
    if (side->dim_of[a] == -2 && g.coord[a] > 0)
      side->first_of_pending = 0;
  }
  for (int d = -1; d < DIMS; d++) { // -1: pending
    int pieces = 1, mine = 0, first[PIECES + 1];
    char *end = side->text + strlen(side->text);
    for (int a = 0; a < g.axes; a++) {
      if (side->dim_of[a] != (d < 0 ? -2 : d))
        continue;
      if (pieces == 1 && end == side->text + strlen(side->text))
        sprintf(end, d < 0 ? "%s%s:" : "%s%.1s:", *side->text ? ", " : "",
                d < 0 ? (side->max ? "max" : "sum") : &names[d]);
      else
        strcat(side->text, "+");
      sprintf(side->text + strlen(side->text), "%c", 'a' + a);
      mine = mine * g.size[a] + g.coord[a];
      pieces *= g.size[a];
    }
    if (d < 0)
      continue;
    part_draw(whole[d], pieces, first);
    side->lo[d] = first[mine];
    side->extent[d] = first[mine + 1] - first[mine];
    side->empty |= side->extent[d] == 0;
  }
  if (!*side->text)
    strcpy(side->text, "replicated");
}

static void side_describe(side_t *side) {
  int extent[DIMS], order[DIMS] = {0, 2, 3, 4, 1}, stride = 1 + draw(2);
  for (int d = 0; d < DIMS; d++)
    extent[d] = side->extent[d] ? side->extent[d] : 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    int d = side->nhwc ? order[i] : i;
    side->stride[d] = stride;
    stride *= extent[d];
  }
  CHECK(cudnnSetTensorNdDescriptor(
      side->descriptor, side->twice ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      DIMS, extent, side->stride));
}

// The tensor's value, and the terms that the ranks along pending axes have.
static double value_at(const int *at) {
  double value = 1;
  for (int d = 0; d < DIMS; d++)
    value = value * 7 + at[d];
  return value;
}

static double term_of(const side_t *x, double value) {
  int terms = 1, mine = 0;
  for (int a = 0; a < g.axes; a++)
    if (x->dim_of[a] == -2) {
      terms *= g.size[a];
      mine = mine * g.size[a] + g.coord[a];
    }
  if (x->max)
    return mine == terms / 2 ? value : value - 1 - mine;
  return mine == 0 ? value - 3 * (terms - 1) : 3;
}

// Walks the piece: reads what the memory has there, or writes it.
static int piece_walk(side_t *side, char *host, bool writes, const side_t *x) {
  int i[DIMS] = {0}, wrong = 0;
  if (side->empty)
    return 0;
  for (;;) {
    int at[DIMS], offset = 0;
    for (int d = 0; d < DIMS; d++) {
      at[d] = side->lo[d] + i[d];
      offset += i[d] * side->stride[d];
    }
    double value = value_at(at);
    if (writes)
      value = term_of(x, value);
    else if (!side->first_of_pending)
      value = 0;
    char *element = host + (size_t)offset * (side->twice ? 8 : 4);
    float single = (float)value, is;
    if (writes && side->twice)
      memcpy(element, &value, 8);
    else if (writes)
      memcpy(element, &single, 4);
    else if (side->twice)
      wrong += memcmp(element, &value, 8) != 0;
    else {
      memcpy(&is, element, 4);
      wrong += is != single;
    }
    int d = DIMS - 1;
    for (; d >= 0 && ++i[d] == side->extent[d]; d--)
      i[d] = 0;
    if (d < 0)
      return wrong;
  }
}

int main(int count, char **arguments) {
  static char host[ROOM * 8];
  static side_t x, y;
  __typeof__(&sundog_redistribute) redistribute =
      (__typeof__(&sundog_redistribute))dlsym(RTLD_DEFAULT,
                                              "sundog_redistribute");
  if (count != 5 || !redistribute)
    return 2;
  mesh_read(arguments[2], atoi(arguments[1]));
  g.state = strtoull(arguments[3], NULL, 10) * 2 + 1;
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&x.descriptor));
  CHECK(cudnnCreateTensorDescriptor(&y.descriptor));
  CHECK(cudaMalloc(&x.data, sizeof host));
  CHECK(cudaMalloc(&y.data, sizeof host));
  for (int trial = 0; trial < atoi(arguments[4]); trial++) {
    int whole[DIMS];
    for (int d = 0; d < DIMS; d++)
      whole[d] = 1 + draw(6);
    side_draw(&x, whole, true);
    side_draw(&y, whole, true);
    if (y.max && strstr(y.text, "max"))
      memcpy(strstr(y.text, "max"), "sum", 3);
    x.twice = y.twice = draw(2);
    side_describe(&x);
    side_describe(&y);
    piece_walk(&x, host, true, &x);
    CHECK(cudaMemcpy(x.data, host, sizeof host, cudaMemcpyHostToDevice));
    memset(host, 0xff, sizeof host);
    CHECK(cudaMemcpy(y.data, host, sizeof host, cudaMemcpyHostToDevice));
    for (int repeat = 0; repeat < 2; repeat++)
      CHECK(redistribute(handle, x.descriptor, x.text, x.empty ? NULL : x.data,
                         y.descriptor, y.text, y.empty ? NULL : y.data));
    CHECK(cudaMemcpy(host, y.data, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = piece_walk(&y, host, false, &x);
    if (wrong) {
      fprintf(stderr, "redistcase: trial %d, '%s' to '%s': %d wrong\n", trial,
              x.text, y.text, wrong);
      return 1;
    }
  }
  return 0;
}
