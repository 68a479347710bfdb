// SPDX-License-Identifier: Apache-2.0
// Takes the words of a key's value from keys.def, so that the pages made of
// that table have every word that the parser takes.
#include "rules/file/key.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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

sdg_status_t sdg_key_parse(const sdg_location_t *location, const char *text,
                           sdg_rules_key_t key, const char *what,
                           int *out_index) {
  sdg_key_words_t words;
  sdg_key_words(key, &words);
  return sdg_choice_parse(location, text, what, words.at, words.count,
                          out_index);
}
