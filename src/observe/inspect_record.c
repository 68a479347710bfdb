// SPDX-License-Identifier: Apache-2.0
// Finds distinct lines with a hash table, and writes the file line by line.
#include "src/observe/inspect_record.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/base/options.h"
#include "src/observe/event_file.h"

enum { SLOTS = 1 << 14, LINE_BYTES = 4608 };

typedef struct line {
  char *text; // owned; NULL: a free slot
  uint64_t hash;
  int number;
} line_t;

// An open hash table, filled to three quarters. Later lines are dropped, and
// the file says so.
static struct {
  pthread_mutex_t lock;
  bool dropped;
  int lines;
  line_t line[SLOTS];
  uint64_t count[SLOTS]; // index: line number
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sdg_event_file_t calls = {
    SDG_EVENT_FILE("the record of calls", SDG_EVENT_APPEND, "calls-%p")};

void sdg_inspect_put(sdg_inspect_text_t *io, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(io->bytes + io->used, sizeof io->bytes - io->used, format,
                    args);
  va_end(args);
  io->used += n < 0 ? 0 : (size_t)n;
  if (io->used >= sizeof io->bytes)
    io->used = sizeof io->bytes - 1;
}

bool sdg_inspect_record_wanted(void) {
  return sdg_options_get()->inspect[0] != '\0';
}

static void text_write(const char *text) {
  sdg_event_append(&calls, sdg_options_get()->inspect, text, strlen(text));
}

void sdg_inspect_record_count(const char *text) {
  uint64_t hash = sdg_hash_text(SDG_HASH_SEED, text);
  pthread_mutex_lock(&record.lock);
  line_t *line = &record.line[hash % SLOTS];
  while (line->text && (line->hash != hash || strcmp(line->text, text) != 0))
    line = line + 1 < record.line + SLOTS ? line + 1 : record.line;
  if (!line->text && record.lines < SLOTS / 4 * 3) {
    line->text = strdup(text);
    line->hash = hash;
    if (line->text) {
      line->number = record.lines++;
      text_write(text);
      text_write("\n");
    }
  }
  if (!line->text && !record.dropped) {
    record.dropped = true;
    text_write("{\"dropped\":true}\n");
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

void sdg_inspect_libraries(FILE *to) {
  char line[LINE_BYTES], last[LINE_BYTES] = "";
  const char *before = "";
  FILE *maps = fopen("/proc/self/maps", "re");
  fputs("[", to);
  while (maps && fgets(line, sizeof line, maps)) {
    line[strcspn(line, "\n")] = '\0';
    char *path = strchr(line, '/');
    if (!path || !is_nvidia(path) || strcmp(path, last) == 0)
      continue;
    snprintf(last, sizeof last, "%s", path);
    for (char *c = path; *c; c++)
      if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
        *c = '?';
    fprintf(to, "%s\"%s\"", before, path);
    before = ",";
  }
  if (maps)
    fclose(maps);
  fputs("]", to);
}

static void libraries_write(void) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *memory = open_memstream(&text, &bytes);
  if (!memory)
    return;
  fputs("{\"libraries\":", memory);
  sdg_inspect_libraries(memory);
  fputs("}\n", memory);
  if (fclose(memory) == 0)
    text_write(text);
  free(text);
}

void sdg_inspect_record_line(const char *line) {
  pthread_mutex_lock(&record.lock);
  text_write(line);
  pthread_mutex_unlock(&record.lock);
}

void sdg_inspect_record_finish(void) {
  if (!sdg_inspect_record_wanted())
    return;
  pthread_mutex_lock(&record.lock);
  text_write("{\"counts\":[");
  for (int i = 0; i < record.lines; i++) {
    char number[24];
    snprintf(number, sizeof number, "%s%" PRIu64, i ? "," : "",
             record.count[i]);
    text_write(number);
  }
  text_write("]}\n");
  libraries_write();
  pthread_mutex_unlock(&record.lock);
}

void sdg_inspect_record_drop(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&record.lock, NULL);
  sdg_event_drop(&calls);
}
