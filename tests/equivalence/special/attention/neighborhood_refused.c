// SPDX-License-Identifier: Apache-2.0
// Makes calls that neighbourhood attention must refuse, on two ranks of a run
// with --split tags. The job continues after each call. The program prints a
// line at its end, because the run itself fails after refused calls.
//
// usage: neighborhood_refused RANK
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"

enum { Q, K, V, O, TENSORS, ROOM = 4096 };

static cudnnHandle_t handle;
static cudnnTensorDescriptor_t descriptor[TENSORS];
static void *data[TENSORS];
static __typeof__(&sundog_neighborhood_attention) attention;
static __typeof__(&sundog_tag) tag;
static __typeof__(&sundog_placement) placement;

static void set(int which, cudnnDataType_t type, int c, int h, int w) {
  const int extent[4] = {1, c, h, w}, stride[4] = {c * h * w, h * w, w, 1};
  CHECK(cudnnSetTensorNdDescriptor(descriptor[which], type, 4, extent, stride));
}

// Tags tensors of two heads with two channels each, 6 rows and 5 columns; rank
// 1 has one row more.
static void set_all(int rank, const char *split) {
  for (int i = 0; i < TENSORS; i++)
    set(i, CUDNN_DATA_FLOAT, 4, 3 + rank, 5);
  CHECK(tag(descriptor[Q], split));
}

static int attend(const sundog_neighborhood_t *how) {
  return attention(handle, how, descriptor[Q], data[Q], descriptor[K], data[K],
                   descriptor[V], data[V], descriptor[O], data[O]);
}

static void expect(const char *what, int code, int got) {
  if (got == code)
    return;
  fprintf(stderr, "neighborhood_refused: %s gives %d, not %d\n", what, got,
          code);
  exit(1);
}

static const sundog_neighborhood_t good = {
    .dims = 2, .kernel = {3, 3}, .dilation = {1, 1}, .heads = 2};

#define WITH(field, value)                                                     \
  do {                                                                         \
    sundog_neighborhood_t how_ = good;                                         \
    how_.field = (value);                                                      \
    expect(#field " = " #value, 620, attend(&how_));                           \
  } while (0)

static void windows_check(int rank) {
  set_all(rank, "H:a");
  WITH(dims, 0);
  WITH(dims, 4);
  WITH(dims, 3);
  WITH(dims, 1); // one dimension is not of the grid
  WITH(kernel[0], 0);
  WITH(kernel[1], 6);
  WITH(dilation[1], 0);
  WITH(dilation[0], 3);
  WITH(heads, 0);
  WITH(heads, 3);
  WITH(scale, HUGE_VAL);
  expect("no window", 620, attend(NULL));
  expect("a good one", 0, attend(&good));
  int64_t first[4], whole[4];
  if (placement(descriptor[O], 4, first, whole) != 4 || whole[2] != 7 ||
      first[2] != 3 * rank)
    expect("the place of o", 1, 0);
}

static void tensors_check(int rank) {
  set_all(rank, "H:a");
  set(V, CUDNN_DATA_DOUBLE, 4, 3 + rank, 5);
  expect("v of another type", 604, attend(&good));
  set_all(rank, "H:a");
  set(O, CUDNN_DATA_FLOAT, 4, 4 - rank, 5);
  expect("o in other parts", 0, attend(&good));
  set(O, CUDNN_DATA_FLOAT, 4, 4 + rank, 5);
  expect("o of other rows", 603, attend(&good));
  set_all(rank, "H:a");
  set(K, CUDNN_DATA_FLOAT, 6, 3 + rank, 5);
  expect("k of other channels", 603, attend(&good));
  set_all(rank, "H:a");
  set(K, CUDNN_DATA_FLOAT, 4, 4 + rank, 5);
  expect("k of other rows", 603, attend(&good));
  set_all(rank, "H:a");
  for (int i = 0; i < TENSORS; i++)
    set(i, CUDNN_DATA_FLOAT, 2 * rank + 1, 3, 5);
  CHECK(tag(descriptor[Q], "C:a"));
  expect("channels cut inside a head", 620, attend(&good));
  const int extent[3] = {1, 4, 5}, stride[3] = {20, 5, 1};
  for (int i = 0; i < TENSORS; i++)
    CHECK(cudnnSetTensorNdDescriptor(descriptor[i], CUDNN_DATA_FLOAT, 3, extent,
                                     stride));
  CHECK(tag(descriptor[Q], "W:a"));
  expect("a grid of one dimension", 620, attend(&good));
  set_all(rank, "H:a");
  expect("no descriptor", 303,
         attention(handle, &good, NULL, data[Q], descriptor[K], data[K],
                   descriptor[V], data[V], descriptor[O], data[O]));
  expect("a good one", 0, attend(&good));
}

// With a window of one key the result is this key's value.
static void local_check(int rank) {
  static float host[ROOM / sizeof(float)], back[ROOM / sizeof(float)];
  sundog_neighborhood_t one = {
      .dims = 2, .kernel = {1, 1}, .dilation = {1, 1}, .heads = 2};
  for (size_t i = 0; i < sizeof host / sizeof *host; i++)
    host[i] = (float)i;
  CHECK(cudaMemcpy(data[V], host, sizeof host, cudaMemcpyHostToDevice));
  for (int i = 0; i < TENSORS; i++)
    set(i, CUDNN_DATA_FLOAT, 4, 3 + rank, 5);
  expect("nothing said of q", 601, attend(&one));
  CHECK(tag(descriptor[Q], "local"));
  // Calls of each rank alone: their numbers may differ.
  for (int i = 0; i <= rank; i++)
    expect("local", 0, attend(&one));
  CHECK(cudaMemcpy(back, data[O], sizeof back, cudaMemcpyDeviceToHost));
  if (memcmp(host, back, (size_t)(4 * (3 + rank) * 5) * sizeof *host) != 0)
    expect("what is local", 1, 0);
  expect("no data", 620,
         attention(handle, &one, descriptor[Q], NULL, descriptor[K], data[K],
                   descriptor[V], data[V], descriptor[O], data[O]));
}

int main(int count, char **arguments) {
  attention = (__typeof__(attention))dlsym(RTLD_DEFAULT,
                                           "sundog_neighborhood_attention");
  tag = (__typeof__(tag))dlsym(RTLD_DEFAULT, "sundog_tag");
  placement = (__typeof__(placement))dlsym(RTLD_DEFAULT, "sundog_placement");
  if (count != 2 || !attention || !tag || !placement)
    return 2;
  int rank = atoi(arguments[1]);
  CHECK(cudnnCreate(&handle));
  for (int i = 0; i < TENSORS; i++) {
    CHECK(cudnnCreateTensorDescriptor(&descriptor[i]));
    CHECK(cudaMalloc(&data[i], ROOM));
    CHECK(cudaMemset(data[i], 0, ROOM));
  }
  windows_check(rank);
  tensors_check(rank);
  local_check(rank);
  set_all(rank, "H:a");
  expect("the last", 0, attend(&good));
  printf("rank %d was refused as it should be\n", rank);
  return 0;
}
