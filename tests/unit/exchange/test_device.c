// SPDX-License-Identifier: Apache-2.0
// Copies and fills of strided boxes, against loops, on a runtime of host
// functions.
#include "src/exchange/device.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/vendor.h"
#include "tests/unit/random.h"
#include "tests/unit/harness.h"
#include "tests/unit/job.h"

enum { CASES = 20000, ARENA_BYTES = 1 << 16 };

static int calls; // calls of the runtime

static cudaError_t fake_memcpy(void *to, const void *from, size_t bytes,
                               enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind, (void)stream;
  memcpy(to, from, bytes);
  calls++;
  return cudaSuccess;
}

static cudaError_t fake_memcpy_2d(void *to, size_t to_pitch, const void *from,
                                  size_t from_pitch, size_t width,
                                  size_t height, enum cudaMemcpyKind kind,
                                  cudaStream_t stream) {
  (void)kind, (void)stream;
  REQUIRE(to_pitch >= width && from_pitch >= width);
  for (size_t i = 0; i < height; i++)
    memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch,
           width);
  calls++;
  return cudaSuccess;
}

static cudaError_t fake_memcpy_3d(const struct cudaMemcpy3DParms *p,
                                  cudaStream_t stream) {
  (void)stream;
  REQUIRE(p->srcPtr.ysize >= p->extent.height);
  REQUIRE(p->dstPtr.ysize >= p->extent.height);
  for (size_t z = 0; z < p->extent.depth; z++)
    for (size_t y = 0; y < p->extent.height; y++)
      memcpy(
          (char *)p->dstPtr.ptr + (z * p->dstPtr.ysize + y) * p->dstPtr.pitch,
          (char *)p->srcPtr.ptr + (z * p->srcPtr.ysize + y) * p->srcPtr.pitch,
          p->extent.width);
  calls++;
  return cudaSuccess;
}

static cudaError_t fake_memset(void *data, int value, size_t bytes,
                               cudaStream_t stream) {
  (void)stream;
  memset(data, value, bytes);
  calls++;
  return cudaSuccess;
}

static cudaError_t fake_memset_2d(void *data, size_t pitch, int value,
                                  size_t width, size_t height,
                                  cudaStream_t stream) {
  (void)stream;
  for (size_t i = 0; i < height; i++)
    memset((char *)data + i * pitch, value, width);
  calls++;
  return cudaSuccess;
}

static void *fake_find(sdg_library_t library, const char *name) {
  (void)library;
  static const job_fake_t table[] = {
      JOB_FAKE(cudaMemcpyAsync, fake_memcpy),
      JOB_FAKE(cudaMemcpy2DAsync, fake_memcpy_2d),
      JOB_FAKE(cudaMemcpy3DAsync, fake_memcpy_3d),
      JOB_FAKE(cudaMemsetAsync, fake_memset),
      JOB_FAKE(cudaMemset2DAsync, fake_memset_2d),
  };
  return job_fake_find(table, sizeof table / sizeof table[0], name);
}

static int random_below(int n) {
  return (int)random_in(0, n - 1);
}

// Draws strides for a tensor: dimensions in random order, with gaps.
static void strides_random(const int64_t *extent, int dims, int64_t *stride) {
  int order[SDG_DIMS_MAX];
  for (int d = 0; d < dims; d++) {
    int i = random_below(d + 1);
    order[d] = order[i];
    order[i] = d;
  }
  int64_t step = random_below(4) ? 1 : 2;
  for (int i = 0; i < dims; i++) {
    stride[order[i]] = step;
    step *= extent[order[i]] + (random_below(3) ? 0 : random_below(3));
  }
}

static int64_t offset_of(int64_t index, const int64_t *extent,
                         const int64_t *stride, int dims) {
  int64_t offset = 0;
  for (int d = dims - 1; d >= 0; d--) {
    offset += index % extent[d] * stride[d];
    index /= extent[d];
  }
  return offset;
}

static int64_t count_of(const int64_t *extent, int dims) {
  int64_t count = 1;
  for (int d = 0; d < dims; d++)
    count *= extent[d];
  return count;
}

