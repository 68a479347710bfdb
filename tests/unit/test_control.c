// SPDX-License-Identifier: Apache-2.0
// Exchanges between ranks, and the end of every wait on a rank that does not
// come: dead, gone, stopped, diverged or failed.
#include <pthread.h>

#include "tests/unit/ranks.h"

typedef struct buffers {
  char all[RANKS_MAX][SDG_CONTROL_RECORD_BYTES];
  size_t bytes[RANKS_MAX];
} buffers_t;

static const int everybody[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};

static size_t size_of(int rank, int turn) {
  unsigned mixed = (unsigned)rank * 2654435761u + (unsigned)turn * 40503u;
  return turn % 7 == 0 ? SDG_CONTROL_RECORD_BYTES
                       : mixed % (SDG_CONTROL_RECORD_BYTES + 1);
}

static void record_fill(char *record, int rank, int turn, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    record[i] = (char)(rank * 31 + turn * 7 + (int)(i % 251));
}

// Exchanges `turns` records that are different for each rank and turn, and
// compares every byte that arrives.
static sdg_status_t talk(sdg_control_t *control, int channel, const int *group,
                         int count, int turns) {
  static _Thread_local buffers_t in;
  static _Thread_local char mine[SDG_CONTROL_RECORD_BYTES],
      expected[SDG_CONTROL_RECORD_BYTES];
  int rank = sdg_control_rank(control);
  for (int turn = 0; turn < turns; turn++) {
    size_t bytes = size_of(rank + channel, turn);
    record_fill(mine, rank + channel, turn, bytes);
    SDG_TRY(sdg_control_exchange(control, channel, group, count, mine, bytes,
                                 in.all, in.bytes, "a test"));
    for (int i = 0; i < count; i++) {
      bytes = size_of(group[i] + channel, turn);
      record_fill(expected, group[i] + channel, turn, bytes);
      if (in.bytes[i] != bytes || memcmp(in.all[i], expected, bytes) != 0)
        return sdg_fail(SDG_E_INTERNAL, "turn %d: wrong record of rank %d",
                        turn, group[i]);
    }
  }
  return SDG_OK;
}

static sdg_status_t exchange_once(sdg_control_t *control, const char *what) {
  buffers_t in;
  char mine = (char)sdg_control_rank(control);
  return sdg_control_exchange(control, 0, everybody, sdg_control_size(control),
                              &mine, 1, in.all, in.bytes, what);
}

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

// Makes `turns` steps at its own pace, of which rank 1 makes `odd` otherwise;
// everybody learns how often a difference was seen, on any rank.
static sdg_status_t steps(sdg_control_t *control, int size, uint32_t turns,
                          uint32_t odd, int *out_seen) {
  buffers_t in;
  int rank = sdg_control_rank(control), seen = 0;
  int peers[2] = {(rank + 1) % size, (rank + size - 1) % size};
  for (uint32_t turn = 1; turn <= turns; turn++)
    seen +=
        sdg_control_step(control, 0, turn,
                         turn * 3 + (rank == 1 && turn == odd), peers, 2) >= 0;
  ranks_sleep_ms(ranks_over_tcp() ? 500 : 0); // steps are told now and then
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

START_TEST(steps_that_are_alike_are_not_told_apart) {
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

START_TEST(ends_that_differ_are_seen) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_ends_differ);
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

// Rows and columns of a 2 x 2 mesh, and all, in turn on one channel.
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
  for (int i = 0; i < 200; i++) { // as a watchdog does
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
      {-1, 1, everybody, 1}, {SDG_CONTROL_CHANNELS, 1, everybody, 1},
      {0, 0, everybody, 1},  {0, 1, everybody, SDG_CONTROL_RECORD_BYTES + 1},
      {0, 1, foreign, 1},    {0, 2, twice, 1},
      {0, 2, outside, 1}};
  static char mine[SDG_CONTROL_RECORD_BYTES + 1];
  buffers_t in;
  (void)ranks;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (sdg_control_exchange(control, bad[i].channel, bad[i].group,
                             bad[i].count, mine, bad[i].bytes, in.all, in.bytes,
                             "a test") != SDG_E_INTERNAL)
      return sdg_fail(SDG_E_RENDEZVOUS, "case %zu was accepted", i);
  // A wrong use is no failure of the job.
  return talk(control, 0, everybody, 1, 3);
}

