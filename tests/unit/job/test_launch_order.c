// SPDX-License-Identifier: Apache-2.0
// Threads of several ranks take turns in one order, whoever comes first where.
#include "src/job/launch_order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/control/thread_name.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/random.h"
#include "tests/unit/job.h"

enum { RANKS = 3, THREADS = 3, TURNS_MAX = 8000 };

// What each rank's threads did, in order; shared by the processes of a test.
typedef struct history {
  int count;
  signed char channel[TURNS_MAX];
} history_t;
static history_t *history;
static int turns_each, slow_rank, rank_of_process;

static void history_make(void) {
  history = mmap(NULL, RANKS * sizeof *history, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(history != MAP_FAILED);
}

static void turn_make(void) {
  REQUIRE(!sdg_launch_order_begin());
  history_t *mine = &history[rank_of_process];
  REQUIRE(mine->count < TURNS_MAX);
  mine->channel[mine->count] = (signed char)sdg_channel_get();
  mine->count++; // alone in its turn: a sanitizer would see who is not
  sdg_launch_order_end();
}

static void *thread_main(void *name) {
  unsigned noise = (unsigned)(rank_of_process * 7 + *(const char *)name);
  REQUIRE(!sdg_thread_set_name(name));
  if (noise % 3 == 0)
    usleep(20000);
  REQUIRE(!sdg_thread_claim("test"));
  for (int i = 0; i < turns_each; i++) {
    noise = noise * 1103515245u + 12345u;
    if (noise >> 9 & 1)
      usleep(noise >> 16 & 63);
    turn_make();
  }
  return NULL;
}

// The main thread makes turns alone, then beside the others.
static void threads_body(int rank) {
  static char name[THREADS][8] = {"", "one", "two"};
  pthread_t thread[THREADS];
  rank_of_process = rank;
  REQUIRE(!sdg_thread_claim("test"));
  for (int i = 0; i < 20; i++)
    turn_make();
  for (int t = 1; t < THREADS; t++)
    REQUIRE(pthread_create(&thread[t], NULL, thread_main, name[t]) == 0);
  for (int i = 0; i < turns_each; i++) {
    if (rank == slow_rank)
      usleep(200);
    turn_make();
  }
  for (int t = 1; t < THREADS; t++)
    REQUIRE(pthread_join(thread[t], NULL) == 0);
}

static void histories_compare(void) {
  REQUIRE(history[0].count == 20 + THREADS * turns_each);
  for (int r = 1; r < RANKS; r++) {
    REQUIRE(history[r].count == history[0].count);
    REQUIRE(memcmp(history[r].channel, history[0].channel,
                   (size_t)history[0].count) == 0);
  }
}

START_TEST(turns_are_in_one_order_on_all_ranks) {
  for (slow_rank = 0; slow_rank < RANKS; slow_rank++) {
    history_make();
    turns_each = 100;
    job_run("y=3", 1, "20", threads_body);
    histories_compare();
  }
}
END_TEST

START_TEST(the_first_rank_waits_before_turns_are_overwritten) {
  history_make();
  slow_rank = 2;
  turns_each = 1200; // of three threads: several times round the ring
  job_run("y=3", 1, "20", threads_body);
  histories_compare();
}
END_TEST

// Rank 1's second thread waits, as for the device, for a launch that rank 0's
// main thread makes when rank 0's second thread is at its first call already.
static void *met_main(void *unused) {
  (void)unused;
  REQUIRE(!sdg_thread_set_name("second"));
  while (rank_of_process == 1 &&
         __atomic_load_n(&history[0].count, __ATOMIC_ACQUIRE) < 21)
    usleep(1000);
  REQUIRE(!sdg_thread_claim("test"));
  turn_make();
  return NULL;
}

static void met_body(int rank) {
  pthread_t thread;
  rank_of_process = rank;
  REQUIRE(!sdg_thread_claim("test"));
  for (int i = 0; i < 20 + rank; i++)
    turn_make();
  REQUIRE(pthread_create(&thread, NULL, met_main, NULL) == 0);
  usleep(100000);
  for (int i = rank; i < 5; i++)
    turn_make();
  REQUIRE(pthread_join(thread, NULL) == 0);
}

START_TEST(a_thread_that_enters_does_not_hold_up_the_first) {
  history_make();
  job_run("y=2", 1, "20", met_body);
}
END_TEST

static void *stray_main(void *unused) {
  (void)unused;
  REQUIRE(!sdg_thread_set_name("stray"));
  REQUIRE(sdg_thread_claim("test") == SDG_E_PEER_TIMEOUT);
  REQUIRE(strstr(sdg_last_error(), "of thread 'stray'"));
  return NULL;
}

static void stray_body(int rank) {
  pthread_t thread;
  REQUIRE(!sdg_thread_claim("test"));
  if (rank == 0) {
    REQUIRE(pthread_create(&thread, NULL, stray_main, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
  }
  for (int i = 0; i < 200 && !sdg_job_failed(); i++) {
    usleep(20000);
    (void)!sdg_control_check(sdg_job_control(), 0);
    if (rank != 0 && sdg_control_check(sdg_job_control(), 0) != SDG_OK)
      return;
  }
  REQUIRE(sdg_job_failed());
}

START_TEST(a_thread_that_one_rank_has_ends_in_an_error_that_names_it) {
  job_run("y=2", 1, "0.4", stray_body);
}
END_TEST

static void *again_main(void *channel) {
  REQUIRE(!sdg_thread_set_name("again"));
  REQUIRE(!sdg_thread_claim("test"));
  *(int *)channel = sdg_channel_get();
  turn_make();
  return NULL;
}

static void again_body(int rank) {
  int first = 0, channel;
  rank_of_process = rank;
  for (int i = 0; i < 50; i++) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, again_main, &channel) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    first = i ? first : channel;
    REQUIRE(channel == first && channel > 0);
  }
}

START_TEST(threads_of_one_name_follow_each_other_on_one_channel) {
  history_make();
  job_run("y=2", 1, "20", again_body);
}
END_TEST

// Ranks bring names in different order and get the same channels.
static void names_body(int rank) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
  int channel, seen = 0;
  for (int i = 0; i < 7; i++) {
    int n = (i * (rank + 2) + rank) % 7;
    REQUIRE(!sdg_thread_name_find(sdg_job_control(), names[n], &channel));
    REQUIRE(channel >= 1 && channel < SDG_CHANNEL_THREADS);
    REQUIRE(!(seen >> channel & 1));
    seen |= 1 << channel;
    history[rank].channel[n] = (signed char)channel;
  }
  REQUIRE(sdg_thread_name_find(sdg_job_control(), "h", &channel) ==
          SDG_E_THREADS_MANY);
}

