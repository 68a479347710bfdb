/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the rules: their locations, for messages, and which of them a key's
 * value may be. Inside rules/ only. */
#ifndef SDG_RULES_FILE_WORD_H
#define SDG_RULES_FILE_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/options.h"
#include "src/base/status.h"

/* Where a text comes from, for messages: "rules.ini:12", or "SUNDOG_SPLIT"
 * where line is 0. */
typedef struct sdg_location {
  const char *source;
  int line;
} sdg_location_t;

/* sdg_fail with the location in front. */
sdg_status_t sdg_location_fail(const sdg_location_t *location,
                               sdg_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The location of this thread's last sdg_location_fail, for a reader that
 * continues after a fault. */
sdg_location_t sdg_location_last(void);

/* A piece of a text, not terminated. */
typedef struct sdg_word {
  const char *at;
  int length;
} sdg_word_t;

/* Takes the next piece of *text up to one of `separators`, without the spaces
 * around it, and moves *text behind the separator. False at the end. */
bool sdg_word_next(const char **text, const char *separators,
                   sdg_word_t *out_word);
bool sdg_word_is(sdg_word_t word, const char *text);
/* Digits only, up to 2^53: what a tensor's extent can be. */
bool sdg_word_number(sdg_word_t word, int64_t *out);
/* SDG_E_RULES_WORD: "`word` is no <what>; nearest: ..." */
sdg_status_t sdg_word_fail(const sdg_location_t *location, sdg_word_t word,
                           const char *what, const char *const *valid,
                           int count);
/* Which of `valid` the text is; fails as sdg_word_fail. */
sdg_status_t sdg_choice_parse(const sdg_location_t *location, const char *text,
                              const char *what, const char *const *valid,
                              int count, int *out_index) SDG_MUST_CHECK;

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

/* Gets those alternatives of the key's value that are words: "yes | no | AXIS"
 * has yes and no. */
void sdg_key_words(sdg_rules_key_t key, sdg_key_words_t *out_words);
bool sdg_key_takes(sdg_rules_key_t key, const char *text);
/* Fails as sdg_word_fail unless the text is one of the key's words. */
sdg_status_t sdg_key_check(const sdg_location_t *location, const char *text,
                           sdg_rules_key_t key,
                           const char *what) SDG_MUST_CHECK;
/* The same for a key whose words an option has, too. *out_value: the option's
 * value for this word (options.h). */
sdg_status_t sdg_key_choose(const sdg_location_t *location, const char *text,
                            sdg_rules_key_t key, sdg_option_t option,
                            const char *what, int *out_value) SDG_MUST_CHECK;

#endif
