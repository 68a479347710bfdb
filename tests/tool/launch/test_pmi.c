// SPDX-License-Identifier: Apache-2.0
// What `sundog exec` says to a launcher's PMI, and what a launcher may do that
// hydra does not: each test is the server at the other end of a socket.
#include "tools/meeting/pmi.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "tests/unit/harness.h"
#include "tools/meeting/relay.h"

#define SECRET    "0123456789abcdef"
#define PUBLISHED "sundog1 5 " SECRET " 192.0.2.1:5 192.0.2.2:5"

// What a server answers to a request that begins so.
typedef struct answer {
  const char *request, *text;
} answer_t;

static int ends[2];

// Answers requests in order, and writes the last one to `seen`.
static pid_t server_start(const answer_t *answers, int seen) {
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  pid_t pid = fork();
  if (pid != 0) {
    close(ends[1]);
    return pid;
  }
  close(ends[0]);
  for (; answers->request; answers++) {
    char line[2048];
    size_t used = 0;
    while (used < sizeof line && read(ends[1], line + used, 1) == 1 &&
           line[used++] != '\n')
      continue;
    if (strncmp(line, answers->request, strlen(answers->request)) != 0)
      _exit(1);
    if (!answers[1].request)
      (void)!write(seen, line, used);
    (void)!write(ends[1], answers->text, strlen(answers->text));
  }
  _exit(0);
}

static void server_end(pid_t pid) {
  int status = 1;
  close(ends[0]);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
}

// Meets a server that does not answer the last request well. *out_seen: that
// request.
static void meeting_fails(const answer_t *answers, char *out_seen,
                          size_t bytes) {
  int seen[2];
  char text[256];
  ck_assert_int_eq(pipe(seen), 0);
  pid_t pid = server_start(answers, seen[1]);
  ck_assert_uint_eq(pmi_meet(ends[0], PUBLISHED, 5, text, sizeof text),
                    SDG_E_PMIX);
  server_end(pid);
  ssize_t n = read(seen[0], out_seen, bytes - 1);
  out_seen[n > 0 ? n : 0] = '\0';
  close(seen[0]);
  close(seen[1]);
}

#define INIT                                                                   \
  {"cmd=init", "cmd=response_to_init rc=0\n"}, {                               \
    "cmd=get_my_kvsname", "cmd=my_kvsname kvsname=space\n"                     \
  }

START_TEST(messages_do_not_show_the_secret) {
  char seen[2048];
  const answer_t put[] = {INIT,
                          {"cmd=get_maxes", "cmd=maxes vallen_max=1024\n"},
                          {"cmd=put", "cmd=put_result rc=-1\n"},
                          {NULL, NULL}};
  meeting_fails(put, seen, sizeof seen);
  ck_assert_ptr_nonnull(strstr(seen, SECRET));
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "to cmd=put"));
  ck_assert_ptr_null(strstr(sdg_last_error(), SECRET));
  const answer_t get[] = {INIT,
                          {"cmd=get_maxes", "cmd=maxes vallen_max=1024\n"},
                          {"cmd=put", "cmd=put_result rc=0\n"},
                          {"cmd=barrier_in", "cmd=barrier_out\n"},
                          {"cmd=get", "cmd=get_result rc=1 value=" SECRET "\n"},
                          {NULL, NULL}};
  meeting_fails(get, seen, sizeof seen);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "rc=1"));
  ck_assert_ptr_null(strstr(sdg_last_error(), SECRET));
}
END_TEST

START_TEST(addresses_for_which_there_is_no_room_are_left_out) {
  char seen[2048];
  answer_t answers[] = {INIT,
                        {"cmd=get_maxes", "cmd=maxes vallen_max=45\n"},
                        {"cmd=put", "cmd=put_result rc=-1\n"},
                        {NULL, NULL}};
  meeting_fails(answers, seen, sizeof seen);
  ck_assert_ptr_nonnull(
      strstr(seen, " value=sundog1,5," SECRET ",192.0.2.1:5\n"));
  answers[2].text = "cmd=maxes vallen_max=7\n";
  answers[3].request = NULL;
  meeting_fails(answers, seen, sizeof seen);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "values of 7 bytes"));
  answers[2].text = "cmd=maxes\n";
  meeting_fails(answers, seen, sizeof seen);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "how long a value may be"));
}
END_TEST

// ---- a server that takes nothing -------------------------------------------

static void server_fill(void) {
  char bytes[4096] = {0};
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  while (send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    continue;
}

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

START_TEST(the_end_does_not_wait_for_ever) {
  server_fill();
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  pmi_end(ends[0], 1);
  ck_assert_double_lt(sdg_stopwatch_read(&watch), 30);
}
END_TEST

START_TEST(a_relay_gives_up_without_turning) {
  relay_t relay;
  server_fill();
  ck_assert_uint_eq(relay_open(ends[0], &relay), SDG_OK);
  ck_assert_int_eq(send(relay.far, "last", 4, 0), 4);
  double before_s = cpu_s();
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  ck_assert_uint_eq(relay_start(&relay), SDG_OK); // closes the program's end
  ck_assert(relay_stop(&relay));
  ck_assert_double_lt(sdg_stopwatch_read(&watch), 30);
  ck_assert_double_lt(cpu_s() - before_s, 0.5);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pmi");
  TCase *cases = tcase_create("pmi");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, messages_do_not_show_the_secret);
  tcase_add_test(cases, addresses_for_which_there_is_no_room_are_left_out);
  tcase_add_test(cases, the_end_does_not_wait_for_ever);
  tcase_add_test(cases, a_relay_gives_up_without_turning);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
