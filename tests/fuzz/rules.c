// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of rules files.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rules/file/file.h"
#include "tests/fuzz/fuzz.h"

// For all rules, the answers that need no exchange must not contradict the
// exact answer.
static void tensors_match(const sdg_rules_t *rules) {
  static const int64_t extents[][SDG_DIMS_MAX] = {
      {1, 2, 64, 64}, {8, 3, 1, 1}, {2, 16, 7, 9, 1000}, {1, 1, 1 << 30}};
  static const int dims[] = {4, 4, 5, 3};
  for (int i = 0; i < 4; i++) {
    bool matched = false;
    for (int s = 0; s < rules->sections; s++)
      matched |=
          !rules->section[s].is_local &&
          sdg_section_match(&rules->section[s], SDG_FAMILY_CONV,
                            "cudnnConvolutionForward", extents[i], dims[i]);
    bool may = sdg_rules_may_match(
        rules, SDG_FAMILY_CONV, "cudnnConvolutionForward", extents[i], dims[i]);
    bool local = false;
    for (int s = 0; s < rules->sections; s++)
      local |= rules->section[s].is_local;
    FUZZ_HOLDS(may || !matched || local);
    (void)sdg_rules_leave_out(rules, SDG_FAMILY_CONV, "cudnnConvolutionForward",
                              extents[i], dims[i]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static int file = -1;
  static char rules_option[64];
  if (file < 0) {
    file = memfd_create("rules", MFD_CLOEXEC);
    snprintf(rules_option, sizeof rules_option, "SUNDOG_RULES=/proc/self/fd/%d",
             file);
    char *environment[] = {rules_option, NULL};
    FUZZ_HOLDS(file >= 0 && sdg_options_load(environment) == SDG_OK);
  }
  FUZZ_HOLDS(ftruncate(file, 0) == 0 &&
             pwrite(file, data, bytes, 0) == (ssize_t)bytes);
  static const int ranks[] = {1, 2, 4, 6, 64};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
    sdg_rules_t rules, reviewed;
    static const char *const names[] = {"cudnnConvolutionForward"};
    sdg_review_t review = {.ranks = ranks[i], .names = names, .count = 1};
    // The review continues after faults. It must find one if loading fails.
    bool good =
        sdg_rules_review(sdg_options_get(), &review, &reviewed) == SDG_OK;
    FUZZ_HOLDS(good == (review.faults == 0));
    if (good)
      sdg_rules_fini(&reviewed);
    bool loaded = sdg_rules_load(sdg_options_get(), ranks[i], &rules) == SDG_OK;
    FUZZ_HOLDS(loaded || !good);
    if (!loaded)
      continue;
    tensors_match(&rules);
    sdg_rules_fini(&rules);
  }
  return 0;
}
