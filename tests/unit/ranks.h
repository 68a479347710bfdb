/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the ranks of a small job as child processes of a test. */
#ifndef SDG_TESTS_UNIT_RANKS_H
#define SDG_TESTS_UNIT_RANKS_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/rendezvous.h"
#include "src/control/control.h"
#include "tests/unit/harness.h"
#include "tests/unit/free_port.h"

enum { RANKS_MAX = 8, RANKS_LIMIT_SECONDS = 60 };

/* What a rank tells the test; in memory that all processes share. */
typedef struct ranks_result {
  _Atomic(int) stage; /* for the test's own use */
  int done;
  int status;
  char text[2048];
  double seconds;
} ranks_result_t;

typedef struct ranks {
  int size;
  double timeout_s;
  int absent; /* for the test's own use */
  char folder[64];
  char rendezvous[4200];
  int log; /* stderr of all ranks */
  pid_t pid[RANKS_MAX];
  int wait_status[RANKS_MAX];
  ranks_result_t *result; /* [RANKS_MAX] */
} ranks_t;

typedef sdg_status_t (*ranks_body_t)(sdg_control_t *control, ranks_t *ranks);

static inline double ranks_now(void) {
  return (double)sdg_monotonic_ns() * 1e-9;
}

static inline void ranks_sleep_ms(int ms) {
  struct timespec rest = {.tv_sec = ms / 1000,
                          .tv_nsec = (ms % 1000) * 1000000L};
  while (nanosleep(&rest, &rest) != 0)
    ;
}

/* The ranks find each other over TCP with this secret. */
static inline void ranks_use_tcp(ranks_t *ranks, const char *secret) {
  setenv("XDG_RUNTIME_DIR", ranks->folder, 1); // for locks
  setenv("SUNDOG_SECRET", secret, 1);
  ck_assert_int_eq((int)sdg_options_load(environ), (int)SDG_OK);
  snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "tcp://127.0.0.1:%d",
           port_free());
}

/* Returns whether SDG_TEST_TCP runs the same tests over TCP. */
static inline int ranks_over_tcp(void) {
  return getenv("SDG_TEST_TCP") != NULL;
}