START_TEST(wrong_arguments_are_refused_and_harm_nothing) {
  ranks_t *ranks = ranks_init(1, 5);
  ranks_run(ranks, body_arguments);
  ranks_assert(ranks, 0, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

// ---- ranks that do not come -----------------------------------------------

// One rank stops taking part after one exchange; the others wait for it.
static sdg_status_t body_wait(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  sdg_control_count(control, 0, 11, "cudnnPoolingForward");
  SDG_TRY(exchange_once(control, "call 11 cudnnPoolingForward"));
  atomic_store(&ranks->result[rank].stage, 1);
  if (rank == ranks->absent)
    for (;;)
      pause();
  sdg_control_count(control, 0, 12, "cudnnConvolutionForward");
  return exchange_once(control, "call 12 cudnnConvolutionForward");
}

static void wait_start(ranks_t *ranks, int absent) {
  ranks->absent = absent;
  ranks_start(ranks, body_wait);
  for (int r = 0; r < ranks->size; r++)
    ranks_await(ranks, r, 1);
  ranks_sleep_ms(100); // until the others sleep in the wait
}

START_TEST(a_killed_rank_ends_the_wait_of_all_even_as_a_zombie) {
  ranks_t *ranks = ranks_init(4, 30);
  wait_start(ranks, 2);
  double start = ranks_now();
  ranks_signal(ranks, 2, SIGKILL); // and is not waited for until all is over
  for (int r = 0; r < 4; r++)
    if (r != 2)
      ranks_wait_one(ranks, r);
  ck_assert(ranks_now() - start < harness_soon(2));
  ranks_wait_one(ranks, 2);
  ck_assert(WIFSIGNALED(ranks->wait_status[2]));
  for (int r = 0; r < 4; r++) {
    if (r == 2)
      continue;
    ranks_assert(ranks, r, SDG_E_PEER_LOST);
    ranks_assert_text(ranks, r, "rank 2 died at call 11 cudnnPoolingForward");
    ranks_assert_text(ranks, r, "call 12 cudnnConvolutionForward");
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_killed_rank_0_ends_the_wait_of_all) {
  ranks_t *ranks = ranks_init(3, 30);
  wait_start(ranks, 0);
  ranks_signal(ranks, 0, SIGKILL);
  ranks_wait(ranks);
  for (int r = 1; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_PEER_LOST);
    ranks_assert_text(ranks, r, "rank 0 died");
  }
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_talk_on(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  for (uint64_t call = 1;; call++) {
    sdg_control_count(control, 0, call, "an entry");
    SDG_TRY(talk(control, 0, everybody, ranks->size, 1));
    atomic_store(&ranks->result[rank].stage, 1);
  }
}

START_TEST(whichever_rank_is_killed_whenever_the_others_end_soon) {
  unsigned seed = 1;
  for (int turn = 0; turn < 30; turn++) {
    ranks_t *ranks = ranks_init(3, 30);
    char name[16];
    int killed = turn % 3;
    ranks_start(ranks, body_talk_on);
    for (int r = 0; r < 3; r++)
      ranks_await(ranks, r, 1);
    nanosleep(&(struct timespec){.tv_nsec = rand_r(&seed) % 3000000}, NULL);
    ranks_signal(ranks, killed, SIGKILL);
    double start = ranks_now();
    ranks_wait(ranks);
    ck_assert(ranks_now() - start < harness_soon(3));
    snprintf(name, sizeof name, "rank %d died", killed);
    for (int r = 0; r < 3; r++) {
      if (r == killed)
        continue;
      ranks_assert(ranks, r, SDG_E_PEER_LOST);
      ranks_assert_text(ranks, r, name);
    }
    ranks_fini(ranks);
  }
}
END_TEST

START_TEST(a_stopped_rank_is_a_timeout_that_names_it) {
  ranks_t *ranks = ranks_init(3, 1.5);
  wait_start(ranks, 2);
  ranks_signal(ranks, 2, SIGSTOP);
  ranks_wait_one(ranks, 0);
  ranks_wait_one(ranks, 1);
  ranks_signal(ranks, 2, SIGKILL);
  ranks_wait_one(ranks, 2);
  for (int r = 0; r < 2; r++) {
    ranks_assert(ranks, r, SDG_E_PEER_TIMEOUT);
    ranks_assert_text(ranks, r,
                      ranks_over_tcp()
                          ? "rank 2 (at call 11 cudnnPoolingForward)"
                          : "rank 2 (at call 11 cudnnPoolingForward, stopped "
                            "by a signal)");
    ck_assert(ranks->result[r].seconds < harness_soon(4));
  }
  ck_assert(ranks_said(ranks, "has waited ",
                       "at call 12 cudnnConvolutionForward for rank 2 (at "
                       "call 11 cudnnPoolingForward"));
  ranks_unlock(ranks); // rank 2 was last
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_wait_of_which_the_process_itself_is_stopped_does_not_time_out) {
  ranks_t *ranks = ranks_init(2, 2);
  // With two ranks nobody plays rank 2: both make both exchanges.
  ranks_start(ranks, NULL);
  ranks_wait(ranks);
  ranks_assert(ranks, 0, SDG_OK);
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  watch.last_ns -= 3600 * UINT64_C(1000000000); // an hour in a debugger
  ck_assert(sdg_stopwatch_read(&watch) < 1.5);
  ranks_sleep_ms(20);
  double waited_s = sdg_stopwatch_read(&watch);
  ck_assert(waited_s > 1.015 && waited_s < 2.5);
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_leave(sdg_control_t *control, ranks_t *ranks) {
  (void)ranks;
  SDG_TRY(exchange_once(control, "call 1 cudnnAddTensor"));
  sdg_control_count(control, 0, 1, "cudnnAddTensor");
  if (sdg_control_rank(control) == 1)
    return SDG_OK; // leaves
  sdg_control_count(control, 0, 2, "cudnnSoftmaxForward");
  return exchange_once(control, "call 2 cudnnSoftmaxForward");
}

START_TEST(a_rank_that_left_is_named_by_who_needs_it) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_leave);
  ranks_assert(ranks, 1, SDG_OK);
  for (int r = 0; r < 3; r += 2) {
    ranks_assert(ranks, r, SDG_E_PEER_LOST);
    ranks_assert_text(ranks, r, "rank 1 ended at call 1 cudnnAddTensor");
    ranks_assert_text(ranks, r, "at call 2 cudnnSoftmaxForward");
    ck_assert(ranks->result[r].seconds < harness_soon(5));
  }
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_last_words(sdg_control_t *control, ranks_t *ranks) {
  // Each exchange's last record is still read although its rank is gone.
  (void)ranks;
  return talk(control, 0, everybody, sdg_control_size(control), 5);
}

START_TEST(the_last_record_of_a_rank_that_left_still_arrives) {
  for (int turn = 0; turn < 20; turn++) {
    ranks_t *ranks = ranks_init(3, 30);
    ranks_run(ranks, body_last_words);
    for (int r = 0; r < 3; r++)
      ranks_assert(ranks, r, SDG_OK);
    ranks_fini(ranks);
  }
}
END_TEST

// A check of a job that has failed; over TCP word of it comes a moment later.
static sdg_status_t check_for_failure(sdg_control_t *control) {
  for (int ms = 0; ranks_over_tcp() && ms < 10000; ms++) {
    if (sdg_control_check(control, 0) != SDG_OK)
      break;
    ranks_sleep_ms(1);
  }
  return sdg_control_check(control, 1);
}

static sdg_status_t body_diverge(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  sdg_control_count(control, 0, 4, "cudnnActivationForward");
  if (rank == 1) { // goes on to call 5 without the exchange of call 4
    ranks_await(ranks, 0, 1);
    ranks_sleep_ms(100);
    sdg_control_count(control, 0, 5, "cudnnReduceTensor");
    ranks_await(ranks, 0, 2);
    return check_for_failure(control);
  }
  atomic_store(&ranks->result[rank].stage, 1);
  sdg_status_t status = exchange_once(control, "call 4 cudnnActivationForward");
  atomic_store(&ranks->result[rank].stage, 2);
  return status;
}

START_TEST(a_peer_that_passed_us_is_a_divergence_at_once_on_all_ranks) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_diverge);
  for (int r = 0; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_DIVERGED);
    ranks_assert_text(ranks, r, "rank 1 is at call 5 cudnnReduceTensor");
    ranks_assert_text(ranks, r, "call 4 cudnnActivationForward");
    ck_assert(ranks->result[r].seconds < harness_soon(3));
  }
  ranks_fini(ranks);
}
END_TEST