START_TEST(a_name_has_the_same_channel_on_every_rank) {
  history_make();
  job_run("y=3", 1, "20", names_body);
  for (int r = 1; r < RANKS; r++)
    REQUIRE(memcmp(history[r].channel, history[0].channel, 7) == 0);
}
END_TEST

START_TEST(names_are_short_words) {
  REQUIRE(!sdg_thread_set_name("a-Z_0.9"));
  REQUIRE(!sdg_thread_set_name("1234567890123456789012345678901"));
  static const char *const wrong[] = {"",
                                      " ",
                                      "a b",
                                      "#1",
                                      "a/b",
                                      "\xc3\xa4",
                                      "12345678901234567890123456789012"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    REQUIRE(sdg_thread_set_name(wrong[i]) == SDG_E_THREAD_NAME);
  REQUIRE(!sdg_thread_set_name(NULL));
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("turn");
  TCase *cases = tcase_create("turn");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, turns_are_in_one_order_on_all_ranks);
  tcase_add_test(cases, the_first_rank_waits_before_turns_are_overwritten);
  tcase_add_test(cases, a_thread_that_enters_does_not_hold_up_the_first);
  tcase_add_test(cases,
                 a_thread_that_one_rank_has_ends_in_an_error_that_names_it);
  tcase_add_test(cases, threads_of_one_name_follow_each_other_on_one_channel);
  tcase_add_test(cases, a_name_has_the_same_channel_on_every_rank);
  tcase_add_test(cases, names_are_short_words);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
