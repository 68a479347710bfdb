// SPDX-License-Identifier: Apache-2.0
// Every wait for a rank ends if that rank died, ended, was stopped, diverged or
// failed.
#include "tests/unit/record_exchange.h"

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
  ranks_sleep_ms(100); // until the others wait asleep
}

START_TEST(a_killed_rank_ends_the_wait_of_all_even_as_a_zombie) {
  ranks_t *ranks = ranks_init(4, 30);
  wait_start(ranks, 2);
  double start = ranks_now();
  ranks_signal(ranks, 2, SIGKILL); // its process stays a zombie until the end
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

START_TEST(if_any_rank_is_killed_at_any_time_the_others_end_soon) {
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
  ranks_unlock(ranks); // rank 2 was the last to end
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_wait_does_not_time_out_because_its_own_process_was_stopped) {
  ranks_t *ranks = ranks_init(2, 2);
  // With two ranks no rank stops: both make both exchanges.
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

START_TEST(a_rank_that_waits_for_a_rank_that_left_names_it) {
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
  // The last record of each exchange can still be read after its rank has
  // ended.
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

// Checks for a failure of the job, which takes a moment to arrive over TCP.
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
  if (rank == 1) { // continues with call 5 without the exchange of call 4
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

START_TEST(a_peer_that_passed_an_exchange_is_a_divergence_on_all_ranks) {
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

// Counts and exchanges like the capture: a peer that is rightly one call ahead
// must never count as diverged.
static sdg_status_t body_count(sdg_control_t *control, ranks_t *ranks) {
  (void)ranks;
  unsigned calls = ranks_over_tcp() ? 1000 : 3000;
  for (unsigned call = 1; call <= calls; call++) {
    sdg_control_count(control, 0, call, "cudnnConvolutionForward");
    if (call % 97 == (unsigned)sdg_control_rank(control))
      ranks_sleep_ms(60); // long enough for the others to check this rank
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
  // The failure stays, for the watchdog and for later calls.
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
    return SDG_OK; // leaves, which is not a failure
  ranks_await(ranks, 1, 2);
  return check_for_failure(control);
}

START_TEST(a_check_reports_dead_ranks_but_not_ranks_that_left) {
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

int main(void) {
  Suite *suite = suite_create("controlend");
  TCase *cases = tcase_create("controlend");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_test(cases, a_killed_rank_ends_the_wait_of_all_even_as_a_zombie);
  tcase_add_test(cases, a_killed_rank_0_ends_the_wait_of_all);
  tcase_add_test(cases, if_any_rank_is_killed_at_any_time_the_others_end_soon);
  tcase_add_test(cases, a_stopped_rank_is_a_timeout_that_names_it);
  tcase_add_test(cases,
                 a_wait_does_not_time_out_because_its_own_process_was_stopped);
  tcase_add_test(cases, a_rank_that_waits_for_a_rank_that_left_names_it);
  tcase_add_test(cases, the_last_record_of_a_rank_that_left_still_arrives);
  tcase_add_test(cases,
                 a_peer_that_passed_an_exchange_is_a_divergence_on_all_ranks);
  tcase_add_test(cases, a_peer_that_is_ahead_after_its_record_has_not_diverged);
  tcase_add_test(cases, the_first_failure_reported_reaches_every_rank);
  tcase_add_test(cases, a_check_reports_dead_ranks_but_not_ranks_that_left);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
