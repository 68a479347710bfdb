// SPDX-License-Identifier: Apache-2.0
// Keeps the list of files that are being written, so that a signal can remove
// them.
#include "tools/array/unfinished.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/geometry/mesh.h"

_Static_assert((int)UNFINISHED_MAX >= (int)SDG_RANKS_MAX, "a piece for each");

static const int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE,
                             SIGALRM, SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2};
enum { ENDING = sizeof ending / sizeof *ending };

// Names of the files that are not committed; NULL: free entry. It changes only
// while the signals are blocked.
static char *part[UNFINISHED_MAX];

static void signal_remove(int number) {
  for (int i = 0; i < UNFINISHED_MAX; i++)
    if (part[i])
      unlink(part[i]);
  signal(number, SIG_DFL);
  raise(number); // taken when this handler returns
}

static void signals_block(sigset_t *out_mask) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < ENDING; i++)
    sigaddset(&set, ending[i]);
  sigprocmask(SIG_BLOCK, &set, out_mask);
}

void unfinished_guard(void) {
  struct sigaction action = {.sa_handler = signal_remove};
  for (int i = 0; i < ENDING; i++)
    sigaddset(&action.sa_mask, ending[i]);
  for (int i = 0; i < ENDING; i++) {
    struct sigaction old;
    sigaction(ending[i], NULL, &old);
    if (old.sa_handler == SIG_DFL) // a signal that nohup ignores stays ignored
      sigaction(ending[i], &action, NULL);
  }
}

static void part_remove(const char *name) {
  for (int i = 0; name && i < UNFINISHED_MAX; i++)
    if (part[i] == name)
      part[i] = NULL;
}

sdg_status_t unfinished_create(const char *path, bool raw,
                               const sdg_npy_header_t *like, int dims,
                               const int64_t *extent, sdg_npy_t *out_npy) {
  sigset_t mask;
  int free_entry = 0;
  while (free_entry < UNFINISHED_MAX && part[free_entry])
    free_entry++;
  if (free_entry == UNFINISHED_MAX)
    return sdg_fail(SDG_E_INTERNAL, "%d files are already being written",
                    free_entry);
  signals_block(&mask);
  sdg_status_t status = sdg_npy_create(path, raw, like->dtype, like->fortran,
                                       dims, extent, out_npy);
  if (status == SDG_OK)
    part[free_entry] = out_npy->part;
  sigprocmask(SIG_SETMASK, &mask, NULL);
  return status;
}

sdg_status_t unfinished_commit(sdg_npy_t *npy) {
  sigset_t mask;
  signals_block(&mask);
  part_remove(npy->part);
  sdg_status_t status = sdg_npy_commit(npy);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  return status;
}

void unfinished_close(sdg_npy_t *npy) {
  sigset_t mask;
  signals_block(&mask);
  part_remove(npy->part);
  sdg_npy_close(npy);
  sigprocmask(SIG_SETMASK, &mask, NULL);
}

sdg_status_t unfinished_check(const char *path, const char *input) {
  struct stat output, read;
  bool same = stat(path, &output) == 0 && stat(input, &read) == 0 &&
              output.st_dev == read.st_dev && output.st_ino == read.st_ino;
  char *full[2] = {realpath(path, NULL), realpath(input, NULL)};
  same |= full[0] && full[1] && strcmp(full[0], full[1]) == 0;
  free(full[0]);
  free(full[1]);
  if (!same)
    return SDG_OK;
  return sdg_fail(SDG_E_OVERWRITE, "%s is the input %s", path, input);
}
