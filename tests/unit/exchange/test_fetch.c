// SPDX-License-Identifier: Apache-2.0
// Digests of tensors, on a runtime of host functions.
#include "src/exchange/tensor_digest.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/base/vendor.h"
#include "tests/unit/random.h"
#include "tests/unit/harness.h"
#include "tests/unit/job.h"

enum { CASES = 300, ROOM = 1 << 20 };

static bool refuses; // every copy fails
static size_t most;  // bytes of the largest copy

static cudaError_t fake_memcpy(void *to, const void *from, size_t bytes,
                               enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)stream;
  REQUIRE(kind == cudaMemcpyDeviceToHost);
  most = bytes > most ? bytes : most;
  if (!refuses)
    memcpy(to, from, bytes);
  return refuses ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t fake_memcpy_2d(void *to, size_t to_pitch, const void *from,
                                  size_t from_pitch, size_t width,
                                  size_t height, enum cudaMemcpyKind kind,
                                  cudaStream_t stream) {
  for (size_t i = 0; i < height && !refuses; i++)
    (void)fake_memcpy((char *)to + i * to_pitch,
                      (const char *)from + i * from_pitch, width, kind, stream);
  return refuses ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t fake_memcpy_3d(const struct cudaMemcpy3DParms *p,
                                  cudaStream_t stream) {
  for (size_t z = 0; z < p->extent.depth && !refuses; z++)
    (void)fake_memcpy_2d(
        (char *)p->dstPtr.ptr + z * p->dstPtr.ysize * p->dstPtr.pitch,
        p->dstPtr.pitch,
        (char *)p->srcPtr.ptr + z * p->srcPtr.ysize * p->srcPtr.pitch,
        p->srcPtr.pitch, p->extent.width, p->extent.height, p->kind, stream);
  return refuses ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t fake_create(cudaEvent_t *event, unsigned flags) {
  (void)flags;
  *event = (cudaEvent_t)&most;
  return cudaSuccess;
}

static cudaError_t fake_record(cudaEvent_t event, cudaStream_t stream) {
  (void)event, (void)stream;
  return cudaSuccess;
}

static cudaError_t fake_query(cudaEvent_t event) {
  (void)event;
  return refuses ? cudaErrorNotReady : cudaSuccess;
}

static cudaError_t fake_last(void) {
  return cudaSuccess;
}

static cudaError_t fake_mode(enum cudaStreamCaptureMode *mode) {
  (void)mode;
  return cudaSuccess;
}

static void *fake_find(sdg_library_t library, const char *name) {
  (void)library;
  static const job_fake_t table[] = {
      JOB_FAKE(cudaMemcpyAsync, fake_memcpy),
      JOB_FAKE(cudaMemcpy2DAsync, fake_memcpy_2d),
      JOB_FAKE(cudaMemcpy3DAsync, fake_memcpy_3d),
      JOB_FAKE(cudaEventCreateWithFlags, fake_create),
      JOB_FAKE(cudaEventRecord, fake_record),
      JOB_FAKE(cudaEventQuery, fake_query),
      JOB_FAKE(cudaGetLastError, fake_last),
      JOB_FAKE(cudaThreadExchangeStreamCaptureMode, fake_mode),
  };
  return job_fake_find(table, sizeof table / sizeof table[0], name);
}

static uint64_t digest_of(const unsigned char *data,
                          const sdg_layout_t *layout) {
  bool can;
  uint64_t digest;
  int64_t bytes = 0, elements = layout->elem_bytes;
  REQUIRE(!sdg_tensor_digest(data, layout, NULL, &can, &digest, &bytes));
  for (int d = 0; d < layout->dims; d++)
    elements *= layout->extent[d];
  REQUIRE(can && bytes == elements);
  return digest;
}

// The same elements in the same order of dimensions give the same digest with
// any gaps; a changed element gives another.
static void case_run(void) {
  static unsigned char packed[ROOM], gapped[4 * ROOM];
  int order[4] = {0, 1, 2, 3};
  sdg_layout_t a = {.elem_bytes = 1 << random_in(0, 3), .dims = 4}, b;
  for (int d = 3; d > 0; d--) {
    int other = (int)random_in(0, d), swap = order[d];
    order[d] = order[other];
    order[other] = swap;
  }
  int64_t step = 1;
  for (int d = 0; d < 4; d++)
    a.extent[d] = random_in(0, 3) ? random_in(1, 9) : 1;
  b = a;
  for (int i = 0; i < 4; i++) {
    a.stride[order[i]] = step;
    step *= a.extent[order[i]];
  }
  step = 1 + (random_in(0, 3) == 0);
  for (int i = 0; i < 4; i++) {
    b.stride[order[i]] = step;
    step = (step * b.extent[order[i]]) + random_in(0, 2);
  }
  for (size_t i = 0; i < sizeof gapped; i += 509)
    gapped[i] = (unsigned char)random_in(0, 255);
  unsigned char *last = NULL;
  for (int64_t i = 0; i < a.extent[0] * a.extent[1] * a.extent[2] * a.extent[3];
       i++) {
    int64_t rest = i, from = 0, to = 0;
    for (int d = 3; d >= 0; d--) {
      from += rest % a.extent[d] * a.stride[d];
      to += rest % a.extent[d] * b.stride[d];
      rest /= a.extent[d];
    }
    for (int k = 0; k < a.elem_bytes; k++)
      gapped[to * a.elem_bytes + k] = packed[from * a.elem_bytes + k] =
          (unsigned char)random_in(0, 255);
    last = &gapped[to * a.elem_bytes];
  }
  uint64_t digest = digest_of(packed, &a);
  REQUIRE(digest == digest_of(gapped, &b));
  *last ^= 64;
  REQUIRE(digest != digest_of(gapped, &b));
}

START_TEST(gaps_do_not_count) {
  sdg_library_set_finder(fake_find);
  for (int64_t c = random_cases(CASES); c > 0; c--)
    case_run();
}
END_TEST

START_TEST(large_tensors_are_read_in_pieces) {
  size_t bytes = (size_t)12 << 20;
  unsigned char *data = malloc(bytes);
  REQUIRE(data);
  for (size_t i = 0; i < bytes; i++)
    data[i] = (unsigned char)(i * 7 >> 3);
  sdg_library_set_finder(fake_find);
  sdg_digest_t whole;
  sdg_digest_init(&whole);
  sdg_digest_add(&whole, data, bytes);
  most = 0;
  const sdg_layout_t rows = {4, 2, {3, 1 << 20}, {1 << 20, 1}};
  REQUIRE(digest_of(data, &rows) == sdg_digest_value(&whole));
  const sdg_layout_t line = {4, 1, {3 << 20}, {1}};
  REQUIRE(digest_of(data, &line) == sdg_digest_value(&whole));
  REQUIRE(most <= 1 << 20);
  free(data);
}
END_TEST

START_TEST(unreadable_memory_is_reported) {
  unsigned char data[16] = {0};
  const sdg_layout_t layout = {4, 1, {4}, {1}};
  bool can = true, ready = true;
  uint64_t digest;
  int64_t bytes = 0;
  sdg_library_set_finder(fake_find);
  refuses = true;
  REQUIRE(!sdg_tensor_digest(data, &layout, NULL, &can, &digest, &bytes));
  REQUIRE(!can && bytes == 0);
  REQUIRE(!sdg_tensor_digest_ready(NULL, 0.05, &ready) && !ready);
  refuses = false;
  REQUIRE(!sdg_tensor_digest_ready(NULL, 0.05, &ready) && ready);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("fetch");
  TCase *cases = tcase_create("fetch");
  tcase_add_test(cases, gaps_do_not_count);
  tcase_add_test(cases, large_tensors_are_read_in_pieces);
  tcase_add_test(cases, unreadable_memory_is_reported);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
