// SPDX-License-Identifier: Apache-2.0
// Array files: what is opened, written and replaced; boxes against a naive
// copy.
#include "tools/array/npy.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/array/npy_file.h"
#include "tests/unit/random.h"

enum { CASES = 100000, BOX_CASES = 400 };

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

// ---- files -----------------------------------------------------------------

START_TEST(file_shorter_than_its_header_says_is_refused) {
  char bytes[512] = "";
  sdg_npy_t npy;
  size_t count = header_bytes(1, DICT("'<f4'", "False", "(3, 4)"), bytes);
  const char *path = in_dir("a.npy");
  for (size_t n = 0; n < count + 48; n++) {
    file_make(path, bytes, n);
    ck_assert(sdg_npy_open(path, &npy) == SDG_E_NPY_FORMAT);
  }
  for (size_t n = count + 48; n < count + 50; n++) { // more is allowed
    file_make(path, bytes, n);
    ck_assert(sdg_npy_open(path, &npy) == SDG_OK);
    sdg_npy_close(&npy);
  }
  unlink(path);
}
END_TEST

START_TEST(raw_file_must_have_the_exact_size) {
  char bytes[64] = "";
  sdg_npy_t npy;
  const char *path = in_dir("a.raw");
  for (size_t n = 20; n < 30; n++) {
    file_make(path, bytes, n);
    sdg_status_t want = n == 24 ? SDG_OK : SDG_E_NPY_FORMAT;
    ck_assert(sdg_npy_open_raw(path, "float32", 2, (int64_t[]){2, 3}, &npy) ==
              want);
    if (want == SDG_OK)
      sdg_npy_close(&npy);
  }
  ck_assert(sdg_npy_open_raw(path, "f4", 1, (int64_t[]){-1}, &npy) ==
            SDG_E_NPY_FORMAT);
  ck_assert(sdg_npy_open_raw(path, "f4", 9, NULL, &npy) == SDG_E_NPY_FORMAT);
  unlink(path);
}
END_TEST

START_TEST(only_regular_files_are_read) {
  sdg_npy_t npy;
  ck_assert(sdg_npy_open(in_dir("none.npy"), &npy) == SDG_E_FILE_IO);
  ck_assert(sdg_npy_open(dir, &npy) == SDG_E_FILE_IO);
  const char *fifo = in_dir("fifo");
  ck_assert_int_eq(mkfifo(fifo, 0600), 0);
  ck_assert(sdg_npy_open(fifo, &npy) == SDG_E_FILE_IO);
  ck_assert(sdg_npy_create(fifo, false, "f4", false, 1, (int64_t[]){3}, &npy) ==
            SDG_E_FILE_IO);
  ck_assert(sdg_npy_create("/dev/null", false, "f4", false, 1, (int64_t[]){3},
                           &npy) == SDG_E_FILE_IO);
  ck_assert(sdg_npy_create(in_dir("no/such"), false, "f4", false, 1,
                           (int64_t[]){3}, &npy) == SDG_E_FILE_IO);
  unlink(fifo);
}
END_TEST

START_TEST(created_file_appears_when_committed) {
  sdg_npy_t npy;
  const char *path = in_dir("a.npy");
  ck_assert(sdg_npy_create(path, false, "f4", false, 1, (int64_t[]){3}, &npy) ==
            SDG_OK);
  ck_assert(!exists(path));
  sdg_npy_close(&npy); // closed without commit
  sdg_npy_close(&npy);
  ck_assert(!exists(path));
  ck_assert(sdg_npy_create(path, false, "f4", false, 1, (int64_t[]){3}, &npy) ==
            SDG_OK);
  ck_assert(sdg_npy_commit(&npy) == SDG_OK);
  sdg_npy_close(&npy);
  ck_assert(exists(path));
  float zeros[3] = {1, 1, 1};
  ck_assert(sdg_npy_open(path, &npy) == SDG_OK);
  sdg_box_t all = sdg_npy_box(&npy);
  ck_assert(sdg_npy_read_box(&npy, &all, zeros) == SDG_OK);
  ck_assert(zeros[0] == 0 && zeros[1] == 0 && zeros[2] == 0);
  sdg_npy_close(&npy);
  unlink(path);
}
END_TEST