// Counts and exchanges as the capture does, to see that a peer which is
// rightly one call ahead is never taken for a diverged one.
static sdg_status_t body_count(sdg_control_t *control, ranks_t *ranks) {
  (void)ranks;
  unsigned calls = ranks_over_tcp() ? 1000 : 3000;
  for (unsigned call = 1; call <= calls; call++) {
    sdg_control_count(control, 0, call, "cudnnConvolutionForward");
    if (call % 97 == (unsigned)sdg_control_rank(control))
      ranks_sleep_ms(60); // long enough for the others to look after us
    if (call % 3 == 0)
      SDG_TRY(exchange_once(control, "a call"));
  }
  return SDG_OK;
}

START_TEST(a_peer_that_is_ahead_after_its_record_has_not_diverged) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_count);
  for (int r = 0; r < 3; r++)
    ranks_assert(ranks, r, SDG_OK);
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_fail(sdg_control_t *control, ranks_t *ranks) {
  (void)ranks;
  SDG_TRY(exchange_once(control, "call 1"));
  if (sdg_control_rank(control) == 1) {
    sdg_control_fail(control, SDG_E_NO_MEMORY, "scratch of 7 GiB");
    sdg_control_fail(control, SDG_E_INTERNAL, "what follows from it");
    return SDG_OK;
  }
  sdg_status_t status = exchange_once(control, "call 2");
  // It stays so: for the watchdog and for later calls.
  if (sdg_control_check(control, 0) != status ||
      exchange_once(control, "call 3") != status)
    return sdg_fail(SDG_E_INTERNAL, "the failure was forgotten");
  return status;
}

