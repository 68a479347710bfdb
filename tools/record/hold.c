// SPDX-License-Identifier: Apache-2.0
// A lock of flock(2) on a file that names the run: each process of the run has
// a shared lock. The system drops it when the process is killed.
#include "tools/record/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/hash.h"
#include "src/base/log.h"

// A run that ends, or a process that looks who holds the folder, may have a
// lock for a moment.
enum { TRIES = 50, PAUSE_NS = 10000000 };
enum { NOTE_BYTES = 256 };

// "0123456789abcdef process 123 on node7\n": the hash of the job, and who was
// its first process.
enum { JOB_DIGITS = 16 };

static void note_make(const char *job, char out[NOTE_BYTES]) {
  char host[128] = "";
  gethostname(host, sizeof host - 1);
  snprintf(out, NOTE_BYTES, "%016" PRIx64 " process %d on %s\n",
           sdg_hash_text(SDG_HASH_SEED, job), (int)getpid(), host);
}

static bool note_read(int file, char out[NOTE_BYTES]) {
  ssize_t n = pread(file, out, NOTE_BYTES - 1, 0);
  out[n > 0 ? n : 0] = '\0';
  out[strcspn(out, "\n")] = '\0';
  return n > JOB_DIGITS;
}

// Returns whether this process holds the folder for the job of `own` now. If
// another run does, out_other receives its note. errno is that of flock.
static bool hold_try(int file, const char *own, char out_other[NOTE_BYTES]) {
  // Nobody holds it, so that the file names this run from here on.
  if (flock(file, LOCK_EX | LOCK_NB) == 0 &&
      (ftruncate(file, 0) != 0 ||
       pwrite(file, own, strlen(own), 0) != (ssize_t)strlen(own)))
    // On a full disk nobody holds the folder: the job's other ranks could not
    // read that it is their own job's.
    return flock(file, LOCK_UN) == 0;
  // Not atomic: another run may have written its name in between.
  if (flock(file, LOCK_SH | LOCK_NB) != 0)
    return false;
  if (note_read(file, out_other) && strncmp(out_other, own, JOB_DIGITS) == 0)
    return true;
  flock(file, LOCK_UN);
  errno = EWOULDBLOCK;
  return false;
}

sdg_status_t hold_take(const char *folder, const char *job, int *out_hold) {
  char path[PATH_MAX], own[NOTE_BYTES], other[NOTE_BYTES] = "";
  const struct timespec pause = {0, PAUSE_NS};
  *out_hold = -1;
  snprintf(path, sizeof path, "%s/lock", folder);
  int file =
      sdg_fd_raise(open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file < 0)
    return SDG_OK;
  note_make(job, own);
  for (int i = 0; i < TRIES; i++) {
    if (hold_try(file, own, other)) {
      *out_hold = file;
      return SDG_OK;
    }
    if (errno != EWOULDBLOCK) {
      sdg_log("%s: %s: another run that records there at the same time would "
              "not be noticed",
              path, strerror(errno));
      close(file);
      return SDG_OK;
    }
    nanosleep(&pause, NULL);
  }
  close(file);
  const char *who = strchr(other, ' ');
  return sdg_fail(SDG_E_RECORD_HELD, "%s is in use by %s", folder,
                  who ? who + 1 : "another process");
}

void hold_drop(int hold) {
  if (hold < 0)
    return;
  flock(hold, LOCK_UN);
  close(hold);
}
