// SPDX-License-Identifier: Apache-2.0
// Headers of array files: good, bad and mutilated.
#include "tools/array/npy.h"

#include <string.h>
#include <unistd.h>

#include "tests/unit/array/npy_file.h"
#include "tests/unit/random.h"

enum { CASES = 100000, BOX_CASES = 400 };

// Parses a block of exactly `count` bytes, so that sanitizers see overruns.
static sdg_status_t parse(const char *bytes, size_t count,
                          sdg_npy_header_t *out_header) {
  char *exact = malloc(count ? count : 1);
  memcpy(exact, bytes, count);
  sdg_status_t status = sdg_npy_header_parse("f.npy", exact, count, out_header);
  free(exact);
  return status;
}

START_TEST(header_is_byte_for_byte_what_numpy_writes) {
  sdg_npy_header_t header;
  char out[SDG_NPY_WRITE_BYTES], want[129];
  ck_assert(sdg_npy_header_init("f", "float32", 2, (int64_t[]){3, 4},
                                &header) == SDG_OK);
  ck_assert_int_eq(sdg_npy_header_format(&header, out), 128);
  snprintf(want, sizeof want, "%.10s%-117s\n", "0123456789",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  memcpy(want, "\x93NUMPY\x01\x00\x76\x00", 10);
  ck_assert_mem_eq(out, want, 128);
  ck_assert_int_eq(header.data_offset, 128);
  ck_assert_int_eq(header.data_bytes, 48);

  ck_assert(sdg_npy_header_init("f", "u1", 1, (int64_t[]){5}, &header) ==
            SDG_OK);
  sdg_npy_header_format(&header, out);
  ck_assert_ptr_nonnull(
      memmem(out, 128, "'|u1', 'fortran_order': False, 'shape': (5,), }", 47));
  ck_assert(sdg_npy_header_init("f", "<c16", 0, NULL, &header) == SDG_OK);
  sdg_npy_header_format(&header, out);
  ck_assert_ptr_nonnull(
      memmem(out, 128, "'<c16', 'fortran_order': False, 'shape': (), }", 46));
  ck_assert_int_eq(header.data_bytes, 16);
}
END_TEST

START_TEST(longest_header_is_read_back) {
  int64_t extent[SDG_DIMS_MAX];
  sdg_npy_header_t header, back;
  char out[SDG_NPY_WRITE_BYTES];
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    extent[d] = d ? INT64_MAX : 0;
  ck_assert(sdg_npy_header_init("f", "V16", SDG_DIMS_MAX, extent, &header) ==
            SDG_OK);
  int bytes = sdg_npy_header_format(&header, out);
  ck_assert_int_eq(bytes % 64, 0);
  ck_assert(parse(out, (size_t)bytes, &back) == SDG_OK);
  ck_assert_int_eq(back.dims, SDG_DIMS_MAX);
  ck_assert_mem_eq(back.extent, extent, sizeof extent);
  ck_assert_int_eq(back.data_bytes, 0);
  ck_assert_str_eq(back.dtype, "|V16");
}
END_TEST

START_TEST(every_spelling_of_a_good_header_is_read) {
  static const char *const good[] = {
      "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n",
      "{'descr':'<f8','fortran_order':False,'shape':(3,4)}",
      "{\"shape\": (3, 4,), \"fortran_order\": False, \"descr\": \"<f8\"}\n",
      " { 'shape' : ( 3L , 4L ) , 'descr' : '=f8' , 'fortran_order' : False }",
      "{'descr': 'f8',\n 'fortran_order': False,\t'shape': (003, 4), }\r\n",
  };
  for (int version = 1; version <= 3; version++)
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
      char bytes[256];
      sdg_npy_header_t header;
      size_t count = header_bytes(version, good[i], bytes);
      ck_assert_msg(parse(bytes, count, &header) == SDG_OK, "%s", good[i]);
      ck_assert_str_eq(header.dtype, "<f8");
      ck_assert_int_eq(header.elem_bytes, 8);
      ck_assert_int_eq(header.dims, 2);
      ck_assert_int_eq(header.extent[0], 3);
      ck_assert_int_eq(header.extent[1], 4);
      ck_assert_int_eq(header.data_offset, (int64_t)count);
      ck_assert_int_eq(header.data_bytes, 96);
    }
}
END_TEST

START_TEST(fortran_order_is_read_where_it_matters) {
  char bytes[256];
  sdg_npy_header_t header;
  size_t count = header_bytes(
      1, "{'descr': '<f4', 'fortran_order': True, 'shape': (7,), }", bytes);
  ck_assert(parse(bytes, count, &header) == SDG_OK);
  ck_assert(!header.fortran);
  count = header_bytes(
      1, "{'descr': '>f4', 'fortran_order': True, 'shape': (7, 2), }", bytes);
  ck_assert(parse(bytes, count, &header) == SDG_OK);
  ck_assert(header.fortran);
  ck_assert_str_eq(header.dtype, ">f4");
}
END_TEST

