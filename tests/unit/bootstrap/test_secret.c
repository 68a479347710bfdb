// SPDX-License-Identifier: Apache-2.0
// Where a job's secret comes from.
#include "src/bootstrap/secret.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static const char secret_text[] = "the secret of a test";

START_TEST(a_secret_comes_from_the_environment_or_a_private_file) {
  char path[] = "/tmp/sdg-test-XXXXXX";
  sdg_secret_t one, two;
  int fd = mkstemp(path);
  ck_assert_int_eq((int)sdg_secret_find("", "", &one), (int)SDG_E_SECRET);
  ck_assert_int_eq((int)sdg_secret_find("fifteen letters", "", &one),
                   (int)SDG_E_SECRET);
  ck_assert_int_eq((int)sdg_secret_find(secret_text, "", &one), (int)SDG_OK);
  ck_assert_int_eq(dprintf(fd, "%s\r\n\n", secret_text),
                   (int)strlen(secret_text) + 3);
  ck_assert_int_eq((int)sdg_secret_find("", path, &two), (int)SDG_OK);
  ck_assert_mem_eq(&one, &two, sizeof one);
  ck_assert_int_eq(fchmod(fd, 0640), 0);
  ck_assert_int_eq((int)sdg_secret_find("", path, &two), (int)SDG_E_SECRET);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "that belongs to this user"));
  ck_assert_int_eq(fchmod(fd, 0600), 0);
  ck_assert_int_eq(ftruncate(fd, 5000), 0);
  ck_assert_int_eq((int)sdg_secret_find("", path, &two), (int)SDG_E_SECRET);
  ck_assert_int_eq(ftruncate(fd, 0), 0);
  ck_assert_int_eq((int)sdg_secret_find("", path, &two), (int)SDG_E_SECRET);
  unlink(path);
  close(fd);
  ck_assert_int_eq((int)sdg_secret_find("", path, &two), (int)SDG_E_SECRET);
  ck_assert_int_eq((int)sdg_secret_find("", "/dev/zero", &two),
                   (int)SDG_E_SECRET);
  ck_assert_ptr_null(strstr(sdg_last_error(), secret_text));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("secret");
  TCase *cases = tcase_create("secret");
  tcase_add_test(cases, a_secret_comes_from_the_environment_or_a_private_file);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
