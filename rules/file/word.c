// SPDX-License-Identifier: Apache-2.0
// Taking texts apart into words, and saying where a word is wrong.
#include "rules/file/word.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/words.h"

enum { WORDS_SHOWN = 64 };

static _Thread_local sdg_location_t last_location;

sdg_location_t sdg_location_last(void) {
  return last_location;
}

sdg_status_t sdg_location_fail(const sdg_location_t *location,
                               sdg_status_t status, const char *format, ...) {
  char text[1024];
  last_location = *location;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (location->line > 0)
    return sdg_fail(status, "%s:%d: %s", location->source, location->line,
                    text);
  return sdg_fail(status, "%s: %s", location->source, text);
}

bool sdg_word_next(const char **text, const char *separators,
                   sdg_word_t *out_word) {
  const char *at = *text;
  while (isspace((unsigned char)*at))
    at++;
  if (*at == '\0')
    return false;
  size_t n = strcspn(at, separators);
  *text = at[n] ? at + n + 1 : at + n;
  while (n > 0 && isspace((unsigned char)at[n - 1]))
    n--;
  *out_word = (sdg_word_t){at, (int)n};
  return true;
}

bool sdg_word_is(sdg_word_t word, const char *text) {
  return strlen(text) == (size_t)word.length &&
         memcmp(word.at, text, (size_t)word.length) == 0;
}

bool sdg_word_number(sdg_word_t word, int64_t *out) {
  int64_t value = 0;
  for (int i = 0; i < word.length; i++) {
    if (!isdigit((unsigned char)word.at[i]))
      return false;
    value = value * 10 + (word.at[i] - '0');
    if (value > (int64_t)1 << 53)
      return false;
  }
  *out = value;
  return word.length > 0;
}

sdg_status_t sdg_word_fail(const sdg_location_t *location, sdg_word_t word,
                           const char *what, const char *const *valid,
                           int count) {
  char shown[WORDS_SHOWN];
  snprintf(shown, sizeof shown, "%.*s", word.length, word.at);
  return sdg_location_fail(location, SDG_E_RULES_WORD,
                           "'%s' is no %s; nearest: %s", shown, what,
                           sdg_word_nearest(shown, valid, count));
}

sdg_status_t sdg_choice_parse(const sdg_location_t *location, const char *text,
                              const char *what, const char *const *valid,
                              int count, int *out_index) {
  for (int i = 0; i < count; i++)
    if (strcmp(text, valid[i]) == 0)
      return *out_index = i, SDG_OK;
  return sdg_word_fail(location, (sdg_word_t){text, (int)strlen(text)}, what,
                       valid, count);
}
