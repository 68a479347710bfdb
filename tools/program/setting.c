// SPDX-License-Identifier: Apache-2.0
// Sets a variable, and notes who has set it.
#include "tools/program/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Copies `words` without those about the option `name`.
static void words_without(const char *words, const char *name, char *out,
                          size_t out_bytes) {
  size_t bytes = strlen(name), used = 0;
  *out = '\0';
  for (; *words; words += strspn(words, " ")) {
    size_t length = strcspn(words, " ");
    bool about = length > bytes && memcmp(words, name, bytes) == 0 &&
                 strchr("=+", words[bytes]);
    if (!about && used + length + 2 <= out_bytes)
      used += (size_t)snprintf(out + used, out_bytes - used, "%.*s ",
                               (int)length, words);
    words += length;
  }
}

sdg_status_t setting_make(const char *variable, const char *value,
                          sdg_origin_t origin) {
  const char *before = getenv("SUNDOG_ORIGINS"),
             *name = variable + strlen("SUNDOG_");
  char others[2048], words[2112];
  words_without(before ? before : "", name, others, sizeof others);
  snprintf(words, sizeof words, "%s%s%c%08" PRIx32, others, name,
           origin == SDG_ORIGIN_ARGUMENT ? '=' : '+', sdg_option_mark(value));
  return setenv(variable, value, 1) == 0 &&
                 setenv("SUNDOG_ORIGINS", words, 1) == 0
             ? SDG_OK
             : sdg_fail(SDG_E_NO_MEMORY, "for %s", variable);
}