START_TEST(files_of_other_users_are_not_written) {
  sdg_npy_t npy, other;
  const char *path = in_dir("a.raw"), *kept = in_dir("kept");
  const int64_t three[] = {3};
  char link[128], text[3];
  ck_assert(sdg_npy_create(path, true, "u1", false, 1, three, &npy) == SDG_OK);
  // The next temporary name is taken by another file or link.
  unsigned count = 0;
  ck_assert_int_eq(sscanf(strrchr(npy.part, '-'), "-%u", &count), 1);
  snprintf(link, sizeof link, "%.*s-%u.part",
           (int)(strrchr(npy.part, '-') - npy.part), npy.part, count + 1);
  file_make(kept, "abc", 3);
  ck_assert_int_eq(symlink(kept, link), 0);
  ck_assert(sdg_npy_create(path, true, "u1", false, 1, three, &other) ==
            SDG_OK);
  ck_assert_str_ne(other.part, link);
  sdg_npy_close(&other);
  sdg_npy_close(&npy);
  ck_assert(sdg_npy_open_raw(kept, "u1", 1, three, &npy) == SDG_OK);
  sdg_box_t all = sdg_npy_box(&npy);
  ck_assert(sdg_npy_read_box(&npy, &all, text) == SDG_OK);
  ck_assert_mem_eq(text, "abc", 3);
  sdg_npy_close(&npy);
  unlink(link);
  unlink(kept);
}
END_TEST

START_TEST(output_may_replace_its_input) {
  sdg_npy_t in, out;
  const char *path = in_dir("a.raw");
  file_make(path, "abcdef", 6);
  char text[6];
  sdg_box_t half = {.dims = 1, .dim = {{0, 3}}};
  ck_assert(sdg_npy_open_raw(path, "u1", 1, (int64_t[]){6}, &in) == SDG_OK);
  ck_assert(sdg_npy_create(path, true, "u1", false, 1, (int64_t[]){3}, &out) ==
            SDG_OK);
  ck_assert(sdg_npy_read_box(&in, &half, text) == SDG_OK);
  ck_assert(sdg_npy_write_box(&out, &half, text) == SDG_OK);
  ck_assert(sdg_npy_commit(&out) == SDG_OK);
  sdg_npy_close(&in);
  ck_assert(sdg_npy_open_raw(path, "u1", 1, (int64_t[]){3}, &in) == SDG_OK);
  ck_assert(sdg_npy_read_box(&in, &half, text) == SDG_OK);
  ck_assert_mem_eq(text, "abc", 3);
  sdg_npy_close(&in);
  unlink(path);
}
END_TEST

START_TEST(file_cut_while_open_is_an_error) {
  sdg_npy_t npy;
  char text[6];
  const char *path = in_dir("a.raw");
  file_make(path, "abcdef", 6);
  ck_assert(sdg_npy_open_raw(path, "u1", 1, (int64_t[]){6}, &npy) == SDG_OK);
  ck_assert_int_eq(truncate(path, 4), 0);
  sdg_box_t all = sdg_npy_box(&npy);
  ck_assert(sdg_npy_read_box(&npy, &all, text) == SDG_E_NPY_FORMAT);
  sdg_npy_close(&npy);
  unlink(path);
}
END_TEST

START_TEST(boxes_outside_the_array_are_refused) {
  sdg_npy_t npy;
  char text[16];
  const char *path = in_dir("a.raw");
  file_make(path, "abcdef", 6);
  ck_assert(sdg_npy_open_raw(path, "u1", 2, (int64_t[]){2, 3}, &npy) == SDG_OK);
  sdg_box_t bad[] = {{.dims = 1, .dim = {{0, 2}}},
                     {.dims = 2, .dim = {{0, 3}, {0, 3}}},
                     {.dims = 2, .dim = {{-1, 1}, {0, 3}}},
                     {.dims = 2, .dim = {{0, 1}, {0, 4}}}};
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert(sdg_npy_read_box(&npy, &bad[i], text) == SDG_E_INTERNAL);
  sdg_npy_close(&npy);
  unlink(path);
}
END_TEST

// ---- boxes -----------------------------------------------------------------

// Steps through a box, last dimension fastest; returns false after the last
// point.
static bool next_point(const sdg_box_t *box, int64_t *at) {
  for (int d = box->dims - 1; d >= 0; d--) {
    if (++at[d] < box->dim[d].hi)
      return true;
    at[d] = box->dim[d].lo;
  }
  return false;
}

