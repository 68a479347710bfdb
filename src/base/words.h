/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the word that a misspelt word was meant to be. Pure. */
#ifndef SDG_SRC_BASE_WORDS_H
#define SDG_SRC_BASE_WORDS_H

#include <stddef.h>

/* Returns the edit distance, ignoring case: insertions, deletions,
 * replacements and swaps of neighbours count 1. Compares at most 63
 * characters. "SUNDOG_SPILT" to "SUNDOG_SPLIT" is 1. */
int sdg_word_distance(const char *a, const char *b);

/* Returns the candidate nearest to `word`; the first one if several are
 * equally near. count >= 1. */
const char *sdg_word_nearest(const char *word, const char *const *candidates,
                             int count);

/* Returns the index in a list "a|b|c" of the word that is the first `length`
 * characters at `word`, case-sensitive; -1 if the list does not contain it. ""
 * is a member of "|a". */
int sdg_word_index(const char *list, const char *word, size_t length);

#endif
