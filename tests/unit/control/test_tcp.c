// SPDX-License-Identifier: Apache-2.0
// How ranks find each other over TCP: who may join, what strangers can do, and
// messages that break the rules.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "src/bootstrap/address.h"
#include "src/bootstrap/secret.h"
#include "src/control/frame.h"
#include "tests/unit/ranks.h"

static const char secret_text[] = "the secret of a test";

static ranks_t *tcp_init(int size, double timeout_s) {
  ranks_t *ranks = ranks_init(size, timeout_s);
  ranks_use_tcp(ranks, secret_text);
  return ranks;
}

// ---- who may join ---------------------------------------------------------

START_TEST(one_port_serves_jobs_one_after_the_other) {
  ranks_t *ranks = tcp_init(3, 20);
  for (int turn = 0; turn < 10; turn++) {
    ranks_run(ranks, ranks_meet);
    ranks_all_ok(ranks);
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(names_and_ipv6_are_places_too) {
  static const char *const hosts[] = {"localhost", "[::1]",
                                      "[::ffff:127.0.0.1]", "127.0.0.1"};
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
    ranks_t *ranks = tcp_init(3, 20);
    snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "tcp://%s:%d",
             hosts[i], port_free());
    if (i == 1) { // a machine without IPv6
      int fd = socket(AF_INET6, SOCK_STREAM, 0);
      struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                                 .sin6_addr = in6addr_loopback};
      int has = fd >= 0 && bind(fd, (void *)&any, sizeof any) == 0;
      close(fd);
      if (!has) {
        ranks_fini(ranks);
        continue;
      }
    }
    ranks_run(ranks, ranks_meet);
    ranks_all_ok(ranks);
    ranks_fini(ranks);
  }
}
END_TEST

START_TEST(places_that_cannot_be_used_are_refused_at_once) {
  static const char *const bad[] = {
      "tcp://",
      "tcp://localhost",
      "tcp://localhost:",
      "tcp://:1234",
      "tcp://localhost:0",
      "tcp://localhost:65536",
      "tcp://[::1]",
      "tcp://[::1:80",
      "tcp://1.2.3.4:http",
      "tcp://1.2.3.4:8x",
      "tcp://no.such.name.invalid:80",
  };
  sdg_control_t *control;
  ranks_t *ranks = tcp_init(2, 20);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    for (int rank = 0; rank < 2; rank++)
      ck_assert_msg(sdg_control_join(bad[i], rank, 2, 20, &control) ==
                        SDG_E_RENDEZVOUS,
                    "%s", bad[i]);
  // Not an address of this machine.
  ck_assert_int_eq(
      (int)sdg_control_join("tcp://192.0.2.1:4000", 0, 2, 20, &control),
      (int)SDG_E_RENDEZVOUS);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "cannot listen at"));
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_tcp_rendezvous_needs_a_secret) {
  ranks_t *ranks = tcp_init(2, 20);
  sdg_control_t *control;
  unsetenv("SUNDOG_SECRET");
  ck_assert_int_eq((int)sdg_options_load(environ), (int)SDG_OK);
  for (int rank = 0; rank < 2; rank++)
    ck_assert_int_eq(
        (int)sdg_control_join(ranks->rendezvous, rank, 2, 20, &control),
        (int)SDG_E_SECRET);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_rank_with_another_secret_fails_at_once) {
  ranks_t *ranks = tcp_init(2, 3);
  ranks_start_one(ranks, 0, ranks_meet);
  ranks_sleep_ms(100);
  setenv("SUNDOG_SECRET", "the secret of another test", 1);
  ck_assert_int_eq((int)sdg_options_load(environ), (int)SDG_OK);
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_wait(ranks);
  ranks_assert(ranks, 1, SDG_E_SECRET);
  ranks_assert_text(ranks, 1, "does not know the secret of rank 1");
  ck_assert(ranks->result[1].seconds < harness_soon(1.5));
  ranks_assert(ranks, 0, SDG_E_JOIN_TIMEOUT);
  ranks_assert_text(ranks, 0, "rank 1 of 2");
  ranks_fini(ranks);
}
END_TEST

