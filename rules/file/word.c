// SPDX-License-Identifier: Apache-2.0
// Taking texts apart into words, saying where a word is wrong, and taking the
// words of a key's value from keys.def, so that the pages made of that table
// have every word that the parser takes.
#include "rules/file/word.h"

#include <assert.h>
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
                           "'%s' is not a known %s; nearest: %s", shown, what,
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

// ---- the words of a key --------------------------------------------------

static const char *const key_values[SDG_KEY_COUNT] = {
#define SDG_RULES_KEY(name, key, kind, value, otherwise, view, example,        \
                      meaning)                                                 \
  [SDG_KEY_##name] = value,
#include "rules/file/keys.def"
};

void sdg_key_words(sdg_rules_key_t key, sdg_key_words_t *out_words) {
  const char *rest = key_values[key];
  sdg_word_t word;
  out_words->count = 0;
  while (sdg_word_next(&rest, "|", &word)) {
    // Others have capitals or signs: DIM, even/ALIGN.
    size_t letters = strspn(word.at, "abcdefghijklmnopqrstuvwxyz ");
    if (letters < (size_t)word.length)
      continue;
    int i = out_words->count++;
    assert(i < SDG_KEY_WORDS_MAX && word.length < SDG_KEY_WORD_BYTES);
    snprintf(out_words->text[i], SDG_KEY_WORD_BYTES, "%.*s", word.length,
             word.at);
    out_words->at[i] = out_words->text[i];
  }
}

bool sdg_key_takes(sdg_rules_key_t key, const char *text) {
  sdg_key_words_t words;
  sdg_key_words(key, &words);
  for (int i = 0; i < words.count; i++)
    if (strcmp(text, words.at[i]) == 0)
      return true;
  return false;
}

sdg_status_t sdg_key_check(const sdg_location_t *location, const char *text,
                           sdg_rules_key_t key, const char *what) {
  sdg_key_words_t words;
  int index;
  sdg_key_words(key, &words);
  return sdg_choice_parse(location, text, what, words.at, words.count, &index);
}

sdg_status_t sdg_key_choose(const sdg_location_t *location, const char *text,
                            sdg_rules_key_t key, sdg_option_t option,
                            const char *what, int *out_value) {
  const sdg_option_info_t *info = sdg_option_at(option);
  SDG_TRY(sdg_key_check(location, text, key, what));
  int value = sdg_word_index(info->words, text, strlen(text));
  if (value < 0)
    return sdg_location_fail(location, SDG_E_INTERNAL, "%s does not take '%s'",
                             info->variable, text);
  *out_value = value;
  return SDG_OK;
}