START_TEST(fortran_order_is_transposed) {
  // The bytes of numpy.save(numpy.asfortranarray([[0, 2, 4], [1, 3, 5]])).
  char bytes[256], rows[6];
  sdg_npy_t npy;
  size_t count = header_bytes(
      1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", bytes);
  const char *path = in_dir("a.npy");
  memcpy(bytes + count, "\0\1\2\3\4\5", 6);
  file_make(path, bytes, count + 6);
  ck_assert(sdg_npy_open(path, &npy) == SDG_OK);
  sdg_box_t all = sdg_npy_box(&npy),
            part = {.dims = 2, .dim = {{1, 2}, {1, 3}}};
  ck_assert(sdg_npy_read_box(&npy, &all, rows) == SDG_OK);
  ck_assert_mem_eq(rows, "\0\2\4\1\3\5", 6);
  ck_assert(sdg_npy_read_box(&npy, &part, rows) == SDG_OK);
  ck_assert_mem_eq(rows, "\3\5", 2);
  sdg_npy_close(&npy);
  unlink(path);
}
END_TEST

START_TEST(bad_headers_are_refused_by_their_fault) {
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"", "does not begin with {"},
      {"[]", "does not begin with {"},
      {"{", "a key is not one of"},
      {"{}", "is missing"},
      {"{'descr': '<f4', 'fortran_order': False}", "is missing"},
      {"{'descr': '<f4', 'descr': '<f4'}", "is there twice"},
      {"{'descr' '<f4'}", "has no value"},
      {"{'descr': '<f4' 'shape': ()}", "a comma or }"},
      {"{'color': 1}", "a key is not one of"},
      {"{descr: 1}", "a key is not one of"},
      {DICT("'<f4'", "False", "(3,)") "x", "follows the closing }"},
      {DICT("'<f4'", "False", "(3,)") "\n{}", "follows the closing }"},
      {DICT("'<f4'", "None", "(3, 4)"), "neither True nor False"},
      {DICT("'<f4'", "0", "(3, 4)"), "neither True nor False"},
      {DICT("'<f3'", "False", "(3, 4)"), "'<f3' is not a number"},
      {DICT("'|O'", "False", "(3, 4)"), "'|O' is not a number"},
      {DICT("'<U8'", "False", "(3, 4)"), "'<U8' is not a number"},
      {DICT("'<M8[ns]'", "False", "(3, 4)"), "is not a number"},
      {DICT("'<'", "False", "(3, 4)"), "is not a number"},
      {DICT("''", "False", "(3, 4)"), "is not a number"},
      {DICT("'f99999999999'", "False", "(3, 4)"), "is not a number"},
      {DICT("[('a', '<f4')]", "False", "(3, 4)"), "records are not read"},
      {DICT("'<f4", "False", "(3, 4)"), "a comma or }"},
      {DICT("'a\\'b'", "False", "(3, 4)"), "records are not read"},
      {DICT("'0123456789012345678901234567890123'", "False", "(3,)"),
       "records are not read"},
      {DICT("'<f4'", "False", "3"), "not a tuple"},
      {DICT("'<f4'", "False", "(3)"), "not a tuple"},
      {DICT("'<f4'", "False", "(3 4)"), "not a tuple"},
      {DICT("'<f4'", "False", "(,)"), "not a tuple"},
      {DICT("'<f4'", "False", "(3,,4)"), "not a tuple"},
      {DICT("'<f4'", "False", "(-3, 4)"), "not a tuple"},
      {DICT("'<f4'", "False", "(3.0, 4)"), "not a tuple"},
      {DICT("'<f4'", "False", "(3, 4"), "not a tuple"},
      {DICT("'<f4'", "False", "(9223372036854775808,)"), "not a tuple"},
      {DICT("'<f4'", "False", "(9223372036854775807,)"), "larger than any"},
      {DICT("'|u1'", "False", "(9223372036854775807,)"), "larger than any"},
      {DICT("'<f4'", "False", "(4294967296, 4294967296)"), "larger than any"},
      {DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), "9 dimensions"},
  };
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char bytes[512];
    sdg_npy_header_t header;
    size_t count = header_bytes(1 + (int)i % 3, bad[i].text, bytes);
    ck_assert_msg(parse(bytes, count, &header) == SDG_E_NPY_FORMAT, "%s",
                  bad[i].text);
    ck_assert_msg(strstr(sdg_last_error(), bad[i].says), "%s: %s", bad[i].text,
                  sdg_last_error());
  }
}
END_TEST

