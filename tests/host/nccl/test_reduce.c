/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of NCCL's reductions against tables of all values. */
#include <check.h>

#include "src/host/nccl/reduce.h"
#include "tests/host/nccl/types.h"
#include "tests/unit/harness.h"

static const ncclDataType_t small_floats[] = {ncclFloat16, ncclBfloat16,
                                              ncclFloat8e4m3, ncclFloat8e5m2};

START_TEST(every_code_of_a_small_float_survives) {
  ncclDataType_t type = small_floats[_i];
  unsigned codes = types_bytes(type) == 2 ? 65536 : 256;
  for (unsigned code = 0; code < codes; code++) {
    uint16_t in = (uint16_t)code, out = 0;
    const void *input[] = {&in};
    host_reduce(type, ncclSum, 1, input, &out, 1);
    double value = types_decode(type, code);
    if (isnan(value))
      ck_assert(isnan(types_decode(type, out)));
    else if (!isinf(value) || types_bytes(type) == 2)
      ck_assert_uint_eq(out, in);
  }
}
END_TEST

START_TEST(sums_and_products_of_small_floats_are_rounded_once_to_nearest) {
  ncclDataType_t type = small_floats[_i];
  size_t size = types_bytes(type);
  unsigned mask = size == 2 ? 0xffff : 0xff;
  srandom(5);
  for (int k = 0; k < 20000; k++) {
    uint16_t in[3], out = 0;
    double value[3];
    const void *input[3];
    for (int r = 0; r < 3; r++) {
      in[r] = (uint16_t)((unsigned)random() & mask);
      /* Values near each other, so that all bits of a sum matter. */
      if (r > 0 && k % 2)
        in[r] = (uint16_t)((in[0] + random() % 64) & mask);
      input[r] = &in[r];
      value[r] = types_decode(type, in[r]);
    }
    ncclRedOp_t op = (ncclRedOp_t)(k % ncclNumOps);
    host_reduce(type, op, 3, input, &out, 1);
    double want = types_combine(type, op, 3, value);
    if (isnan(want)) {
      ck_assert(isnan(types_decode(type, out)));
      continue;
    }
    unsigned code = types_encode(type, want);
    ck_assert_double_eq(types_decode(type, out), types_decode(type, code));
  }
}
END_TEST

START_TEST(integers_wrap_and_compare_by_their_sign) {
  int8_t a = -100, b = -100, c = 7, out;
  const void *input[] = {&a, &b, &c};
  host_reduce(ncclInt8, ncclSum, 3, input, &out, 1);
  ck_assert_int_eq(out, 63); /* -193 + 256 */
  host_reduce(ncclInt8, ncclMax, 3, input, &out, 1);
  ck_assert_int_eq(out, 7);
  uint8_t unsigned_out;
  host_reduce(ncclUint8, ncclMin, 3, input, &unsigned_out, 1);
  ck_assert_int_eq(unsigned_out, 7);
  int64_t l[] = {INT64_MAX, 1, -5}, wide;
  const void *longs[] = {&l[0], &l[1], &l[2]};
  host_reduce(ncclInt64, ncclSum, 2, longs, &wide, 1);
  ck_assert(wide == INT64_MIN);
  host_reduce(ncclInt64, ncclAvg, 2, longs + 1, &wide, 1);
  ck_assert_int_eq(wide, -2);
}
END_TEST

START_TEST(maximum_ignores_nan_where_it_can) {
  float in[] = {NAN, 2, NAN}, out;
  const void *input[] = {&in[0], &in[1], &in[2]};
  host_reduce(ncclFloat32, ncclMax, 3, input, &out, 1);
  ck_assert_float_eq(out, 2);
  host_reduce(ncclFloat32, ncclMin, 1, input, &out, 1);
  ck_assert(isnan(out));
}
END_TEST

START_TEST(a_vector_gives_what_its_elements_give) {
  enum { N = 1700 };
  static float in[4][N], whole[N], one[N];
  const void *input[4];
  for (int r = 0; r < 4; r++) {
    input[r] = in[r];
    for (int i = 0; i < N; i++)
      in[r][i] = (float)((i * 7919 + r * 104729) % 10007) / 977.0f;
  }
  host_reduce(ncclFloat32, ncclSum, 4, input, whole, N);
  for (int i = 0; i < N; i++) {
    const void *element[4];
    for (int r = 0; r < 4; r++)
      element[r] = &in[r][i];
    host_reduce(ncclFloat32, ncclSum, 4, element, &one[i], 1);
  }
  ck_assert_mem_eq(whole, one, sizeof whole);
}
END_TEST

START_TEST(types_that_do_not_exist_have_no_size) {
  ck_assert_uint_eq(host_type_bytes(ncclNumTypes), 0);
  ck_assert_uint_eq(host_type_bytes((ncclDataType_t)-1), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("nccl reduce");
  TCase *tcase = tcase_create("arithmetic");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, every_code_of_a_small_float_survives, 0, 4);
  tcase_add_loop_test(
      tcase, sums_and_products_of_small_floats_are_rounded_once_to_nearest, 0,
      4);
  tcase_add_test(tcase, integers_wrap_and_compare_by_their_sign);
  tcase_add_test(tcase, maximum_ignores_nan_where_it_can);
  tcase_add_test(tcase, a_vector_gives_what_its_elements_give);
  tcase_add_test(tcase, types_that_do_not_exist_have_no_size);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
