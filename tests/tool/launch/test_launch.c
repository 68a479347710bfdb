// SPDX-License-Identifier: Apache-2.0
// Which GPU a rank gets, and how placeholders are replaced. Other tests of
// launching use the command.
#include "tools/launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static const struct bind {
  launch_device_t device;
  int local_rank, size;
  const char *visible; // before; NULL: not set
  const char *result;  // NULL: not set
} binds[] = {
    {LAUNCH_CUDA, 2, 4, NULL, "2"},
    {LAUNCH_CUDA, 2, 4, "", "2"},
    {LAUNCH_CUDA, 0, 1, NULL, NULL},
    {LAUNCH_CUDA, 0, 1, "5,6", "5,6"},
    {LAUNCH_CUDA, 1, 2, "7", "7"},
    {LAUNCH_CUDA, 0, 2, "5,GPU-ab12", "5"},
    {LAUNCH_CUDA, 1, 2, "5,GPU-ab12", "GPU-ab12"},
    {LAUNCH_HOST, 1, 2, NULL, NULL},
    {LAUNCH_HOST, 1, 2, "5,6", "5,6"},
};

START_TEST(each_rank_gets_its_gpu) {
  const struct bind *bind = &binds[_i];
  launch_t launch = {.device = bind->device};
  unsetenv("CUDA_VISIBLE_DEVICES");
  if (bind->visible)
    setenv("CUDA_VISIBLE_DEVICES", bind->visible, 1);
  ck_assert_int_eq((int)launch_bind(&launch, bind->local_rank, bind->size), 0);
  const char *result = getenv("CUDA_VISIBLE_DEVICES");
  if (bind->result)
    ck_assert_str_eq(result, bind->result);
  else
    ck_assert_ptr_null(result);
}
END_TEST

START_TEST(a_program_that_selects_its_gpu_sees_all) {
  launch_t launch = {.device = LAUNCH_CUDA, .sees_all = true};
  unsetenv("CUDA_VISIBLE_DEVICES");
  ck_assert_int_eq((int)launch_bind(&launch, 1, 2), 0);
  ck_assert_ptr_null(getenv("CUDA_VISIBLE_DEVICES"));
  setenv("CUDA_VISIBLE_DEVICES", "5,6", 1);
  ck_assert_int_eq((int)launch_bind(&launch, 1, 2), 0);
  ck_assert_str_eq(getenv("CUDA_VISIBLE_DEVICES"), "5,6");
}
END_TEST

START_TEST(a_rank_beyond_the_listed_gpus_is_refused) {
  launch_t launch = {.device = LAUNCH_CUDA};
  setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  ck_assert_int_eq((int)launch_bind(&launch, 2, 4), SDG_E_GPUS);
}
END_TEST

START_TEST(listed_gpus_are_counted) {
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  ck_assert_int_eq(launch_gpus(), 1);
  setenv("CUDA_VISIBLE_DEVICES", "0,1,GPU-ab12", 1);
  ck_assert_int_eq(launch_gpus(), 3);
}
END_TEST

START_TEST(placeholders_are_replaced_everywhere) {
  char *program[] = {
      "p{rank}", "{rank}{size}{local_rank}", "{{rank}}{Rank}{rank", "", "a b",
      NULL};
  char **words = launch_arguments(program, 10, 12, 3);
  ck_assert_str_eq(words[0], "p10");
  ck_assert_str_eq(words[1], "10123");
  ck_assert_str_eq(words[2], "{10}{Rank}{rank");
  ck_assert_str_eq(words[3], "");
  ck_assert_str_eq(words[4], "a b");
  ck_assert_ptr_null(words[5]);
  for (int i = 0; i < 5; i++)
    free(words[i]);
  free(words);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("launch");
  TCase *cases = tcase_create("launch");
  tcase_add_loop_test(cases, each_rank_gets_its_gpu, 0,
                      sizeof binds / sizeof *binds);
  tcase_add_test(cases, a_program_that_selects_its_gpu_sees_all);
  tcase_add_test(cases, a_rank_beyond_the_listed_gpus_is_refused);
  tcase_add_test(cases, listed_gpus_are_counted);
  tcase_add_test(cases, placeholders_are_replaced_everywhere);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
