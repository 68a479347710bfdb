/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a section, and the words that stand for their values, both as
 * keys.def has them. Inside rules/ only. */
#ifndef SDG_RULES_FILE_KEY_H
#define SDG_RULES_FILE_KEY_H

#include "rules/file/word.h"

typedef enum sdg_rules_key {
#define SDG_RULES_KEY(name, key, kind, value, otherwise, view, example,        \
                      meaning)                                                 \
  SDG_KEY_##name,
#include "rules/file/keys.def"
  SDG_KEY_COUNT,
} sdg_rules_key_t;

enum { SDG_KEY_WORDS_MAX = 8, SDG_KEY_WORD_BYTES = 16 };

/* Points into itself: do not copy it. */
typedef struct sdg_key_words {
  int count;
  const char *at[SDG_KEY_WORDS_MAX];
  char text[SDG_KEY_WORDS_MAX][SDG_KEY_WORD_BYTES];
} sdg_key_words_t;

/* Those alternatives of the key's value that are words: "yes | no | AXIS" has
 * yes and no. */
void sdg_key_words(sdg_rules_key_t key, sdg_key_words_t *out_words);
/* Which of the key's words the text is, counted from 0 in the order of
 * keys.def; fails as sdg_word_fail. */
sdg_status_t sdg_key_parse(const sdg_location_t *location, const char *text,
                           sdg_rules_key_t key, const char *what,
                           int *out_index) SDG_MUST_CHECK;

#endif
