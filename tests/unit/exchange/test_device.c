// SPDX-License-Identifier: Apache-2.0
// Copies and fills of strided boxes, against loops, on a runtime of host
// functions.
#include "src/exchange/device.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/vendor.h"
#include "src/job/cost.h"
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

// A kernel that copies byte by byte.
static int kernels;
static sdg_status_t fake_narrow(const sdg_narrow_t *copy, cudaStream_t stream) {
  (void)stream;
  int64_t extent[SDG_NARROW_DIMS_MAX], index[SDG_NARROW_DIMS_MAX] = {0};
  REQUIRE(copy->dims >= 4 && copy->dims <= SDG_NARROW_DIMS_MAX);
  for (int d = 0; d < copy->dims; d++) {
    extent[d] = copy->extent[d];
    REQUIRE(extent[d] > 0 && copy->from_stride[d] > 0);
    REQUIRE(copy->to_stride[d] > 0);
  }
  REQUIRE(copy->from_stride[copy->dims - 1] == 1);
  REQUIRE(copy->to_stride[copy->dims - 1] == 1);
  for (bool more = true; more;) {
    int64_t from = 0, to = 0;
    for (int d = 0; d < copy->dims; d++) {
      from += index[d] * copy->from_stride[d];
      to += index[d] * copy->to_stride[d];
    }
    ((char *)copy->to)[to] = ((const char *)copy->from)[from];
    more = false;
    for (int d = copy->dims - 1; d >= 0 && !more; d--) {
      more = ++index[d] < extent[d];
      index[d] = more ? index[d] : 0;
    }
  }
  kernels++;
  return SDG_OK;
}

// Runs shorter than this are copied by the kernel.
static void kernel_below(double bytes) {
  sdg_device_set_narrow(fake_narrow);
  sdg_cost_settle(&(sdg_cost_t){.copy_bytes_s = 1, .run_bytes = bytes});
  calls = kernels = 0;
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

static void copies_check(void) {
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

START_TEST(a_copy_moves_exactly_the_box) {
  copies_check();
  REQUIRE(kernels == 0);
}
END_TEST

START_TEST(a_kernel_moves_exactly_the_box) {
  kernel_below(1e9);
  copies_check();
  REQUIRE(kernels > calls); // these are of a single run
}
END_TEST

START_TEST(runs_below_the_limit_are_one_kernel) {
  static float x[2 * 3 * 8 * 10], halo[2 * 3 * 8 * 2];
  const int64_t extent[] = {2, 3, 8, 2};
  const int64_t own[] = {240, 80, 10, 1}, packed[] = {48, 16, 2, 1};
  sdg_region_t from = {x, own}, to = {halo, packed};
  for (int below = 8; below <= 9; below++) {
    kernel_below(below);
    ck_assert_int_eq((int)sdg_device_copy(&from, &to, extent, 4, 4, NULL), 0);
    ck_assert_int_eq(kernels, below == 9);
    ck_assert_int_eq(calls, below == 8);
  }
  sdg_device_set_narrow(NULL);
  ck_assert_int_eq((int)sdg_device_copy(&from, &to, extent, 4, 4, NULL), 0);
  ck_assert_int_eq(kernels, 1);
}
END_TEST

START_TEST(a_single_run_is_no_kernel) {
  static float x[16], y[16];
  const int64_t extent[] = {2, 8}, packed[] = {8, 1};
  sdg_region_t from = {x, packed}, to = {y, packed};
  kernel_below(1e9);
  ck_assert_int_eq((int)sdg_device_copy(&from, &to, extent, 2, 4, NULL), 0);
  ck_assert_int_eq(kernels, 0);
  ck_assert_int_eq(calls, 1);
}
END_TEST

// Notes what it is asked for, and copies nothing: the memory does not exist.
static int64_t reach, elements;
static sdg_status_t far_narrow(const sdg_narrow_t *copy, cudaStream_t stream) {
  (void)stream;
  int64_t span = 0, count = 1;
  for (int d = 0; d < copy->dims; d++) {
    span += (int64_t)(copy->extent[d] - 1) * copy->from_stride[d];
    count *= copy->extent[d];
  }
  reach = span > reach ? span : reach;
  elements += count;
  kernels++;
  return SDG_OK;
}

// A column of 3 images of 2^15 rows of 2^15 numbers of 2 bytes.
START_TEST(a_kernel_reaches_less_than_two_gigabytes_far) {
  const int64_t extent[] = {3, 1 << 15, 1}, own[] = {1 << 30, 1 << 15, 1};
  // Rows and images are one loop, or two.
  for (int64_t gap = 0; gap < 2; gap++) {
    const int64_t packed[] = {(1 << 15) + gap, 1, 1};
    char *nowhere = (char *)(uintptr_t)4096;
    sdg_region_t from = {nowhere, own}, to = {nowhere, packed};
    reach = elements = 0;
    kernel_below(64);
    sdg_device_set_narrow(far_narrow);
    ck_assert_int_eq((int)sdg_device_copy(&from, &to, extent, 3, 2, NULL), 0);
    ck_assert_int_eq(kernels, 3);
    ck_assert_int_eq(calls, 0);
    ck_assert_int_eq(elements, 3 * (1 << 15) * 2);
    REQUIRE(reach > 1 << 30 && reach < INT32_MAX);
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
  tcase_add_test(cases, a_kernel_moves_exactly_the_box);
  tcase_add_test(cases, runs_below_the_limit_are_one_kernel);
  tcase_add_test(cases, a_single_run_is_no_kernel);
  tcase_add_test(cases, a_kernel_reaches_less_than_two_gigabytes_far);
  tcase_add_test(cases, a_fill_clears_exactly_the_box);
  tcase_add_test(cases, the_halo_of_a_packed_tensor_is_one_call);
  tcase_add_test(cases, two_strips_of_rows_are_one_call);
  tcase_add_test(cases, of_two_loops_the_longer_one_is_one_call);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
