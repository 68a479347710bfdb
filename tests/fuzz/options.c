// SPDX-License-Identifier: Apache-2.0
// Fuzzes the options and the short form of rules: each line of an input is an
// environment variable.
#include <stdio.h>
#include <string.h>

#include "rules/file/file.h"
#include "tests/fuzz/fuzz.h"

enum { VARIABLES = 16, TEXT_BYTES = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static char text[TEXT_BYTES];
  char *environment[VARIABLES + 1];
  int count = 0;
  if (bytes >= sizeof text)
    return 0;
  memcpy(text, data, bytes);
  text[bytes] = '\0';
  for (char *line = strtok(text, "\n"); line && count < VARIABLES;
       line = strtok(NULL, "\n"))
    // Files of this machine must not be read.
    if (strncmp(line, "SUNDOG_RULES=", 13) != 0)
      environment[count++] = line;
  environment[count] = NULL;
  sdg_status_t status = sdg_options_load(environment);
  const sdg_options_t *options = sdg_options_get();
  FUZZ_HOLDS(sdg_options_fault() == status);
  if (!sdg_options_asked(options) || status != SDG_OK)
    return 0;
  for (int ranks = 1; ranks <= 8; ranks++) {
    sdg_rules_t rules;
    if (sdg_rules_load(options, ranks, &rules) == SDG_OK)
      sdg_rules_fini(&rules);
  }
  return 0;
}
