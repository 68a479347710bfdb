// SPDX-License-Identifier: Apache-2.0
// Which processes may join a job and which are refused, by each kind of
// rendezvous.
#include "tests/unit/ranks.h"

static const int sizes[] = {2, 3, 5, 8};

START_TEST(ranks_join_in_any_order) {
  ranks_t *ranks = ranks_init(sizes[_i], 20);
  for (int r = 0; r < ranks->size; r++) {
    ranks_start_one(ranks, _i % 2 ? ranks->size - 1 - r : r, ranks_meet);
    ranks_sleep_ms(30);
  }
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_second_process_of_a_rank_fails_at_once_and_names_the_first) {
  ranks_t *ranks = ranks_init(2, 20);
  ranks_start(ranks, ranks_hold);
  ranks_await(ranks, 0, 1);
  ranks_await(ranks, 1, 1);
  for (int r = 0; r < 2; r++) { // the job continues meanwhile
    double start = ranks_now();
    sdg_control_t *control;
    ck_assert_int_eq(
        (int)sdg_control_join(ranks->rendezvous, r, 2, 20, &control),
        (int)SDG_E_RANK_TAKEN);
    ck_assert(ranks_now() - start < harness_soon(1));
    char text[64];
    snprintf(text, sizeof text, "process %d (", (int)ranks->pid[r]);
    ck_assert_msg(strstr(sdg_last_error(), text) != NULL, "%s",
                  sdg_last_error());
    snprintf(text, sizeof text, "did not start process %d", (int)getpid());
    ck_assert_msg(strstr(sdg_last_error(), text) != NULL, "%s",
                  sdg_last_error());
  }
  atomic_store(&ranks->result[7].stage, 1);
  ranks_wait(ranks);
  ranks_all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_wrong_size_is_an_error_on_all_that_names_both) {
  ranks_t *ranks = ranks_init(3, 20);
  ranks_start_one(ranks, 0, ranks_meet);
  ranks_start_one(ranks, 1, ranks_meet);
  ranks_sleep_ms(100);
  pid_t pid = fork();
  if (pid == 0) {
    ranks_child(ranks, 2, 4, NULL, &ranks->result[2]);
    exit(0);
  }
  ranks->pid[2] = pid;
  ranks_wait(ranks);
  for (int r = 0; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_RENDEZVOUS);
    ranks_assert_text(ranks, r, "rank 2 has size 4, rank 0 has size 3");
    ck_assert(ranks->result[r].seconds < harness_soon(5));
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(missing_ranks_are_named_in_time_on_all_ranks) {
  ranks_t *ranks = ranks_init(5, 1.5);
  ranks_start_one(ranks, 0, NULL);
  ranks_start_one(ranks, 2, NULL);
  ranks_wait(ranks);
  for (int r = 0; r < 3; r += 2) {
    ranks_assert(ranks, r, SDG_E_JOIN_TIMEOUT);
    ranks_assert_text(ranks, r, "ranks 1, 3, 4 of 5");
    ck_assert(ranks->result[r].seconds < harness_soon(4));
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_missing_rank_0_is_named) {
  ranks_t *ranks = ranks_init(2, 0.7);
  ranks_start_one(ranks, 1, NULL);
  ranks_wait(ranks);
  ranks_assert(ranks, 1, SDG_E_JOIN_TIMEOUT);
  ranks_assert_text(ranks, 1, "rank 0 of 2");
  ck_assert(ranks->result[1].seconds < harness_soon(3));
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_rank_that_dies_while_others_join_ends_the_join) {
  for (int dead = 0; dead < 2; dead++) {
    ranks_t *ranks = ranks_init(3, 30);
    ranks_start_one(ranks, 0, NULL);
    ranks_start_one(ranks, 1, NULL);
    // Both wait for the third by then.
    ranks_sleep_ms((int)(1000 * harness_soon(0.6)));
    ranks_signal(ranks, dead, SIGKILL);
    ranks_wait(ranks);
    ranks_assert(ranks, !dead, SDG_E_PEER_LOST);
    ranks_assert_text(ranks, !dead,
                      dead ? "rank 1 ended while rank 0 waits for rank 2"
                           : "rank 0 ended while rank 1 waits for rank 2");
    ck_assert(ranks->result[!dead].seconds < harness_soon(4));
    if (ranks_over_tcp())
      ranks_unlock(ranks);
    ranks_fini(ranks); // the survivor removed the dead one's socket
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("joining");
  TCase *cases = tcase_create("joining");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_loop_test(cases, ranks_join_in_any_order, 0, 4);
  tcase_add_test(cases,
                 a_second_process_of_a_rank_fails_at_once_and_names_the_first);
  tcase_add_test(cases, a_wrong_size_is_an_error_on_all_that_names_both);
  tcase_add_test(cases, missing_ranks_are_named_in_time_on_all_ranks);
  tcase_add_test(cases, a_missing_rank_0_is_named);
  tcase_add_test(cases, a_rank_that_dies_while_others_join_ends_the_join);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