START_TEST(the_first_failure_reported_reaches_every_rank) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_run(ranks, body_fail);
  for (int r = 0; r < 3; r += 2) {
    ranks_assert(ranks, r, SDG_E_PEER_FAILED);
    ranks_assert_text(ranks, r,
                      "rank 1 reported SDG-001 out of host memory: scratch of "
                      "7 GiB");
  }
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_check(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  SDG_TRY(sdg_control_check(control, 1));
  SDG_TRY(exchange_once(control, "call 1"));
  if (rank == 1) {
    atomic_store(&ranks->result[rank].stage, 1);
    for (;;)
      pause();
  }
  if (rank == 2)
    return SDG_OK; // leaves, which is no failure
  ranks_await(ranks, 1, 2);
  return check_for_failure(control);
}

START_TEST(a_check_finds_the_dead_but_not_those_who_left) {
  ranks_t *ranks = ranks_init(3, 30);
  ranks_start(ranks, body_check);
  ranks_wait_one(ranks, 2);
  ranks_await(ranks, 1, 1);
  ranks_signal(ranks, 1, SIGKILL);
  ranks_wait_one(ranks, 1);
  atomic_store(&ranks->result[1].stage, 2);
  ranks_wait_one(ranks, 0);
  ranks_assert(ranks, 0, SDG_E_PEER_LOST);
  ranks_assert_text(ranks, 0, "rank 1 died");
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
  ranks_sleep_ms(rank == 0 ? 400 : 0); // the other asks whether we live
  SDG_TRY(sdg_control_check(control, 1));
  SDG_TRY(exchange_once(control, "call 2"));
  if (rank == 0) {
    atomic_store(&ranks->result[0].stage, 1);
    for (;;)
      pause();
  }
  return exchange_once(control, "call 3");
}

START_TEST(a_program_that_closes_all_descriptors_lives_until_it_dies) {
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
    if (child == 0) { // outlives the rank, and must not stand for it
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

START_TEST(a_forked_child_neither_speaks_nor_lives_for_its_rank) {
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
  tcase_add_test(cases, steps_that_are_alike_are_not_told_apart);
  tcase_add_test(cases, a_step_that_differs_is_seen_by_the_later_rank);
  tcase_add_test(cases, ends_that_differ_are_seen);
  tcase_add_test(cases, a_rank_outside_the_group_is_not_needed);
  tcase_add_test(cases, threads_on_different_channels_are_independent);
  tcase_add_test(cases, wrong_arguments_are_refused_and_harm_nothing);
  tcase_add_test(cases, a_killed_rank_ends_the_wait_of_all_even_as_a_zombie);
  tcase_add_test(cases, a_killed_rank_0_ends_the_wait_of_all);
  tcase_add_test(cases, whichever_rank_is_killed_whenever_the_others_end_soon);
  tcase_add_test(cases, a_stopped_rank_is_a_timeout_that_names_it);
  tcase_add_test(
      cases, a_wait_of_which_the_process_itself_is_stopped_does_not_time_out);
  tcase_add_test(cases, a_rank_that_left_is_named_by_who_needs_it);
  tcase_add_test(cases, the_last_record_of_a_rank_that_left_still_arrives);
  tcase_add_test(cases,
                 a_peer_that_passed_us_is_a_divergence_at_once_on_all_ranks);
  tcase_add_test(cases, a_peer_that_is_ahead_after_its_record_has_not_diverged);
  tcase_add_test(cases, the_first_failure_reported_reaches_every_rank);
  tcase_add_test(cases, a_check_finds_the_dead_but_not_those_who_left);
  if (!ranks_over_tcp()) // there it has closed its connections
    tcase_add_test(cases,
                   a_program_that_closes_all_descriptors_lives_until_it_dies);
  tcase_add_test(cases, a_forked_child_neither_speaks_nor_lives_for_its_rank);
  tcase_add_test(cases, signals_do_not_disturb_an_exchange);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
