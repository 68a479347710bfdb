// SPDX-License-Identifier: Apache-2.0
// Fuzzes records of a program's calls: reads them, judges splits, drafts rules.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rules/file/file.h"
#include "tests/fuzz/fuzz.h"
#include "tools/draft/candidate.h"
#include "tools/draft/draft.h"
#include "tools/record/calls.h"

static char folder[] = "/tmp/sundog-fuzz-XXXXXX", link_name[64];

static void folder_remove_all(void) {
  unlink(link_name);
  rmdir(folder);
}

static void calls_judge(const calls_t *calls, sdg_view_t view,
                        const char *draft) {
  static const sdg_dim_t dims[] = {SDG_DIM_N, SDG_DIM_D, SDG_DIM_H, SDG_DIM_W};
  static char *words[] = {"program", NULL};
  static candidate_t candidate[4];
  for (int i = 0; i < 4; i++)
    if (candidate_judge(calls, view, dims[i], 4, calls_steps(calls),
                        &candidate[i]) != SDG_OK)
      return;
  const candidate_t *chosen =
      draft_choose(candidate, 4, SDG_DIM_COUNT, SDG_VIEW_UNSAID);
  if (!chosen ||
      draft_write(draft, candidate, 4, chosen, NULL, calls, words) != SDG_OK)
    return;
  // Drafted rules can be read.
  char option[128];
  snprintf(option, sizeof option, "SUNDOG_RULES=%s", draft);
  char *environment[] = {option, NULL};
  FUZZ_HOLDS(sdg_options_load(environment) == SDG_OK);
  sdg_rules_t rules;
  // Sections of functions have places to fill in.
  sdg_status_t status = sdg_rules_load(sdg_options_get(), 4, &rules);
  FUZZ_HOLDS(status == SDG_OK || status == SDG_E_RULES_UNFILLED);
  sdg_rules_fini(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static int file = -1, draft = -1;
  static char draft_path[64];
  if (file < 0) {
    char path[64];
    file = memfd_create("calls", MFD_CLOEXEC);
    draft = memfd_create("draft", MFD_CLOEXEC);
    FUZZ_HOLDS(file >= 0 && draft >= 0 && mkdtemp(folder));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    snprintf(draft_path, sizeof draft_path, "/proc/self/fd/%d", draft);
    snprintf(link_name, sizeof link_name, "%s/calls-1", folder);
    FUZZ_HOLDS(symlink(path, link_name) == 0);
    atexit(folder_remove_all);
  }
  FUZZ_HOLDS(ftruncate(file, 0) == 0 &&
             pwrite(file, data, bytes, 0) == (ssize_t)bytes);
  calls_t calls;
  if (calls_read(folder, &calls) != SDG_OK)
    return 0;
  FUZZ_HOLDS(calls_steps(&calls) >= 1);
  calls_judge(&calls, SDG_VIEW_SHARD, draft_path);
  calls_judge(&calls, SDG_VIEW_WHOLE, draft_path);
  calls_fini(&calls);
  return 0;
}
