// SPDX-License-Identifier: Apache-2.0
// Copies and memsets of the host device against loops over single bytes.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#include "src/host/host.h"
#include "tests/calls.h"

static struct cudaExtent extent_of(size_t width, size_t height, size_t depth) {
  return (struct cudaExtent){width, height, depth};
}

static struct cudaPitchedPtr pitched(void *at, size_t pitch, size_t rows) {
  return (struct cudaPitchedPtr){at, pitch, pitch, rows};
}

enum { ARENA = 8192, ROUNDS = 3000, PLACES = 4 };

/* Where a side of a copy may lie. */
typedef enum place { PAGEABLE, PINNED, MANAGED, DEVICE } place_t;

/* Two arenas, each in every kind of memory, with a model of the content. */
static char *arena[2][PLACES];
static char model[2][PLACES][ARENA];
static char pageable[2][ARENA];

static char *readable(char *pointer, place_t place) {
  return place == PAGEABLE ? pointer : host_memory_resolve(pointer, 1);
}

static void arenas_fill(void) {
  for (int side = 0; side < 2; side++) {
    arena[side][PAGEABLE] = pageable[side];
    OK(cudaMallocHost((void **)&arena[side][PINNED], ARENA));
    OK(cudaMallocManaged((void **)&arena[side][MANAGED], ARENA,
                         cudaMemAttachGlobal));
    OK(cudaMalloc((void **)&arena[side][DEVICE], ARENA));
    for (int place = 0; place < PLACES; place++) {
      for (int i = 0; i < ARENA; i++)
        model[side][place][i] = (char)rand();
      memcpy(readable(arena[side][place], place), model[side][place], ARENA);
    }
  }
}

static void arenas_check(void) {
  OK(cudaDeviceSynchronize());
  for (int side = 0; side < 2; side++)
    for (int place = 0; place < PLACES; place++)
      ck_assert_mem_eq(readable(arena[side][place], place), model[side][place],
                       ARENA);
}

static size_t below(size_t limit) {
  return (size_t)rand() % limit;
}

/* One of the kinds that fit the places. */
static enum cudaMemcpyKind kind_for(place_t to, place_t from) {
  enum cudaMemcpyKind fits[5] = {cudaMemcpyDefault};
  int count = 1;
  if (to != PAGEABLE && from != PAGEABLE)
    fits[count++] = cudaMemcpyDeviceToDevice;
  if (to != PAGEABLE && from != DEVICE)
    fits[count++] = cudaMemcpyHostToDevice;
  if (to != DEVICE && from != PAGEABLE)
    fits[count++] = cudaMemcpyDeviceToHost;
  if (to != DEVICE && from != DEVICE)
    fits[count++] = cudaMemcpyHostToHost;
  return fits[below((size_t)count)];
}

/* A box and its place in two arenas of ARENA bytes. */
typedef struct box {
  size_t width, height, depth;
  size_t pitch[2], rows[2], at[2];
} box_t;

static box_t box_random(size_t max_height, size_t max_depth) {
  box_t box = {.width = 1 + below(20),
               .height = 1 + below(max_height),
               .depth = 1 + below(max_depth)};
  for (int side = 0; side < 2; side++) {
    box.pitch[side] = box.width + below(5);
    box.rows[side] = box.height + below(3);
    box.at[side] =
        below(ARENA - box.pitch[side] * box.rows[side] * box.depth + 1);
  }
  return box;
}

static size_t index_of(const box_t *box, int side, size_t z, size_t y,
                       size_t x) {
  return box->at[side] + (z * box->rows[side] + y) * box->pitch[side] + x;
}

static void model_copy(const box_t *box, place_t to, place_t from) {
  for (size_t z = 0; z < box->depth; z++)
    for (size_t y = 0; y < box->height; y++)
      for (size_t x = 0; x < box->width; x++)
        model[1][to][index_of(box, 1, z, y, x)] =
            model[0][from][index_of(box, 0, z, y, x)];
}

START_TEST(copies_of_lines_match_loops) {
  arenas_fill();
  for (int round = 0; round < ROUNDS; round++) {
    place_t to = below(PLACES), from = below(PLACES);
    box_t box = box_random(1, 1);
    box.width = below(ARENA - box.at[0] + 1);
    if (box.width > ARENA - box.at[1])
      box.width = ARENA - box.at[1];
    char *target = arena[1][to] + box.at[1];
    const char *source = arena[0][from] + box.at[0];
    enum cudaMemcpyKind kind = kind_for(to, from);
    if (round % 2)
      OK(cudaMemcpy(target, source, box.width, kind));
    else
      OK(cudaMemcpyAsync(target, source, box.width, kind, NULL));
    model_copy(&box, to, from);
  }
  arenas_check();
}
END_TEST

START_TEST(copies_of_planes_match_loops) {
  arenas_fill();
  for (int round = 0; round < ROUNDS; round++) {
    place_t to = below(PLACES), from = below(PLACES);
    box_t box = box_random(30, 1);
    char *target = arena[1][to] + box.at[1];
    const char *source = arena[0][from] + box.at[0];
    enum cudaMemcpyKind kind = kind_for(to, from);
    if (round % 2)
      OK(cudaMemcpy2D(target, box.pitch[1], source, box.pitch[0], box.width,
                      box.height, kind));
    else
      OK(cudaMemcpy2DAsync(target, box.pitch[1], source, box.pitch[0],
                           box.width, box.height, kind, NULL));
    model_copy(&box, to, from);
  }
  arenas_check();
}
END_TEST