static inline ranks_t *ranks_init(int size, double timeout_s) {
  // Not on the heap, because a leak check would report it when a rank exits.
  ranks_t *ranks = mmap(NULL, sizeof *ranks, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(ranks, MAP_FAILED);
  ranks->size = size;
  ranks->timeout_s = timeout_s;
  ranks->result =
      mmap(NULL, RANKS_MAX * sizeof *ranks->result, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(ranks->result, MAP_FAILED);
  strcpy(ranks->folder, "/tmp/sdg-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(ranks->folder));
  snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "file:%s/meet",
           ranks->folder);
  ranks->log = memfd_create("log", 0);
  if (ranks_over_tcp())
    ranks_use_tcp(ranks, "the secret of a test");
  return ranks;
}

/* Runs rank `rank` in its process: joins, runs `body`, leaves. */
static inline void ranks_child(ranks_t *ranks, int rank, int size,
                               ranks_body_t body, ranks_result_t *out) {
  sdg_control_t *control = NULL;
  alarm(RANKS_LIMIT_SECONDS);
  dup2(ranks->log, 2);
  sdg_log_set_rank(rank);
  double start = ranks_now();
  sdg_status_t status = sdg_control_join(ranks->rendezvous, rank, size,
                                         ranks->timeout_s, &control);
  if (status == SDG_OK && body)
    status = body(control, ranks);
  out->status = (int)status;
  out->seconds = ranks_now() - start;
  snprintf(out->text, sizeof out->text, "%s", sdg_last_error());
  out->done = 1;
  sdg_control_destroy(control);
}

static inline void ranks_start_one(ranks_t *ranks, int rank,
                                   ranks_body_t body) {
  fflush(NULL);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  ranks->pid[rank] = pid;
  if (pid == 0) {
    ranks_child(ranks, rank, ranks->size, body, &ranks->result[rank]);
    exit(0);
  }
}

static inline void ranks_start(ranks_t *ranks, ranks_body_t body) {
  for (int r = 0; r < ranks->size; r++)
    ranks_start_one(ranks, r, body);
}

static inline void ranks_signal(ranks_t *ranks, int rank, int signal_number) {
  ck_assert_int_gt(ranks->pid[rank], 0); // 0 would signal the whole group
  ck_assert_int_eq(kill(ranks->pid[rank], signal_number), 0);
}

static inline void ranks_wait_one(ranks_t *ranks, int rank) {
  if (ranks->pid[rank] > 0)
    ck_assert_int_eq(waitpid(ranks->pid[rank], &ranks->wait_status[rank], 0),
                     ranks->pid[rank]);
  ranks->pid[rank] = 0;
}

static inline void ranks_wait(ranks_t *ranks) {
  for (int r = 0; r < ranks->size; r++)
    ranks_wait_one(ranks, r);
}

static inline void ranks_run(ranks_t *ranks, ranks_body_t body) {
  ranks_start(ranks, body);
  ranks_wait(ranks);
}

/* Waits until the rank's stage is at least `stage`. */
static inline void ranks_await(ranks_t *ranks, int rank, int stage) {
  for (int i = 0; atomic_load(&ranks->result[rank].stage) < stage; i++) {
    ck_assert_msg(i < RANKS_LIMIT_SECONDS * 1000, "rank %d is late", rank);
    ranks_sleep_ms(1);
  }
}

static inline int ranks_files(const ranks_t *ranks) {
  DIR *folder = opendir(ranks->folder);
  int count = -2; // "." and ".."
  while (folder && readdir(folder))
    count++;
  if (folder)
    closedir(folder);
  return count;
}

/* Returns whether a line of the ranks' stderr has both texts. */
static inline int ranks_said(ranks_t *ranks, const char *a, const char *b) {
  static char text[1 << 16];
  ssize_t n = pread(ranks->log, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = '\0';
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (strstr(line, a) && strstr(line, b))
      return 1;
  return 0;
}

/* Removes the lock of a job whose last rank was killed. */
static inline void ranks_unlock(const ranks_t *ranks) {
  char path[512];
  snprintf(path, sizeof path, "rm -f %s/meet.lock %s/sundog/tcp-*.lock",
           ranks->folder, ranks->folder);
  ck_assert_int_eq(system(path), 0);
}

/* All ranks exchange their numbers, several times. */
static inline sdg_status_t ranks_meet(sdg_control_t *control, ranks_t *ranks) {
  static const int everybody[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
  char all[RANKS_MAX][SDG_CHANNEL_RECORD_BYTES];
  size_t bytes[RANKS_MAX];
  int rank = sdg_control_rank(control);
  (void)ranks;
  for (int turn = 0; turn < 3; turn++) {
    SDG_TRY(sdg_control_exchange(control, 0, everybody,
                                 sdg_control_size(control), &rank, sizeof rank,
                                 all, bytes, "the test"));
    for (int r = 0; r < sdg_control_size(control); r++)
      if (bytes[r] != sizeof r || memcmp(all[r], &r, sizeof r) != 0)
        return sdg_fail(SDG_E_INTERNAL, "rank %d's record", r);
  }
  return SDG_OK;
}

/* The same, and once more after rank 7's stage is 1. The own stage is 1
 * meanwhile. */
static inline sdg_status_t ranks_hold(sdg_control_t *control, ranks_t *ranks) {
  SDG_TRY(ranks_meet(control, ranks));
  atomic_store(&ranks->result[sdg_control_rank(control)].stage, 1);
  ranks_await(ranks, 7, 1); // the test sets it
  return ranks_meet(control, ranks);
}

/* Checks that no file is left, and that no rank ended by itself with an error,
 * such as a sanitizer's. */
static inline void ranks_fini(ranks_t *ranks) {
  for (int r = 0; r < ranks->size; r++)
    if (WIFEXITED(ranks->wait_status[r]) &&
        WEXITSTATUS(ranks->wait_status[r]) != 0) {
      char log[2048];
      ssize_t n = pread(ranks->log, log, sizeof log - 1, 0);
      log[n > 0 ? n : 0] = '\0';
      ck_abort_msg("rank %d: exit status %d: %s", r,
                   WEXITSTATUS(ranks->wait_status[r]), log);
    }
  if (strncmp(ranks->rendezvous, "tcp:", 4) == 0) {
    char locks[80];
    snprintf(locks, sizeof locks, "%s/sundog", ranks->folder);
    ck_assert(rmdir(locks) == 0 || ranks_files(ranks) == 0);
  }
  ck_assert_int_eq(ranks_files(ranks), 0);
  ck_assert_int_eq(rmdir(ranks->folder), 0);
  close(ranks->log);
  munmap(ranks->result, RANKS_MAX * sizeof *ranks->result);
  munmap(ranks, sizeof *ranks);
}

#define ranks_assert(ranks, rank, expected)                                    \
  ck_assert_msg((ranks)->result[rank].done &&                                  \
                    (ranks)->result[rank].status == (int)(expected),           \
                "rank %d: done %d status %d instead of %d: %s", rank,          \
                (ranks)->result[rank].done, (ranks)->result[rank].status,      \
                (int)(expected), (ranks)->result[rank].text)

static inline void ranks_all_ok(ranks_t *ranks) {
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
}

#define ranks_assert_text(ranks, rank, part)                                   \
  ck_assert_msg(strstr((ranks)->result[rank].text, part) != NULL,              \
                "rank %d: '%s' is not in '%s'", rank, part,                    \
                (ranks)->result[rank].text)

#endif
