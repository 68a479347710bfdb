// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of a run's record as `sundog report` uses it: any files
// make a report that is JSON, or a failure.
//
// An input has several files: "@rank-0\n" begins the file rank-0.
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/report/document.h"
#include "tools/report/trace.h"

static const char *const names[] = {
    "rank-0",  "rank-1",        "rank-2",        "times-0",
    "times-1", "totals-0.json", "totals-1.json", "totals-2.json",
};
enum { FILES = sizeof names / sizeof *names };
static char folder[] = "/tmp/sundog-fuzz-XXXXXX", link_name[FILES][64];
static int file[FILES];

static void folder_remove_all(void) {
  for (int i = 0; i < FILES; i++)
    unlink(link_name[i]);
  rmdir(folder);
}

static void files_make(void) {
  FUZZ_HOLDS(mkdtemp(folder));
  for (int i = 0; i < FILES; i++) {
    char path[64];
    file[i] = memfd_create(names[i], MFD_CLOEXEC);
    FUZZ_HOLDS(file[i] >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file[i]);
    snprintf(link_name[i], sizeof link_name[i], "%s/%s", folder, names[i]);
  }
  atexit(folder_remove_all);
}

// Fills the file that the part is of, and puts it into the folder.
static void part_put(const uint8_t *part, size_t bytes) {
  const uint8_t *end = memchr(part, '\n', bytes);
  size_t head = end ? (size_t)(end - part) : bytes;
  for (int i = 0; i < FILES; i++) {
    char path[64];
    if (head != strlen(names[i]) || memcmp(part, names[i], head) != 0)
      continue;
    size_t rest = bytes - head - (end != NULL);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file[i]);
    FUZZ_HOLDS(ftruncate(file[i], 0) == 0 &&
               pwrite(file[i], part + bytes - rest, rest, 0) == (ssize_t)rest);
    (void)!symlink(path, link_name[i]); // twice: the last one counts
  }
}

static void parts_put(const uint8_t *data, size_t bytes) {
  size_t begin = 0;
  for (int i = 0; i < FILES; i++)
    (void)unlink(link_name[i]);
  for (size_t at = 1; at <= bytes; at++)
    if (at == bytes || (data[at] == '@' && data[at - 1] == '\n')) {
      if (data[begin] == '@')
        part_put(data + begin + 1, at - begin - 1);
      begin = at;
    }
}

static sdg_status_t document(const recorded_t *run, FILE *to) {
  return document_write(run, 50, to);
}

static void written_is_json(const recorded_t *run,
                            sdg_status_t (*write)(const recorded_t *, FILE *)) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *memory = open_memstream(&text, &bytes);
  FUZZ_HOLDS(memory);
  sdg_status_t status = write(run, memory);
  FUZZ_HOLDS(fclose(memory) == 0);
  json_t *json = json_loadb(text, bytes, 0, NULL);
  FUZZ_HOLDS(status == SDG_OK && json);
  json_decref(json);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  recorded_t run;
  if (file[0] == 0)
    files_make();
  parts_put(data, bytes);
  if (recorded_read(folder, &run) != SDG_OK)
    return 0;
  written_is_json(&run, document);
  written_is_json(&run, trace_write);
  recorded_fini(&run);
  return 0;
}