START_TEST(copies_of_boxes_match_loops) {
  arenas_fill();
  for (int round = 0; round < ROUNDS; round++) {
    place_t to = below(PLACES), from = below(PLACES);
    box_t box = box_random(8, 6);
    struct cudaMemcpy3DParms p = {.kind = kind_for(to, from)};
    size_t shift = below(box.pitch[1] - box.width + 1);
    size_t down = below(box.rows[0] - box.height + 1);
    p.extent = extent_of(box.width, box.height, box.depth);
    p.dstPtr = pitched(arena[1][to] + box.at[1], box.pitch[1], box.rows[1]);
    p.srcPtr = pitched(arena[0][from] + box.at[0], box.pitch[0], box.rows[0]);
    p.dstPos = (struct cudaPos){shift, 0, 0};
    p.srcPos = (struct cudaPos){0, down, 0};
    if (round % 2)
      OK(cudaMemcpy3D(&p));
    else
      OK(cudaMemcpy3DAsync(&p, NULL));
    box.at[1] += shift;
    box.at[0] += down * box.pitch[0];
    model_copy(&box, to, from);
  }
  arenas_check();
}
END_TEST

START_TEST(memsets_match_loops) {
  arenas_fill();
  for (int round = 0; round < ROUNDS; round++) {
    place_t place = PINNED + below(PLACES - 1);
    int dims = 1 + (int)below(3), value = rand();
    box_t box = box_random(dims > 1 ? 12 : 1, dims > 2 ? 6 : 1);
    char *target = arena[1][place] + box.at[1];
    struct cudaExtent extent = extent_of(box.width, box.height, box.depth);
    if (dims == 1)
      OK(cudaMemset(target, value, box.width));
    else if (dims == 2)
      OK(cudaMemset2DAsync(target, box.pitch[1], value, box.width, box.height,
                           NULL));
    else
      OK(cudaMemset3D(pitched(target, box.pitch[1], box.rows[1]), value,
                      extent));
    for (size_t z = 0; z < box.depth; z++)
      for (size_t y = 0; y < box.height; y++)
        memset(&model[1][place][index_of(&box, 1, z, y, 0)], value, box.width);
  }
  arenas_check();
}
END_TEST

START_TEST(a_large_async_copy_of_pinned_memory_arrives) {
  enum { BYTES = 3 << 20 };
  char *from, *device, *to;
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaMallocHost((void **)&from, BYTES));
  OK(cudaMallocHost((void **)&to, BYTES));
  OK(cudaMalloc((void **)&device, BYTES));
  for (int i = 0; i < BYTES; i++)
    from[i] = (char)(i * 7 + i / 251);
  OK(cudaMemcpyAsync(device, from, BYTES, cudaMemcpyHostToDevice, stream));
  OK(cudaMemcpyAsync(to, device, BYTES, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  ck_assert_mem_eq(from, to, BYTES);
}
END_TEST

START_TEST(a_copy_that_leaves_its_memory_is_refused) {
  char *device, host[64];
  OK(cudaMalloc((void **)&device, 64));
  ck_assert_int_eq(cudaMemcpy(device, host, 65, cudaMemcpyHostToDevice),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemcpy(device + 60, device, 8, cudaMemcpyDefault),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemset(device + 1, 0, 64), cudaErrorInvalidValue);
  ck_assert_int_eq(
      cudaMemcpy2D(device, 16, host, 16, 16, 5, cudaMemcpyHostToDevice),
      cudaErrorInvalidValue);
  ck_assert_int_eq(
      cudaMemcpy2D(device, 8, host, 16, 9, 2, cudaMemcpyHostToDevice),
      cudaErrorInvalidPitchValue);
  ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidPitchValue);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidPitchValue);
  OK(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
}
END_TEST

START_TEST(a_kind_that_does_not_fit_the_addresses_is_refused) {
  char *device, host[64] = "";
  OK(cudaMalloc((void **)&device, 64));
  ck_assert_int_eq(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToHost),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemcpy(host, device, 8, cudaMemcpyHostToDevice),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemcpy(host, device, 8, cudaMemcpyHostToHost),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToDevice),
                   cudaErrorInvalidValue);
  ck_assert_int_eq(cudaMemcpy(device, host, 8, (enum cudaMemcpyKind)17),
                   cudaErrorInvalidMemcpyDirection);
  ck_assert_int_eq(cudaMemset(host, 0, 8), cudaErrorInvalidValue);
}
END_TEST

START_TEST(pitched_memory_has_aligned_rows) {
  char *plane;
  size_t pitch;
  struct cudaPitchedPtr volume;
  OK(cudaMallocPitch((void **)&plane, &pitch, 100, 7));
  ck_assert_uint_ge(pitch, 100);
  ck_assert_uint_eq(pitch % 256, 0);
  OK(cudaMemset2D(plane, pitch, 1, 100, 7));
  OK(cudaMalloc3D(&volume, extent_of(100, 5, 3)));
  ck_assert_uint_eq(volume.xsize, 100);
  ck_assert_uint_eq(volume.ysize, 5);
  OK(cudaMemset3D(volume, 1, extent_of(100, 5, 3)));
  ck_assert_int_eq(cudaMemset3D(volume, 1, extent_of(100, 5, 4)),
                   cudaErrorInvalidValue);
}
END_TEST

int main(void) {
  srand(3);
  Suite *suite = suite_create("cudart_copy");
  TCase *tests = tcase_create("copy");
  tcase_add_test(tests, copies_of_lines_match_loops);
  tcase_add_test(tests, copies_of_planes_match_loops);
  tcase_add_test(tests, copies_of_boxes_match_loops);
  tcase_add_test(tests, memsets_match_loops);
  tcase_add_test(tests, a_large_async_copy_of_pinned_memory_arrives);
  tcase_add_test(tests, a_copy_that_leaves_its_memory_is_refused);
  tcase_add_test(tests, a_kind_that_does_not_fit_the_addresses_is_refused);
  tcase_add_test(tests, pitched_memory_has_aligned_rows);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
