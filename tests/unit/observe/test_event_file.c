// SPDX-License-Identifier: Apache-2.0
// Files of records: their content after threads, forks and failures.
#include "src/observe/event_file.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/status.h"
#include "tests/unit/harness.h"

static char folder[] = "/tmp/sdg-events-XXXXXX", path[PATH_MAX];

static void setup(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/records", folder);
}

static void teardown(void) {
  DIR *dir = opendir(folder);
  const struct dirent *entry;
  while (dir && (entry = readdir(dir)))
    (void)unlinkat(dirfd(dir), entry->d_name, 0); // fails for "." and ".."
  closedir(dir);
  rmdir(folder);
}

static void append(sdg_event_file_t *file, const char *text) {
  sdg_event_append(file, folder, text, strlen(text));
}

// Borrowed until the next call.
static const char *text_of(const char *name) {
  static char text[1 << 16];
  FILE *file = fopen(name, "r");
  size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file)
    fclose(file);
  text[bytes] = '\0';
  return text;
}

START_TEST(the_mode_decides_whether_an_existing_file_is_replaced) {
  static const char *const text[] = {[SDG_EVENT_APPEND] = "old\nnew\n",
                                     [SDG_EVENT_REPLACE] = "new\n",
                                     [SDG_EVENT_CREATE] = "old\n"};
  for (int mode = SDG_EVENT_APPEND; mode <= SDG_EVENT_CREATE; mode++) {
    FILE *old = fopen(path, "w");
    fputs("old\n", old);
    fclose(old);
    sdg_event_file_t file = {
        SDG_EVENT_FILE("a test", (sdg_event_mode_t)mode, "records")};
    append(&file, "new\n");
    ck_assert_str_eq(text_of(path), text[mode]);
    sdg_fd_close(&file.file);
  }
}
END_TEST

START_TEST(names_have_rank_and_process_but_folders_are_taken_literally) {
  char inner[PATH_MAX], expected[PATH_MAX + 64];
  snprintf(inner, sizeof inner, "%s/%%p", folder);
  ck_assert_int_eq(mkdir(inner, 0700), 0);
  sdg_event_file_t file = {
      SDG_EVENT_FILE("a test", SDG_EVENT_CREATE, "r%r-%p-%%")};
  sdg_event_append(&file, inner, "x", 1);
  snprintf(expected, sizeof expected, "%s/r0-%d-%%%%", inner, (int)getpid());
  ck_assert_str_eq(text_of(expected), "x");
  unlink(expected);
  rmdir(inner);
}
END_TEST

START_TEST(buffer_keeps_the_order_and_long_records_pass_it) {
  char buffer[8];
  sdg_event_file_t file = {
      SDG_EVENT_FILE("a test", SDG_EVENT_CREATE, "records"), .buffer = buffer,
      .buffer_bytes = sizeof buffer};
  append(&file, "abc");
  ck_assert_str_eq(text_of(path), "");
  append(&file, "0123456789");
  ck_assert_str_eq(text_of(path), "abc0123456789");
  append(&file, "defgh");
  append(&file, "ijkl");
  ck_assert_str_eq(text_of(path), "abc0123456789defgh");
  sdg_event_flush(&file);
  ck_assert_str_eq(text_of(path), "abc0123456789defghijkl");
}
END_TEST

static sdg_event_file_t shared = {
    SDG_EVENT_FILE("a test", SDG_EVENT_CREATE, "records")};

static void *lines_append(void *letter) {
  char line[32];
  memset(line, *(const char *)letter, sizeof line - 1);
  line[sizeof line - 1] = '\n';
  for (int i = 0; i < 200; i++)
    sdg_event_append(&shared, folder, line, sizeof line);
  return NULL;
}

START_TEST(an_empty_record_is_none) {
  sdg_event_file_t file = {
      SDG_EVENT_FILE("a test", SDG_EVENT_CREATE, "records")};
  append(&file, "");
  ck_assert_int_eq(access(path, F_OK), -1);
  append(&file, "a");
  append(&file, "");
  ck_assert_str_eq(text_of(path), "a");
}
END_TEST

START_TEST(records_of_threads_do_not_mix) {
  pthread_t thread[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&thread[i], NULL, lines_append, (void *)(size_t) & "abc"[i]);
  for (int i = 0; i < 3; i++)
    pthread_join(thread[i], NULL);
  const char *text = text_of(path);
  ck_assert_uint_eq(strlen(text), 3 * 200 * 32);
  for (size_t i = 0; text[i]; i++)
    ck_assert_int_eq(text[i], i % 32 == 31 ? '\n' : text[i / 32 * 32]);
}
END_TEST

START_TEST(child_of_a_fork_writes_nothing) {
  char buffer[64];
  sdg_event_file_t file = {
      SDG_EVENT_FILE("a test", SDG_EVENT_CREATE, "records"), .buffer = buffer,
      .buffer_bytes = sizeof buffer};
  append(&file, "parent\n");
  pid_t child = fork();
  if (child == 0) {
    sdg_event_drop(&file);
    append(&file, "child\n");
    sdg_event_flush(&file);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  sdg_event_flush(&file);
  ck_assert_str_eq(text_of(path), "parent\n");
}
END_TEST

START_TEST(full_disk_ends_the_file_and_says_so_once) {
  sdg_event_file_t file = {SDG_EVENT_FILE("a test", SDG_EVENT_APPEND, NULL)};
  sdg_event_append(&file, "/dev/full", "x", 1);
  ck_assert_int_eq(file.state, SDG_EVENT_ENDED);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "No space left"));
  (void)!sdg_fail(SDG_E_INTERNAL, "another failure");
  sdg_event_append(&file, "/dev/full", "x", 1);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "another failure"));
}
END_TEST

START_TEST(a_file_with_a_closed_descriptors_number_is_not_written) {
  sdg_event_file_t file = {
      SDG_EVENT_FILE("a test", SDG_EVENT_CREATE, "records")};
  append(&file, "ours\n");
  char other[PATH_MAX];
  snprintf(other, sizeof other, "%s/program", folder);
  FILE *program = fopen(other, "w");
  ck_assert_int_ge(file.file.fd, 3);
  ck_assert_int_eq(dup2(fileno(program), file.file.fd), file.file.fd);
  append(&file, "lost\n");
  ck_assert_str_eq(text_of(other), "");
  ck_assert_str_eq(text_of(path), "ours\n");
  fclose(program);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("event_file");
  TCase *cases = tcase_create("event_file");
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, the_mode_decides_whether_an_existing_file_is_replaced);
  tcase_add_test(cases,
                 names_have_rank_and_process_but_folders_are_taken_literally);
  tcase_add_test(cases, buffer_keeps_the_order_and_long_records_pass_it);
  tcase_add_test(cases, an_empty_record_is_none);
  tcase_add_test(cases, records_of_threads_do_not_mix);
  tcase_add_test(cases, child_of_a_fork_writes_nothing);
  tcase_add_test(cases, full_disk_ends_the_file_and_says_so_once);
  tcase_add_test(cases, a_file_with_a_closed_descriptors_number_is_not_written);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