// Copies the elements of `box` of a dense array, in either direction.
static void naive_move(const sdg_npy_header_t *h, char *array,
                       const sdg_box_t *box, char *dense, bool to_array) {
  int64_t at[SDG_DIMS_MAX];
  if (sdg_box_empty(box))
    return;
  for (int d = 0; d < h->dims; d++)
    at[d] = box->dim[d].lo;
  do {
    int64_t index = 0;
    for (int d = 0; d < h->dims; d++)
      index = index * h->extent[d] + at[d];
    char *element = array + index * h->elem_bytes;
    memcpy(to_array ? element : dense, to_array ? dense : element,
           (size_t)h->elem_bytes);
    dense += h->elem_bytes;
  } while (next_point(box, at));
}

START_TEST(boxes_are_read_and_written_like_a_naive_copy) {
  static const char *const types[] = {"u1", "f2", ">f4", "f8", "c16"};
  static char array[65536], dense[65536], got[65536];
  const char *path = in_dir("a.npy");
  for (int64_t i = random_cases(BOX_CASES); i > 0; i--) {
    int64_t extent[SDG_DIMS_MAX];
    int dims = (int)random_in(0, 5);
    for (int d = 0; d < dims; d++)
      extent[d] = random_in(random_in(0, 9) ? 1 : 0, 5);
    const char *type = types[random_in(0, 4)];
    bool raw = random_in(0, 1), fortran = !raw && random_in(0, 1);
    sdg_npy_t npy;
    REQUIRE(sdg_npy_create(path, raw, type, fortran, dims, extent, &npy) ==
            SDG_OK);
    memset(array, 0, sizeof array);
    for (int k = 0; k < 8; k++) { // later boxes overwrite earlier ones
      sdg_box_t box = {.dims = dims};
      for (int d = 0; d < dims; d++) {
        bool whole = random_in(0, 1);
        box.dim[d].lo = whole ? 0 : random_in(0, extent[d]);
        box.dim[d].hi = whole ? extent[d] : random_in(box.dim[d].lo, extent[d]);
      }
      size_t bytes = (size_t)(sdg_box_count(&box) * npy.header.elem_bytes);
      for (size_t b = 0; b < bytes; b++)
        dense[b] = (char)random_bits();
      naive_move(&npy.header, array, &box, dense, true);
      REQUIRE(sdg_npy_write_box(&npy, &box, dense) == SDG_OK);
      for (int d = 0; d < dims; d++)
        box.dim[d] = (sdg_range_t){random_in(0, extent[d]), extent[d]};
      bytes = (size_t)(sdg_box_count(&box) * npy.header.elem_bytes);
      naive_move(&npy.header, array, &box, dense, false);
      got[bytes] = '#';
      REQUIRE(sdg_npy_read_box(&npy, &box, got) == SDG_OK);
      REQUIRE(memcmp(got, dense, bytes) == 0 && got[bytes] == '#');
    }
    REQUIRE(sdg_npy_commit(&npy) == SDG_OK);
    if (raw)
      REQUIRE(sdg_npy_open_raw(path, type, dims, extent, &npy) == SDG_OK);
    else
      REQUIRE(sdg_npy_open(path, &npy) == SDG_OK);
    sdg_box_t all = sdg_npy_box(&npy);
    REQUIRE(sdg_npy_read_box(&npy, &all, got) == SDG_OK);
    REQUIRE(memcmp(got, array, (size_t)npy.header.data_bytes) == 0);
    sdg_npy_close(&npy);
  }
  unlink(path);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("npy");
  TCase *cases = tcase_create("npy");
  tcase_set_timeout(cases, 120);
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, files_of_other_users_are_not_written);
  tcase_add_test(cases, file_shorter_than_its_header_says_is_refused);
  tcase_add_test(cases, raw_file_must_have_the_exact_size);
  tcase_add_test(cases, only_regular_files_are_read);
  tcase_add_test(cases, created_file_appears_when_committed);
  tcase_add_test(cases, output_may_replace_its_input);
  tcase_add_test(cases, file_cut_while_open_is_an_error);
  tcase_add_test(cases, boxes_outside_the_array_are_refused);
  tcase_add_test(cases, boxes_are_read_and_written_like_a_naive_copy);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
