// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of records of a rank's tagged calls.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/record/explain_call.h"

static char folder[] = "/tmp/sundog-fuzz-XXXXXX", link_name[64];

static void folder_remove_all(void) {
  unlink(link_name);
  rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static int file = -1;
  if (file < 0) {
    char path[64];
    file = memfd_create("history", MFD_CLOEXEC);
    FUZZ_HOLDS(file >= 0 && mkdtemp(folder));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    snprintf(link_name, sizeof link_name, "%s/rank-0", folder);
    FUZZ_HOLDS(symlink(path, link_name) == 0);
    atexit(folder_remove_all);
  }
  FUZZ_HOLDS(ftruncate(file, 0) == 0 &&
             pwrite(file, data, bytes, 0) == (ssize_t)bytes);
  for (int call = 0; call < 4; call++)
    (void)!explain_call(folder, 0, 0, call);
  return 0;
}
