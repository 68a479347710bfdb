/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the rules and their locations, for messages. Inside rules/ only. */
#ifndef SDG_RULES_FILE_WORD_H
#define SDG_RULES_FILE_WORD_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