START_TEST(a_copy_moves_exactly_the_box) {
  static unsigned char from[ARENA_BYTES], to[ARENA_BYTES], want[ARENA_BYTES];
  for (int64_t c = random_cases(CASES); c > 0; c--) {
    int dims = 1 + random_below(5), bytes = 1 << random_below(4);
    int64_t extent[SDG_DIMS_MAX], a[SDG_DIMS_MAX], b[SDG_DIMS_MAX];
    for (int d = 0; d < dims; d++)
      extent[d] = random_below(5);
    strides_random(extent, dims, a);
    strides_random(extent, dims, b);
    int64_t count = count_of(extent, dims);
    for (int i = 0; i < 4096; i++) {
      from[i] = (unsigned char)random_below(256);
      to[i] = want[i] = (unsigned char)random_below(256);
    }
    for (int64_t i = 0; i < count; i++)
      memcpy(want + offset_of(i, extent, b, dims) * bytes,
             from + offset_of(i, extent, a, dims) * bytes, (size_t)bytes);
    sdg_region_t source = {from, a}, target = {to, b};
    REQUIRE(sdg_device_copy(&source, &target, extent, dims, bytes, NULL) ==
            SDG_OK);
    REQUIRE(memcmp(to, want, ARENA_BYTES) == 0);
  }
}
END_TEST

START_TEST(a_fill_clears_exactly_the_box) {
  static unsigned char data[ARENA_BYTES], want[ARENA_BYTES];
  for (int64_t c = random_cases(CASES); c > 0; c--) {
    int dims = 1 + random_below(5), bytes = 1 << random_below(4);
    int64_t extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
    for (int d = 0; d < dims; d++)
      extent[d] = random_below(5);
    strides_random(extent, dims, stride);
    for (int i = 0; i < 4096; i++)
      data[i] = want[i] = (unsigned char)(1 + random_below(255));
    for (int64_t i = 0; i < count_of(extent, dims); i++)
      memset(want + offset_of(i, extent, stride, dims) * bytes, 0,
             (size_t)bytes);
    sdg_region_t region = {data, stride};
    REQUIRE(sdg_device_zero(&region, extent, dims, bytes, NULL) == SDG_OK);
    REQUIRE(memcmp(data, want, ARENA_BYTES) == 0);
  }
}
END_TEST

START_TEST(the_halo_of_a_packed_tensor_is_one_call) {
  static float x[2 * 3 * 8 * 10], halo[2 * 3 * 2 * 10];
  const int64_t extent[] = {2, 3, 2, 10};
  const int64_t nchw[] = {240, 80, 10, 1}, nchw_halo[] = {60, 20, 10, 1};
  const int64_t nhwc[] = {240, 1, 30, 3}, nhwc_halo[] = {60, 1, 30, 3};
  sdg_region_t from = {x, nchw}, to = {halo, nchw_halo};
  calls = 0;
  ck_assert_int_eq((int)sdg_device_copy(&from, &to, extent, 4, 4, NULL), 0);
  ck_assert_int_eq(calls, 1);
  from.stride = nhwc, to.stride = nhwc_halo;
  ck_assert_int_eq((int)sdg_device_copy(&from, &to, extent, 4, 4, NULL), 0);
  ck_assert_int_eq(calls, 2);
}
END_TEST

START_TEST(two_strips_of_rows_are_one_call) {
  static float x[30 * 8 * 3], strips[2 * 4 * 8 * 3];
  // Two rows at both ends of x, N=1, channels last; the fifth dimension counts
  // the strips.
  const int64_t extent[] = {1, 3, 2, 8, 2};
  const int64_t own[] = {720, 1, 24, 3, 28 * 24}, to[] = {96, 1, 24, 3, 96};
  sdg_region_t from = {x, own}, into = {strips, to};
  calls = 0;
  ck_assert_int_eq((int)sdg_device_copy(&from, &into, extent, 5, 4, NULL), 0);
  ck_assert_int_eq(calls, 1);
}
END_TEST

START_TEST(of_two_loops_the_longer_one_is_one_call) {
  static float x[3 * 30 * 8], strips[2 * 3 * 4 * 8];
  // The same with channels first: two strips of three channels.
  const int64_t extent[] = {1, 3, 2, 8, 2};
  const int64_t own[] = {720, 240, 8, 1, 28 * 8}, to[] = {96, 32, 8, 1, 96};
  sdg_region_t from = {x, own}, into = {strips, to};
  calls = 0;
  ck_assert_int_eq((int)sdg_device_copy(&from, &into, extent, 5, 4, NULL), 0);
  ck_assert_int_eq(calls, 2);
}
END_TEST

int main(void) {
  sdg_library_set_finder(fake_find);
  Suite *suite = suite_create("device");
  TCase *cases = tcase_create("device");
  tcase_add_test(cases, a_copy_moves_exactly_the_box);
  tcase_add_test(cases, a_fill_clears_exactly_the_box);
  tcase_add_test(cases, the_halo_of_a_packed_tensor_is_one_call);
  tcase_add_test(cases, two_strips_of_rows_are_one_call);
  tcase_add_test(cases, of_two_loops_the_longer_one_is_one_call);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
