// SPDX-License-Identifier: Apache-2.0
// Finds distinct lines with a hash table, and writes the file line by line.
#include "src/observe/inspect_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/base/status.h"

enum { SLOTS = 1 << 14, PATH_BYTES = 4096, LINE_BYTES = 4608 };

typedef struct line {
  char *text; // owned; NULL: a free slot
  uint64_t hash;
  int number;
} line_t;

// An open hash table, filled to three quarters. Later lines are dropped, and
// the file says so.
static struct {
  pthread_mutex_t lock;
  bool opened; // or an attempt was made
  bool dropped;
  int file;
  int lines;
  line_t line[SLOTS];
  uint64_t count[SLOTS]; // index: line number
} record = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

bool sdg_inspect_record_wanted(void) {
  return sdg_options_get()->inspect[0] != '\0';
}

static void file_open(void) {
  char path[PATH_BYTES];
  record.opened = true;
  snprintf(path, sizeof path, "%s/calls-%d", sdg_options_get()->inspect,
           (int)getpid());
  record.file =
      open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (record.file < 0)
    (void)!sdg_fail(SDG_E_TRACE_FILE, "%s: %s", path, strerror(errno));
}

// Lock held. If the disk is full, the record is lost, but the program
// continues.
static void bytes_write(const char *text, size_t bytes) {
  while (record.file >= 0 && bytes > 0) {
    ssize_t n = write(record.file, text, bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      (void)!sdg_fail(SDG_E_TRACE_FILE, "writing: %s", strerror(errno));
      close(record.file);
      record.file = -1;
      return;
    }
    text += n;
    bytes -= (size_t)n;
  }
}

static uint64_t hash_of(const char *text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (; *text; text++) // FNV-1a
    hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

void sdg_inspect_record_count(const char *text) {
  uint64_t hash = hash_of(text);
  pthread_mutex_lock(&record.lock);
  line_t *line = &record.line[hash % SLOTS];
  while (line->text && (line->hash != hash || strcmp(line->text, text) != 0))
    line = line + 1 < record.line + SLOTS ? line + 1 : record.line;
  if (!line->text && record.lines < SLOTS / 4 * 3) {
    line->text = strdup(text);
    line->hash = hash;
    if (line->text) {
      if (!record.opened)
        file_open();
      line->number = record.lines++;
      bytes_write(text, strlen(text));
      bytes_write("\n", 1);
    }
  }
  if (!line->text && !record.dropped) {
    record.dropped = true;
    bytes_write("{\"dropped\":true}\n", 17);
  }
  if (line->text)
    record.count[line->number]++;
  pthread_mutex_unlock(&record.lock);
}

static bool is_nvidia(const char *path) {
  static const char *const stems[] = {"libcudart", "libcudnn.so",
                                      "libcublas.so", "libnccl"};
  const char *base = strrchr(path, '/');
  for (size_t i = 0; base && i < sizeof stems / sizeof *stems; i++)
    if (strncmp(base + 1, stems[i], strlen(stems[i])) == 0)
      return true;
  return false;
}

static void libraries_write(void) {
  char line[LINE_BYTES], last[LINE_BYTES] = "";
  const char *before = "";
  FILE *maps = fopen("/proc/self/maps", "re");
  bytes_write("{\"libraries\":[", 14);
  while (maps && fgets(line, sizeof line, maps)) {
    line[strcspn(line, "\n")] = '\0';
    char *path = strchr(line, '/');
    if (!path || !is_nvidia(path) || strcmp(path, last) == 0)
      continue;
    snprintf(last, sizeof last, "%s", path);
    for (char *c = path; *c; c++)
      if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
        *c = '?';
    bytes_write(before, strlen(before));
    bytes_write("\"", 1);
    bytes_write(path, strlen(path));
    bytes_write("\"", 1);
    before = ",";
  }
  if (maps)
    fclose(maps);
  bytes_write("]}\n", 3);
}

void sdg_inspect_record_finish(void) {
  if (!sdg_inspect_record_wanted())
    return;
  pthread_mutex_lock(&record.lock);
  bytes_write("{\"counts\":[", 11);
  for (int i = 0; i < record.lines; i++) {
    char number[24];
    int n = snprintf(number, sizeof number, "%s%" PRIu64, i ? "," : "",
                     record.count[i]);
    bytes_write(number, (size_t)n);
  }
  bytes_write("]}\n", 3);
  if (record.file >= 0)
    libraries_write();
  pthread_mutex_unlock(&record.lock);
}

void sdg_inspect_record_drop(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&record.lock, NULL);
  record.file = -1;
  record.opened = true;
}
