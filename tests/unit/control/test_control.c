// SPDX-License-Identifier: Apache-2.0
// Exchanges between ranks, and how programs may disturb them.
#include <pthread.h>

#include "src/bootstrap/shm.h"
#include "tests/unit/record_exchange.h"

static sdg_status_t body_talk(sdg_control_t *control, ranks_t *ranks) {
  int turns = ranks->size <= 2 ? 20000 : ranks->size <= 4 ? 4000 : 1500;
  return talk(control, 0, everybody, ranks->size,
              ranks_over_tcp() ? turns / 8 : turns);
}

static const int sizes[] = {1, 2, 3, 4, 8};

START_TEST(every_record_arrives_whole_and_in_order) {
  ranks_t *ranks = ranks_init(sizes[_i], 30);
  ranks_run(ranks, body_talk);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

// Each rank makes `turns` steps at its own pace; rank 1 makes step `odd`
// differently. Then all ranks learn how often a difference was seen.
static sdg_status_t steps(sdg_control_t *control, int size, uint32_t turns,
                          uint32_t odd, int *out_seen) {
  buffers_t in;
  int rank = sdg_control_rank(control), seen = 0;
  int peers[2] = {(rank + 1) % size, (rank + size - 1) % size};
  for (uint32_t turn = 1; turn <= turns; turn++)
    seen +=
        sdg_control_step(control, 0, turn,
                         turn * 3 + (rank == 1 && turn == odd), peers, 2) >= 0;
  ranks_sleep_ms(ranks_over_tcp() ? 500 : 0); // TCP sends steps at times
  SDG_TRY(sdg_control_exchange(control, 0, everybody, size, &seen, sizeof seen,
                               in.all, in.bytes, "a test"));
  *out_seen = 0;
  for (int r = 0; r < size; r++) {
    memcpy(&seen, in.all[r], sizeof seen);
    *out_seen += seen;
  }
  return SDG_OK;
}

static sdg_status_t body_steps_alike(sdg_control_t *control, ranks_t *ranks) {
  int seen;
  SDG_TRY(steps(control, ranks->size, 20000, 0, &seen));
  return seen ? sdg_fail(SDG_E_INTERNAL, "%d differences", seen) : SDG_OK;
}

static sdg_status_t body_steps_differ(sdg_control_t *control, ranks_t *ranks) {
  int seen;
  SDG_TRY(steps(control, ranks->size, 900, 500, &seen));
  return seen ? SDG_OK : sdg_fail(SDG_E_INTERNAL, "no difference");
}

static sdg_status_t body_ends_differ(sdg_control_t *control, ranks_t *ranks) {
  int seen, size = ranks->size, rank = sdg_control_rank(control);
  uint32_t theirs, own = rank == 1 ? 7 : 8;
  int other =
      sdg_control_steps_end(control, 0, own, 5, everybody, size, &theirs);
  if (other >= 0 && theirs == own)
    return sdg_fail(SDG_E_INTERNAL, "rank %d does not differ", other);
  SDG_TRY(steps(control, size, 1, 0, &seen));
  other = sdg_control_steps_end(control, 0, own, 5, everybody, size, &theirs);
  return other >= 0 ? SDG_OK : sdg_fail(SDG_E_INTERNAL, "no difference");
}

START_TEST(equal_steps_are_no_divergence) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_steps_alike);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_step_that_differs_is_seen_by_the_later_rank) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_steps_differ);
  for (int r = 0; r < ranks->size; r++) {
    ranks_assert(ranks, r, ranks_over_tcp() ? SDG_E_DIVERGED : SDG_OK);
    if (ranks_over_tcp())
      ranks_assert_text(ranks, r, "op 500 of rank");
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(half_a_step_that_is_zero_equals_any) {
  static const struct {
    uint64_t a, b;
    bool differ;
  } cases[] = {
      {0, 0x10002, false},      {0x20000, 0x20001, false},
      {0x30001, 0x1, false},    {0x2, 0x10002, false},
      {0x10002, 0x10003, true}, {0x20001, 0x30000, true},
      {0x2, 0x10001, true},     {UINT64_C(1) << 32 | 0x10002, 0x10003, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ck_assert(sdg_shm_steps_differ(cases[i].a, cases[i].b) == cases[i].differ);
    ck_assert(sdg_shm_steps_differ(cases[i].b, cases[i].a) == cases[i].differ);
  }
}
END_TEST

START_TEST(ranks_that_end_at_different_steps_are_reported) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_ends_differ);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

// Rows and columns of a 2 x 2 mesh, then all ranks, in turn on one channel.
static sdg_status_t body_groups(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  int row[2] = {rank / 2 * 2, rank / 2 * 2 + 1};
  int column[2] = {rank % 2, rank % 2 + 2};
  for (int turn = 0; turn < 300; turn++) {
    SDG_TRY(talk(control, 0, row, 2, 1 + rank / 2));
    SDG_TRY(talk(control, 0, column, 2, 1 + rank % 2));
    if (turn % 3 == 0)
      SDG_TRY(talk(control, 0, everybody, ranks->size, 2));
    SDG_TRY(talk(control, 0, &rank, 1, 1));
  }
  return SDG_OK;
}

START_TEST(groups_of_one_channel_do_not_disturb_each_other) {
  ranks_t *ranks = ranks_init(4, 30);
  ranks_run(ranks, body_groups);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_subset(sdg_control_t *control, ranks_t *ranks) {
  static const int pair[2] = {0, 2};
  if (sdg_control_rank(control) == 1) {
    ranks_await(ranks, 0, 1);
    ranks_await(ranks, 2, 1);
    return SDG_OK;
  }
  SDG_TRY(talk(control, 3, pair, 2, 3000));
  atomic_store(&ranks->result[sdg_control_rank(control)].stage, 1);
  return SDG_OK;
}

START_TEST(a_rank_outside_the_group_is_not_needed) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_subset);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

typedef struct thread_work {
  sdg_control_t *control;
  int channel, size;
  sdg_status_t status;
} thread_work_t;

static void *thread_talk(void *argument) {
  thread_work_t *work = argument;
  for (int turn = 1; turn <= 200 && work->status == SDG_OK; turn++) {
    sdg_control_count(work->control, work->channel, (uint64_t)turn, "an entry");
    work->status = talk(work->control, work->channel, everybody, work->size, 3);
    if (work->status == SDG_OK)
      work->status = sdg_control_check(work->control, 1);
  }
  return NULL;
}

static sdg_status_t body_threads(sdg_control_t *control, ranks_t *ranks) {
  pthread_t thread[3];
  thread_work_t work[3];
  for (int i = 0; i < 3; i++) {
    work[i] = (thread_work_t){control, i, ranks->size, SDG_OK};
    pthread_create(&thread[i], NULL, thread_talk, &work[i]);
  }
  for (int i = 0; i < 200; i++) { // like a watchdog
    char what[32];
    for (int r = 0; r < ranks->size; r++)
      if (sdg_control_count_of(control, i % 3, r, what, sizeof what) > 200 ||
          (what[0] && strcmp(what, "an entry") != 0))
        return sdg_fail(SDG_E_INTERNAL, "count of rank %d: %s", r, what);
  }
  for (int i = 0; i < 3; i++)
    pthread_join(thread[i], NULL);
  for (int i = 0; i < 3; i++)
    SDG_TRY(work[i].status);
  return SDG_OK;
}

START_TEST(threads_on_different_channels_are_independent) {
  ranks_t *ranks = ranks_init(2, 30);
  ranks_run(ranks, body_threads);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_arguments(sdg_control_t *control, ranks_t *ranks) {
  static const int foreign[] = {1}, twice[] = {0, 0}, outside[] = {0, 9};
  static const struct {
    int channel, count;
    const int *group;
    size_t bytes;
  } bad[] = {
      {-1, 1, everybody, 1}, {SDG_CHANNELS, 1, everybody, 1},
      {0, 0, everybody, 1},  {0, 1, everybody, SDG_CHANNEL_RECORD_BYTES + 1},
      {0, 1, foreign, 1},    {0, 2, twice, 1},
      {0, 2, outside, 1}};
  static char mine[SDG_CHANNEL_RECORD_BYTES + 1];
  buffers_t in;
  (void)ranks;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (sdg_control_exchange(control, bad[i].channel, bad[i].group,
                             bad[i].count, mine, bad[i].bytes, in.all, in.bytes,
                             "a test") != SDG_E_INTERNAL)
      return sdg_fail(SDG_E_RENDEZVOUS, "case %zu was accepted", i);
  // A wrong use does not make the job fail.
  return talk(control, 0, everybody, 1, 3);
}

START_TEST(wrong_arguments_are_refused_and_harm_nothing) {
  ranks_t *ranks = ranks_init(1, 5);
  ranks_run(ranks, body_arguments);
  ranks_assert(ranks, 0, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

// ---- what programs do to a process ----------------------------------------

static sdg_status_t body_close_all(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  if (rank == 0)
    for (int fd = 3; fd < 1024; fd++)
      close(fd);
  SDG_TRY(exchange_once(control, "call 1"));
  ranks_sleep_ms(rank == 0 ? 400 : 0); // the other checks this one
  SDG_TRY(sdg_control_check(control, 1));
  SDG_TRY(exchange_once(control, "call 2"));
  if (rank == 0) {
    atomic_store(&ranks->result[0].stage, 1);
    for (;;)
      pause();
  }
  return exchange_once(control, "call 3");
}

START_TEST(a_program_that_closes_all_descriptors_still_holds_its_rank) {
  ranks_t *ranks = ranks_init(2, 30);
  ranks_start(ranks, body_close_all);
  ranks_await(ranks, 0, 1);
  ranks_sleep_ms(200);
  ck_assert_int_eq(ranks->result[1].done, 0);
  ranks_signal(ranks, 0, SIGKILL);
  ranks_wait_one(ranks, 1);
  ranks_wait_one(ranks, 0);
  ranks_assert(ranks, 1, SDG_E_PEER_LOST);
  ranks_assert_text(ranks, 1, "rank 0 died");
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_fork(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  if (rank == 0) {
    pid_t child = fork();
    if (child == 0) { // outlives the rank, but is not it
      sdg_control_leave(control);
      sdg_control_fail(control, SDG_E_INTERNAL, "not a rank");
      int refused = exchange_once(control, "a child") == SDG_E_INTERNAL;
      sdg_control_destroy(control);
      atomic_store(&ranks->result[7].stage, refused ? 1 : 2);
      while (atomic_load(&ranks->result[7].stage) != 3)
        ranks_sleep_ms(5);
      _exit(0);
    }
    ranks_await(ranks, 7, 1);
  }
  SDG_TRY(exchange_once(control, "call 1"));
  if (rank == 0)
    raise(SIGKILL);
  return exchange_once(control, "call 2");
}

START_TEST(a_forked_child_does_not_count_as_its_rank) {
  ranks_t *ranks = ranks_init(2, 30);
  ranks_run(ranks, body_fork);
  int stage = atomic_exchange(&ranks->result[7].stage, 3);
  ck_assert_int_eq(stage, 1);
  ranks_assert(ranks, 1, SDG_E_PEER_LOST);
  ranks_assert_text(ranks, 1, "rank 0 died");
  ranks_fini(ranks);
}
END_TEST

static void on_alarm(int signal_number) {
  (void)signal_number;
}

static sdg_status_t body_signals(sdg_control_t *control, ranks_t *ranks) {
  struct sigaction act = {.sa_handler = on_alarm}; // no SA_RESTART
  sigaction(SIGUSR1, &act, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGUSR1};
  struct itimerspec often = {.it_interval = {.tv_nsec = 300000},
                             .it_value = {.tv_nsec = 300000}};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &often, NULL);
  sdg_status_t status = SDG_OK;
  for (int i = 0; i < 10 && status == SDG_OK; i++) {
    ranks_sleep_ms(i % 2 == sdg_control_rank(control) ? 20 : 0);
    status = talk(control, 0, everybody, ranks->size, 20);
  }
  timer_delete(timer);
  return status;
}

START_TEST(signals_do_not_disturb_an_exchange) {
  ranks_t *ranks = ranks_init(2, 30);
  ranks_run(ranks, body_signals);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST
int main(void) {
  Suite *suite = suite_create("control");
  TCase *cases = tcase_create("control");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_loop_test(cases, every_record_arrives_whole_and_in_order, 0,
                      sizeof sizes / sizeof sizes[0]);
  tcase_add_test(cases, groups_of_one_channel_do_not_disturb_each_other);
  tcase_add_test(cases, equal_steps_are_no_divergence);
  tcase_add_test(cases, a_step_that_differs_is_seen_by_the_later_rank);
  tcase_add_test(cases, half_a_step_that_is_zero_equals_any);
  tcase_add_test(cases, ranks_that_end_at_different_steps_are_reported);
  tcase_add_test(cases, a_rank_outside_the_group_is_not_needed);
  tcase_add_test(cases, threads_on_different_channels_are_independent);
  tcase_add_test(cases, wrong_arguments_are_refused_and_harm_nothing);
  if (!ranks_over_tcp()) // over TCP it has closed its connections
    tcase_add_test(cases,
                   a_program_that_closes_all_descriptors_still_holds_its_rank);
  tcase_add_test(cases, a_forked_child_does_not_count_as_its_rank);
  tcase_add_test(cases, signals_do_not_disturb_an_exchange);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
