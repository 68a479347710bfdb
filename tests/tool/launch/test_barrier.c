// SPDX-License-Identifier: Apache-2.0
// The ranks of a launcher wait for each other; each rank is a process.
#include "tools/meeting/barrier.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static sdg_secret_t secret, another;
static barrier_place_t place;
static int listener;

static void begin(void) {
  uint16_t port = 0;
  const char *text = "a secret of this test";
  ck_assert_uint_eq(sdg_secret_find(text, "", &secret), SDG_OK);
  ck_assert_uint_eq(sdg_secret_find(text + 1, "", &another), SDG_OK);
  listener = sdg_address_listen_any(0, &port);
  ck_assert_int_ge(listener, 0);
  barrier_place_find(port, &place);
  ck_assert_int_gt(place.count, 0);
}

// Starts a rank. It ends with 0 if its status is `wanted` and its message has
// the text.
static pid_t rank_start(int rank, const sdg_secret_t *known,
                        sdg_status_t wanted, const char *message) {
  pid_t pid = fork();
  if (pid != 0)
    return pid;
  int reached = -1;
  close(listener);
  sdg_status_t status = barrier_join(&place, known, rank, 2, &reached);
  bool as_wanted = status == wanted;
  if (status == SDG_OK)
    as_wanted = as_wanted && reached == 0;
  else
    as_wanted = as_wanted && strstr(sdg_last_error(), message);
  if (!as_wanted)
    fprintf(stderr, "rank %d: status %d, %s\n", rank, (int)status,
            sdg_last_error());
  _exit(as_wanted ? 0 : 1);
}

static void rank_end(pid_t pid) {
  int status = 1;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
}

START_TEST(all_ranks_are_released) {
  pid_t pid[6];
  bool same = false;
  int reached = -1;
  begin();
  for (int r = 1; r < 6; r++)
    pid[r] = rank_start(r, &secret, SDG_OK, "");
  ck_assert_uint_eq(barrier_serve(listener, &secret, 6, 20, &reached, &same),
                    SDG_OK);
  ck_assert(same);
  ck_assert_int_eq(reached, 0);
  for (int r = 1; r < 6; r++)
    rank_end(pid[r]);
}
END_TEST

START_TEST(a_missing_rank_is_named_everywhere) {
  bool same;
  int reached;
  begin();
  pid_t first = rank_start(1, &secret, SDG_E_JOIN_TIMEOUT, ": 2, 3");
  ck_assert_uint_eq(barrier_serve(listener, &secret, 4, 1, &reached, &same),
                    SDG_E_JOIN_TIMEOUT);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), ": 2, 3"));
  rank_end(first);
}
END_TEST

START_TEST(only_who_knows_the_secret_counts) {
  bool same;
  int reached;
  begin();
  pid_t stranger = rank_start(1, &another, SDG_E_JOIN_TIMEOUT,
                              "rank 0 could not be reached");
  ck_assert_uint_eq(barrier_serve(listener, &secret, 2, 1, &reached, &same),
                    SDG_E_JOIN_TIMEOUT);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), ": 1"));
  close(listener);
  rank_end(stranger);
}
END_TEST

START_TEST(strangers_and_ranks_that_are_not_of_the_job_do_no_harm) {
  bool same;
  int reached;
  begin();
  int silent = sdg_address_connect(&place.address[0]);
  int talking = sdg_address_connect(&place.address[0]);
  pid_t beyond = rank_start(7, &secret, SDG_E_PEER_LOST, "rank 0 ended");
  usleep(100000);
  ck_assert_int_gt(send(talking, &place, sizeof place, MSG_NOSIGNAL), 0);
  pid_t first = rank_start(1, &secret, SDG_OK, "");
  ck_assert_uint_eq(barrier_serve(listener, &secret, 2, 20, &reached, &same),
                    SDG_OK);
  rank_end(first);
  rank_end(beyond);
  close(silent);
  close(talking);
}
END_TEST

START_TEST(few_descriptors_are_enough_for_few_ranks) {
  bool same;
  int reached;
  begin();
  pid_t first = rank_start(1, &secret, SDG_OK, "");
  const struct rlimit few = {32, 32};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
  ck_assert_uint_eq(barrier_serve(listener, &secret, 2, 20, &reached, &same),
                    SDG_OK);
  rank_end(first);
}
END_TEST

START_TEST(a_connection_without_a_descriptor_is_reported_at_once) {
  bool same;
  int reached;
  begin();
  pid_t first = rank_start(1, &secret, SDG_E_JOIN_TIMEOUT, "rank 0");
  const struct rlimit enough = {67, 67};
  int last = 0;
  while (last >= 0 && last < 66)
    last = dup(listener);
  ck_assert_int_eq(last, 66);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &enough), 0);
  ck_assert_uint_eq(barrier_serve(listener, &secret, 2, 20, &reached, &same),
                    SDG_E_RENDEZVOUS);
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), "ulimit -n"));
  rank_end(first);
}
END_TEST

// Each of the other addresses gets its time, within the limit.
START_TEST(the_last_of_many_addresses_is_tried_in_time) {
  bool same;
  int reached;
  begin();
  barrier_place_t many = {.count = BARRIER_ADDRESSES};
  for (int i = 0; i < BARRIER_ADDRESSES; i++) {
    many.address[i] = place.address[0];
    sdg_address_set_port(&many.address[i], 1); // nobody listens
  }
  many.address[BARRIER_ADDRESSES - 1] = place.address[0];
  place = many;
  pid_t pid = fork();
  if (pid == 0)
    _exit(barrier_join(&place, &secret, 1, 2, &reached) == SDG_OK ? 0 : 1);
  ck_assert_uint_eq(barrier_serve(listener, &secret, 2, 4, &reached, &same),
                    SDG_OK);
  rank_end(pid);
}
END_TEST

START_TEST(a_port_that_is_kept_can_be_listened_at) {
  uint16_t port = 0, same_port = 0, third = 0;
  int kept = sdg_address_reserve(0, &port);
  ck_assert_int_ge(kept, 0);
  int first = sdg_address_listen_any(port, &same_port);
  ck_assert_int_ge(first, 0);
  ck_assert_uint_eq(port, same_port);
  close(first);
  first = sdg_address_listen_any(port, &same_port);
  ck_assert_int_ge(first, 0);
  ck_assert_int_lt(sdg_address_listen_any(port, &third), 0);
  close(first);
  close(kept);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("barrier");
  TCase *cases = tcase_create("barrier");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, all_ranks_are_released);
  tcase_add_test(cases, a_missing_rank_is_named_everywhere);
  tcase_add_test(cases, only_who_knows_the_secret_counts);
  tcase_add_test(cases, strangers_and_ranks_that_are_not_of_the_job_do_no_harm);
  tcase_add_test(cases, few_descriptors_are_enough_for_few_ranks);
  tcase_add_test(cases, a_connection_without_a_descriptor_is_reported_at_once);
  tcase_add_test(cases, the_last_of_many_addresses_is_tried_in_time);
  tcase_add_test(cases, a_port_that_is_kept_can_be_listened_at);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
