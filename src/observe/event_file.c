// SPDX-License-Identifier: Apache-2.0
// Opens a file of records at the first one, and writes whole records.
#include "src/observe/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/fd.h"
#include "src/base/status.h"

// Copies `pattern` to out, which ends at `end`, and returns where it stopped.
static char *path_expand(const char *pattern, char *out, const char *end) {
  char text[256] = "";
  for (const char *c = pattern; *c && out + 1 < end; c++) {
    size_t room = (size_t)(end - out);
    int n = 1;
    *out = *c;
    if (c[0] == '%' && (c[1] == 'r' || c[1] == 'h' || c[1] == 'p')) {
      if (c[1] == 'h')
        gethostname(text, sizeof text - 1);
      n = c[1] == 'h'   ? snprintf(out, room, "%s", text)
          : c[1] == 'p' ? snprintf(out, room, "%d", (int)getpid())
                        : snprintf(out, room, "%d",
                                   sdg_log_rank() < 0 ? 0 : sdg_log_rank());
      c++;
    }
    out += (size_t)n < room ? (size_t)n : room - 1;
  }
  *out = '\0';
  return out;
}

// With the lock held.
static void file_open(sdg_event_file_t *file, const char *folder) {
  static const int flags[] = {[SDG_EVENT_APPEND] = O_APPEND,
                              [SDG_EVENT_REPLACE] = O_TRUNC,
                              [SDG_EVENT_CREATE] = O_EXCL};
  char path[PATH_MAX];
  if (file->name) {
    int n = snprintf(path, sizeof path, "%s/", folder);
    size_t used = n > 0 && (size_t)n < sizeof path ? (size_t)n : 0;
    (void)path_expand(file->name, path + used, path + sizeof path);
  } else {
    (void)path_expand(folder, path, path + sizeof path);
  }
  file->file = sdg_fd_know(sdg_fd_raise(open(
      path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags[file->mode],
      0600)));
  file->state = file->file.fd >= 0 ? SDG_EVENT_OPEN : SDG_EVENT_ENDED;
  if (file->file.fd < 0)
    (void)!sdg_fail(SDG_E_TRACE_FILE, "%s: %s", path, strerror(errno));
}

// With the lock held. A program that closes every descriptor ends the file.
static bool written(const sdg_event_file_t *file, const char *from,
                    size_t bytes) {
  errno = EBADF; // if the number refers to another file by now
  if (!sdg_fd_is(&file->file))
    return false;
  while (bytes > 0) {
    ssize_t n = write(file->file.fd, from, bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    from += n;
    bytes -= (size_t)n;
  }
  return true;
}

// With the lock held.
static void bytes_write(sdg_event_file_t *file, const char *from,
                        size_t bytes) {
  if (bytes == 0 || file->state != SDG_EVENT_OPEN)
    return;
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  if (!written(file, from, bytes)) {
    (void)!sdg_fail(SDG_E_TRACE_FILE, "%s: %s", file->what, strerror(errno));
    sdg_fd_close(&file->file);
    file->state = SDG_EVENT_ENDED;
  }
  sdg_signal_guard_end(&guard);
}

static void buffer_write(sdg_event_file_t *file) {
  bytes_write(file, file->buffer, file->used);
  file->used = 0;
}

bool sdg_event_append_within(sdg_event_file_t *file, const char *folder,
                             const void *record, size_t bytes,
                             size_t most_bytes) {
  if (bytes == 0)
    return true;
  pthread_mutex_lock(&file->lock);
  bool fits = file->taken_bytes <= most_bytes &&
              bytes <= most_bytes - file->taken_bytes;
  // A shorter record after one that did not fit would leave a gap.
  if (most_bytes < SIZE_MAX)
    file->taken_bytes = fits ? file->taken_bytes + bytes : SIZE_MAX;
  if (!fits && most_bytes < SIZE_MAX) {
    pthread_mutex_unlock(&file->lock);
    return false;
  }
  if (file->state == SDG_EVENT_UNUSED)
    file_open(file, folder);
  if (file->used + bytes > file->buffer_bytes)
    buffer_write(file);
  if (bytes > file->buffer_bytes) {
    bytes_write(file, record, bytes);
  } else {
    memcpy(file->buffer + file->used, record, bytes);
    file->used += bytes;
  }
  pthread_mutex_unlock(&file->lock);
  return true;
}

void sdg_event_append(sdg_event_file_t *file, const char *folder,
                      const void *record, size_t bytes) {
  (void)sdg_event_append_within(file, folder, record, bytes, SIZE_MAX);
}

void sdg_event_flush(sdg_event_file_t *file) {
  pthread_mutex_lock(&file->lock);
  buffer_write(file);
  pthread_mutex_unlock(&file->lock);
}

void sdg_event_drop(sdg_event_file_t *file) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&file->lock, NULL);
  sdg_fd_close(&file->file);
  file->used = 0;
  file->state = SDG_EVENT_ENDED;
}
