// SPDX-License-Identifier: Apache-2.0
// Writes what this process did with declared functions.
#include "src/observe/declared.h"

#include <stdio.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/options.h"

const char *const sdg_declared_name[SDG_DECLARED_COUNT] = {
    [SDG_DECLARED_ABSENT] = "absent",
    [SDG_DECLARED_UNUSED] = "unused",
    [SDG_DECLARED_CALLED] = "called",
};

void sdg_declared_write(const char *name, sdg_declared_t is) {
  const char *folder = sdg_options_get()->report;
  char path[4096];
  if (!*folder)
    return;
  sdg_signal_guard_t guard = sdg_signal_guard_begin();
  snprintf(path, sizeof path, "%s/functions-%d", folder, (int)getpid());
  FILE *file = fopen(path, "ae");
  if (file) {
    fprintf(file, "%s %s\n", sdg_declared_name[is], name);
    fclose(file);
  }
  sdg_signal_guard_end(&guard);
}
