// SPDX-License-Identifier: Apache-2.0
// How ranks find each other by a file: which paths are possible, and how a job
// handles strangers and files of earlier jobs.
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/unit/ranks.h"

// ---- who may join ---------------------------------------------------------

static sdg_status_t body_children(sdg_control_t *control, ranks_t *ranks) {
  sdg_control_t *second;
  int rank = sdg_control_rank(control), status;
  SDG_TRY(ranks_meet(control, ranks));
  if (sdg_control_join(ranks->rendezvous, rank, 2, 5, &second) !=
      SDG_E_RANK_TAKEN)
    return sdg_fail(SDG_E_INTERNAL, "the same process joined twice");
  pid_t child = fork();
  if (child == 0)
    _exit(sdg_control_join(ranks->rendezvous, rank, 2, 5, &second) ==
                  SDG_E_DESCENDANT
              ? 0
              : 1);
  if (waitpid(child, &status, 0) != child || status != 0)
    return sdg_fail(SDG_E_INTERNAL, "a child joined as its parent's rank");
  // After both attempts the other ranks still take this rank for alive.
  SDG_TRY(ranks_meet(control, ranks));
  return sdg_control_check(control, 1);
}

START_TEST(a_child_and_a_second_join_find_the_rank_taken) {
  ranks_t *ranks = ranks_init(2, 20);
  ranks_run(ranks, body_children);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

// ---- paths ----------------------------------------------------------------

START_TEST(two_jobs_with_two_paths_do_not_mix) {
  ranks_t *one = ranks_init(2, 20), *two = ranks_init(3, 20);
  ranks_start(one, ranks_hold);
  ranks_start(two, ranks_hold);
  for (int r = 0; r < 2; r++)
    ranks_await(one, r, 1);
  for (int r = 0; r < 3; r++)
    ranks_await(two, r, 1);
  atomic_store(&one->result[7].stage, 1);
  atomic_store(&two->result[7].stage, 1);
  ranks_wait(one);
  ranks_wait(two);
  ranks_all_ok(one);
  ranks_all_ok(two);
  ranks_fini(one);
  ranks_fini(two);
}
END_TEST

START_TEST(one_path_serves_jobs_one_after_the_other) {
  ranks_t *ranks = ranks_init(3, 20);
  for (int turn = 0; turn < 40; turn++) {
    ranks_run(ranks, ranks_meet);
    ranks_all_ok(ranks);
    ck_assert_int_eq(ranks_files(ranks), 0);
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_killed_job_does_not_disturb_the_next) {
  ranks_t *ranks = ranks_init(2, 20);
  ranks_start_one(ranks, 0, NULL); // waits with its socket open
  ranks_sleep_ms(200);
  ck_assert_int_eq(ranks_files(ranks), 2);
  ranks_signal(ranks, 0, SIGKILL);
  ranks_wait(ranks);
  ck_assert_int_eq(ranks_files(ranks), 2); // no process was left to remove them
  ranks_run(ranks, ranks_meet);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(the_socket_is_for_this_user_alone_whatever_the_umask) {
  ranks_t *ranks = ranks_init(2, 20);
  umask(0);
  ranks_start_one(ranks, 0, ranks_meet);
  ranks_sleep_ms(200);
  struct stat file;
  char path[128];
  snprintf(path, sizeof path, "%s/meet", ranks->folder);
  ck_assert_int_eq(lstat(path, &file), 0);
  ck_assert_int_eq(file.st_mode, S_IFSOCK | 0600);
  snprintf(path, sizeof path, "%s/meet.lock", ranks->folder);
  ck_assert_int_eq(lstat(path, &file), 0);
  ck_assert_int_eq(file.st_mode, S_IFREG | 0600);
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_path_may_have_spaces) {
  ranks_t *ranks = ranks_init(2, 20);
  strcat(ranks->rendezvous, " of my ranks; \"here\" %s");
  ranks_run(ranks, ranks_meet);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_path_may_be_longer_than_a_socket_address) {
  ranks_t *ranks = ranks_init(3, 20);
  char folder[400];
  snprintf(folder, sizeof folder, "%s/%0200d", ranks->folder, 0);
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "file:%s/meet", folder);
  ranks_run(ranks, ranks_meet);
  ranks_all_ok(ranks);
  ck_assert_int_eq(rmdir(folder), 0);
  snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "file:%s/%0150d",
           ranks->folder, 0);
  ranks_run(ranks, ranks_meet);
  for (int r = 0; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_RENDEZVOUS);
    ranks_assert_text(ranks, r, "too long for a socket");
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(places_that_cannot_be_used_are_refused_at_once) {
  static const struct {
    const char *rendezvous, *says;
  } bad[] = {
      {NULL, "no rendezvous is given"},
      {"", "no rendezvous is given"},
      {"http://localhost:1234", "is neither file:/path nor"},
      {"file:relative", "is neither file:/path nor tcp://host:port"},
      {"/tmp/no-scheme", "is neither file:/path nor"},
      {"file:/tmp/", "is neither file:/path nor"},
      {"file:/nonexistent-folder/meet", "No such file"},
      {"file:/dev/null/meet", "Not a directory"},
  };
  sdg_control_t *control;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    for (int rank = 0; rank < 2; rank++) {
      double start = ranks_now();
      ck_assert_int_eq(
          (int)sdg_control_join(bad[i].rendezvous, rank, 2, 20, &control),
          (int)SDG_E_RENDEZVOUS);
      ck_assert_msg(strstr(sdg_last_error(), bad[i].says) != NULL, "%s",
                    sdg_last_error());
      ck_assert(ranks_now() - start < harness_soon(1));
    }
  ck_assert_int_eq((int)sdg_control_join(NULL, 2, 2, 20, &control),
                   (int)SDG_E_RANK_UNKNOWN);
  ck_assert_int_eq((int)sdg_control_join(NULL, 0, 0, 20, &control),
                   (int)SDG_E_RANK_UNKNOWN);
  ck_assert_int_eq((int)sdg_control_join(NULL, 0, 100000, 20, &control),
                   (int)SDG_E_RANK_UNKNOWN);
}
END_TEST

// Puts a thing of each kind where the socket or the lock file should be.
START_TEST(foreign_files_at_the_path_are_refused_and_kept) {
  ranks_t *ranks = ranks_init(2, 20);
  char path[128], target[128];
  struct stat before, after;
  snprintf(target, sizeof target, "%s/other", ranks->folder);
  for (int kind = 0; kind < 6; kind++) {
    snprintf(path, sizeof path, "%s/meet%s", ranks->folder,
             kind < 2 ? "" : ".lock");
    if (kind == 0 || kind == 2)
      ck_assert_int_eq(mkdir(path, 0700), 0);
    if (kind == 1)
      close(creat(path, 0600));
    if (kind == 3)
      ck_assert_int_eq(mkfifo(path, 0600), 0);
    if (kind == 4)
      ck_assert_int_eq(symlink(target, path), 0);
    if (kind == 5) {
      close(creat(path, 0600));
      ck_assert_int_eq(chmod(path, 0666), 0);
    }
    ck_assert_int_eq(lstat(path, &before), 0);
    ranks_start_one(ranks, 0, NULL);
    ranks_wait(ranks);
    ranks_assert(ranks, 0, SDG_E_RENDEZVOUS);
    ck_assert_int_eq(lstat(path, &after), 0);
    ck_assert(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(ranks_files(ranks), 0);
  }
  ranks_fini(ranks);
}
END_TEST

// ---- strangers ------------------------------------------------------------

static struct sockaddr_un address_of(const ranks_t *ranks) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/meet", ranks->folder);
  return address;
}

static int stranger(const ranks_t *ranks) {
  struct sockaddr_un address = address_of(ranks);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  for (int i = 0; connect(fd, (const void *)&address, sizeof address) != 0;
       i++) {
    ck_assert_int_lt(i, 5000);
    ranks_sleep_ms(1);
  }
  return fd;
}

START_TEST(a_foreign_server_is_left_alone) {
  ranks_t *ranks = ranks_init(2, 1.5);
  struct sockaddr_un address = address_of(ranks);
  int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq(bind(server, (const void *)&address, sizeof address), 0);
  ck_assert_int_eq(listen(server, 5), 0);
  ranks_start_one(ranks, 0, NULL);
  ranks_wait_one(ranks, 0);
  ranks_assert(ranks, 0, SDG_E_RENDEZVOUS);
  ranks_assert_text(ranks, 0, "a process that is not in this job listens at");
  ck_assert_int_eq(ranks_files(ranks), 1); // the server's socket
  // It sends another rank a wrong answer, then no answer.
  for (int turn = 0; turn < 2; turn++) {
    ranks_start_one(ranks, 1, NULL);
    int client;
    do
      client = accept(server, NULL, NULL);
    while (client >= 0 && recv(client, &(char){0}, 1, MSG_PEEK) == 0);
    static const char noise[800] = "HTTP/1.1 400 Bad Request";
    if (turn == 0)
      ck_assert_int_eq(send(client, noise, sizeof noise, MSG_NOSIGNAL),
                       sizeof noise);
    ranks_wait_one(ranks, 1);
    ranks_assert(ranks, 1, turn ? SDG_E_JOIN_TIMEOUT : SDG_E_RENDEZVOUS);
    close(client);
  }
  close(server);
  unlink(address.sun_path);
  ranks_fini(ranks);
}
END_TEST

// Strangers send random bytes in random pieces, with and without a right
// beginning; rank 0 must neither crash nor refuse the real ranks.
START_TEST(strangers_with_garbage_do_not_disturb_a_job) {
  ranks_t *ranks = ranks_init(3, 20);
  unsigned seed = 12345;
  ranks_start_one(ranks, 0, ranks_meet);
  int open_fds[200], open_count = 0;
  for (int turn = 0; turn < 300; turn++) {
    struct {
      uint64_t magic;
      uint32_t layout, size, rank, reserved;
      char more[228];
    } message;
    for (size_t i = 0; i < sizeof message; i++)
      ((char *)&message)[i] = (char)(rand_r(&seed) >> 7);
    if (turn % 3 == 0)
      message.magic = UINT64_C(0x7364672d68656c6f);
    if (turn % 6 == 0) { // only the rank is wrong
      message.layout = sdg_shm_layout();
      message.size = 3;
      message.rank = turn % 12 ? 0 : (uint32_t)rand_r(&seed) | 0x80000000u;
    }
    size_t bytes = (size_t)rand_r(&seed) % (sizeof message + 1);
    int fd = stranger(ranks);
    for (size_t at = 0; at < bytes;) {
      size_t piece = 1 + (size_t)rand_r(&seed) % (bytes - at);
      if (send(fd, (char *)&message + at, piece, MSG_NOSIGNAL) < 0)
        break;
      at += piece;
    }
    if (turn % 5 == 0 && open_count < 25)
      open_fds[open_count++] = fd; // never sends the rest
    else
      close(fd);
  }
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_start_one(ranks, 2, ranks_meet);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  while (open_count > 0)
    close(open_fds[--open_count]);
  ranks_fini(ranks);
}
END_TEST

// Needs root to become another user; otherwise the test does nothing.
START_TEST(another_user_gets_no_answer_even_if_the_socket_were_open) {
  if (geteuid() != 0)
    return;
  ranks_t *ranks = ranks_init(2, 20);
  struct sockaddr_un address = address_of(ranks);
  ranks_start_one(ranks, 0, ranks_meet);
  close(stranger(ranks)); // it listens
  ck_assert_int_eq(chmod(ranks->folder, 0755), 0);
  ck_assert_int_eq(chmod(address.sun_path, 0666), 0);
  struct {
    uint64_t magic;
    uint32_t layout, size, rank, reserved;
    char launch[128];
  } hello = {UINT64_C(0x7364672d68656c6f), sdg_shm_layout(), 2, 1, 0, ""};
  for (int other = 1; other >= 0; other--) { // then root: its hello is right
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
      char answer[800];
      if (!other)
        hello.size = 3; // gets an answer: an error that ends the job
      if (other && setuid(65534) != 0)
        _exit(9);
      int fd = stranger(ranks);
      if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        _exit(1);
      _exit(recv(fd, answer, sizeof answer, 0) > 0 ? 2 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), other ? 1 : 2);
  }
  ranks_wait(ranks);
  ranks_assert(ranks, 0, SDG_E_RENDEZVOUS);
  ranks_fini(ranks);
}
END_TEST

START_TEST(ranks_join_although_silent_strangers_fill_all_places) {
  ranks_t *ranks = ranks_init(2, 20);
  int fd[60];
  ranks_start_one(ranks, 0, ranks_meet);
  for (int i = 0; i < 60; i++)
    fd[i] = stranger(ranks);
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  for (int i = 0; i < 60; i++)
    close(fd[i]);
  ranks_fini(ranks);
}
END_TEST

START_TEST(few_descriptors_are_enough_for_few_ranks) {
  struct rlimit few; // valgrind lets no program change the hard limit
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
  few.rlim_cur = 32;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
  ranks_t *ranks = ranks_init(3, 20);
  ranks_run(ranks, ranks_meet);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rendezvous");
  TCase *cases = tcase_create("rendezvous");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_test(cases, a_child_and_a_second_join_find_the_rank_taken);
  tcase_add_test(cases, two_jobs_with_two_paths_do_not_mix);
  tcase_add_test(cases, one_path_serves_jobs_one_after_the_other);
  tcase_add_test(cases, a_killed_job_does_not_disturb_the_next);
  tcase_add_test(cases, the_socket_is_for_this_user_alone_whatever_the_umask);
  tcase_add_test(cases, a_path_may_have_spaces);
  tcase_add_test(cases, a_path_may_be_longer_than_a_socket_address);
  tcase_add_test(cases, places_that_cannot_be_used_are_refused_at_once);
  tcase_add_test(cases, foreign_files_at_the_path_are_refused_and_kept);
  tcase_add_test(cases, a_foreign_server_is_left_alone);
  tcase_add_test(cases, strangers_with_garbage_do_not_disturb_a_job);
  tcase_add_test(cases,
                 another_user_gets_no_answer_even_if_the_socket_were_open);
  tcase_add_test(cases, ranks_join_although_silent_strangers_fill_all_places);
  tcase_add_test(cases, few_descriptors_are_enough_for_few_ranks);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
