// SPDX-License-Identifier: Apache-2.0
// Writes messages to stderr, and reports failures.
#include "src/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/hash.h"
#include "src/base/status.h"

enum { LINE_BYTES = 2048, REMEMBERED = 64 };

static atomic_int own_rank = -1;
// The thread's last failure, allocated at its first one: thread-local storage
// of a preloaded library is scarce, and if it is too large, programs with an
// audit module do not start.
static _Thread_local char *last_error;
static pthread_key_t last_error_key;
static _Thread_local sdg_log_place_t *place;
static _Thread_local int probes; // number of open probes

static void key_create(void) {
  pthread_key_create(&last_error_key, free);
}

static char *last_error_room(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!last_error) {
    pthread_once(&once, key_create);
    last_error = malloc(LINE_BYTES);
    pthread_setspecific(last_error_key, last_error);
  }
  return last_error;
}

// Where messages go. A program may close these descriptors and open other
// files at their numbers.
static struct {
  atomic_bool set;
  sdg_fd_t file[2]; // tried in this order
} messages;

void sdg_log_set_files(int file, int other) {
  messages.file[0] = sdg_fd_know(file);
  messages.file[1] = sdg_fd_know(other);
  atomic_store(&messages.set, true);
}

// Writes to the first file that takes the whole line at once.
static void message_write(const char *line, size_t bytes) {
  for (int i = 0; i < 2 && atomic_load(&messages.set); i++)
    if (sdg_fd_is(&messages.file[i]) &&
        write(messages.file[i].fd, line, bytes) >= 0)
      return;
  // If stderr is closed, the user chose that; no place is left to report it.
  ssize_t written = write(STDERR_FILENO, line, bytes);
  (void)written;
}

void sdg_log_set_rank(int rank) {
  atomic_store(&own_rank, rank);
}

void sdg_log_set_place(sdg_log_place_t *write) {
  place = write;
}

int sdg_log_rank(void) {
  return atomic_load(&own_rank);
}

static void line_write(const char *head, const char *text) {
  char line[LINE_BYTES + 64];
  int rank = sdg_log_rank();
  int n;
  if (rank >= 0)
    n = snprintf(line, sizeof line, "sundog: %s[rank %d] %s\n", head, rank,
                 text);
  else
    n = snprintf(line, sizeof line, "sundog: %s%s\n", head, text);
  if (n < 0)
    return;
  if ((size_t)n >= sizeof line) {
    n = sizeof line - 1;
    line[n - 1] = '\n';
  }
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  message_write(line, (size_t)n);
  sdg_signal_guard_end(&guard);
}

void sdg_log(const char *format, ...) {
  char text[LINE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  line_write("", text);
}

// Returns true the first time a text is seen, so that a failing call in a loop
// prints one line. The set is bounded; when it is full, texts are no longer
// suppressed.
static bool first_time(const char *text) {
  static _Atomic(uint64_t) seen[REMEMBERED];
  uint64_t hash = sdg_hash_text(SDG_HASH_SEED, text);
  if (hash == 0)
    hash = 1;
  for (int i = 0; i < REMEMBERED; i++) {
    uint64_t old = 0;
    if (atomic_compare_exchange_strong(&seen[i], &old, hash))
      return true;
    if (old == hash)
      return false;
  }
  return true;
}

void sdg_log_once(const char *format, ...) {
  char text[LINE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (first_time(text))
    line_write("", text);
}

void sdg_probe_begin(void) {
  probes++;
}

void sdg_probe_end(void) {
  probes--;
}

sdg_status_t sdg_fail(sdg_status_t status, const char *format, ...) {
  if (probes > 0 && status != SDG_E_NO_MEMORY)
    return status;
  const sdg_error_info_t *info = sdg_error_find(status);
  char details[LINE_BYTES - 512], at[128] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(details, sizeof details, format, args);
  va_end(args);
  char text[LINE_BYTES];
  snprintf(text, sizeof text, "SDG-%03d %s: %s", (int)status,
           info ? info->summary : "unknown status", details);
  // Compared without the place.
  bool is_new = first_time(text);
  if (place)
    place(at, sizeof at);
  if (*at && !strstr(details, at))
    snprintf(text + strlen(text), sizeof text - strlen(text), ", at %s", at);
  if (last_error_room())
    memcpy(last_error, text, sizeof text);
  if (is_new) {
    char head[16];
    snprintf(head, sizeof head, "SDG-%03d ", (int)status);
    line_write(head, text + strlen(head));
  }
  return status;
}

const char *sdg_last_error(void) {
  return last_error ? last_error : "";
}
