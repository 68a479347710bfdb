/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a section's keys, from text to data. Inside rules/ only. */
#ifndef SDG_RULES_RULESVALUE_H
#define SDG_RULES_RULESVALUE_H

#include "rules/rulesfile.h"

/* Where a text comes from, for messages: "rules.ini:12", or "SUNDOG_SPLIT"
 * where line is 0. */
typedef struct sdg_place {
  const char *source;
  int line;
} sdg_place_t;

/* sdg_fail with the place in front. */
sdg_status_t sdg_place_fail(const sdg_place_t *place, sdg_status_t status,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

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
/* SDG_E_RULES_WORD: "`word` is no <what>; nearest: ..." */
sdg_status_t sdg_word_fail(const sdg_place_t *place, sdg_word_t word,
                           const char *what, const char *const *valid,
                           int count);
/* Which of `valid` the text is; fails as sdg_word_fail. */
sdg_status_t sdg_choice_parse(const sdg_place_t *place, const char *text,
                              const char *what, const char *const *valid,
                              int count, int *out_index) SDG_MUST_CHECK;

/* Each fills its members of the section. Those of `split` need the mesh,
 * those of `parts` the split. */
sdg_status_t sdg_match_parse(const sdg_place_t *place, const char *text,
                             sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_op_parse(const sdg_place_t *place, const char *text,
                          sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_split_parse(const sdg_place_t *place, const char *text,
                             const sdg_mesh_t *mesh,
                             sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_parts_parse(const sdg_place_t *place, const char *text,
                             sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_wrap_parse(const sdg_place_t *place, const char *text,
                            sdg_section_t *section) SDG_MUST_CHECK;
sdg_status_t sdg_window_parse(const sdg_place_t *place, const char *text,
                              sdg_section_t *section) SDG_MUST_CHECK;

/* Calls `each` for every axis that a `split` text names; syntax faults are
 * left to sdg_split_parse. */
void sdg_split_axes(const char *text, void (*each)(void *user, sdg_word_t axis),
                    void *user);

#endif
