// SPDX-License-Identifier: Apache-2.0
// Forks the ranks of a job for a test.
#include "tests/unit/job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/exchange/exchange.h"
#include "src/job/job.h"
#include "tests/unit/random.h"
#include "tests/unit/free_port.h"

enum { RANKS_MAX = 8, LIMIT_SECONDS = 30 };

static void unused_function(void) {
  abort();
}

void *job_fake_find(const job_fake_t *table, int count, const char *name) {
  void (*function)(void) = unused_function;
  for (int i = 0; i < count; i++)
    if (strcmp(table[i].name, name) == 0)
      function = table[i].function;
  void *address;
  memcpy(&address, &function, sizeof address);
  return address;
}

static void rank_run(const char *folder, int port, const char *mesh_text,
                     sdg_axes_t axes, const char *timeout_s, int rank,
                     int ranks, void (*body)(int rank)) {
  char number[16], count[16], meet[64], limit[64];
  snprintf(number, sizeof number, "%d", rank);
  snprintf(count, sizeof count, "%d", ranks);
  snprintf(meet, sizeof meet, "SUNDOG_RENDEZVOUS=file:%s/meet", folder);
  if (port)
    snprintf(meet, sizeof meet, "SUNDOG_RENDEZVOUS=tcp://127.0.0.1:%d", port);
  setenv("XDG_RUNTIME_DIR", folder, 1); // for locks
  snprintf(limit, sizeof limit, "SUNDOG_TIMEOUT=%s", timeout_s);
  setenv("SUNDOG_RANK", number, 1);
  setenv("SUNDOG_SIZE", count, 1);
  char split[] = "SUNDOG_SPLIT=H",
       secret[] = "SUNDOG_SECRET=of unit tests only";
  REQUIRE(!sdg_options_load((char *[]){split, limit, secret, meet, NULL}));
  sdg_mesh_t mesh;
  REQUIRE(!sdg_mesh_parse(mesh_text, ranks, &mesh));
  REQUIRE(!sdg_exchange_join(&mesh, axes));
  body(rank);
  sdg_exchange_leave();
}

// Waits for all; when one fails the others, who may wait for it, are ended.
static int ranks_wait(pid_t *pid, int ranks) {
  int failed = 0;
  for (int ended = 0; ended < ranks; ended++) {
    int status;
    pid_t child = wait(&status);
    ck_assert_int_gt(child, 0);
    failed += status != 0;
    for (int r = 0; r < ranks; r++) {
      if (pid[r] == child)
        pid[r] = 0;
      else if (status != 0 && pid[r] > 0)
        kill(pid[r], SIGKILL);
    }
  }
  return failed;
}

void job_run(const char *mesh, sdg_axes_t axes, const char *timeout_s,
             void (*body)(int rank)) {
  int ranks = 1;
  for (const char *c = mesh; (c = strchr(c, '=')); c++)
    ranks *= atoi(c + 1);
  ck_assert_int_le(ranks, RANKS_MAX);
  char folder[] = "/tmp/sdg-test-XXXXXX", meet[sizeof folder + 16];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  pid_t pid[RANKS_MAX];
  // The same between machines.
  int port = getenv("SDG_TEST_TCP") ? port_free() : 0;
  for (int r = 0; r < ranks; r++) {
    pid[r] = fork();
    ck_assert_int_ge(pid[r], 0);
    if (pid[r] == 0) {
      alarm(LIMIT_SECONDS);
      rank_run(folder, port, mesh, axes, timeout_s, r, ranks, body);
      fflush(NULL);
      _exit(0); // a rank keeps some memory until its process ends
    }
  }
  int failed = ranks_wait(pid, ranks);
  // What a rank that was ended could not remove.
  (void)unlink(strcat(strcpy(meet, folder), "/meet"));
  (void)unlink(strcat(meet, ".lock"));
  char locks[128];
  snprintf(locks, sizeof locks, "rm -rf %s/sundog", folder);
  ck_assert_int_eq(system(locks), 0);
  ck_assert_int_eq(rmdir(folder), 0);
  ck_assert_int_eq(failed, 0);
}