// Each machine has its own folder of locks.
START_TEST(two_machines_with_the_same_rank_are_an_error_on_all_ranks) {
  ranks_t *ranks = tcp_init(3, 20);
  char folder[] = "/tmp/sdg-test-XXXXXX", inner[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ranks_start_one(ranks, 0, ranks_meet);
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_sleep_ms(200);
  setenv("XDG_RUNTIME_DIR", folder, 1);
  pid_t pid = fork();
  if (pid == 0) {
    ranks_child(ranks, 1, 3, NULL, &ranks->result[2]);
    exit(0);
  }
  ranks->pid[2] = pid;
  ranks_wait(ranks);
  for (int r = 0; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_RENDEZVOUS);
    ranks_assert_text(ranks, r, "two processes claim to be rank 1");
  }
  ranks_fini(ranks);
  snprintf(inner, sizeof inner, "%s/sundog", folder);
  rmdir(inner);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

// ---- strangers ------------------------------------------------------------

static int stranger(const ranks_t *ranks) {
  sdg_meeting_point_t point;
  ck_assert_int_eq((int)sdg_address_find(ranks->rendezvous, &point),
                   (int)SDG_OK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  for (int i = 0;
       connect(fd, &point.address[0].any, sizeof point.address[0].v4) != 0;
       i++) {
    ck_assert_int_lt(i, 5000);
    ranks_sleep_ms(1);
  }
  return fd;
}

// Strangers that send random bytes in random pieces, with and without a right
// beginning; that send nothing; that close at once.
START_TEST(strangers_do_not_disturb_a_job) {
  ranks_t *ranks = tcp_init(3, 20);
  unsigned seed = 12345;
  ranks_start_one(ranks, 0, ranks_meet);
  int open_fds[400], open_count = 0;
  for (int turn = 0; turn < 600; turn++) {
    char message[400];
    for (size_t i = 0; i < sizeof message; i++)
      message[i] = (char)(rand_r(&seed) >> 7);
    const uint64_t magic = SDG_FRAME_MAGIC;
    if (turn % 3 == 0)
      memcpy(message, &magic, sizeof magic);
    size_t bytes = (size_t)rand_r(&seed) % (sizeof message + 1);
    int fd = stranger(ranks);
    for (size_t at = 0; at < bytes;) {
      size_t piece = 1 + (size_t)rand_r(&seed) % (bytes - at);
      if (send(fd, message + at, piece, MSG_NOSIGNAL) < 0)
        break;
      at += piece;
    }
    if (turn % 2 == 0 && open_count < 300)
      open_fds[open_count++] = fd; // never sends the rest
    else
      close(fd);
  }
  // 300 open connections, more than rank 0 has room for: real ranks can still
  // join.
  double start = ranks_now();
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_start_one(ranks, 2, ranks_meet);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  ck_assert(ranks_now() - start < harness_soon(4));
  while (open_count > 0)
    close(open_fds[--open_count]);
  ranks_fini(ranks);
}
END_TEST

// More strangers than rank 0 has room for, each sending a byte at intervals.
START_TEST(slow_strangers_do_not_keep_a_rank_out) {
  ranks_t *ranks = tcp_init(2, 20);
  static const char hello[40] = {0x31, 0x70, 0x63, 0x74,
                                 0x2d, 0x67, 0x64, 0x73};
  ranks_start_one(ranks, 0, ranks_meet);
  int fds[100];
  for (int i = 0; i < 100; i++)
    fds[i] = stranger(ranks);
  for (int turn = 0; turn < 20; turn++) {
    for (int i = 0; i < 100; i++)
      (void)!send(fds[i], hello + turn, 1, MSG_NOSIGNAL);
    if (turn == 10)
      ranks_start_one(ranks, 1, ranks_meet);
    ranks_sleep_ms(20);
  }
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  for (int i = 0; i < 100; i++)
    close(fds[i]);
  ranks_fini(ranks);
}
END_TEST

// A stranger that sends without end is dropped at the first wrong word.
START_TEST(a_stranger_that_sends_without_end_is_dropped) {
  ranks_t *ranks = tcp_init(2, 20);
  static char much[1 << 16];
  ranks_start_one(ranks, 0, ranks_hold);
  int fd = stranger(ranks), dropped = 0;
  const uint64_t magic = SDG_FRAME_MAGIC;
  memcpy(much, &magic, sizeof magic);
  for (int i = 0; i < 2000 && !dropped; i++)
    dropped = send(fd, much, sizeof much, MSG_NOSIGNAL) < 0;
  ck_assert(dropped);
  close(fd);
  char path[64], line[256];
  long kilobytes = 0;
  snprintf(path, sizeof path, "/proc/%d/status", (int)ranks->pid[0]);
  FILE *status = fopen(path, "r");
  while (fgets(line, sizeof line, status))
    (void)sscanf(line, "VmRSS: %ld", &kilobytes);
  fclose(status);
  ck_assert_int_gt(kilobytes, 0);
  if (!getenv("ASAN_OPTIONS") && !getenv("TSAN_OPTIONS"))
    ck_assert_int_lt(kilobytes, 64 << 10);
  ranks_start_one(ranks, 1, ranks_hold);
  atomic_store(&ranks->result[7].stage, 1);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

// After all ranks have joined, no process listens.
START_TEST(a_complete_job_accepts_no_connections) {
  ranks_t *ranks = tcp_init(2, 20);
  sdg_meeting_point_t point;
  ranks_start(ranks, ranks_hold);
  ranks_await(ranks, 0, 1);
  ranks_await(ranks, 1, 1);
  ranks_sleep_ms(200);
  ck_assert_int_eq((int)sdg_address_find(ranks->rendezvous, &point),
                   (int)SDG_OK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ne(
      connect(fd, &point.address[0].any, sizeof point.address[0].v4), 0);
  close(fd);
  atomic_store(&ranks->result[7].stage, 1);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

// ---- a process with the secret that breaks the rules ----------------------

static void bytes_get(int fd, void *out, size_t bytes) {
  ck_assert_int_eq(recv(fd, out, bytes, MSG_WAITALL), (ssize_t)bytes);
}

// Greets rank 0 as `rank` of `size`, as this test's own process.
static int greet(const ranks_t *ranks, int rank, int size) {
  sdg_secret_t secret;
  sdg_frame_hello_t hello = {.magic = SDG_FRAME_MAGIC};
  sdg_frame_challenge_t challenge;
  sdg_frame_claim_t claim = {.who = {.layout = sdg_shm_layout(),
                                     .size = (uint32_t)size,
                                     .rank = (uint32_t)rank,
                                     .port = 1}};
  unsigned char proof[SDG_SHA256_BYTES];
  sdg_frame_head_t head;
  int fd = stranger(ranks);
  ck_assert_int_eq((int)sdg_secret_find(secret_text, "", &secret), (int)SDG_OK);
  ck_assert_int_eq((int)sdg_secret_random(hello.nonce, sizeof hello.nonce),
                   (int)SDG_OK);
  ck_assert_int_eq(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
  bytes_get(fd, &challenge, sizeof challenge);
  sdg_secret_prove(&secret, "answers", challenge.nonce, hello.nonce, NULL, 0,
                   proof);
  ck_assert(sdg_digest_equal(proof, challenge.proof));
  sdg_secret_prove(&secret, "calls", hello.nonce, challenge.nonce, &claim.who,
                   sizeof claim.who, claim.proof);
  ck_assert_int_eq(send(fd, &claim, sizeof claim, MSG_NOSIGNAL), sizeof claim);
  bytes_get(fd, &head, sizeof head);
  ck_assert_int_eq(head.kind, SDG_FRAME_WELCOME);
  return fd;
}

START_TEST(messages_that_break_the_rules_end_in_an_error) {
  unsigned seed = (unsigned)_i * 7919 + 1;
  ranks_t *ranks = tcp_init(2, 20);
  ranks_start_one(ranks, 0, ranks_meet);
  int fd = greet(ranks, 1, 2);
  struct {
    sdg_frame_head_t head;
    unsigned char body[512];
  } message;
  for (int turn = 0; turn < 200; turn++) {
    for (size_t i = 0; i < sizeof message.body; i++)
      message.body[i] = (unsigned char)(rand_r(&seed) >> 7);
    // Small numbers, so that some are valid.
    for (size_t i = 0; i < 24; i += 4)
      memcpy(message.body + i,
             &(uint32_t){(uint32_t)rand_r(&seed) >> (rand_r(&seed) % 31)}, 4);
    message.head.kind =
        _i == 0 ? (uint32_t)rand_r(&seed)
                : SDG_FRAME_WELCOME + (uint32_t)rand_r(&seed) % SDG_FRAME_ACK;
    message.head.bytes =
        _i == 1 ? (uint32_t)rand_r(&seed) : (uint32_t)rand_r(&seed) % 512;
    if (send(fd, &message, sizeof message.head + message.head.bytes % 512,
             MSG_NOSIGNAL) < 0)
      break;
  }
  close(fd);
  ranks_wait_one(ranks, 0);
  ck_assert_msg(WIFEXITED(ranks->wait_status[0]), "rank 0 crashed: %x",
                (unsigned)ranks->wait_status[0]);
  ck_assert(ranks->result[0].done && ranks->result[0].status != SDG_OK);
  ck_assert(ranks->result[0].seconds < harness_soon(10));
  ranks->pid[1] = 0;
  ranks_fini(ranks);
}
END_TEST

// ---- what programs do to a process ----------------------------------------

#ifndef __SANITIZE_THREAD__ // it reports what the program does as a race
static sdg_status_t body_close_all(sdg_control_t *control, ranks_t *ranks) {
  SDG_TRY(ranks_meet(control, ranks));
  if (sdg_control_rank(control) == 0)
    for (int fd = 3; fd < 1024; fd++)
      close(fd);
  ranks_sleep_ms(300);
  return ranks_meet(control, ranks);
}

START_TEST(a_program_that_closes_all_descriptors_fails_soon) {
  ranks_t *ranks = tcp_init(2, 20);
  ranks_run(ranks, body_close_all);
  for (int r = 0; r < 2; r++) {
    ranks_assert(ranks, r, SDG_E_PEER_LOST);
    ck_assert(ranks->result[r].seconds < harness_soon(5));
  }
  ranks_unlock(ranks);
  ranks_fini(ranks);
}
END_TEST
#endif

// A process ends right after its last message.
static sdg_status_t body_last_words(sdg_control_t *control, ranks_t *ranks) {
  static const int both[] = {0, 1};
  char all[2][SDG_CHANNEL_RECORD_BYTES];
  size_t bytes[2];
  (void)ranks;
  int rank = sdg_control_rank(control);
  if (rank == 0)
    ranks_sleep_ms(300); // the other rank has ended by then
  return sdg_control_exchange(control, 3, both, 2, &rank, sizeof rank, all,
                              bytes, "the last call");
}

START_TEST(the_last_record_of_a_rank_that_left_still_arrives) {
  for (int turn = 0; turn < 3; turn++) {
    ranks_t *ranks = tcp_init(2, 20);
    ranks_run(ranks, body_last_words);
    ranks_assert(ranks, 0, SDG_OK);
    ranks_fini(ranks);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tcp");
  TCase *cases = tcase_create("tcp");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_test(cases, one_port_serves_jobs_one_after_the_other);
  tcase_add_test(cases, names_and_ipv6_are_places_too);
  tcase_add_test(cases, places_that_cannot_be_used_are_refused_at_once);
  tcase_add_test(cases, a_tcp_rendezvous_needs_a_secret);
  tcase_add_test(cases, a_rank_with_another_secret_fails_at_once);
  tcase_add_test(cases,
                 two_machines_with_the_same_rank_are_an_error_on_all_ranks);
  tcase_add_test(cases, strangers_do_not_disturb_a_job);
  tcase_add_test(cases, slow_strangers_do_not_keep_a_rank_out);
  tcase_add_test(cases, a_stranger_that_sends_without_end_is_dropped);
  tcase_add_test(cases, a_complete_job_accepts_no_connections);
  tcase_add_loop_test(cases, messages_that_break_the_rules_end_in_an_error, 0,
                      6);
#ifndef __SANITIZE_THREAD__
  tcase_add_test(cases, a_program_that_closes_all_descriptors_fails_soon);
#endif
  tcase_add_test(cases, the_last_record_of_a_rank_that_left_still_arrives);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