START_TEST(every_truncation_and_wrong_prefix_is_refused) {
  char bytes[256];
  sdg_npy_header_t header;
  for (int version = 1; version <= 3; version++) {
    size_t count =
        header_bytes(version, DICT("'<f4'", "False", "(3, 4)"), bytes);
    for (size_t n = 0; n < count; n++)
      ck_assert(parse(bytes, n, &header) == SDG_E_NPY_FORMAT);
    for (int i = 0; i < 8; i++) { // magic and version
      char was = bytes[i];
      bytes[i] = 9;
      ck_assert(parse(bytes, count, &header) == SDG_E_NPY_FORMAT);
      bytes[i] = was;
    }
  }
  header_bytes(2, DICT("'<f4'", "False", "(3, 4)"), bytes);
  memset(bytes + 8, 0xff, 4); // a header of 4 GiB
  ck_assert(parse(bytes, sizeof bytes, &header) == SDG_E_NPY_FORMAT);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "4294967295 bytes"));
}
END_TEST

START_TEST(mutilated_headers_are_refused_or_have_possible_values) {
  // Tens of thousands of messages would not help anybody.
  ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
  static const char spice[] = "{}()[]',:\"\\ \n0123456789<>|fuVLTF-\xff";
  int64_t taken = 0, cases = random_cases(CASES);
  for (int64_t i = cases; i > 0; i--) {
    char bytes[256];
    size_t count = header_bytes((int)random_in(1, 3),
                                DICT("'<f4'", "False", "(3, 40, 500)"), bytes);
    for (int64_t k = random_in(0, 4); k > 0; k--) {
      size_t at = (size_t)random_in(0, (int64_t)count - 1);
      if (random_in(0, 3))
        bytes[at] = spice[random_in(0, sizeof spice - 1)];
      else
        memmove(bytes + at, bytes + at + 1, count - at - 1);
    }
    sdg_npy_header_t h;
    if (parse(bytes, count, &h) != SDG_OK)
      continue;
    taken++;
    REQUIRE(h.dims >= 0 && h.dims <= SDG_DIMS_MAX);
    REQUIRE(h.elem_bytes >= 1 && h.elem_bytes <= 32);
    REQUIRE(h.data_offset >= 10 && h.data_offset <= (int64_t)count);
    int64_t want = h.elem_bytes;
    for (int d = 0; d < h.dims; d++) {
      REQUIRE(h.extent[d] >= 0);
      REQUIRE(!__builtin_mul_overflow(want, h.extent[d], &want));
    }
    REQUIRE(h.data_bytes == want);
  }
  REQUIRE(taken > cases / 10);
}
END_TEST

START_TEST(type_names_are_read) {
  static const struct {
    const char *text, *dtype;
    int bytes;
  } good[] = {
      {"float32", "<f4", 4}, {"<f4", "<f4", 4},    {"f8", "<f8", 8},
      {"float16", "<f2", 2}, {"int8", "|i1", 1},   {">u1", "|u1", 1},
      {"uint16", "<u2", 2},  {"int64", "<i8", 8},  {"bool", "|b1", 1},
      {"|b1", "|b1", 1},     {"<V2", "|V2", 2},    {"complex64", "<c8", 8},
      {">f4", ">f4", 4},     {">c16", ">c16", 16}, {"=i4", "<i4", 4},
  };
  for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
    char dtype[SDG_DTYPE_BYTES];
    int bytes;
    ck_assert(sdg_dtype_parse("f", good[i].text, dtype, &bytes) == SDG_OK);
    ck_assert_str_eq(dtype, good[i].dtype);
    ck_assert_int_eq(bytes, good[i].bytes);
  }
  static const char *const bad[] = {
      "",         "float", "float33", "int128", ">f3",     "f",  "f4 ", " f4",
      "float32x", "<<f4",  "str",     "x4",     "float-8", "V0", "V17", "b2"};
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char dtype[SDG_DTYPE_BYTES];
    int bytes;
    ck_assert_msg(sdg_dtype_parse("f", bad[i], dtype, &bytes) ==
                      SDG_E_NPY_FORMAT,
                  "%s", bad[i]);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("npy_header");
  TCase *cases = tcase_create("npy_header");
  tcase_set_timeout(cases, 120);
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, header_is_byte_for_byte_what_numpy_writes);
  tcase_add_test(cases, longest_header_is_read_back);
  tcase_add_test(cases, every_spelling_of_a_good_header_is_read);
  tcase_add_test(cases, fortran_order_is_read_where_it_matters);
  tcase_add_test(cases, fortran_order_is_transposed);
  tcase_add_test(cases, bad_headers_are_refused_by_their_fault);
  tcase_add_test(cases, every_truncation_and_wrong_prefix_is_refused);
  tcase_add_test(cases, mutilated_headers_are_refused_or_have_possible_values);
  tcase_add_test(cases, type_names_are_read);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
