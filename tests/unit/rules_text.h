/* SPDX-License-Identifier: Apache-2.0 */
/* Loads rules from a text, for tests of the rules file. */
#ifndef SDG_TESTS_UNIT_RULES_TEXT_H
#define SDG_TESTS_UNIT_RULES_TEXT_H

#include <string.h>
#include <unistd.h>

#include "rules/file/file.h"
#include "tests/unit/harness.h"

enum { RANKS = 4 };

static char path[] = "/tmp/sundog-rules-XXXXXX";

static inline void file_write(const char *text, size_t bytes) {
  strcpy(path, "/tmp/sundog-rules-XXXXXX");
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, bytes), (ssize_t)bytes);
  close(fd);
}

/* Loads a file's text with more options ("SUNDOG_VIEW=shard" or NULL). */
static inline sdg_status_t bytes_load(const char *text, size_t bytes,
                                      const char *option, int ranks,
                                      sdg_rules_t *out) {
  char rules[64];
  file_write(text, bytes);
  snprintf(rules, sizeof rules, "SUNDOG_RULES=%s", path);
  char *environment[] = {rules, (char *)(uintptr_t)option, NULL};
  ck_assert_int_eq((int)sdg_options_load(environment), 0);
  sdg_status_t status = sdg_rules_load(sdg_options_get(), ranks, out);
  unlink(path);
  return status;
}

static inline sdg_status_t text_load(const char *text, sdg_rules_t *out) {
  return bytes_load(text, strlen(text), NULL, RANKS, out);
}

#define SHARD   "[shard a]\nview = shard\n"
#define SHARD_B "[shard b]\nview = shard\nsplit = W\n"

#endif
